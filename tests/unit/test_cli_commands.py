"""The commands that look after models, keys and the machine, run as their user runs them."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from pi_trio.cli import auth
from pi_trio.cli.main import main
from pi_trio.llm.auth import Auth, ProviderKeys
from pi_trio.llm.sign_in import SIGN_INS


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An agent directory of its own, no keys in the environment and nobody on this machine."""
    for name in list(os.environ):
        if name.endswith("_API_KEY") or name.startswith("PI_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PI_TRIO_DIR", str(tmp_path / "agent"))
    monkeypatch.setenv("PI_OFFLINE", "1")
    return tmp_path / "agent"


class Keyboardless(io.StringIO):
    """Standard input that is a pipe."""

    def isatty(self) -> bool:
        return False


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch):
    return lambda text: monkeypatch.setattr("sys.stdin", Keyboardless(text))


@pytest.fixture
def host() -> Iterator[str]:
    """A provider that knows the key `good` and lists one model."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            good = self.headers["authorization"] == "Bearer good"
            error = {"error": {"message": f"Wrong key {self.headers['authorization']}"}}
            page = {"data": [{"id": "listed", "context_length": 4096}]}
            data = json.dumps(page if good else error).encode()
            self.send_response(200 if good else 401)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def configure(home: Path, **providers: object) -> None:
    home.mkdir(exist_ok=True)
    (home / "models.json").write_text(json.dumps({"providers": providers}))


def stored(home: Path) -> dict[str, dict[str, str]]:
    return json.loads((home / "auth.json").read_bytes())


# ------------------------------------------------------------------ auth


def test_login_and_logout(home: Path, typed, capsys: pytest.CaptureFixture[str]) -> None:
    typed("gsk-secret\n")
    assert main(["auth", "login", "groq"]) == 0
    assert stored(home) == {"groq": {"type": "api_key", "key": "gsk-secret"}}
    assert main(["auth", "logout", "groq"]) == 0
    assert stored(home) == {}
    assert main(["auth", "logout", "groq"]) == 1
    assert "gsk-secret" not in "".join(capsys.readouterr())


def test_logout_tells_what_is_still_used(
    typed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "from-env")
    typed("stored\n")
    main(["auth", "login", "groq"])
    main(["auth", "logout", "groq"])
    assert capsys.readouterr().out.endswith("Still used: key from GROQ_API_KEY.\n")


@pytest.mark.parametrize("arguments", [["auth"], ["auth", "list"]])
def test_keys_are_listed_with_their_sources(
    typed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "from-env")
    assert main(arguments) == 0
    assert capsys.readouterr().out == "groq: key from GROQ_API_KEY\n"


@pytest.mark.parametrize("key", ["$HOME", "!date", "!$x", "plain"])
async def test_key_is_stored_so_that_it_is_taken_as_it_is(home: Path, typed, key: str) -> None:
    """A key that looks like a variable or a command is neither."""
    typed(f" {key}\n")
    options = auth._parser().parse_args(["login", "groq"])
    assert auth._login(auth.Models(home, {}), auth.Settings(), options) == 0
    assert (await Auth(home, {}).resolve(ProviderKeys("groq"))).key == key


@pytest.mark.parametrize(
    ("arguments", "given", "problem"),
    [
        (["login", "groq"], "\n", "No key was given"),
        (["login", "groq"], "sk-\u20ac\n", "cannot be sent"),
        (["login", "nobody"], "zz-key\n", "There is no provider 'nobody'"),
        (["check"], "", "No key was found for any provider"),
        ([], "", "No key was found for any provider"),
        (["import-pi"], "", "There are no keys in"),
    ],
)
def test_mistakes_are_one_sentence(
    home: Path, typed, mistake, arguments: list[str], given: str, problem: str
) -> None:
    """PQ-08: and hold no key."""
    typed(given)
    told = mistake("auth", *arguments)
    assert problem in told
    assert not given.strip() or given.strip() not in told
    assert not (home / "auth.json").exists()


def test_no_key_at_the_keyboard_is_none(home: Path, monkeypatch: pytest.MonkeyPatch, mistake) -> None:
    """Ctrl+D at the question."""

    def end(_: str) -> str:
        raise EOFError

    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("getpass.getpass", end)
    assert "No key was given; nothing was stored." in mistake("auth", "login", "groq")
    assert not (home / "auth.json").exists()


def test_signing_in_with_a_browser(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def sign_in(show, *, proxy=None):
        show("https://example.com/auth?x=1")
        return {"type": "api_key", "key": "sk-new"}

    monkeypatch.setattr(auth, "_has_keyboard", lambda: True)
    monkeypatch.setitem(SIGN_INS, "openrouter", sign_in)  # type: ignore[misc]
    assert main(["auth", "login", "openrouter"]) == 0
    assert stored(home)["openrouter"]["key"] == "sk-new"
    assert "https://example.com/auth?x=1" in capsys.readouterr().out


def test_check_asks_the_providers(home: Path, host: str, capsys: pytest.CaptureFixture[str]) -> None:
    provider = {"baseUrl": host, "models": []}
    configure(
        home,
        mine={**provider, "apiKey": "good"},
        other={**provider, "apiKey": "very-bad-key"},
        strange={"api": "mystery", "apiKey": "x", "models": []},
    )
    assert main(["auth", "check", "mine"]) == 0
    assert main(["auth", "check"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "mine: accepted (key of mine in models.json)",
        "mine: accepted (key of mine in models.json)",
        "other: 401 Wrong key Bearer [key] (key of other in models.json)",
        "strange: cannot be checked, since it speaks 'mystery' (key of strange in models.json)",
    ]


def test_keys_of_pi_are_copied_and_logins_are_not(
    home: Path, tmp_path: Path, typed, mistake, capsys: pytest.CaptureFixture[str]
) -> None:
    pi = tmp_path / ".pi" / "agent"
    pi.mkdir(parents=True)
    entries = {
        "openai": {"type": "api_key", "key": "$MY_KEY"},
        "groq": {"type": "api_key", "key": "theirs"},
        "anthropic": {"type": "oauth", "refresh": "x"},
        "broken": 3,
    }
    (pi / "auth.json").write_text(json.dumps(entries))
    typed("ours\n")
    main(["auth", "login", "groq"])
    assert main(["auth", "import-pi"]) == 0
    assert {name: entry["key"] for name, entry in stored(home).items()} == {
        "groq": "ours",
        "openai": "$MY_KEY",
    }
    told = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines()[1:])
    assert told["openai"] == "copied"
    assert told["groq"] == "there already"
    assert told["anthropic"].startswith("a login")
    assert told["broken"].startswith("left out")
    assert "used already" in mistake("auth", "import-pi", "--from", str(home))


# ------------------------------------------------------------------ models


@pytest.mark.parametrize("arguments", [["models"], ["models", "list"]])
def test_list_shows_what_can_be_asked(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "x")
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["MODEL", "CONTEXT", "ANSWER", "PRICE", "PER", "MILLION", "ABLE", "TO", "KEY"]
    assert [line.split()[0] for line in lines[1:4]] == [
        "deepseek/deepseek-reasoner",
        "deepseek/deepseek-chat",
        "demo/demo",
    ]
    assert lines[2].split("  ")[-1] == "key from DEEPSEEK_API_KEY"
    assert lines[-1].startswith("Limits and prices are of 20")


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["search", "KIMI k2"], {"groq/moonshotai/kimi-k2-instruct-0905"}),
        (["list", "--all", "deepseek/*"], {"deepseek/deepseek-reasoner", "deepseek/deepseek-chat"}),
        (["list", "deepseek/*"], set()),
    ],
)
def test_patterns(capsys: pytest.CaptureFixture[str], arguments: list[str], found: set[str]) -> None:
    assert main(["models", *arguments]) == (0 if found else 1)
    lines = capsys.readouterr().out.splitlines()[1:-2]
    assert {line.split()[0] for line in lines} == found


def test_list_shows_models_of_extensions(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "extensions").mkdir(parents=True)
    entry = {"baseUrl": "http://127.0.0.1:1", "apiKey": "k", "models": [{"id": "large"}]}
    code = f"def extend(api):\n    api.register_provider('lent', {entry})\n"
    (home / "extensions" / "lent.py").write_text(code)
    (home / "extensions" / "broken.py").write_text("def extend(api):\n    raise OSError('gone')\n")
    assert main(["models", "list", "lent"]) == 0
    shown = capsys.readouterr()
    row = shown.out.splitlines()[1]
    assert (row.split()[0], row.split("  ")[-1]) == ("lent/large", "key of lent from an extension")
    assert "broken.py:2 failed: OSError: gone" in shown.err
    assert not (home / "sessions").exists()


def test_broken_settings_leave_the_models_without_extensions(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir()
    (home / "settings.json").write_text("{")
    assert main(["models", "list"]) == 0
    shown = capsys.readouterr()
    assert "demo/demo" in shown.out
    assert shown.err.startswith("pi-trio: without extensions: ")


def test_list_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "search", "deepseek-chat", "--json"]) == 0
    model = json.loads(capsys.readouterr().out)
    assert (model["id"], model["provider"], model["contextWindow"]) == ("deepseek-chat", "deepseek", 128_000)


def test_reader_that_has_seen_enough(home: Path) -> None:
    """As in `pi-trio models list | head -1`."""
    command = [sys.executable, "-c", "import sys; from pi_trio.cli.main import main; sys.exit(main())"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*command, "models", "list"], stdout=writing, stderr=subprocess.PIPE, timeout=50, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_refresh_keeps_what_providers_list(home: Path, host: str, capsys: pytest.CaptureFixture[str]) -> None:
    provider = {"baseUrl": host, "models": []}
    configure(home, mine={**provider, "apiKey": "good"}, other={**provider, "apiKey": "very-bad-key"})
    assert main(["models", "refresh", "mine"]) == 0
    assert main(["models", "refresh"]) == 1
    assert main(["models", "list", "listed"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["mine: 1 model", "mine: 1 model", "other: 401 Wrong key Bearer [key]"]
    assert lines[4].split()[:2] == ["mine/listed", "4.1k"]
    assert "mine was asked on 20" in lines[-1]


def test_refresh_without_a_key(mistake) -> None:
    assert "No key was found" in mistake("models", "refresh")


# ------------------------------------------------------------------ doctor


def test_healthy_machine(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk-secret")
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "  ok key: groq: key from GROQ_API_KEY" in out
    assert "  ok configuration: settings.json and models.json hold no mistakes" in out
    assert "gsk-secret" not in out
    assert "extras: images (makes large images small enough for a model) is here" in out


def test_what_is_wrong_is_told_with_what_to_do(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """CF-01, CF-02"""
    home.mkdir()
    (home / "settings.json").write_text('{"maxRetrys": 1, "shellPath": "/no/shell"}')
    (home / "models.json").write_text('{"providers": []}')
    (home / "auth.json").write_text("{}")
    (home / "auth.json").chmod(0o644)
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    for words in (
        "settings.json:1: maxRetrys is not a setting; did you mean retry.maxRetries?",
        "BAD configuration: ",
        "models.json:1: providers must be an object",
        f"chmod 600 {home / 'auth.json'}",
        "`pi-trio auth login PROVIDER` stores one",
        "BAD shell: /no/shell is no program",
    ):
        assert words in out


def test_the_screens_own_files_are_looked_at(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """CF-01: key bindings and themes, by file and key."""
    themes = home / "themes"
    themes.mkdir(parents=True)
    (themes / "odd.json").write_text('{"name": "odd", "colors": {}}')
    keys = home / "keybindings.json"
    keys.write_text('{"app.session.rename": "ctrl+x", "app.session.delete": "ctrl+x", "app.nothing": "f9"}')
    main(["doctor"])
    out = capsys.readouterr().out
    assert f"! screen: {themes / 'odd.json'}: " in out
    assert f"! screen: {keys}: `app.nothing` is no action of pi-tui" in out
    assert "! screen: keybindings.json: ctrl+x is given to both app.session.rename" in out
    keys.write_text("{")
    assert main(["doctor"]) == 1
    assert f"BAD screen: {keys}: cannot be read as key bindings" in capsys.readouterr().out


def test_the_doctor_knows_what_extensions_bring_and_what_fails_in_them(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "extensions").mkdir(parents=True)
    entry = {"baseUrl": "http://127.0.0.1:1", "apiKey": "k", "models": [{"id": "large"}]}
    code = f"def extend(api):\n    api.register_provider('lent', {entry})\n"
    (home / "extensions" / "lent.py").write_text(code)
    (home / "extensions" / "broken.py").write_text("def extend(api):\n    raise OSError('gone')\n")
    (home / "settings.json").write_text('{"defaultProvider": "lent", "defaultModel": "large"}')
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "  ok key: lent: key of lent from an extension" in out
    assert "  ok model: lent/large, " in out
    assert "broken.py:2 failed: OSError: gone" in out


def test_broken_settings_do_not_stop_the_doctor(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home.mkdir()
    (home / "settings.json").write_text("{")
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "settings.json:1:" in out
    assert "ok shell: " in out


@pytest.mark.parametrize(
    "command", ["doctor", "models list", "auth list", "sessions list", "import-pi", "chat"]
)
def test_agent_directory_that_is_a_file(home: Path, mistake, command: str) -> None:
    home.write_text("")
    assert mistake(*command.split()) == f"pi-trio: {home} cannot be the agent directory: it is no folder"


def test_extensions_and_resources_are_looked_at(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "extensions").mkdir(parents=True)
    (home / "extensions" / "bad.py").write_text("1 / 0")
    (home / "skills" / "s").mkdir(parents=True)
    (home / "skills" / "s" / "SKILL.md").write_text("---\ndescription: [\n---\n")
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "   ! extensions: " in out
    assert "bad.py:1" in out
    assert "   ! resources: " in out
    assert "SKILL.md" in out


def test_a_default_model_without_a_key_is_told(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home.mkdir()
    settings = {"defaultModel": "claude-sonnet-4-5", "defaultProvider": "anthropic"}
    (home / "settings.json").write_text(json.dumps(settings))
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "   ! model: the default cannot be asked: There is no API key for anthropic" in out


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_sessions_that_cannot_be_kept_are_bad(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "sessions").mkdir(parents=True)
    (home / "sessions").chmod(0o500)
    assert main(["doctor"]) == 1
    assert f"BAD sessions: {home / 'sessions'} cannot be written" in capsys.readouterr().out


def test_a_disk_that_takes_no_file_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    assert main(["doctor"]) == 1
    assert "cannot be written: No space left on device" in capsys.readouterr().out


def test_a_disk_without_locks_or_room_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=3 << 20))
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "has no file locks" in out
    assert "has only 3 MiB left" in out
