"""`python -m pi_tui` is `pi-tui`."""

import sys

from pi_tui.main import main

sys.exit(main())
