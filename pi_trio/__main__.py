"""`python -m pi_trio` is `pi-trio`."""

import sys

from pi_trio.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
