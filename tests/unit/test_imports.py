"""What must not be imported: heavy libraries for a quick answer, a screen for the runtime."""

from __future__ import annotations

import subprocess
import sys

_LOADED = """
import sys
from pi_trio.cli.main import main
try:
    main({arguments!r})
finally:
    heavy = {{"trio", "httpx", "attrs", "attr", "orjson", "jsonschema", "textual"}} & set(sys.modules)
    assert not heavy, heavy
"""

_BLOCKED = """
import sys
for name in ("textual", "rich", "pi_tui"):
    sys.modules[name] = None  # importing it raises ImportError
import importlib, pkgutil, pi_trio
for module in pkgutil.walk_packages(pi_trio.__path__, "pi_trio."):
    importlib.import_module(module.name)
"""


def _python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)


def test_version_and_help_import_nothing_heavy() -> None:
    for argument, start in (("--version", "pi-trio 0."), ("--help", "usage: pi-trio")):
        done = _python(_LOADED.format(arguments=[argument]))
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(start)


def test_the_runtime_needs_no_screen() -> None:
    done = _python(_BLOCKED)
    assert done.returncode == 0, done.stderr
