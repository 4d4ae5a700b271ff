"""Changing one value in a file that a person keeps."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_trio.jsonc import blanked
from pi_trio.jsonc_edit import edited

FILE = """\
{
  // colours
  "theme": "dark", // at night
  "retry": {
    "enabled": true, // always
  },
  "skills": ["a", "b"]
}
"""


@pytest.mark.parametrize(
    ("keys", "value", "old", "new"),
    [
        (["theme"], "light", '"dark", // at', '"light", // at'),
        (["retry", "enabled"], False, "true, // always", "false, // always"),
        (["skills"], ["c"], '["a", "b"]', '["c"]'),
        (["retry", "maxRetries"], 7, "true, // always\n", 'true, // always\n    "maxRetries": 7\n'),
        (["steeringMode"], "all", '["a", "b"]\n', '["a", "b"],\n  "steeringMode": "all"\n'),
        (["gate", "mode"], "ask", '["a", "b"]\n', '["a", "b"],\n  "gate": {"mode": "ask"}\n'),
        (["theme"], None, '"theme": "dark", // at night', "// at night"),
        (["skills"], None, '  },\n  "skills": ["a", "b"]\n', "  }\n"),
        (["nothing"], None, "", ""),
    ],
)
def test_only_this_value_changes(keys, value, old, new):
    assert old in FILE
    after = edited(FILE, keys, value)
    if value is None and keys == ["skills"]:
        assert json.loads(blanked(after)) == {"theme": "dark", "retry": {"enabled": True}}
        assert "// colours" in after
        return
    assert after.split() == FILE.replace(old, new, 1).split()


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("", '{\n  "a": 1\n}\n'),
        ("{}", '{\n  "a": 1\n}'),
        ('{"b": 2}', '{"b": 2, "a": 1}'),
        ("// mine\n", '// mine\n{\n  "a": 1\n}\n'),
        ("{\n  // mine\n}\n", '{\n  // mine\n  "a": 1\n}\n'),
    ],
)
def test_a_first_key(text, after):
    assert edited(text, ["a"], 1) == after


@pytest.mark.parametrize(
    ("text", "keys"), [("[]", ["a"]), ("{", ["a"]), ('{"a": 1}', ["a", "b"]), ("3", ["a"])]
)
def test_what_is_no_object_is_left_alone(text, keys):
    with pytest.raises(ValueError, match=r".+"):
        edited(text, keys, 1)


SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=6)
KEYS = st.sampled_from(["a", "b", 'q"', "//"])
OBJECTS = st.recursive(
    st.dictionaries(KEYS, SCALARS | st.lists(SCALARS, max_size=2), max_size=3),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


@given(OBJECTS, st.lists(KEYS, min_size=1, max_size=3), SCALARS, st.sampled_from([None, 2]), st.booleans())
def test_the_rest_means_what_it_meant(data, keys, value, indent, comments):
    """Whatever the file holds, with comments and trailing commas, exactly one value is another."""
    text = json.dumps(data, indent=indent)
    if comments and indent and data:
        lines = text.split("\n")
        text = "\n".join(line + (" // it's, {a} note" if line.endswith((",", "{")) else "") for line in lines)
        text = text[:-2] + ",\n}"
        assert json.loads(blanked(text)) == data
    at, expected = data, json.loads(json.dumps(data))
    inner = expected
    for key in keys[:-1]:
        at = at.get(key, {}) if isinstance(at, dict) else None
        if not isinstance(at, dict):
            with pytest.raises(ValueError, match="is not an object"):
                edited(text, keys, value)
            return
        inner = inner.setdefault(key, {}) if value is not None else inner.get(key, {})
    if value is None:
        inner.pop(keys[-1], None)
    else:
        inner[keys[-1]] = value
    assert json.loads(blanked(edited(text, keys, value))) == expected
