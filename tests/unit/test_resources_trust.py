"""Trust: nothing of a cloned folder is used before a yes, and a yes is to what was there."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pi_trio.errors import ConfigError
from pi_trio.resources.trust import DefaultTrust, Trust, TrustStore, agents_skill_folders, decide_trust


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def store(home: Path) -> TrustStore:
    return TrustStore(home / "agent")


@pytest.fixture
def project(home: Path) -> Path:
    folder = home / "code" / "project"
    (folder / ".pi" / "extensions").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".pi" / "extensions" / "x.py").write_text("one")
    return folder


def _decide(
    store: TrustStore,
    cwd: Path,
    home: Path,
    approve: bool | None = None,
    default: DefaultTrust = "ask",
) -> Trust:
    return decide_trust(store, cwd, home, approve=approve, default=default)


def _yes(store: TrustStore, folder: Path, cwd: Path, home: Path) -> None:
    store.remember(folder, True, cwd, _decide(store, cwd, home).resources)


def test_nothing_to_trust_is_no_question(store: TrustStore, home: Path) -> None:
    assert _decide(store, home, home) == Trust(False)
    assert _decide(store, home, home).finding is None


def test_before_a_yes_nothing_is_used_and_that_is_said(store: TrustStore, home: Path, project: Path) -> None:
    """SE-14"""
    trust = _decide(store, project, home)
    assert (trust.trusted, trust.undecided) == (False, True)
    assert trust.resources == (project / ".pi" / "extensions",)
    assert "not used, because this folder is not trusted yet" in str(trust.finding)


def test_a_flag_decides_for_this_time(store: TrustStore, home: Path, project: Path) -> None:
    store.remember(project, False, project, ())
    assert _decide(store, project, home, approve=True).trusted
    assert not _decide(store, project, home).trusted
    assert not _decide(store, project, home, approve=False, default="always").trusted


def test_the_default_decides_where_nothing_was_said(store: TrustStore, home: Path, project: Path) -> None:
    assert _decide(store, project, home, default="always").trusted
    never = _decide(store, project, home, default="never")
    assert (never.trusted, never.undecided) == (False, False)


def test_the_nearest_decision_counts(store: TrustStore, home: Path, project: Path) -> None:
    _yes(store, home / "code", project, home)
    assert _decide(store, project, home).trusted
    store.remember(project, False, project, ())
    assert not _decide(store, project, home).trusted


def test_decisions_are_pis_file_and_hold_through_links(store: TrustStore, home: Path, project: Path) -> None:
    (home / "link").symlink_to(project)
    _yes(store, home / "link", home / "link", home)
    assert json.loads(store.path.read_text()) == {str(project): True}
    assert _decide(store, home / "link", home).trusted


def test_a_change_after_the_yes_asks_again(store: TrustStore, home: Path, project: Path) -> None:
    """SE-14: changed, added and removed files; a yes to the new state holds again."""
    extension = project / ".pi" / "extensions" / "x.py"
    for change in (
        lambda: extension.write_text("two"),
        lambda: (project / ".pi" / "settings.json").write_text("{}"),
        lambda: extension.unlink(),
    ):
        _yes(store, project, project, home)
        assert _decide(store, project, home).trusted
        change()
        trust = _decide(store, project, home)
        assert (trust.trusted, trust.undecided, trust.changed) == (False, True, True)
        assert "changed since you trusted it" in str(trust.finding)


def test_a_change_behind_a_link_asks_again(store: TrustStore, home: Path, project: Path) -> None:
    outside = home / "outside"
    outside.mkdir()
    (outside / "y.py").write_text("one")
    (project / ".pi" / "extensions" / "more").symlink_to(outside)
    (project / ".pi" / "extensions" / "ring").symlink_to(project / ".pi")
    _yes(store, project, project, home)
    assert _decide(store, project, home).trusted
    (outside / "y.py").write_text("two")
    assert _decide(store, project, home).changed


def test_compiled_code_counts_as_code(store: TrustStore, home: Path, project: Path) -> None:
    """SE-14: Python would run it in place of the source that was looked at."""
    _yes(store, project, project, home)
    cache = project / ".pi" / "extensions" / "__pycache__"
    cache.mkdir()
    (cache / "x.pyc").write_bytes(b"1")
    assert _decide(store, project, home).changed


def test_a_yes_that_pi_wrote_holds_for_what_is_there(store: TrustStore, home: Path, project: Path) -> None:
    store.path.parent.mkdir()
    store.path.write_text(json.dumps({str(home / "code"): True}))
    assert _decide(store, project, home).trusted
    (project / ".pi" / "extensions" / "x.py").write_text("two")
    assert _decide(store, project, home).changed


def test_files_are_for_their_owner_only(store: TrustStore, home: Path, project: Path) -> None:
    """SE-06"""
    before = os.umask(0)
    try:
        _yes(store, project, project, home)
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in store.path.parent.iterdir()}
    assert set(modes.values()) == {0o600}
    assert store.path.parent.stat().st_mode & 0o777 == 0o700


def test_decisions_that_cannot_be_read_are_an_error(store: TrustStore, home: Path, project: Path) -> None:
    """CF-01: never taken for no decisions, and never overwritten."""
    store.path.parent.mkdir()
    for text in ("[]", "{"):
        store.path.write_text(text)
        with pytest.raises(ConfigError, match=r"trust\.json"):
            _decide(store, project, home)
        with pytest.raises(ConfigError, match=r"trust\.json"):
            store.remember(project, True, project, ())
        assert store.path.read_text() == text


def test_agents_skills_count_up_to_the_repository_but_not_those_of_home(home: Path, project: Path) -> None:
    for folder in (home, home / "code", project, project / "deep"):
        (folder / ".agents" / "skills").mkdir(parents=True)
    expected = [project / "deep" / ".agents" / "skills", project / ".agents" / "skills"]
    assert list(agents_skill_folders(project / "deep", home)) == expected
    (home.parent / "link").symlink_to(home)
    assert not list(agents_skill_folders(home, home.parent / "link")), "whatever way it is named"
    (project / ".git").rmdir()
    expected.append(home / "code" / ".agents" / "skills")
    assert list(agents_skill_folders(project / "deep", home)) == expected
