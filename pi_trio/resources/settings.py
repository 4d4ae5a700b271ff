"""The settings, from `settings.json` in the agent directory and in a trusted project's `.pi`.

`Settings` is the one table: a field is a setting, annotated with its type, check and
meaning, and its key in the file is the field's name in camelCase. The project's keys win over
the person's, table by table; lists of paths are joined. A key with a wrong value
is told as a finding, and the others are used all the same. A file that is not JSON is an
error, and so is a mistake in `gate`: to go on with none of what it says would be worse than
not to start.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args, get_type_hints

import attrs
from attrs import field, frozen

from pi_trio.approval import GateMode
from pi_trio.codec import json_name
from pi_trio.errors import ConfigError
from pi_trio.jsonc import JsonDocument, read_jsonc
from pi_trio.llm.protocol import ThinkingLevel
from pi_trio.loop.driver import QueueMode
from pi_trio.resources.trust import DefaultTrust

__all__ = ["GLOBAL_ONLY", "Check", "GateSettings", "Retry", "Settings", "load_settings", "table_rows"]


T = TypeVar("T", bound=attrs.AttrsInstance)
TreeFilter: TypeAlias = Literal["turns", "default", "no-tools", "user-only", "labeled-only", "all"]
"""What has a row in the session tree: each turn, or entries of some kinds."""

Check: TypeAlias = Callable[[Any], str | None]
"""Says what a value must be, or None if it is that."""


# ------------------------------------------------------------------ checks


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) and value else "a text that is not empty"


def _flag(value: Any) -> str | None:
    return None if isinstance(value, bool) else "true or false"


def _amount(value: Any) -> str | None:
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
    return None if fits else "a number above 0"


def _one_of(literal: Any) -> Check:
    words = get_args(literal)
    return lambda value: None if value in words else "one of " + ", ".join(words)


def _paths(value: Any) -> str | None:
    return None if _texts(value) is None else "a list of paths"


def _texts(value: Any) -> str | None:
    fits = isinstance(value, list) and all(isinstance(each, str) and each for each in value)
    return None if fits else "a list of texts"


def _whole(at_least: int) -> Check:
    def check(value: Any) -> str | None:
        fits = isinstance(value, int) and not isinstance(value, bool) and value >= at_least
        return None if fits else f"a whole number, {at_least} or more"

    return check


def _token_sizes(value: Any) -> str | None:
    """Sizes of single models: `{"provider/id": {"reserveTokens": 30000}}`."""
    keys, size = {"reserveTokens", "keepRecentTokens"}, _whole(0)
    fits = isinstance(value, dict) and all(
        isinstance(sizes, dict) and keys >= sizes.keys() and not any(map(size, sizes.values()))
        for sizes in value.values()
    )
    return (
        None
        if fits
        else ('an object such as {"provider/id": {"reserveTokens": 30000, "keepRecentTokens": 10000}}')
    )


# ------------------------------------------------------------------ the table


@frozen(kw_only=True)
class ProviderRetry:
    """What a provider may ask of us."""

    max_retry_delay_ms: Annotated[
        int, _whole(0), "a longer wait that a provider asks for ends the turn at once; 0: any is waited for"
    ] = 60_000


@frozen(kw_only=True)
class Retry:
    """How a request that failed for a passing reason is sent again. Times are milliseconds."""

    enabled: Annotated[bool, _flag, "send a failed request again"] = True
    max_retries: Annotated[int, _whole(0), "how often at most"] = 3
    base_delay_ms: Annotated[int, _whole(0), "the first wait; each further one is twice as long"] = 2_000
    max_agent_delay_ms: Annotated[int, _whole(0), "the longest wait"] = 60_000
    provider: ProviderRetry = ProviderRetry()


@frozen(kw_only=True)
class Compaction:
    """How room is made in a full context. Sizes are tokens."""

    enabled: Annotated[bool, _flag, "summarise older context by itself when the window is nearly full"] = True
    reserve_tokens: Annotated[int, _whole(0), "how much of the window is to stay free"] = 16_384
    keep_recent_tokens: Annotated[int, _whole(0), "how much of the conversation stays as it is"] = 20_000
    model_overrides: Annotated[
        Mapping[str, Mapping[str, int]], _token_sizes, "other sizes for single models"
    ] = field(factory=dict)


@frozen(kw_only=True)
class BranchSummary:
    """Summaries of a branch that is left."""

    reserve_tokens: Annotated[int, _whole(0), "how much of the window is left for the summary"] = 16_384


@frozen(kw_only=True)
class GateSettings:
    """What tools may do unasked. Rules are such as `write` and `bash(git status*)`."""

    mode: Annotated[
        GateMode, _one_of(GateMode), "what is asked about: odd things; every change; or only reading at all"
    ] = "auto"
    allow: Annotated[tuple[str, ...], _texts, "rules for calls that are never asked about"] = field(
        default=(), converter=tuple
    )
    deny: Annotated[tuple[str, ...], _texts, "rules for calls that never run"] = field(
        default=(), converter=tuple
    )


@frozen(kw_only=True)
class Settings:
    """What a person chose for all sessions. Flags win over it."""

    default_provider: Annotated[str | None, _text, "provider of the model of a new session"] = None
    default_model: Annotated[str | None, _text, "model of a new session"] = None
    default_thinking_level: Annotated[ThinkingLevel, _one_of(ThinkingLevel), "how much it thinks"] = "medium"
    steering_mode: Annotated[
        QueueMode, _one_of(QueueMode), "what the next request takes of waiting remarks"
    ] = "all"
    follow_up_mode: Annotated[QueueMode, _one_of(QueueMode), "what a turn takes of waiting prompts"] = (
        "one-at-a-time"
    )
    default_tools: Annotated[
        tuple[str, ...], _texts, "the tools: names, or changes of the default as `+grep` and `-bash`"
    ] = field(default=("read", "bash", "edit", "write"), converter=tuple)
    max_parallel_tool_calls: Annotated[int, _whole(1), "how many tool calls run at once"] = 10
    max_cost: Annotated[
        float | None, _amount, "US dollars that a session may cost from its opening on; then it stops"
    ] = None
    max_steps: Annotated[int | None, _whole(1), "how many steps a turn may take; then it stops"] = None
    session_dir: Annotated[str | None, _text, "one folder for all sessions"] = None
    record_stream: Annotated[bool, _flag, "keep when each piece of an answer came"] = True
    shell_path: Annotated[str | None, _text, "the shell of the bash tool"] = None
    shell_command_prefix: Annotated[str | None, _text, "a line before each command of the bash tool"] = None
    theme: Annotated[str, _text, "the colours of the screen"] = "system"
    tree_filter_mode: Annotated[TreeFilter, _one_of(TreeFilter), "what the session tree shows at first"] = (
        "turns"
    )
    external_editor: Annotated[
        str | None, _text, "the command that edits a prompt; without it, that in $VISUAL or $EDITOR"
    ] = None
    http_proxy: Annotated[str | None, _text, "proxy for providers; without it, that of the environment"] = (
        None
    )
    http_idle_timeout_ms: Annotated[int, _whole(1), "how long a provider may send nothing"] = 300_000
    compaction: Compaction = Compaction()
    branch_summary: BranchSummary = BranchSummary()
    skills: Annotated[tuple[str, ...], _paths, "further folders of skills"] = ()
    prompts: Annotated[tuple[str, ...], _paths, "further folders of prompt templates"] = ()
    extensions: Annotated[tuple[str, ...], _paths, "further extensions: files or folders"] = ()
    default_project_trust: Annotated[
        DefaultTrust, _one_of(DefaultTrust), "a folder's own resources, where nothing was decided yet"
    ] = "ask"
    retry: Retry = Retry()
    gate: GateSettings = GateSettings()


_PI_ONLY = """
    $schema modelThinkingLevels thinkingBudgets enabledModels hideThinkingBlock showCacheMissNotices
    cacheWarming doubleEscapeAction codemode
    sessionShareDestination branchSummary.skipPrompt quietStartup tuiMode
    fullscreenExitOutput fullscreenScrollbar fullscreenCopyOnSelect fullscreenWheelScrollLines
    editorPaddingX outputPad autocompleteMaxVisible showHardwareCursor terminal images markdown
    transport websocketConnectTimeoutMs npmCommand selfUpdateCommand
    packages themes enableSkillCommands collapseChangelog
    enableInstallTelemetry enableAnalytics warnings lastChangelogVersion retry.provider.timeoutMs
    retry.provider.maxRetries
