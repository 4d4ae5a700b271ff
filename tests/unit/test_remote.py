"""A runtime behind a server: what its clients see, also when connections break."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing
from served import Cutter, Seen, served

from pi_trio.remote import client
from pi_trio.errors import BusyError, SessionError, UsageError

pytestmark = pytest.mark.usefixtures("demo_in_a_hurry")


@pytest.fixture
def comes_back_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "WAITS", ())
    monkeypatch.setattr(client, "LONGEST_WAIT", 0.0)


async def test_a_prompt_is_answered_as_by_a_runtime_of_ones_own(tmp_path: Path) -> None:
    async with served(tmp_path) as there, there.client() as remote:
        snapshot = await remote.new_session()
        seen, begun = await Seen.of(remote, snapshot.session.id)
        assert (begun, begun.seq) == (snapshot, 0)
        assert await remote.prompt(snapshot.session.id, "hello") == "started"
        await remote.wait_for_idle(snapshot.session.id)
        assert seen.types.index("agent_start") < seen.types.index("message_end")
        assert seen.types[-1] == "agent_settled"
        now = await remote.snapshot(snapshot.session.id)
        assert now == await there.runtime.snapshot(snapshot.session.id)
        ids = [head.id for head in now.heads]
        assert await remote.entries(now.session.id, ids) == await there.runtime.entries(now.session.id, ids)


@pytest.mark.usefixtures("comes_back_at_once")
async def test_a_connection_that_is_cut_a_hundred_times_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """HL-10: one of two clients is cut at random places, in what it sends and in what it gets."""
    async with served(tmp_path) as there, there.client() as steady:
        session_id = (await steady.new_session()).session.id
        whole, _ = await Seen.of(steady, session_id)
        async with there.client(cutter := Cutter(seed=7, times=100)) as shaky:
            cut, _ = await Seen.of(shaky, session_id)
            prompts = []
            while cutter.left:
                prompts.append(f"prompt {len(prompts)}")
                await shaky.prompt(session_id, prompts[-1])
                await shaky.wait_for_idle(session_id)
            await cut.event("agent_settled", len(prompts))
            await whole.event("agent_settled", len(prompts))
            assert cut.gaps == 0
            assert cut.told == whole.told
            assert len(prompts) > 3
            heads = (await shaky.snapshot(session_id)).heads
            said = [head.id for head in heads if head.detail == "user"]
            entries = await shaky.entries(session_id, said)
            assert [entry["message"]["content"][0]["text"] for entry in entries] == prompts
