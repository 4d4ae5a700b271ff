"""Prompt templates: their files, and what fills their places."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_trio.resources.templates import expand_template, load_templates, split_arguments, substitute


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("  a  b\tc\n", ["a", "b", "c"]),
        ("\"a b\" 'c d'", ["a b", "c d"]),
        ('pre"a b"post \'x"y\'', ["prea bpost", 'x"y']),
        ('"open end', ["open end"]),
        ("a '' b", ["a", "", "b"]),
    ],
)
def test_arguments_are_split_as_a_shell_does(text: str, words: list[str]) -> None:
    assert split_arguments(text) == words


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("$1-$2-$3", "a-b-c"),
        ("$10.$0.$9", "j.." + "i"),
        ("$@ | $ARGUMENTS", "a b c d e f g h i j | a b c d e f g h i j"),
        ("${11:-none} ${1:-none}", "none a"),
        ("${@:-none}${ARGUMENTS:-none}", "a b c d e f g h i j" * 2),
        ("${@:9}", "i j"),
        ("${@:2:3}", "b c d"),
        ("${@:0:1}${@:20}", "a"),
        ("$x ${x} ${1} $ $$ {1} %s", "$x ${x} ${1} $ $$ {1} %s"),
        ("costs $1,000", "costs a,000"),
    ],
)
def test_places_are_filled(body: str, text: str) -> None:
    assert substitute(body, list("abcdefghij")) == text


def test_what_is_missing_is_empty_or_the_default() -> None:
    assert substitute("[$1][$@][${1:-one}][${@:-all}][${@:1}]", []) == "[][][one][all][]"
    assert substitute("[${1:-one}]", [""]) == "[one]"


def test_a_value_is_not_looked_through() -> None:
    assert substitute("$1 $2", ["$2", "${1:-x}"]) == "$2 ${1:-x}"


@given(st.lists(st.text(min_size=1)))
def test_every_value_arrives_letter_for_letter(arguments: list[str]) -> None:
    body = "".join(f"${number}\0" for number in range(1, len(arguments) + 1))
    assert substitute(body, arguments) == "".join(f"{value}\0" for value in arguments)


def test_templates_are_the_markdown_files_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "review.md").write_text(
        '---\ndescription: Look it over\nargument-hint: "<file>"\n---\nReview $1.\n'
    )
    (tmp_path / "plain.md").write_text(f"\n{'x' * 70}\nrest")
    (tmp_path / "note.txt").write_text("no template")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "inner.md").write_text("no template")
    plain, review = load_templates([tmp_path]).templates
    assert (review.name, review.description, review.argument_hint) == ("review", "Look it over", "<file>")
    assert expand_template(review, "'my file.py' now") == "Review my file.py.\n"
    assert (plain.description, plain.argument_hint) == ("x" * 60 + "...", "")


def test_the_first_of_a_name_wins_and_what_is_broken_is_told(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same.md").write_text(name)
    (tmp_path / "b" / "broken.md").write_text("---\n[\n---\n")
    loaded = load_templates([tmp_path / "a", tmp_path / "b", tmp_path / "none", tmp_path / "a" / "same.md"])
    assert [template.body for template in loaded.templates] == ["a"]
    assert len(loaded.findings) == 2
    assert "not YAML" in loaded.findings[0]
    assert loaded.findings[1].endswith(f"the template same is also in {tmp_path}/a/same.md")
