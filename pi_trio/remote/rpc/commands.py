"""The commands of RPC mode: a small function each, and the table that names them.

A function gets the client and the fields that it may say, checked. What it returns is the
`data` of the response, which None leaves out; a `PiError` that it raises is the `error`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import frozen

from pi_trio.codec import from_json, to_json
from pi_trio.errors import ConfigError, UsageError
from pi_trio.llm.protocol import Model
from pi_trio.llm.thinking import LEVELS, supported_levels
from pi_trio.messages import AssistantMessage, ImageContent
from pi_trio.remote.rpc.client import Client
from pi_trio.remote.rpc.parameters import Given, Parameter, anything, choice, flag, images, text
from pi_trio.remote.rpc.shapes import (
    NULL,
    Encoded,
    bash_result,
    command_info,
    compaction_result,
    messages_of,
    model_info,
    session_state,
    session_stats,
    session_tree,
)
from pi_trio.resources.paths import absolute
from pi_trio.session.branching import prompt_text
from pi_trio.session.session import Session

__all__ = ["COMMANDS", "Command"]

Run: TypeAlias = Callable[[Client, Given], Awaitable[Any]]


@frozen
class Command:
    """`run` does it. One that is `long` is answered when it is over, while others are done."""

    run: Run
    parameters: tuple[Parameter, ...] = ()
    long: bool = False


# ------------------------------------------------------------------ input


async def _prompt(client: Client, given: Given) -> dict[str, str]:
    message = given["message"]
    if await _run_command(client, message):
        return {"disposition": "handled"}
    behaviour = given.get("streamingBehavior")
    if not client.harness.running:
        await client.runtime.prompt(client.session_id, message, _images(given))
        return {"disposition": "started"}
    if behaviour is None:
        raise UsageError(
            "The agent is already processing a prompt: say `streamingBehavior`, steer or followUp."
        )
    return await (_steer if behaviour == "steer" else _follow_up)(client, given)


async def _steer(client: Client, given: Given) -> dict[str, str]:
    await _refuse_command(client, given["message"])
    await client.runtime.steer(client.session_id, given["message"], _images(given))
    return {"disposition": "queued"}


async def _follow_up(client: Client, given: Given) -> dict[str, str]:
    await _refuse_command(client, given["message"])
    await client.runtime.follow_up(client.session_id, given["message"], _images(given))
    return {"disposition": "queued"}


async def _abort(client: Client, _given: Given) -> None:
    await client.runtime.abort(client.session_id)


async def _clear_queue(client: Client, _given: Given) -> dict[str, Any]:
    queue = await client.runtime.clear_queue(client.session_id)
    return {"steering": list(queue.steering), "followUp": list(queue.follow_up)}


def _images(given: Given) -> list[ImageContent]:
    return [from_json(ImageContent, image) for image in given.get("images", ())]


async def _run_command(client: Client, message: str) -> bool:
    """Run the command of an extension that a message names. False if it names none."""
    name = await _extension_command(client, message)
    if name is None:
        return False
    told = await client.runtime.run_command(client.session_id, name, message[len(name) + 1 :].strip())
    if told:
        await client.tell(told)
    return True


async def _refuse_command(client: Client, message: str) -> None:
    name = await _extension_command(client, message)
    if name is not None:
        raise UsageError(f"/{name} is a command of an extension and cannot wait: send it as a prompt.")


async def _extension_command(client: Client, message: str) -> str | None:
    if not message.startswith("/"):
        return None
    name = next(iter(message[1:].split(maxsplit=1)), "")
    commands = await client.runtime.commands(client.session_id)
    return name if any(each.name == name and each.source == "extension" for each in commands) else None


# ------------------------------------------------------------------ the model


async def _set_model(client: Client, given: Given) -> dict[str, Any]:
    reference = f"{given['provider']}/{given['modelId']}"
    known = client.runtime.registry.available()
    if all(model.reference != reference for model in known):
        raise ConfigError(f"There is no model {reference} that can be asked.")
    return model_info(await client.runtime.set_model(client.session_id, reference))


async def _cycle_model(client: Client, _given: Given) -> dict[str, Any] | Encoded:
    known = client.runtime.registry.available()
    if len(known) < 2:
        return NULL
    following = _after(known, client.harness.model)
    model = await client.runtime.set_model(client.session_id, following.reference)
    return {"model": model_info(model), "thinkingLevel": client.harness.thinking_level, "isScoped": False}


def _after(models: Sequence[Model], current: Model) -> Model:
    references = [model.reference for model in models]
    place = references.index(current.reference) if current.reference in references else -1
    return models[(place + 1) % len(models)]


async def _get_available_models(client: Client, _given: Given) -> dict[str, Any]:
    return {"models": [model_info(model) for model in await client.runtime.models()]}


async def _set_thinking_level(client: Client, given: Given) -> None:
    await client.runtime.set_thinking_level(client.session_id, given["level"])


async def _cycle_thinking_level(client: Client, _given: Given) -> dict[str, str] | Encoded:
    harness = client.harness
    levels = supported_levels(harness.model)
    if len(levels) < 2:
        return NULL
    following = levels[(levels.index(harness.thinking_level) + 1) % len(levels)]
    return {"level": await client.runtime.set_thinking_level(client.session_id, following)}


async def _get_available_thinking_levels(client: Client, _given: Given) -> dict[str, Any]:
    return {"levels": list(supported_levels(client.harness.model))}


# ------------------------------------------------------------------ how it works


async def _set_steering_mode(client: Client, given: Given) -> None:
    client.harness.inbox.steering_mode = given["mode"]


async def _set_follow_up_mode(client: Client, given: Given) -> None:
    client.harness.inbox.follow_up_mode = given["mode"]


async def _compact(client: Client, given: Given) -> dict[str, Any]:
    result = await client.runtime.compact(client.session_id, given.get("customInstructions", ""))
    if result is None:
        raise UsageError("The compaction was aborted.")
    return compaction_result(result)


async def _set_auto_compaction(client: Client, given: Given) -> None:
    client.harness.compactor.enabled = given["enabled"]


async def _set_auto_retry(client: Client, given: Given) -> None:
    client.harness.auto_retry = given["enabled"]


async def _abort_retry(client: Client, _given: Given) -> None:
    """Ends the run, which does nothing else while it waits."""
    if client.harness.retrying:
        await client.runtime.abort(client.session_id)


async def _bash(client: Client, given: Given) -> dict[str, Any]:
    before, client.shell_id = client.shell_id, given.get("id")
    try:
        message = await client.runtime.run_shell(
            client.session_id, given["command"], given.get("excludeFromContext", False)
        )
        await client.outgoing.send()  # what it printed, while its id is known
        return bash_result(message)
    finally:
        client.shell_id = before


async def _abort_bash(client: Client, _given: Given) -> None:
    await client.runtime.abort_shell(client.session_id)


# ------------------------------------------------------------------ sessions

_NOT_CANCELLED: Mapping[str, Any] = {"cancelled": False}
"""No extension of ours can refuse to leave a session."""


async def _new_session(client: Client, given: Given) -> Mapping[str, Any]:
    snapshot = await client.runtime.new_session(given.get("parentSession"))
    await client.show(snapshot.session.id)
    return _NOT_CANCELLED


async def _switch_session(client: Client, given: Given) -> Mapping[str, Any]:
    snapshot = await client.runtime.open_session(given["sessionPath"])
    await client.show(snapshot.session.id)
    return _NOT_CANCELLED


async def _fork(client: Client, given: Given) -> Mapping[str, Any]:
    session, entry_id = client.harness.session, given["entryId"]
    if not prompt_text(session.entry(entry_id)):
        raise UsageError(f"The entry {entry_id} is no prompt: a fork begins before one.")
    moved = await client.runtime.fork(client.session_id, entry_id, "before")
    await client.show(moved.session_id)
    return {"text": moved.text, **_NOT_CANCELLED}


async def _clone(client: Client, _given: Given) -> Mapping[str, Any]:
    leaf = client.harness.session.get_leaf_id()
    if leaf is None:
        raise UsageError("There is nothing to clone yet.")
    moved = await client.runtime.fork(client.session_id, leaf, "at")
    await client.show(moved.session_id)
    return _NOT_CANCELLED


async def _set_session_name(client: Client, given: Given) -> None:
    name = given["name"].strip()
    if not name:
        raise UsageError("`name` is blank.")
    await client.runtime.set_session_name(client.session_id, name)


async def _export_html(client: Client, given: Given) -> dict[str, str]:
    from pi_trio.session.export.file import write_export
    from pi_trio.session.export.page import tree_page

    session = client.harness.session
    name = session.path.stem if session.path else session.id
    path = absolute(given.get("outputPath") or str(client.cwd / f"pi-session-{name}.html"))
    write_export(path, tree_page(session).encode(), replace=True)
    return {"path": str(path)}


# ------------------------------------------------------------------ reading


async def _get_state(client: Client, _given: Given) -> dict[str, Any]:
    return session_state(client.harness)


async def _get_session_stats(client: Client, _given: Given) -> dict[str, Any]:
    return session_stats(client.harness)


async def _get_messages(client: Client, _given: Given) -> dict[str, Any]:
    return {"messages": to_json(messages_of(client.harness))}


async def _get_last_assistant_text(client: Client, _given: Given) -> dict[str, Any]:
    said = (
        message.text
        for message in reversed(client.harness.conversation.transcript)
        if isinstance(message, AssistantMessage)
    )
    return {"text": next(filter(None, said), None)}


async def _get_fork_messages(client: Client, _given: Given) -> dict[str, Any]:
    session = client.harness.session
    prompts = [head.id for head in session.heads if (head.type, head.detail) == ("message", "user")]
    found = [{"entryId": each, "text": prompt_text(session.entry(each))} for each in prompts]
    return {"messages": [each for each in found if each["text"]]}


async def _get_entries(client: Client, given: Given) -> dict[str, Any]:
    session = client.harness.session
    start = _after_entry(session, given["since"]) if "since" in given else 0
    entries = [session.raw(head.id) for head in session.heads[start:]]
    return {"entries": entries, "leafId": session.get_leaf_id()}


def _after_entry(session: Session, entry_id: str) -> int:
    if entry_id not in session.tree:
        raise UsageError(f"There is no entry {entry_id}.")
    return session.tree.position(entry_id) + 1


async def _get_tree(client: Client, _given: Given) -> Encoded:
    return session_tree(client.harness.session)


async def _get_commands(client: Client, _given: Given) -> dict[str, Any]:
    commands = await client.runtime.commands(client.session_id)
    return {"commands": [command_info(each, client.cwd) for each in commands]}


# ------------------------------------------------------------------ the table

_INPUT = (text("message"), images("images"))
_QUEUE_MODE = (choice("mode", "all", "one-at-a-time"),)

COMMANDS: Mapping[str, Command] = {
    "prompt": Command(_prompt, (*_INPUT, choice("streamingBehavior", "steer", "followUp", required=False))),
    "steer": Command(_steer, _INPUT),
    "follow_up": Command(_follow_up, _INPUT),
    "abort": Command(_abort),
    "clear_queue": Command(_clear_queue),
    "new_session": Command(_new_session, (text("parentSession", required=False),)),
    "get_state": Command(_get_state),
    "set_model": Command(_set_model, (text("provider"), text("modelId"))),
    "cycle_model": Command(_cycle_model),
    "get_available_models": Command(_get_available_models, long=True),
    "set_thinking_level": Command(_set_thinking_level, (choice("level", *LEVELS),)),
    "cycle_thinking_level": Command(_cycle_thinking_level),
    "get_available_thinking_levels": Command(_get_available_thinking_levels),
    "set_steering_mode": Command(_set_steering_mode, _QUEUE_MODE),
    "set_follow_up_mode": Command(_set_follow_up_mode, _QUEUE_MODE),
    "compact": Command(_compact, (text("customInstructions", required=False),), long=True),
    "set_auto_compaction": Command(_set_auto_compaction, (flag("enabled"),)),
    "set_auto_retry": Command(_set_auto_retry, (flag("enabled"),)),
    "abort_retry": Command(_abort_retry),
    "bash": Command(
        _bash, (text("command"), flag("excludeFromContext", required=False), anything("id")), long=True
    ),
    "abort_bash": Command(_abort_bash),
    "get_session_stats": Command(_get_session_stats),
    "export_html": Command(_export_html, (text("outputPath", required=False),)),
    "switch_session": Command(_switch_session, (text("sessionPath"),)),
    "fork": Command(_fork, (text("entryId"),)),
    "clone": Command(_clone),
    "get_fork_messages": Command(_get_fork_messages),
    "get_entries": Command(_get_entries, (text("since", required=False),)),
    "get_tree": Command(_get_tree),
    "get_last_assistant_text": Command(_get_last_assistant_text),
    "set_session_name": Command(_set_session_name, (text("name"),)),
    "get_messages": Command(_get_messages),
    "get_commands": Command(_get_commands),
}
