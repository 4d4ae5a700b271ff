"""`pi-trio sessions`: the program as its user has it, but in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TypeAlias

import pytest

from pi_trio.cli import sessions as module
from pi_trio.cli.main import main
from pi_trio.messages import AssistantMessage, TextContent, UserMessage
from pi_trio.session.repository import SessionRepository
from pi_trio.session.session import Session

Mistake: TypeAlias = Callable[..., str]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SessionRepository:
    """A working directory with an empty agent directory, and no trash."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PI_TRIO_DIR", str(tmp_path / "agent"))
    monkeypatch.setenv("PATH", "")
    return SessionRepository(tmp_path / "agent", folder)


@pytest.fixture
def session(project: SessionRepository) -> Session:
    made = project.create()
    made.append_message(UserMessage.of("Fix the parser\x1b[2J"))
    made.append_message(AssistantMessage((TextContent("It was the *tokenizer*."),)))
    made.close()
    return made


def run(*arguments: str) -> int:
    return main(["sessions", *arguments])


def test_list_and_search(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list") == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"{session.id}  20")
    assert line.endswith("Fix the parser␛")
    assert run() == 0
    assert capsys.readouterr().out == f"{line}\n"
    assert run("search", "TOKENIZER", "parser") == 0
    assert "It was the *tokenizer*." in capsys.readouterr().out
    assert run("search", "no where", "parser") == 1
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "pi-trio: no session of this directory has 'no where' 'parser'\n")
    assert run("search", "nowhere", "--all") == 1
    assert capsys.readouterr().err == "pi-trio: no session has 'nowhere'\n"
    assert run("list", "--all", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["id"], data["path"], data["cwd"]) == (session.id, str(session.path), session.cwd)


