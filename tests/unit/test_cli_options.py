"""How a command line is read."""

from __future__ import annotations

import argparse

import pytest

from pi_trio.cli.options import add_session_arguments, make_parser, parse, runtime_config
from pi_trio.errors import UsageError


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
