"""Arguments as models write them: right, nearly right, and wrong."""

from __future__ import annotations

import json

import pytest

from pi_trio.codec import dumps, to_json
from pi_trio.loop.arguments import ArgumentsError, validated
from pi_trio.loop.hooks import BeforeToolCallResult, Hooks
from pi_trio.messages import text_of
from pi_trio.testing import Call
from pi_trio.tool import ToolResult

SHELL = {
    "type": "object",
    "properties": {
        "command": {"type": "string"},
        "timeout": {"type": "integer"},
        "ratio": {"type": "number"},
        "recursive": {"type": "boolean"},
        "paths": {"type": "array", "items": {"type": "string"}},
        "env": {"type": "object", "properties": {"depth": {"type": "integer"}}},
        "note": {"type": ["string", "null"]},
        "any": {},
    },
    "required": ["command"],
    "additionalProperties": False,
}


@pytest.fixture
def check(tool):
    """The arguments that a body with this schema would get."""

    async def body(call_id, args, on_update):
        return ToolResult("ran")

    return lambda given, schema=SHELL: validated(tool("shell", body, parameters=schema), given)


# ------------------------------------------------------------------ what is accepted


def test_valid_arguments_are_the_same_object(check) -> None:
    """C34."""
    given = {"command": "ls", "timeout": 3, "paths": ["a"], "note": None, "any": {"x": [1]}}
    assert check(given) is given


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"timeout": "30"}, {"timeout": 30}),
        ({"ratio": "0.5"}, {"ratio": 0.5}),
        ({"recursive": "false"}, {"recursive": False}),
        ({"recursive": "True"}, {"recursive": True}),
        ({"paths": '["a","b"]'}, {"paths": ["a", "b"]}),
        ({"paths": "a"}, {"paths": ["a"]}),
        ({"paths": '{"a": 1}'}, {"paths": ['{"a": 1}']}),
        ({"paths": [1, 2]}, {"paths": ["1", "2"]}),
        ({"env": '{"depth": "2"}'}, {"env": {"depth": 2}}),
        ({"command": 12}, {"command": "12"}),
        ({"timeout": None}, {}),
        ({"note": None}, {"note": None}),
    ],
)
def test_nearly_right_arguments_are_mended(check, written, meant) -> None:
    """TA-03: numbers, flags and lists as text, one value for a list, null for nothing."""
    given = {"command": "ls", **written}
    before = json.dumps(given)
    assert check(given) == {"command": "ls", **meant}
    assert json.dumps(given) == before


@pytest.mark.parametrize(
    "written",
    [{"arguments": {"command": "ls"}}, {"arguments": '{"command": "ls"}'}, {"input": {"command": "ls"}}],
)
def test_arguments_under_one_more_key_are_unwrapped(check, written) -> None:
    """TA-04: where only that reading fits."""
    assert check(written) == {"command": "ls"}


def test_a_single_argument_that_fits_is_not_unwrapped(check) -> None:
    """TA-04."""
    given = {"input": {"command": "ls"}}
    assert check(given, {"type": "object"}) is given


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ({}, "'command' is a required property"),
        ({"command": None}, "command: "),
        ({"command": {"a": 1}}, "command: {'a': 1} is not of type 'string'"),
        ({"command": "ls", "recursive": "no"}, "recursive: 'no' is not of type 'boolean'"),
        ({"command": "ls", "recursive": 1}, "recursive: 1 is not of type 'boolean'"),
        ({"command": "ls", "timeout": "soon"}, "timeout: 'soon'"),
        ({"command": "ls", "timeout": "true"}, "timeout: 'true'"),
        ({"command": "ls", "timeout": True}, "timeout: True"),
        ({"command": "ls", "env": {"depth": "x"}}, "env.depth: "),
        ({"command": "ls", "extra": 1}, "'extra' was unexpected"),
        ({"input": "ls"}, "'command' is a required property"),
    ],
)
def test_wrong_arguments_are_told_by_path(check, written, fault) -> None:
    """TA-02, TA-03, TA-04, TA-11: what is wrong, where, and what came."""
    with pytest.raises(ArgumentsError) as raised:
        check(written)
    text = str(raised.value)
    assert text.startswith('Validation failed for tool "shell":')
    assert fault in text
    assert text.endswith(dumps(written).decode())


# ------------------------------------------------------------------ as calls of a model


def shell(tool, given: list, **options):
    async def body(call_id, args, on_update):
        given.append(args)
        return ToolResult("ran")

    return tool("shell", body, parameters={**SHELL, **options})


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ('{"path": "a.txt", "content": "x', "column"),
        ("null", "must be a JSON object, not null"),
        ("[]", "must be a JSON object, not a list"),
        ('"x"', "must be a JSON object, not text"),
        ("3", "must be a JSON object, not a number"),
        ("true", "must be a JSON object, not a truth value"),
        ("printf 'a\tb'", "not valid JSON"),
        ('{"command":"printf \'a\tb\n\'"}', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
async def test_unreadable_arguments_are_answered(stage, tool, raw, told) -> None:
    """TA-01, TA-05, TA-08: the body does not run, the session goes on, and the history is whole."""
    given: list = []
    play = stage(Call("shell", raw), "Sorry", tools=[shell(tool, given)])
    await play.agent.prompt("Go")
    assert (given, play.codes) == ([], ["invalid_arguments"])
    assert told in text_of(play.results[0].content)
    assert play.agent.messages[-1].text == "Sorry"
    assert json.loads(dumps(to_json(list(play.model.requests[1].context.messages))))


@pytest.mark.parametrize("raw", ["", "  ", "{}"])
@pytest.mark.parametrize("required", [[], ["command"]])
async def test_no_arguments_are_an_empty_object(stage, tool, raw, required) -> None:
    """TA-02: fine for a tool that needs none, a clear answer from one that does."""
    given: list = []
    play = stage(Call("shell", raw), "Done", tools=[shell(tool, given, required=required)])
    await play.agent.prompt("Go")
    assert (given, play.codes) == (([], ["invalid_arguments"]) if required else ([{}], [None]))


async def test_a_key_given_twice_is_judged_as_it_is_used(stage, tool) -> None:
    """TA-06: the gate sees what the body would get."""
    given: list = []

    async def gate(context):
        return BeforeToolCallResult(block=context.args["command"] != "ok")

    raw = '{"command":"ok","command":"rm"}'
    play = stage(Call("shell", raw), "Done", tools=[shell(tool, given)], hooks=Hooks(before_tool_call=gate))
    await play.agent.prompt("Go")
    assert (given, play.codes) == ([], ["blocked"])


async def test_half_a_surrogate_pair_does_no_harm(stage, tool) -> None:
    """TA-09: it is replaced before anything is stored."""
    given: list = []
    play = stage(Call("shell", r'{"command":"a\ud83db"}'), "Done", tools=[shell(tool, given)])
    await play.agent.prompt("Go")
    assert given == [{"command": "a\ufffdb"}]
    dumps(to_json(list(play.agent.messages))).decode("utf-8")


async def test_the_validator_is_built_once_for_each_tool(tool, monkeypatch) -> None:
    import jsonschema

    built = []
    original = jsonschema.Draft202012Validator

    def build(schema):
        built.append(schema)
        return original(schema)

    monkeypatch.setattr(jsonschema, "Draft202012Validator", build)
    each = shell(tool, [])
    for _ in range(3):
        validated(each, {"command": "ls"})
    assert len(built) == 1
