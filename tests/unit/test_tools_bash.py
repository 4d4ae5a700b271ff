"""Real commands, real signals, real processes left behind or not."""

from __future__ import annotations

import os
import resource
import stat
import sys
import tempfile
from pathlib import Path

import attrs
import pytest
import trio

from pi_trio.messages import text_of
from pi_trio.tools import LocalEnvironment, ToolError, bash_tool
from pi_trio.tools import processes as processes_module
from pi_trio.tools.folding import MAX_OPEN_BYTES, Folding
from pi_trio.tools.output import Output, Scratch
from pi_trio.tools.processes import TOKEN_VARIABLE

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="strays are found through /proc")


def arguments_of(number: str) -> str:
    try:
        return Path("/proc", number, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def running(mark: str) -> list[str]:
    """The processes with `mark` in their arguments, zombies not counted."""
    return [arguments for arguments in map(arguments_of, processes()) if mark in arguments]


def processes() -> list[str]:
    return [each.name for each in Path("/proc").iterdir() if each.name.isdecimal()]


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture(autouse=True)
def scratch(tmp_path_factory, monkeypatch):
    """Full outputs go where pytest tidies up."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("scratch")))


@pytest.fixture
def mark():
    """A number of seconds to sleep that no other test uses."""
    return f"{4747}.{os.getpid()}{os.urandom(3).hex()}".translate(str.maketrans("abcdef", "123456"))


@pytest.fixture
async def environment(tmp_path):
    environment = LocalEnvironment(tmp_path)
    yield environment
    await environment.aclose()


@pytest.fixture
def bash(environment):
    return Caller(environment)


@pytest.fixture
def signal_file(tmp_path):
    """A pipe by which a command can tell how far it is."""
    os.mkfifo(tmp_path / "signal")
    return tmp_path / "signal"


async def written(signal_file):
    with trio.fail_after(20):
        await trio.to_thread.run_sync(signal_file.read_text, abandon_on_cancel=True)


@attrs.define
class Caller:
    """Calls the tool as the loop does, and keeps the updates."""

    environment: LocalEnvironment
    updates: list = attrs.field(factory=list)
    changed: trio.Event = attrs.field(factory=trio.Event)

    async def __call__(self, command, **args):
        with trio.fail_after(30):
            return await bash_tool(self.environment).execute(
                "c1", {"command": command, **args}, self.on_update
            )

    async def on_update(self, partial):
        self.updates.append(partial)
        self.changed.set()
        self.changed = trio.Event()

    async def seen(self, text):
        """Wait until the command has printed `text`."""
        with trio.fail_after(20):
            while not any(text in text_of(update.content) for update in self.updates):
                await self.changed.wait()

    async def abort(self, command, printed="ready"):
        """Run it, and cancel the call once it has printed something."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self, command)
            await self.seen(printed)
            nursery.cancel_scope.cancel()


def text(result):
    return text_of(result.content)


def log_of(result):
    return Path(result.details["fullOutputPath"])


def size_of(path):
    return path.stat().st_size


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


# ---------------------------------------------------------------- what comes back


async def test_output_in_the_order_it_came(bash, tmp_path):
    result = await bash("echo one; echo two >&2; echo three; pwd")
    assert text(result) == f"one\ntwo\nthree\n{tmp_path}\n"
    assert not result.is_error
    assert result.details is None
    structured = result.structured_content
    assert (structured["exit_code"], structured["truncated"]) == (0, False)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("true", "(no output)"),
        ("false", "(no output)\n\nCommand exited with code 1"),
        ("echo no; exit 3", "no\n\n\nCommand exited with code 3"),
        ("kill -9 $$", "(no output)\n\nCommand exited with code 137"),
        ("nonexistent-command-x 2>/dev/null", "(no output)\n\nCommand exited with code 127"),
    ],
)
async def test_how_commands_end(bash, command, shown):
    result = await bash(command)
    assert text(result) == shown
    assert result.is_error == ("code" in shown)


