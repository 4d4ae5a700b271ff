"""The bash tool: one shell command, what it printed and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import trio

from pi_trio.nursery import plain_nursery
from pi_trio.tool import OnUpdate, Tool, ToolResult
from pi_trio.tools.environment import ToolEnvironment
from pi_trio.tools.failure import ToolError
from pi_trio.tools.output import MAX_LOG_BYTES, Output
from pi_trio.tools.processes import Outcome
from pi_trio.tools.truncate import MAX_BYTES, MAX_LINES, Truncation, format_size

__all__ = ["bash_tool"]

UPDATE_INTERVAL = 0.1
LAST_UPDATE = 0.2
"""Seconds that listeners have for the output of an aborted command."""

MAX_TIMEOUT = 2_147_483.647

_DESCRIPTION = (
    "Run a command in bash, in the working directory, and get what it printed to stdout and stderr. "
    f"Only the last {MAX_LINES} lines or {format_size(MAX_BYTES)} are shown, whichever is less; the whole "
    "output is then in a file. There is no terminal and no standard input, and each call is a new shell. "
    "What is put into the background runs on after the call."
)

_PARAMETERS = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "description": "The command"},
        "timeout": {
            "type": "number",
            "description": "Stop it after so many seconds; without it there is no limit",
        },
    },
    "required": ["command"],
}


def bash_tool(environment: ToolEnvironment) -> Tool:
    """Runs commands in `environment`."""

    async def execute(call_id: str, args: Mapping[str, Any], on_update: OnUpdate) -> ToolResult:
        timeout = args.get("timeout")
        if timeout is not None and not 0 < timeout <= MAX_TIMEOUT:
            raise ToolError(f"The timeout must be more than 0 and at most {MAX_TIMEOUT} seconds.")
        output = environment.new_output()
        began = trio.current_time()
        outcome = await _run(environment, args["command"], timeout, output, on_update)
        return _result(output, outcome, timeout, trio.current_time() - began)

    return Tool(
        name="bash",
        description=_DESCRIPTION,
        parameters=_PARAMETERS,
        execute=execute,
        prompt_snippet="Run a shell command",
        prompt_guidelines=(
            "Commands must not wait for a keyboard: pass flags such as --yes, and messages as arguments.",
        ),
    )


async def _run(
    environment: ToolEnvironment, command: str, timeout: float | None, output: Output, on_update: OnUpdate
) -> Outcome:
    """Run it, telling of its output meanwhile; when aborted, of the last of it."""
    async with plain_nursery() as nursery:
        nursery.start_soon(_report, output, on_update)
        try:
            outcome = await environment.run(command, output, timeout)
        except trio.Cancelled:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + LAST_UPDATE):
                await on_update(_progress(output))
            raise
        nursery.cancel_scope.cancel()
    return outcome


async def _report(output: Output, on_update: OnUpdate) -> None:
    """The first report comes at once and is empty: it says that the command was started."""
    await on_update(ToolResult())
    shown = 0
    while True:
        await trio.sleep(UPDATE_INTERVAL)
        if output.received != shown:
            shown = output.received
            await on_update(_progress(output))


def _progress(output: Output) -> ToolResult:
    part = output.tail(final=False)
    return ToolResult(part.content, _details(output, part))


def _result(output: Output, outcome: Outcome, timeout: float | None, seconds: float) -> ToolResult:
    part = output.tail()
    failure = _failure(outcome, timeout)
    notes = [_footer(output, part)] if part.truncated else []
    if outcome.still_running:
        notes.append("[Something that it started still runs in the background.]")
    if failure:
        notes.append(failure)
    text = part.content or "(no output)"
    return ToolResult(
        "\n\n".join([text, *notes]),
        _details(output, part),
        is_error=failure is not None,
        structured_content=_structured(output, outcome, seconds),
    )


def _failure(outcome: Outcome, timeout: float | None) -> str | None:
    if outcome.timed_out:
        return f"Command timed out after {timeout:g} seconds"
    return f"Command exited with code {outcome.status}" if outcome.status else None


def _footer(output: Output, part: Truncation) -> str:
    total = part.total_lines
    if part.last_line_partial:
        size = format_size(output.last_line_bytes)
        shown = f"last {format_size(part.output_bytes)} of line {total} (line is {size})"
    else:
        why = f" ({format_size(MAX_BYTES)} limit)" if part.truncated_by == "bytes" else ""
        shown = f"lines {total - part.output_lines + 1}-{total} of {total}{why}"
    return f"[Showing {shown}. {_where(output)}]"


def _where(output: Output) -> str:
    if output.log_error is not None:
        return f"The full output could not be kept: {output.log_error.strerror}"
    if output.received > MAX_LOG_BYTES:
        return f"The first {format_size(MAX_LOG_BYTES)}: {output.log_path}"
    return f"Full output: {output.log_path}"


def _details(output: Output, part: Truncation) -> dict[str, Any] | None:
    if not part.truncated:
        return None
    details: dict[str, Any] = {"truncation": part.details()}
    if output.log_path is not None:
        details["fullOutputPath"] = str(output.log_path)
    return details


def _structured(output: Output, outcome: Outcome, seconds: float) -> dict[str, Any]:
    """For programs that call the tool: more output than a model is shown."""
    structured = {
        "output": output.head_and_tail(),
        "truncated": output.is_cut,
        "exit_code": outcome.status,
        "wall_time_seconds": round(seconds, 3),
    }
    if output.log_path is not None:
        structured["full_output_path"] = str(output.log_path)
    return structured
