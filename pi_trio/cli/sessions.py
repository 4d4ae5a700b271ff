"""`pi-trio sessions …`: what can be done with session files without a conversation."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pi_trio.cli.options import add_command, make_parser
from pi_trio.cli.status import FAILED, ended_by
from pi_trio.cli.words import put, say, tell
from pi_trio.errors import ConfigError, SessionError, StorageError, UsageError
from pi_trio.resources.paths import absolute, find_pi_dir

if TYPE_CHECKING:
    from pi_trio.session.repository import SessionRepository
    from pi_trio.session.session import Session
    from pi_trio.session.summary import SessionSummary

__all__ = ["run"]

Command: TypeAlias = "Callable[[SessionRepository, argparse.Namespace], int]"

_WHICH = "a path, or an id or the beginning of one"


def run(arguments: Sequence[str]) -> int:
    """Do what the command line after `sessions` says. Returns the exit status; raises `PiError`s."""
    namespace = _parser().parse_args(arguments)
    command: Command = namespace.command
    named = namespace.session_dir
    repository = _repository(named)
    if named and command is not _import and not absolute(named).exists():  # only an import may make it
        raise UsageError(f"there is no folder {absolute(named)}")
    return command(repository, namespace)


def _repository(session_dir: str | None) -> SessionRepository:
    from pi_trio.resources.config import RuntimeConfig
    from pi_trio.session.repository import SessionRepository

    config = RuntimeConfig.load(session_dir=session_dir)
    return SessionRepository(config.agent_dir, config.cwd, config.session_dir)


# ------------------------------------------------------------------ the command line


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("pi-trio sessions", "Look after session files.")
    _add_session_dir(parser, None)
    parser.set_defaults(command=_list, all=False, json=False)
    commands = parser.add_subparsers(metavar="COMMAND", help="default: list")

    def add(name: str, command: Command, text: str, which: str | None = None) -> argparse.ArgumentParser:
        sub = add_command(commands, name, text)
        sub.set_defaults(command=command)
        _add_session_dir(sub, argparse.SUPPRESS)  # what stands before the command counts without one here
        if which is not None:
            sub.add_argument("which", metavar="WHICH", nargs="+" if which == "several" else None, help=_WHICH)
        return sub

    found = add("list", _list, "list the sessions of this directory, the latest first")
    search = add(
        "search", _search, "list the sessions that have all the words in their name or in what was said"
    )
    search.add_argument(
        "words", nargs="+", metavar="WORD", help="a word, or '\"several words\"' that stand together"
    )
    for sub in (found, search):
        sub.add_argument("--all", action="store_true", help="list those of all directories")
        sub.add_argument("--json", action="store_true", help="print one JSON object a line")
    add("show", _show, "show the current branch of a session", "one")
    rename = add("rename", _rename, "give a session a name", "one")
    rename.add_argument("name", metavar="NAME", help="empty takes the name away")
    delete = add(
        "delete", _delete, "put sessions into the trash, or delete them where there is none", "several"
    )
    delete.add_argument("-y", "--yes", action="store_true", help="delete without asking")
    fork = add("fork", _fork, "make a new session of the current branch of one", "one")
    fork.add_argument(
        "entry", nargs="?", metavar="ENTRY", help="take what leads to this entry, on whatever branch"
    )
    fork.add_argument("--before", action="store_true", help="take only what is before the entry")
    fork.add_argument(
        "--whole", action="store_true", help="take all branches, into a session of this directory"
    )
    export = add("export", _export, "write a session as a page, as Markdown or as lines", "one")
    export.add_argument("file", metavar="FILE", help="its name ends in .html, .md or .jsonl")
    export.add_argument("--mask", action="store_true", help="replace what looks like a secret")
    export.add_argument("--force", action="store_true", help="replace FILE if it is there")
    bring = add("import-pi", _import, "take in session files of pi, or from elsewhere")
    bring.add_argument("paths", nargs="*", metavar="PATH", help="files or folders; default: all that pi has")
    check = add("check", _check, "tell everything that is odd in session files")
    check.add_argument(
        "which", metavar="WHICH", nargs="*", help=f"{_WHICH}; default: all sessions of this directory"
    )
    return parser


def _add_session_dir(parser: argparse.ArgumentParser, default: str | None) -> None:
    parser.add_argument(
        "--session-dir", metavar="DIR", default=default, help="the sessions are in this one folder"
    )


# ------------------------------------------------------------------ looking


def _list(repository: SessionRepository, namespace: argparse.Namespace) -> int:
    for summary in repository.list(everywhere=namespace.all):
        _print_summary(summary, namespace)
    return 0


def _search(repository: SessionRepository, namespace: argparse.Namespace) -> int:
    hits = repository.search(" ".join(namespace.words), everywhere=namespace.all)
    for hit in hits:
        _print_summary(hit.summary, namespace, hit.excerpt)
    if not hits:
        whose = "no session" if namespace.all else "no session of this directory"
        tell(f"{whose} has {' '.join(map(repr, namespace.words))}")
    return 0 if hits else 1


def _print_summary(summary: SessionSummary, namespace: argparse.Namespace, excerpt: str = "") -> None:
    if namespace.json:
        from pi_trio.codec import dumps

        put(dumps({**_fields(summary), **({"excerpt": excerpt} if excerpt else {})}).decode() + "\n")
        return
    about = summary.name or summary.first_message[:200] or "(no messages)"
    place = f"  {summary.cwd}" if namespace.all else ""
    when = f"{summary.modified.astimezone():%Y-%m-%d %H:%M}"
    say(f"{summary.id}  {when}{place}  {' '.join(about.split())[:100]}")
    if excerpt:
        say(f"    {excerpt}")


def _fields(summary: SessionSummary) -> dict[str, str | None]:
    return {
        "id": summary.id,
        "path": str(summary.path),
        "cwd": summary.cwd,
        "name": summary.name,
        "modified": summary.modified.isoformat(),
        "firstMessage": summary.first_message,
        "parentSession": summary.parent_session,
    }


def _show(repository: SessionRepository, namespace: argparse.Namespace) -> int:
    from pi_trio.session.export.markdown import branch_markdown

    session = _opened(repository, namespace.which)
    put(branch_markdown(session))
    return 0


def _check(repository: SessionRepository, namespace: argparse.Namespace) -> int:
    from pi_trio.session.check import check_file

    status = 0
    for which in namespace.which or map(str, repository.files()):
        try:
            path = repository.find(which)
            for finding in check_file(path):
                say(f"{path}:{finding.line}: {finding.text}")
                status = max(status, FAILED)
        except SessionError as error:  # the others are looked at all the same
            status = max(status, ended_by(error))
    return status


def _opened(repository: SessionRepository, which: str) -> Session:
    """A session to be read, with what is odd in it on standard error."""
    session = repository.open(which, writable=False)
    for finding in session.findings:
        tell(f"{session.path}: {finding}")
    return session


# ------------------------------------------------------------------ changing


def _rename(repository: SessionRepository, namespace: argparse.Namespace) -> int:
    repository.rename(namespace.which, namespace.name)
    return 0


def _delete(repository: SessionRepository, namespace: argparse.Namespace) -> int:
    paths = [repository.find(which) for which in namespace.which]
    if not namespace.yes and not _is_agreed(paths):
        return 1
    for path in paths:
        _, is_in_trash = repository.delete(str(path))
        say(f"{'put into the trash' if is_in_trash else 'deleted'}: {path}")
    return 0


def _is_agreed(paths: Sequence[Path]) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("nobody can be asked whether to delete: say --yes")
    for path in paths:
        say(str(path))
    try:
        return input("Delete? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:  # ctrl+d
        say()
        return False


def _fork(repository: SessionRepository, namespace: argparse.Namespace) -> int:
    if (namespace.before and namespace.entry is None) or (namespace.whole and namespace.entry is not None):
        raise UsageError("--before needs an ENTRY, and --whole takes none")
    source = _opened(repository, namespace.which)
    if namespace.whole:
        fork = repository.copy(source)
    elif namespace.entry is None:
        fork = repository.clone(source)
    else:
        fork, _ = repository.fork(source, namespace.entry, "before" if namespace.before else "at")
    fork.save()
    say(f"{fork.id}  {fork.path}")
    fork.close()
    return 0


def _export(repository: SessionRepository, namespace: argparse.Namespace) -> int:
    from pi_trio.session.export.file import export_session

    session, path = _opened(repository, namespace.which), absolute(namespace.file)
    if path.exists() and not namespace.force:
        raise StorageError(f"{path} is there already: --force replaces it", path)
    export_session(session, path, masked=namespace.mask, replace=namespace.force)
    return 0


def _import(repository: SessionRepository, namespace: argparse.Namespace) -> int:
    """Files that are no sessions are told and left out; one that was named on its own is an error."""
    failed = 0
    for path in _sources(namespace.paths):
        try:
            say(f"{path} -> {repository.import_file(path)}")
        except SessionError as error:
            tell(str(error))
            failed += 1
    return 1 if failed else 0


def _sources(paths: Sequence[str]) -> Iterator[Path]:
    of_pi = find_pi_dir() / "sessions"
    if not paths and not of_pi.is_dir():
        raise ConfigError(f"{of_pi} is not there: pi keeps its sessions in it")
    for path in map(absolute, paths) if paths else [of_pi]:
        if path.is_dir():
            yield from sorted(path.rglob("*.jsonl"))
        else:
            yield path