async def test_a_command_that_prints_after_a_silence_is_over_when_it_ends(bash):
    """Its last output and its end are noticed together."""
    async with trio.open_nursery() as nursery:
        results = []

        async def call():
            results.append(text(await bash("sleep 0.15; echo done")))

        for _ in range(8):
            nursery.start_soon(call)
    assert results == ["done\n"] * 8


@needs_proc
async def test_timeout(bash, mark):
    """BA-03"""
    result = await bash(f"echo begun; setsid sleep {mark} & sleep {mark}", timeout=0.5)
    assert text(result) == "begun\n\n\nCommand timed out after 0.5 seconds"
    assert result.is_error
    assert not running(mark)


async def test_a_timeout_in_the_background_hides_no_exit_code(bash):
    result = await bash("yes & sleep 0.1; exit 4", timeout=0.5)
    assert text(result).endswith("Command exited with code 4")


@pytest.mark.parametrize("timeout", [0, -1, 2_147_483.7, float("nan")])
async def test_impossible_timeouts(bash, timeout):
    with pytest.raises(ToolError, match="timeout"):
        await bash("true", timeout=timeout)


@pytest.mark.parametrize("command", ["echo a\0b", "echo \ud83d", ": " + "x" * 3_000_000])
async def test_impossible_commands(bash, command):
    """SE-15"""
    await bash("true")
    before = descriptors()
    with pytest.raises(ToolError):
        await bash(command)
    assert descriptors() == before


async def test_the_working_directory_is_gone(tmp_path):
    """BA-11"""
    (tmp_path / "x").mkdir()
    bash = Caller(LocalEnvironment(tmp_path / "x"))
    await bash("rm -r ../x")
    with pytest.raises(ToolError, match="is not there any more"):
        await bash("pwd")
    assert text(await Caller(LocalEnvironment(tmp_path))("pwd")) == f"{tmp_path}\n"


async def test_settings(tmp_path):
    bash = Caller(LocalEnvironment(tmp_path, shell="/bin/sh", command_prefix="x=prefixed"))
    assert text(await bash("echo $0 $x")) == "/bin/sh prefixed\n"


# ---------------------------------------------------------------- output


@pytest.mark.parametrize("more", [0, 1, 2])
async def test_the_shown_lines_are_counted(bash, more):
    """BA-09"""
    result = await bash(f"seq 1 {2000 + more}")
    shown, _, note = text(result).partition("\n\n")
    assert shown.split()[0] == str(1 + more)
    expected = f"[Showing lines {1 + more}-{2000 + more} of {2000 + more}. Full output: "
    assert note.startswith(expected if more else "")
    assert bool(result.details) == bool(more)


async def test_full_output_is_private_and_whole(bash):
    """SE-19"""
    result = await bash("umask 0; seq 1 30000")
    path = log_of(result)
    assert path.read_text() == "".join(f"{n}\n" for n in range(1, 30_001))
    assert mode_of(path) == 0o600
    assert mode_of(path.parent) == 0o700
    assert "(50.0KB limit)" not in text(result)
    assert text(result).endswith(f"[Showing lines 28001-30000 of 30000. Full output: {path}]")


async def test_outputs_of_a_session_that_is_not_kept_go_with_it(tmp_path):
    """SE-19"""
    for keep in (True, False):
        bash = Caller(LocalEnvironment(tmp_path, keep_logs=keep))
        path = log_of(await bash("seq 1 30000"))
        await bash.environment.aclose()
        assert path.exists() == path.parent.exists() == keep


async def test_old_scratch_folders_are_swept(tmp_path):
    """SE-19"""
    victim, old, link = (tmp_path / name for name in ("victim", "pi-trio-output-old", "pi-trio-output-link"))
    for folder in (victim, old):
        folder.mkdir()
        (folder / "file").touch()
        os.utime(folder, (1, 1))
    link.symlink_to(victim)
    path, descriptor = Scratch(tmp_path).new_log()
    os.close(descriptor)
    assert path.exists()
    assert not old.exists()
    assert (victim / "file").exists()