"""
"""Keys of pi's that have no effect here. A file shared with pi is not full of mistakes."""

GLOBAL_ONLY = frozenset({"defaultProjectTrust", "cacheWarming", "httpProxy", "maxCost", "externalEditor"})
"""Keys that a project cannot set: they are about the person and their money, or about trust itself."""


# ------------------------------------------------------------------ reading


def load_settings(path: Path, project: Path | None = None) -> tuple[Settings, tuple[str, ...]]:
    """The settings of a file, with a project's file over it; findings are sentences with the place.

    Without a file all are the defaults. Raises `ConfigError` if one is not a JSON object.
    """
    values, findings = _load(path)
    if project is not None:
        over, more = _load(project, GLOBAL_ONLY)
        values, findings = _merged(values, over), [*findings, *more]
    return _made(Settings, values), tuple(findings)


def _load(path: Path, excluded: frozenset[str] = frozenset()) -> tuple[dict[str, Any], list[str]]:
    """The right values of one file, by field names, and the findings."""
    try:
        document = read_jsonc(path)
    except FileNotFoundError:
        return {}, []
    if not isinstance(document.value, dict):
        raise ConfigError(f"{path}: the settings must be a JSON object")
    reader = _Reader(document, excluded)
    return reader.table(Settings, document.value, ()), reader.findings


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Tables key by key, lists joined, anything else replaced."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if isinstance(value, dict):
            merged[key] = _merged(old or {}, value)
        else:
            merged[key] = (*(old or ()), *value) if isinstance(value, tuple) else value
    return merged


