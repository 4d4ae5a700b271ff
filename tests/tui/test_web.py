"""The screen in a browser: who gets in, what a tab shows, and that nothing outlives it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pyte
import pytest
from terminal_program import PATIENCE

aiohttp = pytest.importorskip("aiohttp")
pytest.importorskip("textual_serve")

PATHS = ("/", "/?token=", "/?token=wrong", "/static/js/textual.js", "/pages/focus.js", "/ws", "/download/x")
needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")


def start(folder: Path, *arguments: str, **options) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-m", "pi_tui", "--demo", *arguments]
    environ = {**os.environ, "PI_TRIO_DIR": str(folder / "agent"), "TERM": "dumb", "COLUMNS": "7"}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environ, stdout=pipe, stderr=pipe, text=True, **options)


class Served:
    """A server; `page` is its address without the token."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process, self.folder = process, folder
        self.url = process.stdout.readline().strip()
        self.page, _, self.token = self.url.partition("?token=")
        assert self.token, process.stderr.read()

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE)
        assert (out, err) == ("", "")
        return self.process.returncode

    @property
    def programs(self) -> list[int]:
        """The processes of tabs, and what they have started."""
        marker = f"PI_TRIO_DIR={self.folder / 'agent'}\0".encode()
        found = []
        for place in Path("/proc").glob("[0-9]*/environ"):
            try:
                if marker in place.read_bytes() + b"\0" and int(place.parent.name) != self.process.pid:
                    found.append(int(place.parent.name))
            except OSError:  # it has ended meanwhile
                continue
        return found


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[Served]:
    process = start(folder, "--serve", "127.0.0.1:0", *arguments)
    try:
        yield Served(process, folder)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("web")) as server:
        yield server


@asynccontextmanager
async def browser(served: Served | None = None) -> AsyncIterator[aiohttp.ClientSession]:
    """A client that keeps cookies; it has the token of a server."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
        if served is not None:
            async with client.get(served.url) as page:
                assert (page.status, str(page.url)) == (200, served.page)
        yield client


class Tab:
    """What one sees of a program in a browser's terminal."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self.bytes = b""
        self._screen = pyte.Screen(100, 30)
        self._stream = pyte.ByteStream(self._screen)

    async def until(self, holds: Callable[[str], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds("\n".join(self._screen.display)):
                data = await self._socket.receive_bytes()
                self.bytes += data
                self._stream.feed(data)

    async def wait_for(self, text: str) -> None:
        await self.until(lambda seen: text in seen)

    async def ready(self) -> None:
        await self.until(lambda seen: "? help" in seen and "starting" not in seen)

    async def write(self, keys: str) -> None:
        await self._socket.send_json(["stdin", keys])

    async def send(self, prompt: str) -> None:
        await self.write(prompt)
        await self.wait_for(f"› {prompt[:40]}")
        await self.write("\r")

    async def ended(self) -> None:
        """Until the server says that this is the end."""
        async with asyncio.timeout(PATIENCE):
            while (await self._socket.receive()).type is aiohttp.WSMsgType.BINARY:
                pass


@asynccontextmanager
async def tab(served: Served, client: aiohttp.ClientSession) -> AsyncIterator[Tab]:
    async with client.ws_connect(f"{served.page}ws?width=100&height=30") as socket:
        yield Tab(socket)


async def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)


def session_of(folder: Path) -> list[dict]:
    """The lines of the only session there is; each must be whole."""
    (path,) = (folder / "agent" / "sessions").rglob("*.jsonl")
    text = path.read_text()
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


# -------------------------------------------------------------------------------------- who gets in


@pytest.mark.asyncio
@pytest.mark.parametrize("path", PATHS)
async def test_nothing_is_served_without_the_token(served: Served, path: str) -> None:
    async with browser() as client:
        client.cookie_jar.update_cookies({f"pi-tui-{served.page.split(':')[2].strip('/')}": "wrong"})
        async with client.get(served.page.rstrip("/") + path) as response:
            assert (response.status, response.content_type) == (403, "text/plain")
            assert "token" in await response.text()
            assert "Set-Cookie" not in response.headers


@pytest.mark.asyncio
async def test_the_token_becomes_a_cookie_and_leaves_the_address(served: Served) -> None:
    path = served.folder / "agent" / "web-token"
    assert path.read_text().strip() == served.token
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    async with browser() as client:
        async with client.get(f"{served.url}&fontsize=20", allow_redirects=False) as response:
            assert (response.status, response.headers["Location"]) == (303, "/?fontsize=20")
            (cookie,) = response.cookies.values()
            assert (cookie["httponly"], cookie["samesite"], cookie["secure"]) == (True, "Strict", "")
            assert cookie.value != served.token
        async with client.get(served.page) as response:
            assert response.status == 200
            page = await response.text()
        assert set(re.findall(r"\w+://[^/\"]*", page)) == {
            f"ws{served.page.removeprefix('http').rstrip('/')}"
        }
        for asset in re.findall(r"(?:src|href|url)[=(]\"(/\w[^\"]*)\"", page):
            async with client.get(served.page.rstrip("/") + asset) as response:
                assert response.status == 200, asset


@pytest.mark.asyncio
@pytest.mark.parametrize("let_in", [True, False])
async def test_browsers_are_told_to_load_from_here_alone(served: Served, let_in: bool) -> None:
    async with browser(served if let_in else None) as client, client.get(served.page) as response:
        assert response.status == (200 if let_in else 403)
        policy = dict(
            each.split(maxsplit=1) for each in response.headers["Content-Security-Policy"].split("; ")
        )
        assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
        assert policy["script-src"] == policy["connect-src"] == policy["font-src"] == "'self'"
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["X-Frame-Options"] == "DENY"


@pytest.mark.asyncio
@pytest.mark.parametrize("path", ["", "ws", "?token="])
@pytest.mark.parametrize(
    "headers", [{"Host": "evil.invalid"}, {"Host": "127.0.0.1"}, {"Origin": "https://evil.invalid"}]
)
async def test_other_names_and_other_pages_are_turned_away(served: Served, path: str, headers) -> None:
    """Also with the token: a page under a foreign name may have brought it here."""
    address = served.url if path == "?token=" else served.page + path
    async with browser(served) as client, client.get(address, headers=headers) as response:
        assert response.status == 403
        assert "token" not in await response.text()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["0.0.0.0:0"], "--cert and --key"),
        (["[::]:0"], "--cert and --key"),
        (["127.0.0.1:0", "--cert", "x"], "go together"),
        (["127.0.0.1:99999"], "no address"),
        (["127.0.0.1"], "no address"),
        (["hello there"], "no address"),
        (["127.0.0.1:0", "--attach", "ws://127.0.0.1:1", "--read-only"], "--demo is for the server"),
    ],
)
def test_a_server_that_would_not_be_safe_or_right_does_not_start(tmp_path: Path, arguments, reason) -> None:
    out, err = start(tmp_path, "--serve", *arguments).communicate(timeout=PATIENCE)
    assert (out, len(err.splitlines())) == ("", 1)
    assert err.startswith("pi-tui: ")
    assert reason in err


