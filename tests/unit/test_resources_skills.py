"""Skills: where they are found, what breaks their rules, and what a prompt says of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pi_trio.errors import ConfigError
from pi_trio.resources.skills import (
    Skill,
    SkillFolder,
    Skills,
    expand_skill,
    load_skills,
    skills_section,
)


def _write(
    path: Path, name: str = "", description: str = "Does it", body: str = "Do it.", **more: str
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    head = {"name": name, "description": description, **more}
    lines = [f"{key}: {value}" for key, value in head.items() if value]
    path.write_text("\n".join(["---", *lines, "---", "", body, ""]))
    return path


def _load(*folders: Path, single_files: bool = False) -> Skills:
    return load_skills(SkillFolder(folder, single_files) for folder in folders)


def _names(skills: Skills) -> list[str]:
    return [skill.name for skill in skills.skills]


def test_a_folder_with_a_skill_file_is_one_skill(tmp_path: Path) -> None:
    _write(tmp_path / "pdf" / "SKILL.md")
    _write(tmp_path / "pdf" / "inner" / "SKILL.md")
    _write(tmp_path / "group" / "web" / "SKILL.md", "browse")
    assert _load(tmp_path) == Skills(
        (
            Skill("browse", "Does it", tmp_path / "group" / "web" / "SKILL.md"),
            Skill("pdf", "Does it", tmp_path / "pdf" / "SKILL.md"),
        )
    )


def test_single_files_count_at_the_top_of_pis_folders_only(tmp_path: Path) -> None:
    _write(tmp_path / "one.md")
    _write(tmp_path / "deep" / "two.md")
    assert _names(_load(tmp_path)) == []
    assert _names(_load(tmp_path, single_files=True)) == ["one"]
    assert _names(_load(tmp_path / "one.md")) == ["one"]


def test_hidden_and_ignored_folders_are_passed_over(tmp_path: Path) -> None:
    for place in (".hidden", "node_modules", "drafts", "kept", "group/out"):
        _write(tmp_path / place / "SKILL.md", place.replace("/", "-").strip("."))
    (tmp_path / ".gitignore").write_text("drafts/\n")
    (tmp_path / "group" / ".ignore").write_text("/out\n")
    assert _names(_load(tmp_path)) == ["kept"]


def test_a_pipe_leaves_nothing_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".gitignore")
    _write(tmp_path / "kept" / "SKILL.md", "kept")
    assert _names(_load(tmp_path)) == ["kept"]


def test_links_are_followed_and_a_file_counts_once(tmp_path: Path) -> None:
    _write(tmp_path / "elsewhere" / "SKILL.md", "linked")
    folder = tmp_path / "skills"
    folder.mkdir()
    (folder / "a").symlink_to(tmp_path / "elsewhere")
    (folder / "b").symlink_to(tmp_path / "elsewhere")
    (folder / "broken").symlink_to("nowhere")
    (folder / "ring").symlink_to(folder)
    loaded = _load(folder)
    assert _names(loaded) == ["linked"]
    assert loaded.findings == ()


def test_the_first_of_a_name_wins(tmp_path: Path) -> None:
    first = _write(tmp_path / "a" / "pdf" / "SKILL.md")
    _write(tmp_path / "b" / "pdf" / "SKILL.md")
    loaded = _load(tmp_path / "a", tmp_path / "b")
    assert [skill.path for skill in loaded.skills] == [first]
    assert loaded.findings == (f"{tmp_path}/b/pdf/SKILL.md was left out: the skill pdf is also in {first}",)


@pytest.mark.parametrize("name", ["Pdf", "a--b", "-a", "a-", "a b", "x" * 65])
def test_a_name_that_breaks_the_rules_is_told_and_used(tmp_path: Path, name: str) -> None:
    _write(tmp_path / "pdf" / "SKILL.md", name)
    loaded = _load(tmp_path)
    assert _names(loaded) == [name]
    assert len(loaded.findings) == 1
    assert "lower-case letters" in loaded.findings[0]


def test_a_long_description_is_told_and_used(tmp_path: Path) -> None:
    _write(tmp_path / "pdf" / "SKILL.md", description="x" * 1025)
    loaded = _load(tmp_path)
    assert _names(loaded) == ["pdf"]
    assert "more than 1024" in loaded.findings[0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("No front matter.", "needs a description"),
        ("---\nname: x\n---\n", "needs a description"),
        ("---\nname: x\ndescription: a: b\n---\n", "SKILL.md:3 was left out: its front matter is not YAML"),
        ("---\n- x\n---\n", "not a list of keys"),
        ("---\ndescription: 2030-99-99\n---\n", "is not YAML"),
    ],
)
def test_what_cannot_be_used_is_left_out_and_told(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "SKILL.md").write_text(text)
    _write(tmp_path / "b" / "SKILL.md")
    loaded = _load(tmp_path)
    assert _names(loaded) == ["b"]
    assert reason in loaded.findings[0]


def test_odd_files_are_left_out_and_told(tmp_path: Path) -> None:
    """CF-04: a pipe, bytes, a byte order mark with Windows line ends."""
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "bytes.md").write_bytes(b"\xff\xfe")
    (tmp_path / "dos.md").write_bytes(b"\xef\xbb\xbf---\r\ndescription: d\r\n---\r\nbody\r\n")
    loaded = _load(tmp_path, single_files=True)
    assert _names(loaded) == ["dos"]
    assert [finding.partition("out: ")[2] for finding in loaded.findings] == ["it is not UTF-8 text"]


def test_the_prompt_lists_what_is_not_hidden() -> None:
    skills = [
        Skill("pdf", "Reads <pdf> & more", Path("/s/pdf/SKILL.md")),
        Skill("secret", "x", Path("/s/secret/SKILL.md"), hidden=True),
    ]
    section = skills_section(skills)
    assert "<name>pdf</name>" in section
    assert "<description>Reads &lt;pdf&gt; &amp; more</description>" in section
    assert "<location>/s/pdf/SKILL.md</location>" in section
    assert "secret" not in section
    assert skills_section(skills[1:]) == ""


def test_a_hidden_skill_says_so_itself(tmp_path: Path) -> None:
    _write(tmp_path / "a" / "SKILL.md", **{"disable-model-invocation": "true"})
    assert [skill.hidden for skill in _load(tmp_path).skills] == [True]


def test_a_skill_stands_for_its_text_and_the_arguments(tmp_path: Path) -> None:
    path = _write(tmp_path / "pdf" / "SKILL.md", body="Use $1 and {x}.")
    (skill,) = _load(tmp_path).skills
    assert expand_skill(skill, "page 3") == (
        f'<skill name="pdf" location="{path}">\n'
        f"Relative paths in it start in {path.parent}.\n\n"
        "Use $1 and {x}.\n</skill>\n\npage 3"
    )
    assert expand_skill(skill).endswith("</skill>")
    path.unlink()
    with pytest.raises(ConfigError, match="No such file"):
        expand_skill(skill)
