"""Looking at everything that a start needs, and saying what to do: `pi-trio doctor` and `/doctor`."""

from __future__ import annotations

import fcntl
import locale
import os
import platform
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

from attrs import evolve, frozen

from pi_trio.errors import ConfigError
from pi_trio.extensions.loading import load_extensions
from pi_trio.llm.catalogue import Provider, built_in_date
from pi_trio.llm.registry import Models
from pi_trio.resources.config import RuntimeConfig
from pi_trio.resources.paths import find_agent_dir, working_directory
from pi_trio.resources.resources import load_resources

__all__ = ["CHECKS", "Finding", "Setup", "examine"]

_LOOK_FOR = 1.0
"""Seconds that model servers on this machine have to answer."""
_SMALLEST = (60, 15)
_LITTLE_SPACE = 100 << 20
_LIBRARIES = ("trio", "httpx", "orjson", "textual")
_EXTRAS = {
    "images": ("PIL", "makes large images small enough for a model"),
    "cluster": ("distributed", "`pi-trio batch` on a Dask cluster"),
}
"""The module of an extra, and what it is for."""


@frozen
class Finding:
    """What was seen. `advice` says what to do about it; something `bad` stops the program from working."""

    state: Literal["ok", "odd", "bad"]
    what: str
    advice: str = ""

    def lines(self, title: str) -> list[str]:
        """As it is shown under the title of its check."""
        told = [f"{_MARKS[self.state]} {title}: {self.what}"]
        return [*told, f"    {self.advice}"] if self.advice else told


_MARKS = {"ok": "  ok", "odd": "   !", "bad": " BAD"}


@frozen
class Setup:
    """What is looked at. `problem` is why the settings could not be read."""

    config: RuntimeConfig
    models: Models
    problem: str | None = None
    local: Sequence[Provider] = ()

    @classmethod
    def here(cls) -> Setup:
        """The machine and the environment of this process. Raises `ConfigError` without a home."""
        agent_dir = find_agent_dir()
        models = Models(agent_dir)
        try:
            return cls(RuntimeConfig.load(), models)
        except ConfigError as error:
            return cls(RuntimeConfig(cwd=working_directory(), agent_dir=agent_dir), models, str(error))


Check: TypeAlias = Callable[[Setup], Iterator[Finding]]


async def examine(setup: Setup) -> list[tuple[str, Finding]]:
    """Look at everything. Each finding comes with the title of its check."""
    setup = evolve(setup, local=await setup.models.discover(_LOOK_FOR))
    return [(title, finding) for title, check in CHECKS.items() for finding in check(setup)]


# ------------------------------------------------------------------ the program


def _versions(_setup: Setup) -> Iterator[Finding]:
    libraries = ", ".join(f"{name} {_version(name)}" for name in _LIBRARIES)
    yield Finding(
        "ok",
        f"pi-trio {_version('pi-trio')}, Python {platform.python_version()}, {libraries}, "
        f"{platform.system()} {platform.machine()}",
    )
    extras = ", ".join(
        f"{name} ({use}) {'is here' if find_spec(module) else 'is not installed'}"
        for name, (module, use) in _EXTRAS.items()
    )
    yield Finding("ok", f"extras: {extras}")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _folder(setup: Setup) -> Iterator[Finding]:
    folder = setup.config.agent_dir
    if not folder.exists():
        yield Finding("ok", f"{folder}, made when there is something to keep")
    elif folder.is_dir() and os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("ok", str(folder))
    else:
        yield Finding(
            "bad", f"{folder} cannot be written", "Mend its rights, or name another in PI_TRIO_DIR."
        )


def _sessions(setup: Setup) -> Iterator[Finding]:
    """Where sessions are kept must have room and locks: without a lock two programs could write one."""
    folder = setup.config.session_dir or setup.config.agent_dir / "sessions"
    there = next((each for each in (folder, *folder.parents) if each.is_dir()), Path("/"))
    free = shutil.disk_usage(there).free
    if free < _LITTLE_SPACE:
        yield Finding("odd", f"{there} has only {free >> 20} MiB left", "Make room, or name a --session-dir.")
    try:
        locks = _locks(there)
    except OSError as error:
        told = f"{there} cannot be written: {error.strerror}"
        yield Finding("bad", told, "Mend its rights, or keep sessions in a --session-dir.")
        return
    if not locks:
        yield Finding("bad", f"{there} has no file locks", "Keep sessions on another disk: --session-dir.")
    else:
        count = sum(1 for _ in folder.glob("*.jsonl" if setup.config.session_dir else "*/*.jsonl"))
        yield Finding("ok", f"{count} in {folder}")