async def test_huge_output_stays_out_of_memory(bash):
    """BA-05"""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await bash("yes | head -c 60000000; printf done")
    path = log_of(result)
    assert size_of(path) == 60_000_004
    assert text(result).rpartition("\n\n")[0].endswith("y\ndone")
    one_line = await bash("head -c 20000000 /dev/zero | tr '\\0' a")
    assert "[Showing last 50.0KB of line 1 (line is 19.1MB). Full output: " in text(one_line)
    for each in (result, one_line):
        assert len(text(each)) < 52_000
        assert len(each.structured_content["output"]) < 1_100_000
        log_of(each).unlink()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024


@pytest.mark.parametrize(
    "command", ["head -c 200000 /dev/urandom", r"printf '\xff\xfe\x00A'", r"printf 'a\0b'"]
)
async def test_binary_output(bash, command):
    """BA-08"""
    shown = text(await bash(command))
    assert "�" in shown
    assert "\0" not in shown
    assert shown.encode()


async def test_progress_bars_are_one_line(bash):
    """BA-10"""
    result = await bash(r'for i in $(seq 1 2000); do printf "\r%d" $i; done; echo')
    assert text(result) == "2000\n"


async def test_the_full_output_has_every_state_of_a_progress_bar(bash):
    """BA-10: what comes before a long one is still shown, and nothing is called cut that is not."""
    result = await bash(r'echo begun; for i in $(seq 1 20000); do printf "\r%05d" $i; done; echo; seq 1 2000')
    log = log_of(result).read_bytes()
    assert log.startswith(b"begun\n\r00001\r00002")
    shown = text(result)
    assert "[Showing lines 3-2002 of 2002. Full output: " in shown
    whole = await bash(r'echo begun; for i in $(seq 1 20000); do printf "\r%05d" $i; done; echo; echo done')
    assert (text(whole), whole.details) == ("begun\n20000\ndone\n", None)


LINES_AS_SHOWN = {
    "plain\nlast": "plain\nlast",
    "10%\r50%\r100%\ndone": "100%\ndone",
    "hello\rab\n": "abllo\n",
    "één\rza\n": "zan\n",
    "long line\r\x1b[Kshort\n": "\x1b[Kshort\n",
    "dos\r\nlines\r\n": "dos\nlines\n",
    "open\r": "open",
    "open\rno": "noen",
    "\r\r\n": "\n",
}


@pytest.mark.parametrize("step", [1, 2, 3, 100])
@pytest.mark.parametrize("printed", LINES_AS_SHOWN)
async def test_lines_that_were_written_over(printed, step):
    """BA-10"""
    output = Output(Scratch())
    data = printed.encode()
    for at in range(0, len(data), step):
        await output.write(data[at : at + step])
    shown = LINES_AS_SHOWN[printed]
    assert output.tail().content == output.head_and_tail() == shown
    assert output.total_bytes == len(shown.encode())


async def test_a_line_that_never_ends_is_not_kept_back():
    folding = Folding()
    data = b"".join(folding.feed(b"x" * 1000) for _ in range(1000))
    assert len(data) + len(folding.open) == 1_000_000
    assert len(folding.open) <= MAX_OPEN_BYTES


@pytest.mark.parametrize("command", ["head -c 40000 /dev/zero", "seq 1 2000; printf last"])
async def test_whatever_is_cut_is_in_a_file(bash, command):
    """BA-08, BA-09: bytes that are no letters take more room when they are shown."""
    result = await bash(command)
    assert f"Full output: {log_of(result)}]" in text(result)


@pytest.mark.parametrize("step", [1, 2, 3, 5])
async def test_letters_are_not_damaged_by_chunks(step):
    data = "한😀é\n".encode() * 20
    output = Output(Scratch())
    for at in range(0, len(data), step):
        await output.write(data[at : at + step])
        assert "�" not in output.tail(final=False).content
    assert output.tail().content == output.head_and_tail() == data.decode()


