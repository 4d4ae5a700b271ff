"""The settings as a form shows them, and the one way to change one in its file.

What there is, of which kind, and what is right comes from the table in `settings`.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args, get_origin

import attrs
from attrs import evolve, frozen

from pi_trio.codec import json_name
from pi_trio.errors import ConfigError, UsageError
from pi_trio.jsonc import load_jsonc, read_text
from pi_trio.jsonc_edit import edited
from pi_trio.private_files import locked, write_private
from pi_trio.resources.settings import GLOBAL_ONLY, Check, Settings, table_rows

__all__ = ["Kind", "Scope", "SettingInfo", "change_setting", "list_settings", "parse_value"]

Kind: TypeAlias = Literal["flag", "choice", "number", "text", "list", "object"]
Scope: TypeAlias = Literal["global", "project"]


@frozen(kw_only=True)
class SettingInfo:
    """A setting: its key with dots, what it means, and its values, None where a file does not say.

    `scopes` are the files that may say it; the project's wins, and lists of paths are joined.
    """

    key: str
    meaning: str
    kind: Kind
    choices: tuple[str, ...]
    default: Any
    values: Mapping[Scope, Any]
    scopes: tuple[Scope, ...]

    @property
    def scope(self) -> Scope | None:
        """The file whose value counts; None: the default does."""
        return next((each for each in ("project", "global") if self.values.get(each) is not None), None)

    @property
    def value(self) -> Any:
        """The value that counts."""
        return self.default if self.scope is None else self.values[self.scope]

    def with_value(self, scope: Scope, value: Any) -> SettingInfo:
        """The same, after a change."""
        return evolve(self, values={**self.values, scope: value})


@frozen
class _Row:
    """A row of the table."""

    key: str
    type: Any
    check: Check
    meaning: str
    default: Any


def list_settings(paths: Mapping[Scope, Path]) -> list[SettingInfo]:
    """All settings, with what these files say. Raises `ConfigError` for a file that is no JSON object."""
    files = {scope: _read(path) for scope, path in paths.items()}
    return [_info(row, files) for row in _rows(Settings())]


def parse_value(info: SettingInfo, text: str) -> Any:
    """The value that a person wrote; None for nothing, which is the default.

    Raises `UsageError`, one sentence that says what it must be.
    """
    text = text.strip()
    if not text:
        return None
    value: Any = text
    if info.kind == "list" and not text.startswith("["):
        value = [part for each in text.split(",") if (part := each.strip())]
    elif info.kind != "text" and info.kind != "choice":
        try:
            value = json.loads(text)
        except ValueError:
            value = text  # the check says what it must be
    _check(info.key, value)
    return value


def change_setting(path: Path, key: str, value: Any) -> None:
    """Say in a settings file that this setting has this value; None takes it out. The rest stays.

    Blocks while another program changes the file. Raises `UsageError` for a value that is not
    right, `ConfigError` for a file that cannot be read, which is left as it is, and `StorageError`.
    """
    if value is not None:
        _check(key, value)
    with locked(path):
        try:
            text = read_text(path)
        except FileNotFoundError:
            text = ""
        try:
            changed = edited(text, key.split("."), value)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{path} is not changed: {error}") from None
        if changed != text:
            write_private(path, changed.encode("utf-8", "surrogatepass"))


def _check(key: str, value: Any) -> None:
    row = next((row for row in _rows(Settings()) if row.key == key), None)
    if row is None:
        raise UsageError(f"{key} is not a setting")
    if wanted := row.check(value):
        raise UsageError(f"{key} must be {wanted}")


def _rows(table: Any, above: str = "") -> Iterator[_Row]:
    for name, hint in table_rows(type(table)):
        key, default = above + json_name(name), getattr(table, name)
        if attrs.has(hint):
            yield from _rows(default, f"{key}.")
        else:
            check, meaning = hint.__metadata__
            yield _Row(key, hint.__origin__, check, meaning, default)


def _info(row: _Row, files: Mapping[Scope, Mapping[str, Any]]) -> SettingInfo:
    values: dict[Scope, Any] = {scope: _value(data, row) for scope, data in files.items()}
    own = row.key.partition(".")[0] in GLOBAL_ONLY
    kind, choices = _kind(row.type)
    default = list(row.default) if isinstance(row.default, tuple) else row.default
    return SettingInfo(
        key=row.key,
        meaning=row.meaning,
        kind=kind,
        choices=choices,
        default=default,
        values=values,
        scopes=("global",) if own or "project" not in files else ("global", "project"),
    )


def _kind(hint: Any) -> tuple[Kind, tuple[str, ...]]:
    if get_origin(hint) is types.UnionType:
        hint = next(each for each in get_args(hint) if each is not type(None))
    if get_origin(hint) is Literal:
        return "choice", get_args(hint)
    if get_origin(hint) is tuple:
        return "list", ()
    if get_origin(hint) is Mapping:
        return "object", ()
    kinds: dict[Any, Kind] = {bool: "flag", int: "number", float: "number", str: "text"}
    return kinds[hint], ()


def _value(data: Mapping[str, Any], row: _Row) -> Any:
    """What a file says, if it is right."""
    at: Any = data
    for key in row.key.split("."):
        at = at.get(key) if isinstance(at, dict) else None
    return None if at is None or row.check(at) else at


def _read(path: Path) -> Mapping[str, Any]:
    try:
        data = load_jsonc(path)
    except FileNotFoundError:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: the settings must be a JSON object")
    return data
