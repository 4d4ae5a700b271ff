"""The models of a session that begins here, those of extensions among them, without asking any."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from pi_trio.cli.words import tell
from pi_trio.errors import ConfigError
from pi_trio.llm.registry import Models
from pi_trio.resources.config import RuntimeConfig

__all__ = ["with_extensions"]


@asynccontextmanager
async def with_extensions(models: Models, tell: Callable[[str], object] = tell) -> AsyncIterator[Models]:
    """What the extensions of this folder make of `models`. What is wrong with them is told.

    They are loaded as for a session, which is not kept. Settings that cannot be read, where extensions
    may be named, leave it at `models`.
    """
    from pi_trio.harness.runtime import open_runtime

    try:
        config = RuntimeConfig.load(demo=True, no_session=True)
    except ConfigError as error:
        tell(f"without extensions: {error}")
        yield models
        return
    async with open_runtime(config) as runtime:
        snapshot = await runtime.new_session()
        for finding in snapshot.findings:
            if finding not in map(str, models.findings):
                tell(finding)
        yield runtime.registry
