"""Seeing and changing settings, in the table's own terms."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from pi_trio.errors import ConfigError, UsageError
from pi_trio.harness.preferences import change_preference, setting_files
from pi_trio.resources.config import RuntimeConfig
from pi_trio.resources.setting_changes import change_setting, list_settings, parse_value
from pi_trio.resources.settings import Settings, load_settings
from pi_trio.resources.trust import Trust


def info(key: str, **files: Path):
    return next(each for each in list_settings(files) if each.key == key)


def test_every_setting_has_a_kind_and_a_default_that_is_right():
    for each in list_settings({}):
        assert each.kind in ("flag", "choice", "number", "text", "list", "object")
        assert each.meaning
        if each.default not in (None, [], {}):
            text = each.default if isinstance(each.default, str) else json.dumps(each.default)
            assert parse_value(each, text) == each.default
    assert info("steeringMode").choices == ("all", "one-at-a-time")


def test_values_and_where_they_come_from(tmp_path: Path):
    yours, theirs = tmp_path / "a.json", tmp_path / "b.json"
    yours.write_text('{"retry": {"maxRetries": 1}, "theme": "nord", "recordStream": "maybe"}')
    theirs.write_text('{"retry": {"maxRetries": 2}}')
    files = {"global": yours, "project": theirs}
    assert (info("retry.maxRetries", **files).value, info("retry.maxRetries", **files).scope) == (
        2,
        "project",
    )
    assert (info("theme", **files).value, info("theme", **files).scope) == ("nord", "global")
    assert (info("recordStream", **files).value, info("recordStream", **files).scope) == (True, None)
    assert info("httpProxy", **files).scopes == ("global",)
    assert info("theme", **files).scopes == ("global", "project")


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("retry.maxRetries", " 7 ", 7),
        ("recordStream", "false", False),
        ("theme", "a/b", "a/b"),
        ("theme", "5", "5"),
        ("defaultTools", "+grep, -bash", ["+grep", "-bash"]),
        ("defaultTools", '["a, b"]', ["a, b"]),
        ("defaultModel", "", None),
        ("compaction.modelOverrides", '{"a/b": {"reserveTokens": 5}}', {"a/b": {"reserveTokens": 5}}),
    ],
)
def test_what_a_person_writes(key, text, value):
    assert parse_value(info(key), text) == value


@pytest.mark.parametrize(
    ("key", "text", "wanted"),
    [
        ("retry.maxRetries", "-1", "a whole number, 0 or more"),
        ("retry.maxRetries", "many", "a whole number"),
        ("recordStream", "yes", "true or false"),
        ("steeringMode", "some", "one of all, one-at-a-time"),
        ("defaultTools", "[1]", "a list of texts"),
        ("compaction.modelOverrides", '{"a/b": {"reserveTokens": -5}}', "an object such as"),
        ("compaction.modelOverrides", '{"a/b": {"reserve": 5}}', "an object such as"),
        ("compaction.modelOverrides", "[]", "an object such as"),
    ],
)
def test_what_it_must_be_is_said(key, text, wanted):
    """CF-01"""
    with pytest.raises(UsageError, match=f"{key} must be {wanted}"):
        parse_value(info(key), text)


def test_a_change_is_read_back_and_the_rest_stays(tmp_path: Path):
    path = tmp_path / "agent" / "settings.json"
    change_setting(path, "retry.maxRetries", 1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text('{\n  // mine\n  "retry": {"maxRetries": 1}, "pi": 1\n}')
    change_setting(path, "retry.maxRetries", 9)
    change_setting(path, "theme", "nord")
    settings, _ = load_settings(path)
    assert (settings.retry.max_retries, settings.theme) == (9, "nord")
    assert "// mine" in path.read_text()
    assert '"pi": 1' in path.read_text()
    change_setting(path, "retry.maxRetries", None)
    assert load_settings(path)[0].retry == Settings().retry


@pytest.mark.parametrize("content", ["{broken", "[]", '{"retry": 3}'])
def test_a_file_that_cannot_be_read_is_left_as_it_is(tmp_path: Path, content: str):
    path = tmp_path / "settings.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match=r"settings\.json is not changed"):
        change_setting(path, "retry.maxRetries", 1)
    assert path.read_text() == content


@pytest.mark.parametrize(("key", "value"), [("nothing", 1), ("retry", {}), ("theme", 3)])
def test_a_wrong_change_writes_nothing(tmp_path: Path, key: str, value: object):
    with pytest.raises(UsageError):
        change_setting(tmp_path / "settings.json", key, value)
    assert not (tmp_path / "settings.json").exists()


# ------------------------------------------------------------------ of a session


@pytest.fixture
def config(tmp_path: Path, monkeypatch) -> RuntimeConfig:
    (tmp_path / "project").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return RuntimeConfig(cwd=tmp_path / "project", agent_dir=tmp_path / "agent")


def test_a_folders_first_setting_is_not_asked_about(config: RuntimeConfig):
    change_preference(config, "project", "retry.maxRetries", 1)
    now = config.at(config.cwd)
    assert (now.trust.trusted, now.settings.retry.max_retries) == (True, 1)
    change_preference(now, "project", "retry.maxRetries", 2)
    assert config.at(config.cwd).settings.retry.max_retries == 2


def test_a_change_does_not_trust_what_came_along(config: RuntimeConfig):
    (config.cwd / ".pi" / "skills").mkdir(parents=True)
    untrusted = config.at(config.cwd)
    assert list(setting_files(untrusted)) == ["global"]
    with pytest.raises(UsageError, match="not trusted"):
        change_preference(untrusted, "project", "theme", "nord")
    once = RuntimeConfig(
        cwd=config.cwd, agent_dir=config.agent_dir, trust=Trust(True, untrusted.trust.resources)
    )
    change_preference(once, "project", "theme", "nord")  # trusted for this time only, as --approve says
    assert not config.at(config.cwd).trust.trusted


def test_a_rule_that_would_keep_the_program_from_starting_is_refused(config: RuntimeConfig):
    with pytest.raises(UsageError, match="is not a rule"):
        change_preference(config, "global", "gate.deny", ["bash("])
    assert not (config.agent_dir / "settings.json").exists()