def test_the_folder_is_named_before_the_command_or_after_it(
    session: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flat = ("--session-dir", str(tmp_path / "flat"))
    assert run("import-pi", str(session.path), *flat) == 0
    capsys.readouterr()
    listed = []
    for arguments in ([*flat, "list"], ["list", *flat], flat, ["--session-dir", "nowhere", "list", *flat]):
        assert run(*arguments) == 0
        listed.append(capsys.readouterr().out)
    assert len(set(listed)) == 1
    assert session.id in listed[0]
    for command in ("show", "check", "delete --yes"):
        assert run(*command.split(), session.id, *flat) == 0
    assert not list((tmp_path / "flat").iterdir())
    assert session.path.exists()


def test_show_and_rename(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("rename", session.id, "A name") == 0
    assert run("show", session.id[:30]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("# A name\n")
    assert "It was the *tokenizer*." in shown
    assert "\x1b" not in shown


def test_fork(
    session: Session, project: SessionRepository, capsys: pytest.CaptureFixture[str], mistake: Mistake
) -> None:
    first, second = (head.id for head in session.heads)
    for arguments, kept in [((), 2), ((first,), 1), ((second, "--before"), 1), (("--whole",), 2)]:
        assert run("fork", session.id, *arguments) == 0
        fork = project.open(capsys.readouterr().out.split()[0])
        assert (len(fork.heads), fork.header.parent_session) == (kept, str(session.path))
        fork.close()
    for wrong in (("--before",), (first, "--whole")):
        assert "--before needs" in mistake("sessions", "fork", session.id, *wrong)


def test_export(
    session: Session, tmp_path: Path, mistake: Mistake, capsys: pytest.CaptureFixture[str]
) -> None:
    """SE-05: nothing is overwritten unless it was said."""
    for name, start in [
        ("a.html", "<!doctype html>"),
        ("a.md", "# Session"),
        ("a.jsonl", '{"type":"session"'),
    ]:
        assert run("export", session.id, str(tmp_path / name)) == 0
        assert (tmp_path / name).read_text().startswith(start)
        assert run("export", session.id, str(tmp_path / name)) == 1
        assert "there already: --force replaces it" in capsys.readouterr().err
        assert run("export", session.id, str(tmp_path / name), "--force", "--mask") == 0
    assert ".html, .md, .jsonl" in mistake("sessions", "export", session.id, str(tmp_path / "a.pdf"))


def test_delete_asks(
    session: Session,
    project: SessionRepository,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    mistake: Mistake,
) -> None:
    assert "--yes" in mistake("sessions", "delete", session.id)
    answers = iter(["n", "", "y"])

    def typed(_: str) -> str:
        if answer := next(answers):
            return answer
        raise EOFError

    monkeypatch.setattr("builtins.input", typed)
    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(module.sys, "stdin", terminal)
    for _ in range(2):
        assert run("delete", session.id) == 1
        assert len(project.list()) == 1
    assert run("delete", session.id) == 0
    assert project.list() == []
    assert f"deleted: {session.path}" in capsys.readouterr().out


def test_delete_is_all_or_nothing_about_names(
    session: Session, project: SessionRepository, mistake: Mistake
) -> None:
    assert "there is no session nowhere" in mistake("sessions", "delete", "--yes", session.id, "nowhere")
    assert len(project.list()) == 1


def test_import_pi(
    session: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pi = tmp_path / "pi" / "sessions" / "--elsewhere--"
    pi.mkdir(parents=True)
    header = {"type": "session", "version": 3, "id": "of-pi", "timestamp": "", "cwd": "/elsewhere"}
    (pi / "s.jsonl").write_text(json.dumps(header) + "\n")
    (pi / "notes.jsonl").write_text("mine\n")
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "pi"))
    assert run("import-pi") == 1
    told = capsys.readouterr()
    assert told.out.count("->") == 1
    assert "notes.jsonl is not a session" in told.err
    assert run("import-pi", str(pi / "s.jsonl")) == 1
    assert "here already" in capsys.readouterr().err
    assert run("list", "--all") == 0
    assert "of-pi" in capsys.readouterr().out


def test_check(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", session.id) == 0
    assert session.path is not None
    with session.path.open("a") as file:
        file.write("{half")
    assert run("check", session.id, str(session.path)) == 1
    found = capsys.readouterr().out.splitlines()
    assert len(found) == 4
    assert found[0].startswith(f"{session.path}:4: the line is damaged")
    assert run("check", "nowhere", str(session.path)) == 2
    checked = capsys.readouterr()
    assert checked.out.splitlines() == found[:2]
    assert checked.err == "pi-trio: there is no session nowhere\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("show", "nowhere"), "there is no session nowhere"),
        (("show", "../nowhere.jsonl"), "there is no session"),
        (("export", "..%2fx", "a.md"), "neither the path nor the id"),
        (("check", "."), "neither the path nor the id"),
        (("show", "~nobody-there/a.jsonl"), "there is no session"),
        (("export", "/a\0b", "a.md"), "cannot be the name of a file"),
    ],
)
def test_mistakes_are_one_clear_line(
    project: SessionRepository, arguments: tuple[str, ...], words: str, mistake: Mistake
) -> None:
    """SE-05, HL-02."""
    assert words in mistake("sessions", *arguments)


def test_a_mistake_in_the_command_line(
    project: SessionRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        run("lst")
    assert stopped.value.code == 2
    assert "see pi-trio sessions --help" in capsys.readouterr().err


def test_what_is_not_there_is_one_clear_sentence(session: Session, tmp_path: Path, mistake: Mistake) -> None:
    (tmp_path / "file").write_text("")
    assert "it is no folder" in mistake("sessions", "--session-dir", str(tmp_path / "file"), "list")
    assert "Not a directory" in mistake("sessions", "--session-dir", str(tmp_path / "file" / "below"), "list")
    assert "is not there: pi keeps its sessions in it" in mistake("sessions", "import-pi")


def test_check_looks_at_all_of_the_directory(
    session: Session, project: SessionRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("check") == 0
    damaged = project.files()[0].with_name("damaged.jsonl")
    damaged.write_text("nonsense\n")
    assert run("check") == 1
    assert f"{damaged}:1: " in capsys.readouterr().out


@pytest.mark.parametrize("command", [(), ("list",), ("search", "x"), ("check",), ("show", "x")])
def test_a_session_dir_that_is_not_there_is_a_mistake(
    project: SessionRepository, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    assert run("--session-dir", "typo", *command) == 2
    assert capsys.readouterr().err == f"pi-trio: there is no folder {project.cwd}/typo\n"


def test_an_import_makes_the_session_dir(
    project: SessionRepository, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("import-pi", "--session-dir", "new", str(session.path)) == 0
    assert run("list", "--session-dir", "new") == 0
    assert session.id in capsys.readouterr().out