async def test_counts_do_not_depend_on_chunks(tmp_path):
    data = b"one\n\n" + b"x" * 70_000 + b"\nlast line"
    for step in (97, 997, 65_536):
        output = Output(Scratch(tmp_path))
        for at in range(0, len(data), step):
            await output.write(data[at : at + step])
        await output.aclose()
        assert (output.total_lines, output.total_bytes, output.last_line_bytes) == (4, len(data), 9)
        assert output.log_path.read_bytes() == data
        await output.write(b"\n")
        assert (output.total_lines, output.last_line_bytes) == (4, 9)


async def test_a_disk_that_refuses_costs_the_file_only(tmp_path):
    output = Output(Scratch(tmp_path / "missing"))
    await output.write(b"x\n" * 3000)
    await output.write(b"end\n")
    assert output.log_path is None
    assert output.log_error is not None
    assert output.tail().content.endswith("x\nend")


async def test_updates_carry_the_tail(bash):
    await bash("echo one; sleep 0.3; echo two; sleep 0.3")
    shown = [text_of(update.content) for update in bash.updates]
    assert shown == ["", "one\n", "one\ntwo\n"]


async def test_a_failing_listener_is_a_plain_error(environment):
    async def on_update(partial):
        raise ValueError("listener")

    with pytest.raises(ValueError, match="listener"):
        await bash_tool(environment).execute("c1", {"command": "sleep 20"}, on_update)


# ---------------------------------------------------------------- keyboards, keys


@pytest.mark.parametrize(
    "command",
    [
        "cat",
        "read x </dev/tty",
        "less /etc/services",
        "git commit",
        "EDITOR=vi git commit --allow-empty",
        "sudo -n true",
    ],
)
async def test_commands_that_want_a_keyboard_end(bash, command):
    """BA-06"""
    await bash("git init -q . && git config user.email a@b.invalid && git config user.name n")
    with trio.fail_after(5):
        await bash(command)


async def test_keys_of_providers_are_not_passed(tmp_path):
    """SE-07"""
    secret = {
        "ANTHROPIC_API_KEY": "s1",
        "ANTHROPIC_OAUTH_TOKEN": "s2",
        "ANTHROPIC_AUTH_TOKEN": "s3",
        "AWS_BEARER_TOKEN_BEDROCK": "s4",
        "PI_TRIO_TOKEN": "s5",
    }
    environ = {**secret, "PATH": os.environ["PATH"], "GH_TOKEN": "kept", "API_KEY_COUNT": "kept"}
    plain = text(await Caller(LocalEnvironment(tmp_path, environ=environ))("env"))
    assert not [name for name in secret if name in plain]
    assert "GH_TOKEN=kept" in plain
    assert "API_KEY_COUNT=kept" in plain
    passing = LocalEnvironment(tmp_path, environ=environ, pass_variables=["ANTHROPIC_API_KEY"])
    assert "ANTHROPIC_API_KEY=s1" in text(await Caller(passing)("env"))


# ---------------------------------------------------------------- stopping

STUBBORN = {
    "pipeline": "echo ready; sleep {0} | cat",
    "nested": "echo ready; bash -c \"bash -c 'sleep {0}; true'; true\"",
    "setsid": "setsid sleep {0} & echo ready; sleep {0}",
    "deaf": "trap '' TERM INT HUP; echo ready; while :; do sleep {0}; done",
    "double fork": "(setsid bash -c 'trap \"\" TERM; sleep {0}; true' >/dev/null 2>&1 &); "
    "echo ready; sleep {0}",
    "breeding": "b() {{ while :; do (sleep {0} &); sleep 0.01; done; }}; export -f b; b & "
    "setsid bash -c b & sleep 0.1; echo ready; wait",
}


@needs_proc
@pytest.mark.parametrize("command", STUBBORN.values(), ids=STUBBORN)
async def test_abort_leaves_nothing(bash, mark, command):
    """BA-03, BA-04"""
    await bash.abort(command.format(mark))
    assert not running(mark)


async def test_abort_hands_over_the_output_so_far(bash, signal_file):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bash, "echo first; sleep 0.15; printf second; echo > signal; sleep 20")
        await written(signal_file)
        nursery.cancel_scope.cancel()
    assert text_of(bash.updates[-1].content) == "first\nsecond"


