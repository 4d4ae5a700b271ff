"""What a session is furnished with, from the agent directory, the person and the project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from pi_trio.errors import ConfigError
from pi_trio.resources.config import RuntimeConfig
from pi_trio.resources.resources import load_resources
from pi_trio.tool import OnUpdate, Tool, ToolResult


async def _nothing(call_id: str, args: Mapping[str, Any], on_update: OnUpdate) -> ToolResult:
    return ToolResult("")


READ = Tool(name="read", description="Reads.", parameters={}, execute=_nothing)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home, an agent directory and a project, each with a skill, a template and prompts."""
    home, agent, project = tmp_path / "home", tmp_path / "agent", tmp_path / "project"
    skills = (
        agent / "skills",
        project / ".pi" / "skills",
        home / ".agents" / "skills",
        project / ".agents" / "skills",
    )
    for number, folder in enumerate(skills):
        (folder / f"skill-{number}").mkdir(parents=True)
        (folder / f"skill-{number}" / "SKILL.md").write_text(
            f"---\ndescription: d{number}\n---\nbody {number}"
        )
    for name, folder in (("ours", agent), ("theirs", project / ".pi")):
        (folder / "prompts").mkdir()
        (folder / "prompts" / f"{name}.md").write_text(f"{name}: $1")
        (folder / "SYSTEM.md").write_text(f"system of {name}\n")
        (folder / "settings.json").write_text(f'{{"defaultModel": "{name}", "prompts": ["{name}.md"]}}')
    (project / ".git").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PI_TRIO_DIR", str(agent))
    monkeypatch.chdir(project)
    return tmp_path


@pytest.mark.usefixtures("places")
def test_without_a_yes_the_project_adds_nothing() -> None:
    """SE-14"""
    config = RuntimeConfig.load()
    resources = load_resources(config)
    assert [skill.name for skill in resources.skills] == ["skill-0", "skill-2"]
    assert [template.name for template in resources.templates] == ["ours"]
    assert resources.system_prompt == "system of ours"
    assert config.settings.default_model == "ours"
    assert any("not trusted yet" in finding for finding in config.findings)


def test_with_a_yes_the_project_wins(places: Path) -> None:
    config = RuntimeConfig.load(approve=True)
    resources = load_resources(config)
    assert [skill.name for skill in resources.skills] == ["skill-0", "skill-1", "skill-2", "skill-3"]
    assert [template.name for template in resources.templates] == ["ours", "theirs"]
    assert resources.system_prompt == "system of theirs"
    assert config.settings.default_model == "theirs"
    assert config.settings.prompts == (str(places / "agent/ours.md"), str(places / "project/.pi/theirs.md"))
    assert config.findings == ()


def test_a_yes_to_one_folder_is_none_to_another(places: Path) -> None:
    """SE-18: a session from elsewhere brings its own folder, which nobody approved."""
    (places / "other" / ".pi").mkdir(parents=True)
    (places / "other" / ".pi" / "settings.json").write_text('{"shellPath": "/tmp/evil"}')
    config = RuntimeConfig.load(approve=True).at(places / "other")
    assert not config.trust.trusted
    assert config.settings.shell_path is None
    assert config.settings.default_model == "ours"


def test_a_persons_settings_cannot_be_set_by_a_project(places: Path) -> None:
    (places / "project" / ".pi" / "settings.json").write_text('{"defaultProjectTrust": "always"}')
    config = RuntimeConfig.load(approve=True)
    assert config.settings.default_project_trust == "ask"
    assert config.findings[0].endswith(
        "defaultProjectTrust is a person's setting and is passed over in a project"
    )


def test_project_settings_win_key_by_key(places: Path) -> None:
    (places / "agent" / "settings.json").write_text(
        '{"theme": "dark", "retry": {"maxRetries": 7, "enabled": false}}'
    )
    (places / "project" / ".pi" / "settings.json").write_text('{"retry": {"enabled": true}, "theme": 3}')
    config = RuntimeConfig.load(approve=True)
    assert config.settings.theme == "dark"
    assert (config.settings.retry.enabled, config.settings.retry.max_retries) == (True, 7)
    assert len(config.findings) == 1


def test_the_prompt_has_our_sections_in_order(places: Path) -> None:
    (places / "agent" / "SYSTEM.md").unlink()
    (places / "agent" / "APPEND_SYSTEM.md").write_text("Always rhyme.")
    (places / "agent" / "AGENTS.md").write_text("Use tabs.")
    sections = load_resources(RuntimeConfig.load()).sections([READ])
    assert list(sections) == ["preamble", "tools", "rules", "addendum", "project_context", "skills", "cwd"]
    assert sections["addendum"] == "<addendum>\nAlways rhyme.\n</addendum>"
    assert "<name>skill-0</name>" in sections["skills"]


@pytest.mark.usefixtures("places")
def test_a_prompt_of_ones_own_stands_in_for_ours() -> None:
    resources = load_resources(RuntimeConfig.load())
    assert list(resources.sections([READ])) == ["preamble", "skills", "cwd"]
    assert resources.sections([READ])["preamble"] == "system of ours"
    assert "skills" not in resources.sections([]), "nothing could read them"


def test_of_kinds_left_out_only_what_is_named_is_used(places: Path) -> None:
    (places / "project" / "AGENTS.md").write_text("rules of the project")
    (places / "more.md").write_text("more: $1")
    (places / "extra" / "named").mkdir(parents=True)
    (places / "extra" / "named" / "SKILL.md").write_text("---\ndescription: d\n---\nbody")
    config = evolve(
        RuntimeConfig.load(),
        without=frozenset({"skills", "prompt-templates", "context-files"}),
        skills=(str(places / "extra"),),
        prompt_templates=(str(places / "more.md"),),
        system_prompt="said now",
        addendum="and more",
    )
    resources = load_resources(config)
    assert [skill.name for skill in resources.skills] == ["named"]
    assert [template.name for template in resources.templates] == ["more"]
    assert resources.context_files == ()
    assert (resources.system_prompt, resources.addendum) == ("said now", "and more")
    assert [each.path.name for each in load_resources(RuntimeConfig.load()).context_files] == ["AGENTS.md"]


@pytest.mark.usefixtures("places")
def test_commands_stand_for_their_texts() -> None:
    resources = load_resources(RuntimeConfig.load())
    assert "body 0\n</skill>\n\npage 3" in resources.expand("/skill:skill-0  page 3 ")
    assert resources.expand("/ours a b") == "ours: a"
    for text in ("/unknown a", "/skill:none", "ours a", "/", "/usr/bin is a folder", " /ours a"):
        assert resources.expand(text) == text


def test_a_skill_that_went_away_is_an_error(places: Path) -> None:
    resources = load_resources(RuntimeConfig.load())
    (places / "agent" / "skills" / "skill-0" / "SKILL.md").unlink()
    with pytest.raises(ConfigError, match="No such file"):
        resources.expand("/skill:skill-0")