def test_a_port_that_is_taken_is_told(served: Served, tmp_path: Path) -> None:
    address = served.page.removeprefix("http://").rstrip("/")
    process = start(tmp_path, "--serve", address)
    assert "taken" in process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 2


def test_without_the_extra_one_line_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['textual_serve'] = None; from pi_tui.main import main; sys.exit(main())"
    environ = {**os.environ, "PI_TRIO_DIR": str(tmp_path)}
    command = [sys.executable, "-c", code, "--demo", "--serve"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "pi-tui: --serve needs textual-serve: pip install 'pi-trio[web]'\n"


def test_the_screen_in_a_terminal_imports_nothing_of_it() -> None:
    code = "import sys, pi_tui.main, pi_tui.app, pi_tui.terminal; sys.exit('aiohttp' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)


@pytest.mark.asyncio
@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")
async def test_an_encrypted_server_has_a_secure_cookie(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    names = ["-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    make = [*command, *names, "-keyout", key, "-out", cert]
    await asyncio.to_thread(subprocess.run, make, check=True, capture_output=True)
    with serving(tmp_path, "--cert", str(cert), "--key", str(key)) as served:
        url = served.url.replace("127.0.0.1", "localhost")
        assert url.startswith("https://localhost:")
        trusting = ssl.create_default_context(cafile=str(cert))
        async with browser() as client, client.get(url, ssl=trusting) as response:
            assert response.status == 200
            (cookie,) = response.history[0].cookies.values()
            assert cookie["secure"]
            assert (
                f"wss{served.page.removeprefix('https').replace('127.0.0.1', 'localhost')}ws"
                in await response.text()
            )


# -------------------------------------------------------------------------------------- what a tab is


@pytest.mark.asyncio
async def test_a_tab_is_the_whole_screen(tmp_path: Path) -> None:
    """It gets the arguments as they were said, and reads keys as in a terminal; commands are not told."""
    name = 'it\'s $HOME; "so" `x` -- &'
    with serving(tmp_path, "--name", name) as served:
        async with browser(served) as client, tab(served, client) as here:
            await here.ready()
            await here.send("run `env > seen; echo from-$((40+2))`")
            await here.wait_for("from-42")
            await here.wait_for("1 tool")
            await here.write("two\x1b\rlines\x07")
            await here.wait_for("an editor needs a terminal")
            await here.until(lambda seen: re.search(r"› two *\n *lines", seen))
            await here.write("\x03\x04")
            await here.ended()
            assert b"38;2;" in here.bytes
        assert served.end() == 143
    environ = dict(line.split("=", 1) for line in (tmp_path / "seen").read_text().splitlines() if "=" in line)
    assert environ["TERM"] == "xterm-256color"
    assert not {"TEXTUAL_DRIVER", "TEXTUAL_FPS", "TEXTUAL_COLOR_SYSTEM", "COLUMNS", "ROWS"} & environ.keys()
    assert [each["name"] for each in session_of(tmp_path) if each["type"] == "session_info"] == [name]


@pytest.mark.asyncio
async def test_a_page_that_is_loaded_again_has_its_session(tmp_path: Path) -> None:
    with serving(tmp_path, "--session-id", "mine") as served:
        async with browser(served) as client:
            async with tab(served, client) as here:
                await here.ready()
                await here.send("remember this")
                await here.wait_for("I am the demo model")
            async with tab(served, client) as again:
                await again.wait_for("▌ remember this")
        assert served.end() == 143


@pytest.mark.asyncio
async def test_why_a_program_does_not_start_is_told_where_the_server_is(tmp_path: Path) -> None:
    with serving(tmp_path, "--session", "nowhere") as served:
        async with browser(served) as client, tab(served, client) as here:
            await here.ended()
        served.process.terminate()
        out, err = served.process.communicate(timeout=PATIENCE)
        assert (out, len(err.splitlines())) == ("", 1)
        assert "nowhere" in err


# -------------------------------------------------------------------------------------- how it ends


async def working(here: Tab, served: Served) -> None:
    """Have a tab's program in the middle of a command."""
    await here.ready()
    await here.send("run `touch begun; exec sleep 300`")
    await until((served.folder / "begun").exists)


@needs_proc
@pytest.mark.asyncio
async def test_a_tab_that_is_closed_ends_its_program_alone(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        async with browser(served) as client, tab(served, client) as other:
            await other.ready()
            (theirs,) = served.programs
            async with tab(served, client) as here:
                await working(here, served)
                assert len(served.programs) > 2
            await until(lambda: served.programs == [theirs])
            await other.send("still there?")
            await other.wait_for("I am the demo model")
        assert served.end() == 143


@needs_proc
@pytest.mark.asyncio
async def test_a_program_that_is_killed_leaves_its_session_whole_and_closes_the_tab(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        async with browser(served) as client, tab(served, client) as here:
            await here.ready()
            (program,) = served.programs
            await working(here, served)
            os.kill(program, signal.SIGKILL)
            await here.ended()
        await until(lambda: not served.programs)
        assert "message" in {each["type"] for each in session_of(tmp_path)}
        assert served.end() == 143


@needs_proc
@pytest.mark.asyncio
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_ends_the_server_and_all_programs(tmp_path: Path, number: int) -> None:
    with serving(tmp_path) as served:
        async with browser(served) as client, tab(served, client) as one, tab(served, client) as other:
            await other.ready()
            await working(one, served)
            served.process.send_signal(number)
            await one.ended()
            await other.ended()
            assert served.end() == 128 + number
            assert not served.programs
    assert "message" in {each["type"] for each in session_of(tmp_path)}


def test_the_first_of_several_signals_is_told(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        served.process.send_signal(signal.SIGTERM)
        while served.process.poll() is None:
            served.process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                served.process.wait(0.01)
        assert served.process.returncode == 143


@pytest.mark.parametrize(
    ("where", "status", "told"),
    [
        (">/dev/full", 1, "pi-tui: standard output cannot be written: No space left on device\n"),
        (">&-", 1, "pi-tui: standard output is closed\n"),
        ("", 141, ""),
    ],
)
def test_an_address_that_nobody_gets_ends_it(tmp_path: Path, where: str, status: int, told: str) -> None:
    """HL-02: at once, and with a reason; a reader that has left knows it."""
    read, unread = os.pipe()
    os.close(read)
    serve = ["sh", "-c", f'exec "$@" {where}', "sh", sys.executable, "-m", "pi_tui", "--serve", "127.0.0.1:0"]
    environ = os.environ | {"PI_TRIO_DIR": str(tmp_path / "agent")}
    done = subprocess.run(serve, stdout=unread, stderr=subprocess.PIPE, env=environ, text=True, timeout=50)
    os.close(unread)
    assert (done.returncode, done.stderr) == (status, told)


@needs_proc
@pytest.mark.asyncio
async def test_programs_end_with_a_server_that_is_killed(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        async with browser(served) as client, tab(served, client) as here:
            await working(here, served)
            served.process.kill()
            await here.ended()
            await until(lambda: not served.programs)
