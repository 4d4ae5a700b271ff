"""`pi-trio import-pi`: brings over what pi has."""

from __future__ import annotations

from collections.abc import Sequence

from pi_trio.cli.options import make_parser
from pi_trio.cli.words import put
from pi_trio.text import sanitise

__all__ = ["run"]

_DESCRIPTION = """\
Copy sessions, skills, prompt templates, themes and API keys from pi's directory (~/.pi/agent).
Nothing that is here already is replaced, and nothing there is changed."""


def run(argv: Sequence[str]) -> int:
    """Run the subcommand. Returns the exit status; raises `ConfigError` and `StorageError`."""
    parser = make_parser("pi-trio import-pi", _DESCRIPTION)
    parser.add_argument("--dry-run", action="store_true", help="only list what would be copied")
    parser.add_argument("directory", nargs="?", metavar="DIR", help="pi's directory, if it is another")
    namespace = parser.parse_args(argv)

    from pi_trio.resources.config import RuntimeConfig
    from pi_trio.resources.import_pi import import_pi
    from pi_trio.resources.paths import absolute, find_pi_dir

    source = absolute(namespace.directory) if namespace.directory else find_pi_dir()
    for line in import_pi(source, RuntimeConfig.load(), dry_run=namespace.dry_run):
        put(f"{sanitise(line, keep_newlines=False)}\n")
    return 0
