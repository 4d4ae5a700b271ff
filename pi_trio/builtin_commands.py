"""The built-in slash commands.

What not every runtime can do is asked for with a small protocol; without it the command says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from pi_trio.approval import GateMode
from pi_trio.commands import Command, CommandContext, Commands, Complete, Run
from pi_trio.errors import UsageError
from pi_trio.llm import demo
from pi_trio.llm.key_shapes import find_key
from pi_trio.llm.thinking import LEVELS
from pi_trio.prompt_tree import PromptNode, prompt_tree
from pi_trio.remote.interface import CommandInfo, Moved, Snapshot
from pi_trio.remote.offers import KeepsKeys
from pi_trio.text import plural
from pi_trio.view_commands import VIEW_COMMANDS

__all__ = ["builtin_commands"]

_MODES: Mapping[GateMode, str] = {
    "auto": "edits and commands run without asking",
    "ask": "edits and commands are asked about first",
    "read-only": "there are only tools that look",
}

# ------------------------------------------------------------------ what a runtime may offer


@runtime_checkable
class _Exports(Protocol):
    async def export(self, session_id: str, path: str | None) -> str: ...


@runtime_checkable
class _Examines(Protocol):
    async def doctor(self, session_id: str) -> Sequence[str]: ...


@runtime_checkable
class _Imports(Protocol):
    async def import_pi(self, *, dry_run: bool) -> Sequence[str]: ...


def _missing(command: str) -> UsageError:
    return UsageError(f"{command} is not possible here: this runtime does not offer it.")


# ------------------------------------------------------------------ model


async def _model(context: CommandContext, arguments: str) -> None:
    runtime = context.runtime
    if arguments:
        model = await runtime.set_model(context.session_id, arguments)
        context.tell(f"The model is now {model.reference}.")
        return
    snapshot = await runtime.snapshot(context.session_id)
    others = [model.reference for model in await runtime.models()]
    context.tell("\n".join([f"The model is {snapshot.model.reference}. There are:", *others]))


async def _model_choices(context: CommandContext) -> Sequence[str]:
    return [model.reference for model in await context.runtime.models()]


async def _thinking(context: CommandContext, arguments: str) -> None:
    if arguments:
        level = await context.runtime.set_thinking_level(context.session_id, arguments)
        context.tell(f"The thinking level is now {level}.")
    else:
        snapshot = await context.runtime.snapshot(context.session_id)
        context.tell(f"The thinking level is {snapshot.thinking_level}, of {', '.join(LEVELS)}.")


async def _level_choices(_context: CommandContext) -> Sequence[str]:
    return LEVELS


async def _mode(context: CommandContext, arguments: str) -> None:
    if arguments:
        mode = next((mode for mode in _MODES if mode == arguments), None)
        if mode is None:
            raise UsageError(f"{arguments!r} is not a mode: it is one of {', '.join(_MODES)}.")
        await context.runtime.set_mode(context.session_id, mode)
    snapshot = await context.runtime.snapshot(context.session_id)
    context.tell(f"The mode is {snapshot.mode}: {_MODES[snapshot.mode]}.")


async def _mode_choices(_context: CommandContext) -> Sequence[str]:
    return tuple(_MODES)


# ------------------------------------------------------------------ sessions


async def _new(context: CommandContext, _arguments: str) -> None:
    snapshot = await context.runtime.new_session()
    await context.show(snapshot.session.id)


async def _resume(context: CommandContext, arguments: str) -> None:
    if not arguments:
        if not context.open_view("sessions", ""):
            raise UsageError("Say which session: /resume PATH, or a part of its id.")
        return
    snapshot = await context.runtime.open_session(arguments)
    await context.show(snapshot.session.id)


async def _name(context: CommandContext, arguments: str) -> None:
    if arguments:
        await context.runtime.set_session_name(context.session_id, arguments)
    name = (await context.runtime.snapshot(context.session_id)).session.name
    context.tell(
        f"The session is called {name}." if name else "The session has no name: /name NAME gives one."
    )


async def _session(context: CommandContext, _arguments: str) -> None:
    snapshot = await context.runtime.snapshot(context.session_id)
    session = snapshot.session
    prompts = len(prompt_tree(snapshot.heads, snapshot.leaf_id))
    rows = {
        "session": session.id,
        "name": session.name or "–",
        "file": session.path or "in memory only",
        "folder": session.cwd,
        "model": f"{snapshot.model.reference}, thinking {snapshot.thinking_level}",
        "prompts": f"{prompts} in {plural(len(snapshot.heads), 'entry')}",
        "spent": await _spent(context, snapshot),
    }
    context.tell("\n".join(f"{name}: {value}" for name, value in rows.items()))


async def _spent(context: CommandContext, snapshot: Snapshot) -> str:
    answers = [head.id for head in snapshot.heads if (head.type, head.detail) == ("message", "assistant")]
    tokens, cost = 0, 0.0
    for entry in await context.runtime.entries(context.session_id, answers):
        usage = entry.get("message", {}).get("usage") or {}
        tokens += usage.get("totalTokens") or 0
        cost += (usage.get("cost") or {}).get("total") or 0
    return f"{tokens:,} tokens, ${cost:.4f}"


# ------------------------------------------------------------------ the tree


async def _tree(context: CommandContext, arguments: str) -> None:
    if arguments:
        node = await _node(context, arguments)
        moved = await context.runtime.navigate(context.session_id, node.id)
        context.tell(f"The conversation goes on before prompt {node.number}.")
        context.edit(moved.text)
        return
    nodes = await _nodes(context)
    texts = await _texts(context, nodes)
    lines = [_line(node, text) for node, text in zip(nodes, texts, strict=True)]
    context.tell("\n".join(lines) or "There is no prompt yet.")


def _line(node: PromptNode, text: str) -> str:
    mark = "*" if node.active else " "
    return f"{mark} {'  ' * node.depth}{node.number}. {' '.join(text.split())[:80]}"


async def _fork(context: CommandContext, arguments: str) -> None:
    node = await _node(context, arguments)
    await _go(context, await context.runtime.fork(context.session_id, node.id, "before"))


async def _clone(context: CommandContext, _arguments: str) -> None:
    snapshot = await context.runtime.snapshot(context.session_id)
    if snapshot.leaf_id is None:
        raise UsageError("There is nothing to clone yet.")
    await _go(context, await context.runtime.fork(context.session_id, snapshot.leaf_id, "at"))


async def _go(context: CommandContext, moved: Moved) -> None:
    await context.show(moved.session_id)
    if moved.text:
        context.edit(moved.text)


async def _nodes(context: CommandContext) -> list[PromptNode]:
    snapshot = await context.runtime.snapshot(context.session_id)
    return prompt_tree(snapshot.heads, snapshot.leaf_id)


async def _texts(context: CommandContext, nodes: Sequence[PromptNode]) -> list[str]:
    entries = await context.runtime.entries(context.session_id, [node.id for node in nodes])
    contents = [entry.get("message", {}).get("content", "") for entry in entries]
    return [each if isinstance(each, str) else _joined(each) for each in contents]


def _joined(blocks: Sequence[object]) -> str:
    texts = (block.get("text", "") for block in blocks if isinstance(block, dict))
    return " ".join(text for text in texts if isinstance(text, str))


async def _node(context: CommandContext, number: str) -> PromptNode:
    for node in await _nodes(context):
        if str(node.number) == number:
            return node
    raise UsageError("Say which prompt by its number; /tree lists them.")


async def _prompt_numbers(context: CommandContext) -> Sequence[str]:
    return [str(node.number) for node in await _nodes(context)]


# ------------------------------------------------------------------ everything else


async def _compact(context: CommandContext, arguments: str) -> None:
    result = await context.runtime.compact(context.session_id, arguments)
    if result is None:
        context.tell("Stopped. Nothing has changed.")
    else:
        after = f" to about {result.estimated_tokens_after:,}" if result.estimated_tokens_after else ""
        context.tell(f"Compacted from {result.tokens_before:,}{after} tokens.")


async def _export(context: CommandContext, arguments: str) -> None:
    if not isinstance(context.runtime, _Exports):
        raise _missing("/export")
    path = await context.runtime.export(context.session_id, arguments or None)
    context.tell(f"Written to {path}.")


async def _import(context: CommandContext, arguments: str) -> None:
    words = arguments.split()
    if words[:1] != ["pi"] or words[1:] not in ([], ["--dry-run"]):
        raise UsageError("What can be imported is pi's directory: /import pi, or /import pi --dry-run.")
    if not isinstance(context.runtime, _Imports):
        raise _missing("/import")
    lines = [*await context.runtime.import_pi(dry_run=len(words) > 1)]
    keys_came = any(line.startswith("key of ") and line.endswith(": copied") for line in lines)
    if keys_came and (await context.runtime.snapshot(context.session_id)).model.provider == demo.PROVIDER:
        lines.append("The demo model still answers here: /model chooses one that a key is for.")
    context.tell("\n".join(lines))


async def _login(context: CommandContext, arguments: str) -> None:
    provider = arguments.split(maxsplit=1)[0] if arguments else ""
    if find_key(arguments):
        raise UsageError(
            "Not stored: keys are asked for, so that none stands on the screen. Say /login alone."
        )
    if not context.open_view("login", provider):
        context.tell(
            f"Keys are not typed where they are seen: `pi-trio auth login {provider or 'PROVIDER'}`."
        )


async def _login_choices(context: CommandContext) -> Sequence[str]:
    runtime = context.runtime
    return [place.id for place in await runtime.key_places()] if isinstance(runtime, KeepsKeys) else ()


async def _doctor(context: CommandContext, _arguments: str) -> None:
    if not isinstance(context.runtime, _Examines):
        raise _missing("/doctor")
    context.tell("\n".join(await context.runtime.doctor(context.session_id)))


async def _tour(context: CommandContext, _arguments: str) -> None:
    """The demo model, in a session of its own, shows what there is."""
    runtime = context.runtime
    session_id = (await runtime.new_session()).session.id
    await runtime.set_model(session_id, demo.MODEL.reference)
    await runtime.set_mode(session_id, "auto")
    await runtime.prompt(session_id, demo.TOUR)
    await context.show(session_id)


async def _reload(context: CommandContext, _arguments: str) -> None:
    findings = await context.runtime.reload(context.session_id)
    context.tell("\n".join(["Settings, resources and extensions were read again.", *findings]))


async def _trust(context: CommandContext, arguments: str) -> None:
    runtime, session_id = context.runtime, context.session_id
    folder = (await runtime.snapshot(session_id)).session.cwd
    match arguments:
        case "yes" | "no":
            await runtime.set_trust(session_id, folder, arguments == "yes")
        case "parent":
            await runtime.set_trust(session_id, folder.rpartition("/")[0] or "/", True)
        case "":
            trust = await runtime.trust(session_id)
            paths = [str(path) for path in trust.resources] or ["There is nothing that needs it."]
            state = "trusted" if trust.trusted else "not trusted"
            how = "/trust yes, /trust no or /trust parent (the folder above) decides."
            context.tell("\n".join([f"{folder} is {state}. What it is about:", *paths, how]))
            return
        case _:
            raise UsageError("Say /trust yes, /trust no, or /trust parent.")
    await _reload(context, "")


async def _trust_choices(_context: CommandContext) -> Sequence[str]:
    return ("yes", "no", "parent")


async def _quit(context: CommandContext, _arguments: str) -> None:
    context.quit()


def _command(
    name: str,
    description: str,
    run: Run,
    hint: str = "",
    complete: Complete | None = None,
    needs: type[Any] = object,
) -> Command:
    info = CommandInfo(name, description, "builtin", hint)
    if complete is None:
        return Command(info, run, needs=needs)
    return Command(info, run, complete, needs)


def builtin_commands() -> Commands:
    """The registry with every built-in command."""

    async def show_help(context: CommandContext, _arguments: str) -> None:
        context.tell("\n".join(map(_help_line, await commands.all(context))))

    commands = Commands(
        [
            _command("help", "what there is to say", show_help),
            _command("model", "show or choose the model", _model, "[MODEL]", _model_choices),
            _command("thinking", "show or choose how much it thinks", _thinking, "[LEVEL]", _level_choices),
            _command("mode", "show or choose what runs unasked", _mode, "[MODE]", _mode_choices),
            _command("new", "start another session", _new),
            _command("resume", "open another session", _resume, "[PATH or id]"),
            _command("name", "show or choose the session's name", _name, "[NAME]"),
            _command("session", "what this session is", _session),
            _command("tree", "the prompts as a tree; go back before one", _tree, "[N]", _prompt_numbers),
            _command("fork", "a new session up to before a prompt", _fork, "N", _prompt_numbers),
            _command("clone", "a new session that begins as this one is", _clone),
            _command("compact", "replace older messages by a summary", _compact, "[INSTRUCTIONS]"),
            _command(
                "export",
                "write the session to an .html, .md or .jsonl file",
                _export,
                "[PATH]",
                needs=_Exports,
            ),
            _command("import", "bring in what pi has", _import, "pi [--dry-run]", needs=_Imports),
            _command("login", "store the key of a provider", _login, "[PROVIDER]", _login_choices, KeepsKeys),
            _command("doctor", "look at everything that a start needs", _doctor, needs=_Examines),
            _command("tour", "two minutes with the demo model: offline and free", _tour),
            _command("reload", "read settings, resources and extensions again", _reload),
            _command("trust", "this folder's own resources", _trust, "[yes|no|parent]", _trust_choices),
            *VIEW_COMMANDS,
            _command("quit", "end the program", _quit),
        ]
    )
    return commands


def _help_line(info: CommandInfo) -> str:
    source = "" if info.source == "builtin" else f" ({info.source})"
    usage = f"/{info.name} {info.argument_hint}".rstrip()
    return f"{usage}: {info.description}{source}" if info.description else f"{usage}{source}"