def _made(cls: type[T], values: Mapping[str, Any]) -> T:
    """The table with these values, and defaults for the others."""
    hints = dict(table_rows(cls))
    return cls(
        **{
            name: _made(hints[name], value) if attrs.has(hints[name]) else value
            for name, value in values.items()
        }
    )


class _Reader:
    """Checks a document against the table, and remembers what was wrong with it."""

    def __init__(self, document: JsonDocument, excluded: frozenset[str]) -> None:
        self.findings: list[str] = []
        self._document = document
        self._excluded = excluded

    def table(self, cls: type[Any], data: Mapping[str, Any], above: tuple[str, ...]) -> dict[str, Any]:
        """What is right in `data` for a table of `cls`, by field names."""
        rows = {json_name(name): (name, hint) for name, hint in table_rows(cls)}
        values: dict[str, Any] = {}
        for key, value in data.items():
            keys = (*above, key)
            if not above and key in self._excluded:
                self._tell(keys, "is a person's setting and is passed over in a project")
            elif key not in rows:
                self._unknown(keys)
            elif value is not None:  # null means: as if it were not there
                name, hint = rows[key]
                values |= self._row(name, hint, value, keys)
        return values

    def _row(self, name: str, hint: Any, value: Any, keys: tuple[str, ...]) -> dict[str, Any]:
        """The field's value, or nothing and a finding if it is wrong."""
        if not attrs.has(hint):
            check = hint.__metadata__[0]
            wanted = check(value)
            if wanted is None and isinstance(value, list):
                value = self._from_here(value) if check is _paths else tuple(value)
        elif isinstance(value, dict):
            return {name: self.table(hint, value, keys)}
        else:
            wanted = "an object"
        if wanted is None:
            return {name: value}
        self._tell(keys, f"must be {wanted}; the default is used")
        return {}

    def _from_here(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Paths as they are meant: relative ones start beside the file, `~` is the home."""
        folder = self._document.path.parent
        return tuple(path if path.startswith(("~", "/")) else str(folder / path) for path in paths)

    def _unknown(self, keys: tuple[str, ...]) -> None:
        if ".".join(keys) in _PI_ONLY.split():
            return
        names = {dotted.rpartition(".")[2]: dotted for dotted in (*_PI_ONLY.split(), *_dotted(Settings))}
        close = difflib.get_close_matches(keys[-1], names, n=1)
        self._tell(keys, "is not a setting" + (f"; did you mean {names[close[0]]}?" if close else ""))

    def _tell(self, keys: tuple[str, ...], what: str) -> None:
        place = f"{self._document.path}:{self._document.line(*keys)}"
        finding = f"{place}: {'.'.join(keys)} {what}"
        if keys[0] == "gate":  # what it was to forbid would be allowed
            raise ConfigError(finding.removesuffix("; the default is used"))
        self.findings.append(finding)


def table_rows(cls: type[Any]) -> list[tuple[str, Any]]:
    """The fields of a table with their annotations: `Annotated[type, check, meaning]`, or a table."""
    return list(get_type_hints(cls, include_extras=True).items())


def _dotted(cls: type[Any], above: str = "") -> Iterator[str]:
    """The keys of a table, nested ones with dots."""
    for name, hint in table_rows(cls):
        key = above + json_name(name)
        if attrs.has(hint):
            yield from _dotted(hint, key + ".")
        else:
            yield key
