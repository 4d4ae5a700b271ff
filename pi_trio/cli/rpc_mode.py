"""RPC mode: another program drives this one over its standard input and output. See docs/rpc.md."""

from __future__ import annotations

import argparse
from functools import partial

import trio
from attrs import evolve

from pi_trio.cli.lines import ByteLines
from pi_trio.cli.options import open_chosen_session, runtime_config
from pi_trio.cli.signals import until_signal
from pi_trio.cli.status import BROKEN_PIPE, ended_by
from pi_trio.cli.stdio import Output, reserved_output
from pi_trio.cli.words import tell
from pi_trio.errors import PiError, UsageError
from pi_trio.harness.runtime import open_runtime
from pi_trio.remote.rpc.server import serve

__all__ = ["run_rpc"]


def run_rpc(namespace: argparse.Namespace) -> int:
    """Serve the client at the other end of the pipes. Returns the exit status; raises `StorageError`."""
    with reserved_output() as output:
        return trio.run(until_signal, partial(_serve, namespace, output))


def _check(namespace: argparse.Namespace) -> None:
    if namespace.messages:
        raise UsageError("RPC mode takes no messages and no files: prompts come as commands")
    if namespace.output_schema or namespace.timeout:
        raise UsageError("RPC mode takes no --output-schema and no --timeout: they are for --print")


async def _serve(namespace: argparse.Namespace, output: Output) -> int:
    try:
        _check(namespace)
        config = evolve(runtime_config(namespace), can_ask=True)
        async with open_runtime(config) as runtime:
            snapshot = await open_chosen_session(runtime, namespace)
            for finding in snapshot.findings:
                tell(finding)
            await serve(runtime, snapshot.session.id, ByteLines().next, output.write)
    except BrokenPipeError:  # nobody reads any more
        return BROKEN_PIPE
    except PiError as error:
        return ended_by(error)
    return 0