def _locks(folder: Path) -> bool:
    """Whether a file there can be locked. Raises `OSError` if none can be made."""
    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def _configuration(setup: Setup) -> Iterator[Finding]:
    if setup.problem:
        yield Finding("bad", setup.problem, "Mend the file; it is never changed by the program.")
    for finding in setup.config.findings:
        yield Finding("odd", finding)
    for error in setup.models.findings:
        yield Finding("bad", str(error), "Until then only the built-in models are known.")
    if not (setup.problem or setup.config.findings or setup.models.findings):
        yield Finding("ok", "settings.json and models.json hold no mistakes")


def _resources(setup: Setup) -> Iterator[Finding]:
    resources = load_resources(setup.config)
    for finding in resources.findings:
        yield Finding("odd", finding)
    trust = setup.config.trust
    if trust.resources:
        state = "used" if trust.trusted else "not used"
        yield Finding("ok", f"what {setup.config.cwd} brings along is {state}")
    files = ", ".join(str(file.path) for file in resources.context_files) or "no context files"
    counts = f"skills: {len(resources.skills)}, templates: {len(resources.templates)}"
    yield Finding("ok", f"{counts}, {files}")


def _extensions(setup: Setup) -> Iterator[Finding]:
    loaded = load_extensions(setup.config)
    for finding in loaded.findings:
        yield Finding("odd", finding)
    yield Finding("ok", ", ".join(each.path for each in loaded.extensions) or "none")


# ------------------------------------------------------------------ models


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
    for provider in setup.local:
        names = ", ".join(f"{model.id} ({model.context_window} tokens)" for model in provider.models)
        yield Finding("ok", f"{provider.name} serves {names}")
    if not setup.local:
        yield Finding("ok", "no Ollama, llama.cpp or LM Studio answers on this machine")


def _model(setup: Setup) -> Iterator[Finding]:
    settings = setup.config.settings
    wanted = "/".join(filter(None, (settings.default_provider, settings.default_model)))
    try:
        model = setup.models.get_model(wanted).model if wanted else setup.models.default_model()
        setup.models.check_credential(model)
    except ConfigError as error:
        yield Finding("odd", f"the default cannot be asked: {error}", "Until then another one is used.")
        return
    yield Finding("ok", f"{model.reference}, limits and prices are of {built_in_date()}")


def _proxy(setup: Setup) -> Iterator[Finding]:
    names = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
    variable = next((name for name in names if os.environ.get(name)), None)
    if setup.config.settings.http_proxy:
        yield Finding("ok", "providers are asked through httpProxy of settings.json")
    else:
        yield Finding("ok", f"providers are asked through {variable}" if variable else "none")


# ------------------------------------------------------------------ the machine


def _terminal(_setup: Setup) -> Iterator[Finding]:
    encoding = locale.getencoding().lower().replace("-", "")
    if encoding != "utf8":
        yield Finding("odd", f"the encoding is {encoding}", "Set LANG to a UTF-8 locale, such as C.UTF-8.")
    if sys.__stdout__ is None or not sys.__stdout__.isatty():
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


def _screen(setup: Setup) -> Iterator[Finding]:
    """The screen is another package, which looks at its own files: it is found as a program, not imported."""
    for program in entry_points(group="console_scripts", name="pi-tui"):
        yield from import_module(program.module).examine(setup.config)
        return
    yield Finding("ok", "pi-tui is not installed here")


def _ripgrep(_setup: Setup) -> Iterator[Finding]:
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    program = shutil.which("rg", path=beside)
    if program:
        yield Finding("ok", program)
    else:
        yield Finding("odd", "rg was not found, so files are searched without it", "pip install 'ripgrep<15'")


def _shell(setup: Setup) -> Iterator[Finding]:
    chosen = setup.config.settings.shell_path or "/bin/bash"
    if shutil.which(chosen):
        yield Finding("ok", chosen)
    elif setup.config.settings.shell_path:
        yield Finding("bad", f"{chosen} is no program", "Mend shellPath in settings.json.")
    else:
        yield Finding("odd", "there is no bash, so commands run in sh")


CHECKS: dict[str, Check] = {
    "versions": _versions,
    "folder": _folder,
    "sessions": _sessions,
    "configuration": _configuration,
    "resources": _resources,
    "extensions": _extensions,
    "key": _keys,
    "local models": _local,
    "model": _model,
    "proxy": _proxy,
    "terminal": _terminal,
    "screen": _screen,
    "ripgrep": _ripgrep,
    "shell": _shell,
}
"""What is looked at, in this order."""
