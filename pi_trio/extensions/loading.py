"""Finding extensions and importing them.

An extension is a file `name.py` or a package `name/__init__.py` in one of the folders, a path
that was named, or an entry point of an installed distribution. Importing it runs it, so only
what is trusted gets here.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

from attrs import frozen

from pi_trio.errors import ConfigError
from pi_trio.extensions.failures import FAILURES, describe
from pi_trio.resources.config import RuntimeConfig
from pi_trio.resources.paths import absolute, is_file, is_folder

if TYPE_CHECKING:
    from pi_trio.extensions.api import ExtensionApi

__all__ = ["ENTRY_POINTS", "Extension", "Loaded", "load_extensions"]

ENTRY_POINTS = "pi_trio.extensions"
"""The group in which an installed distribution names its extensions."""

Extend: TypeAlias = "Callable[[ExtensionApi], None]"


@frozen
class Extension:
    """An extension that was imported. `path` is its file."""

    path: str
    extend: Extend


@frozen
class Loaded:
    """The extensions in the order of loading; `findings` say what could not be loaded, and why."""

    extensions: tuple[Extension, ...] = ()
    findings: tuple[str, ...] = ()


def load_extensions(config: RuntimeConfig) -> Loaded:
    """Import what there is for a session in `config.cwd`, anew each time. A failure stops only its own."""
    extensions: dict[str, Extension] = {}
    findings: list[str] = []
    loads = [
        *((str(path), partial(_from_file, path)) for path in _files(config, findings)),
        *((point.value, partial(_from_entry_point, point)) for point in _entry_points(config)),
    ]
    for path, load in loads:
        try:
            extension = load()
        except FAILURES as error:
            findings.append(str(error) if isinstance(error, ConfigError) else describe(error, path))
        else:
            extensions.setdefault(extension.path, extension)
    return Loaded(tuple(extensions.values()), tuple(findings))


# ------------------------------------------------------------------ finding


def _entry_points(config: RuntimeConfig) -> Iterable[EntryPoint]:
    return () if "extensions" in config.without else entry_points(group=ENTRY_POINTS)


def _files(config: RuntimeConfig, findings: list[str]) -> Iterator[Path]:
    """The files of the folders, in the order of their names, then those that were named."""
    found = "extensions" not in config.without
    folders = [config.agent_dir / "extensions"] if found else []
    if found and config.trust.trusted:
        folders.append(config.cwd / ".pi" / "extensions")
    for folder in folders:
        if is_folder(folder):
            yield from _in_folder(folder)
    for named in (*(config.settings.extensions if found else ()), *config.extensions):
        path = absolute(named)
        if file := _file_of(path):
            yield file
        elif is_folder(path):
            yield from _in_folder(path)
        elif not _is_pis(path):
            findings.append(f"{path} is not an extension: it is no Python file and no folder")


def _is_pis(path: Path) -> bool:
    """Whether it is for pi: a script of another language, or a filter. A shared file is no mistake."""
    return path.suffix in (".ts", ".js", ".mjs", ".cjs") or path.name.startswith(("!", "+", "-"))


def _in_folder(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if not path.name.startswith((".", "_")) and (file := _file_of(path)):
            yield file


def _file_of(path: Path) -> Path | None:
    """The file that stands for a module or a package."""
    if path.suffix == ".py" and is_file(path):
        return path
    return path / "__init__.py" if is_file(path / "__init__.py") else None


# ------------------------------------------------------------------ importing


def _from_file(path: Path) -> Extension:
    package = path.name == "__init__.py"
    digest = hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    name = f"pi_trio_extension_{digest}"
    _forget(name)
    spec = importlib.util.spec_from_file_location(
        name, path, submodule_search_locations=[str(path.parent)] if package else None
    )
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses, pickling and relative imports look for it
    try:
        with _without_compiled_files():
            spec.loader.exec_module(module)
    except BaseException:
        _forget(name)
        raise
    return Extension(str(path), _extend_of(module, path))


def _from_entry_point(point: EntryPoint) -> Extension:
    loaded = point.load()
    if isinstance(loaded, ModuleType):
        return Extension(loaded.__file__ or point.value, _extend_of(loaded, point.value))
    if not callable(loaded):
        raise ConfigError(f"{point.value} is not an extension: it is neither a module nor a function")
    code = getattr(loaded, "__code__", None)
    return Extension(code.co_filename if code else point.value, loaded)


def _extend_of(module: ModuleType, path: object) -> Extend:
    extend: Extend | None = getattr(module, "extend", None)
    if not callable(extend):
        raise ConfigError(f"{path} is not an extension: it has no function extend(api)")
    return extend


def _forget(name: str) -> None:
    """Drop a module and those inside it, so that the next import reads the files again."""
    for each in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
        del sys.modules[each]


@contextmanager
def _without_compiled_files() -> Iterator[None]:
    """Leave no `__pycache__` behind: a new file in a trusted folder would ask for trust again."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