async def test_abort_does_not_wait_for_a_stuck_listener(environment):
    async def on_update(partial):
        if partial.content:
            await trio.sleep_forever()

    began = trio.Event()

    async def first_then_stuck(partial):
        began.set()
        await on_update(partial)

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                bash_tool(environment).execute, "c1", {"command": "echo x; sleep 20"}, first_then_stuck
            )
            await began.wait()
            nursery.cancel_scope.cancel()


@needs_proc
@pytest.mark.parametrize(
    "command", ["(sleep {0} &) ; echo done", "sleep {0} & echo done", "nohup setsid sleep {0} & echo done"]
)
async def test_background_children_hold_up_nothing_and_end_at_the_end(bash, mark, command):
    """BA-01"""
    with trio.fail_after(2):
        result = await bash(command.format(mark))
    assert text(result).startswith("done\n\n\n[Something that it started still runs")
    assert not result.is_error
    assert running(mark)
    assert text(await bash("echo later")) == "later\n"
    assert running(mark)
    await bash.environment.aclose()
    assert not running(mark)


@needs_proc
@pytest.mark.parametrize("well", [True, False])
async def test_the_watcher_stops_what_runs_when_nobody_said_that_all_is_well(tmp_path, mark, well):
    """BA-03, as after `kill -9`: the pipe is closed without a word."""
    bash = Caller(LocalEnvironment(tmp_path))
    await bash(f"(setsid sleep {mark} &); sleep {mark} & echo done")
    token = bash.environment._token
    assert len(running(token)) == 1
    watcher = bash.environment._watcher
    if well:
        watcher.dismiss()
    else:
        watcher._forget()
    with trio.fail_after(20):
        while running(token):
            await trio.lowlevel.checkpoint()
    assert len(running(mark)) == (2 if well else 0)
    await bash.environment.aclose()
    assert not running(mark)


@needs_proc
async def test_without_proc_the_group_of_a_finished_command_is_ended(bash, mark, monkeypatch):
    """BA-01, as on macOS"""
    monkeypatch.setattr(processes_module, "HAS_PROC", False)
    result = await bash(f"sleep {mark} & echo done")
    assert "still runs" in text(result)
    await bash("true")
    await bash.environment.aclose()
    with trio.fail_after(5):
        while running(mark):
            await trio.lowlevel.checkpoint()


async def test_background_children_may_go_on_printing(bash, signal_file):
    await bash("(for i in $(seq 1 4); do sleep 0.15; echo line $i || exit; done; echo > signal) &")
    await written(signal_file)


@needs_proc
async def test_an_abort_spares_what_other_calls_started(bash, mark):
    await bash(f"sleep {mark} & echo started")
    await bash.abort(f"echo ready; sleep {mark}9")
    assert not running(mark + "9")
    assert len(running(mark)) == 1


@needs_proc
async def test_an_agent_inside_an_agent_is_stopped_with_it(tmp_path, mark):
    outer = LocalEnvironment(tmp_path)
    token = text(await Caller(outer)(f"echo ${TOKEN_VARIABLE}")).strip()
    inherited = {**os.environ, TOKEN_VARIABLE: token}
    inner = Caller(LocalEnvironment(tmp_path, environ=inherited))
    await inner(f"setsid sleep {mark} & echo done")
    assert running(mark)
    await outer.aclose()
    assert not running(mark)


@needs_proc
async def test_nothing_leaks(bash):
    """BA-07"""
    await bash("true")
    before = descriptors()
    for number in range(200):
        if number % 10:
            await bash("echo hello")
        else:
            bash.updates.clear()
            await bash.abort("echo ready; sleep 20")
    await bash.environment.aclose()
    assert descriptors() - before <= 2
    assert not [number for number in processes() if is_zombie_of_ours(number)]


def is_zombie_of_ours(number: str) -> bool:
    try:
        fields = Path("/proc", number, "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] == "Z" and int(fields[1]) == os.getpid()
