"""Looks at everything that a start needs, and says what to do: `pi-trio doctor`, and `/doctor`."""

from __future__ import annotations

import locale
import os
import platform
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal, TypeAlias

import trio
from attrs import field, frozen

from pi_trio.errors import ConfigError
from pi_trio.llm.catalogue import built_in_date
from pi_trio.llm.registry import Models
from pi_trio.resources.paths import find_agent_dir
from pi_trio.resources.settings import Settings, load_settings

__all__ = ["CHECKS", "Finding", "Setup", "examine", "told"]

_LOOK_FOR = 1.0
_SMALLEST = (60, 15)
_LIBRARIES = ("trio", "httpx", "orjson", "textual")


@frozen
class Finding:
    """What was seen. `advice` says what to do about it; something `bad` stops the program from working."""

    state: Literal["ok", "odd", "bad"]
    what: str
    advice: str = ""


@frozen
class Setup:
    """What is looked at. `problem` is why the settings could not be read."""

    agent_dir: Path
    models: Models
    settings: Settings = field(factory=Settings)
    findings: Sequence[str] = ()
    problem: str | None = None

    @classmethod
    def here(cls) -> Setup:
        """The machine and the environment of this process. Raises `ConfigError` without a home."""
        agent_dir = find_agent_dir()
        models = Models(agent_dir)
        try:
            settings, findings = load_settings(agent_dir / "settings.json")
        except ConfigError as error:
            return cls(agent_dir, models, problem=str(error))
        return cls(agent_dir, models, settings, findings)


Check: TypeAlias = Callable[[Setup], Iterator[Finding]]


def examine(setup: Setup | None = None) -> Iterator[tuple[str, Finding]]:
    """Everything that was seen, with the title of its check. Blocks while local servers are asked."""
    setup = setup or Setup.here()
    for title, check in CHECKS.items():
        for finding in check(setup):
            yield title, finding


def told(title: str, finding: Finding) -> list[str]:
    """A finding in lines."""
    lines = [f"{_MARKS[finding.state]} {title}: {finding.what}"]
    return [*lines, f"    {finding.advice}"] if finding.advice else lines


_MARKS = {"ok": "  ok", "odd": "   !", "bad": " BAD"}


# ------------------------------------------------------------------ checks


def _versions(setup: Setup) -> Iterator[Finding]:
    libraries = ", ".join(f"{name} {_version(name)}" for name in _LIBRARIES)
    yield Finding(
        "ok",
        f"pi-trio {_version('pi-trio')}, Python {platform.python_version()}, {libraries}, "
        f"{platform.system()} {platform.machine()}",
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _folder(setup: Setup) -> Iterator[Finding]:
    folder = setup.agent_dir
    if not folder.exists():
        yield Finding("ok", f"{folder}, made when there is something to keep")
    elif folder.is_dir() and os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("ok", str(folder))
    else:
        yield Finding(
            "bad", f"{folder} cannot be written", "Mend its rights, or name another in PI_TRIO_DIR."
        )


def _configuration(setup: Setup) -> Iterator[Finding]:
    if setup.problem:
        yield Finding("bad", setup.problem, "Mend the file; it is never changed by the program.")
    for finding in setup.findings:
        yield Finding("odd", finding)
    for error in setup.models.findings:
        yield Finding("bad", str(error), "Until then only the built-in models are known.")
    if not (setup.problem or setup.findings or setup.models.findings):
        yield Finding("ok", "settings.json and models.json hold no mistakes")


def _keys(setup: Setup) -> Iterator[Finding]:
    models, path = setup.models, setup.models.auth.path
    if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
        yield Finding("odd", f"{path} can be read by others", f"chmod 600 {path}")
    keyed = [each for each in models.providers if not each.keys.keyless]
    found = [(each.id, source) for each in keyed if (source := models.key_source(each.id))]
    for name, source in found:
        yield Finding("ok", f"{name}: {source}")
    if not found:
        yield Finding(
            "odd",
            "there is none, so only the demo model and local models can be asked",
            "`pi-trio auth login PROVIDER` stores one; "
            + f"known are {', '.join(each.id for each in keyed)}.",
        )


def _local(setup: Setup) -> Iterator[Finding]:
    found = trio.run(setup.models.discover, _LOOK_FOR)
    for provider in found:
        names = ", ".join(f"{model.id} ({model.context_window} tokens)" for model in provider.models)
        yield Finding("ok", f"{provider.name} serves {names}")
    if not found:
        yield Finding("ok", "no Ollama, llama.cpp or LM Studio answers on this machine")


def _catalogue(setup: Setup) -> Iterator[Finding]:
    yield Finding("ok", f"limits and prices are of {built_in_date()}")


def _terminal(setup: Setup) -> Iterator[Finding]:
    encoding = locale.getencoding().lower().replace("-", "")
    if encoding != "utf8":
        yield Finding("odd", f"the encoding is {encoding}", "Set LANG to a UTF-8 locale, such as C.UTF-8.")
    if sys.__stdout__ is None or not sys.__stdout__.isatty():  # a full screen puts itself before it
        yield Finding("ok", "not one here: the full screen needs one, --print does not")
        return
    size, name = shutil.get_terminal_size(), os.environ.get("TERM", "")
    if name in ("", "dumb"):
        yield Finding(
            "bad", f"TERM is {name!r}, which has no screen", "Set TERM, for example to xterm-256color."
        )
    elif size < os.terminal_size(_SMALLEST):
        yield Finding("odd", f"{size.columns}x{size.lines} is small", "Make the window larger.")
    else:
        colours = os.environ.get("COLORTERM") or "no COLORTERM"
        yield Finding("ok", f"{name}, {size.columns}x{size.lines}, {colours}")


def _ripgrep(setup: Setup) -> Iterator[Finding]:
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    program = shutil.which("rg", path=beside)
    if program:
        yield Finding("ok", program)
    else:
        yield Finding("odd", "rg was not found, so files are searched without it", "pip install 'ripgrep<15'")


def _shell(setup: Setup) -> Iterator[Finding]:
    chosen = setup.settings.shell_path or "/bin/bash"
    if shutil.which(chosen):
        yield Finding("ok", chosen)
    elif setup.settings.shell_path:
        yield Finding("bad", f"{chosen} is no program", "Mend shellPath in settings.json.")
    else:
        yield Finding("odd", "there is no bash, so commands run in sh")


CHECKS: dict[str, Check] = {
    "versions": _versions,
    "folder": _folder,
    "configuration": _configuration,
    "key": _keys,
    "local models": _local,
    "catalogue": _catalogue,
    "terminal": _terminal,
    "ripgrep": _ripgrep,
    "shell": _shell,
}
"""What is looked at, in this order."""
