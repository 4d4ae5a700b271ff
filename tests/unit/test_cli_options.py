"""How a command line is read."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from pi_trio.cli.options import add_session_arguments, make_parser, parse, runtime_config
from pi_trio.errors import UsageError
from pi_trio.harness.configured import gate_policy, tool_choice
from pi_trio.tools.environment import LocalEnvironment


def _parse(*argv: str) -> argparse.Namespace:
    parser = make_parser("program", "what it does")
    parser.add_argument("-p", "--print", action="store_true")
    add_session_arguments(parser)
    return parse(parser, argv)


def test_options_may_stand_among_the_messages() -> None:
    namespace = _parse("a", "--model", "m", "b", "-p", "c")
    assert (namespace.messages, namespace.model, namespace.print) == (["a", "b", "c"], "m", True)


def test_read_only_is_a_mode() -> None:
    assert runtime_config(_parse("--read-only")).mode == "read-only"
    assert runtime_config(_parse()).mode is None


@pytest.mark.parametrize("model", ["x/y", "p/x/y"])
def test_a_provider_goes_before_its_model(model: str) -> None:
    assert runtime_config(_parse("--provider", "p", "--model", model)).model == "p/x/y"


def test_a_provider_alone_names_no_model() -> None:
    with pytest.raises(UsageError, match="--provider needs --model"):
        runtime_config(_parse("--provider", "p"))


def test_a_thinking_level_is_one_of_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        _parse("--thinking", "zap")
    assert ended.value.code == 2
    assert "'zap' is not one of off, minimal, low" in capsys.readouterr().err


def test_after_two_dashes_all_are_messages() -> None:
    namespace = _parse("-p", "--", "--model", "--", "-c")
    assert (namespace.messages, namespace.model, namespace.resume) == (["--model", "--", "-c"], None, False)


@pytest.mark.parametrize(
    "argv",
    [
        ("--mod", "m"),
        ("--unknown",),
        ("-x",),
        ("--model",),
        ("--session", "s", "-c"),
        ("-c", "--no-session"),
        ("--fork", "s", "--session", "t"),
        ("--fork", "s", "--no-session"),
        ("--session-id", "s", "-c"),
        ("--max-cost", "0"),
        ("--max-cost", "nan"),
        ("--max-cost", "inf"),
        ("--max-steps", "1.5"),
        ("--max-steps", "-1"),
        ("--list-models",),
    ],
)
def test_a_mistake_is_a_usage_error(argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        _parse(*argv)
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("program: ")
    assert line.endswith("(see program --help)")


def test_options_become_a_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_TRIO_DIR", "/nowhere")
    config = runtime_config(_parse("--model", "m", "--thinking", "high", "--demo", "--no-session"))
    assert (config.model, config.thinking_level, config.demo, config.no_session) == ("m", "high", True, True)


def test_limits_are_numbers() -> None:
    config = runtime_config(_parse("--max-cost", "0.25", "--max-steps", "7"))
    assert (config.max_cost, config.max_steps) == (0.25, 7)


def test_kinds_can_be_left_out_and_named_ones_stay(tmp_path: Path) -> None:
    named = [tmp_path / name for name in ("skill", "template.md", "extension.py")]
    for path in named:
        path.touch()
    flags = ("-ne", "-ns", "-np", "--no-themes", "-nc")
    more = ("--skill", str(named[0]), "--prompt-template", str(named[1]), "-e", str(named[2]))
    config = runtime_config(_parse(*flags, *more))
    assert config.without == {"extensions", "skills", "prompt-templates", "themes", "context-files"}
    assert (*config.skills, *config.prompt_templates, *config.extensions) == tuple(map(str, named))


@pytest.mark.parametrize("flag", ["--skill", "--prompt-template", "-e"])
def test_what_is_named_must_be_there(flag: str) -> None:
    with pytest.raises(UsageError, match=r"there is no .* /nowhere$"):
        runtime_config(_parse(flag, "/nowhere"))


@pytest.mark.parametrize(
    ("argv", "names"),
    [
        (("-t", "read,ls"), ["read", "ls"]),
        (("--tools", "+grep, -bash"), ["read", "edit", "write", "grep"]),
        (("-xt", "bash,write"), ["read", "edit"]),
        (("-t", "read,bash", "-xt", "bash"), ["read"]),
        (("-nt",), []),
        (("-nbt",), []),
        (("--read-only",), ["read", "grep", "find", "ls"]),
        (("--read-only", "-t", "read,bash"), ["read"]),
    ],
)
def test_tools_are_chosen(argv: tuple[str, ...], names: list[str], tmp_path: Path) -> None:
    config = runtime_config(_parse(*argv))
    environment = LocalEnvironment(tmp_path)
    choice = tool_choice(config, environment, gate_policy(config, environment))
    assert list(choice.active) == [tool.name for tool in choice.tools] == names
    assert ("extension-tools" in config.without) == ("-nt" in argv)


@pytest.mark.parametrize("argv", [("-t", "reed"), ("-xt", "bash,reed")])
def test_an_unknown_tool_is_a_mistake(argv: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="there is no tool 'reed'; there are read, bash"):
        runtime_config(_parse(*argv))


def test_prompts_are_texts_or_files(tmp_path: Path) -> None:
    (tmp_path / "more.md").write_text("from a file")
    more = ("--append-system-prompt", str(tmp_path / "more.md"), "--append-system-prompt", "and this")
    config = runtime_config(_parse("--system-prompt", "Be a pirate.", *more))
    assert (config.system_prompt, config.addendum) == ("Be a pirate.", "from a file\n\nand this")
