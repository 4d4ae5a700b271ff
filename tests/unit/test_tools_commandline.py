"""What a shell would run, read from its line. Real shells say what is right."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pi_trio.tools.commandline import read_command_line
from pi_trio.tools.rules import Rule, exact_rule


def texts(line: str) -> list[str] | None:
    commands = read_command_line(line)
    return None if commands is None else [command.text for command in commands]


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("git status", ["git status"]),
        ("a; b && c || d | e & f\ng", ["a", "b", "c", "d", "e", "f", "g"]),
        ("a |& b", ["a", "b"]),
        ("(a; b)", ["a", "b"]),
        ("echo $(rm x)", ["rm x", "echo $(rm x)"]),
        ('echo "$(rm x)"', ["rm x", "echo $(rm x)"]),
        ("echo `rm x`", ["rm x", "echo `rm x`"]),
        ("echo `a \\`b\\``", ["b", "a `b`", "echo `a \\`b\\``"]),
        ("echo '$(rm x)'", ["echo $(rm x)"]),
        ("cat <(rm x)", ["rm x", "cat"]),
        ("a >(rm x)", ["rm x", "a"]),
        ("echo ${x:-$(rm y)}", ["rm y", "echo ${x:-$(rm y)}"]),
        ("'r'm \"-rf\" \\x", ["rm -rf x"]),
        ("g\\\nit status", ["git status"]),
        ("a 'b;c' \"d&&e\"", ["a b;c d&&e"]),
        ("a # b; c", ["a"]),
        ("a#b", ["a#b"]),
        ("", []),
        ("for x in a; do rm $x; done", ["for x in a", "do rm $x", "done"]),
        ("a 2>&1 | b", ["a", "b"]),
    ],
)
def test_every_command_is_found(line, commands):
    assert texts(line) == commands


@pytest.mark.parametrize("line", ["echo 'a", 'echo "a', "echo $(a", "(a", "echo `a", "a \\", "$(" * 10_000])
def test_lines_that_do_not_end_cannot_be_read(line):
    assert read_command_line(line) is None


@pytest.mark.parametrize(
    ("line", "writes", "reads"),
    [
        ("a > f", ("f",), ()),
        ("a >>f 2>g", ("f", "g"), ()),
        ("a &> f", ("f",), ()),
        ("a >| f", ("f",), ()),
        ("a <> f", ("f",), ()),
        ("a >& f", ("f",), ()),
        ("a 2>&1 >/dev/null <&-", (), ("-",)),
        ("a < 'f g'", (), ("f g",)),
        ("> f", ("f",), ()),
    ],
)
def test_redirections(line, writes, reads):
    (command,) = read_command_line(line)
    assert (command.writes, command.reads) == (writes, reads)


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("git $x", True),
        ("$x", False),
        ("${x}t a", False),
        ('"$x"', False),
        ("$(a) b", False),
        ("/bin/r?", False),
        ("{rm,-rf}", False),
        ("$'rm' x", False),
        ("X=1 a", False),
        ("~/x", False),
    ],
)
def test_whether_the_program_can_be_told(line, known):
    assert read_command_line(line)[-1].known == known


PIECES = (  # noqa: SIM905 a list of them could not be read
    r"""a b echo ' " \ $( ) ` ( { } ; & && || | # = ${x:- $' \' $(( )) [[ ]] esac ;; <<E $x $ ! eval *"""
    r""" ${ $" >f <f 2>&1 <<< <( >( then"""
).split()
PIECES += [" ", "\n", "\\\n", "\t", "E\n", "<<'E'\n", "case x in x) ", "if a;"]
NAMES = "a() { echo ran >&9; }; b() { echo ran >&9; }; x=a; exec 9>&1 1>/dev/null 2>&1 </dev/null; "


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@example("#\\\na")
@example("\\\\\na")
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_real_shell_runs_nothing_that_was_not_found(tmp_path, pieces):
    """A line that is allowed by a rule for `echo` alone runs neither `a` nor `b`."""
    line = f"echo {pieces}"
    commands = read_command_line(line)
    if commands is None or not all(map(Rule.parse("bash(echo*)").allows_command, commands)):
        return
    done = subprocess.run(
        ["bash", "--norc", "-c", f'{NAMES} eval "$1"; wait', "bash", line],
        capture_output=True,
        timeout=10,
        cwd=tmp_path,
        env={"PATH": "/nonexistent"},
        executable=shutil.which("bash"),
    )
    assert b"ran" not in done.stdout


# ---------------------------------------------------------------- rules


@pytest.mark.parametrize(
    ("rule", "line", "allowed"),
    [
        ("bash(git *)", "git status", True),
        ("bash(git *)", "git", False),
        ("bash(git*)", "git status", True),
        ("bash(git *)", "git log $(rm x)", False),
        ("bash(git *)", "git log; rm x", False),
        ("bash(git *)", "git log\nrm x", False),
        ("bash(git *)", "git log && git status", True),
        ("bash(git *)", "git log > ~/.bashrc", False),
        ("bash(git *)", "git log 2>/dev/null", True),
        ("bash(git *)", "GIT_PAGER=x git log", False),
        ("bash(git *)", 'g"i"t log', True),
        ("bash", "anything > f", True),
        ("bash(echo [*])", "echo *", True),
        ("bash(echo [*])", "echo x", False),
    ],
)
def test_a_rule_allows_just_its_command(rule, line, allowed):
    assert all(map(Rule.parse(rule).allows_command, read_command_line(line))) == allowed


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf x",
        "a; rm -rf x",
        "sudo rm -rf x",
        "/bin/rm -rf x",
        "r\\m -rf x",
        "echo $(rm -rf x)",
        "bash -c 'rm -rf x'",
        "find . -exec rm -rf {} +",
        "true\nrm -rf x",
        "x=1 rm -rf x",
        "if a; then rm -rf x; fi",
    ],
)
def test_a_rule_denies_its_command_however_it_is_wrapped(line):
    assert any(map(Rule.parse("bash(rm -rf*)").denies_command, read_command_line(line)))


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20))
def test_an_exact_rule_is_for_itself_alone(text):
    rule = Rule.parse(exact_rule("write", f"/{text}"))
    assert rule.pattern is not None
    assert Rule.parse(str(rule)) == rule


@pytest.mark.parametrize("text", ["", "a b", "bash(", "bash)", "bash()", "(x)"])
def test_what_is_no_rule(text):
    with pytest.raises(ValueError, match="is not a rule"):
        Rule.parse(text)
