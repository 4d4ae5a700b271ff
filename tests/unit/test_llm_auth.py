"""Where keys come from."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import trio

from pi_trio.errors import ConfigError
from pi_trio.llm import auth
from pi_trio.llm.auth import Auth, ProviderKeys

KEYS = ProviderKeys("acme", configured="from-models", variables=("ACME_KEY", "ACME_OLD_KEY"))


def store(folder: Path, **entries: object) -> None:
    (folder / "auth.json").write_text(json.dumps(entries))


async def key_of(folder: Path, keys: ProviderKeys = KEYS, explicit: str | None = None, **environ: str) -> str:
    return (await Auth(folder, environ).resolve(keys, explicit)).key


async def test_first_of_four_places_wins(tmp_path: Path) -> None:
    environ = {"ACME_KEY": "from-env"}
    only_env = ProviderKeys("acme", variables=KEYS.variables)
    assert await key_of(tmp_path, only_env, **environ) == "from-env"
    assert await key_of(tmp_path, KEYS, **environ) == "from-models"
    store(tmp_path, acme={"type": "api_key", "key": "stored"})
    assert await key_of(tmp_path, KEYS, **environ) == "stored"
    assert await key_of(tmp_path, KEYS, "passed", **environ) == "passed"


async def test_source_is_told_and_the_key_is_not(tmp_path: Path) -> None:
    keys = ProviderKeys("acme", variables=KEYS.variables)
    credential = await Auth(tmp_path, {"ACME_OLD_KEY": "sk-secret"}).resolve(keys)
    assert credential.source == "key from ACME_OLD_KEY"
    assert "sk-secret" not in repr(credential)
    assert "from-models" not in repr(KEYS)


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("$A", "alpha"),
        ("${A}", "alpha"),
        ("x-$A-${B}", "x-alpha-beta"),
        ("$$A", "$A"),
        ("$!x", "!x"),
        ("none", "none"),
        ("  spaced\n", "spaced"),
        ("!printf 'a b'", "a b"),
        ("!echo $((1 + 1))", "2"),
    ],
)
async def test_values_may_name_variables_or_commands(tmp_path: Path, value: str, key: str) -> None:
    assert await key_of(tmp_path, ProviderKeys("acme", configured=value), A="alpha", B="beta") == key


@pytest.mark.parametrize("literal", ["!date", "$HOME", "a$$b"])
async def test_key_from_the_environment_or_a_flag_is_taken_as_it_is(tmp_path: Path, literal: str) -> None:
    keys = ProviderKeys("acme", variables=("ACME_KEY",))
    assert await key_of(tmp_path, keys, ACME_KEY=literal) == literal
    assert await key_of(tmp_path, keys, literal) == literal


async def test_variable_that_is_not_set_leaves_no_key(tmp_path: Path) -> None:
    keys = ProviderKeys("acme", configured="$NOPE", variables=("ACME_KEY",))
    with pytest.raises(ConfigError, match="not set"):
        await key_of(tmp_path, keys, ACME_KEY="unused")
    assert Auth(tmp_path, {"ACME_KEY": "unused"}).source(keys) is None


def test_source_does_not_run_commands(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    keys = ProviderKeys("acme", configured=f"!touch {mark}")
    assert Auth(tmp_path, {}).source(keys) == "key of acme in models.json"
    assert not mark.exists()


def test_whether_there_is_a_key_is_known_at_once(tmp_path: Path) -> None:
    """HL-01: `check` refuses what `resolve` would, except that it runs no command."""
    none = ProviderKeys("acme", variables=("ACME_KEY",))
    with pytest.raises(ConfigError, match="There is no API key for acme: set ACME_KEY"):
        Auth(tmp_path, {}).check(none)
    with pytest.raises(ConfigError, match="is empty, or names a variable that is not set"):
        Auth(tmp_path, {}).check(ProviderKeys("acme", configured="$UNSET"))
    for keys, explicit in ((KEYS, None), (none, "passed"), (ProviderKeys("acme", keyless=True), None)):
        Auth(tmp_path, {}).check(keys, explicit)
    Auth(tmp_path, {}).check(ProviderKeys("acme", configured=f"!touch {tmp_path}/ran"))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("key", ["sk-te\nst", "sk-te\x00st", "sk-te\u2013st", "sk-te\x7fst", "sk-te\u2028st"])
async def test_key_that_cannot_be_sent_is_refused_without_showing_it(tmp_path: Path, key: str) -> None:
    """PQ-08"""
    with pytest.raises(ConfigError, match="key from ACME_KEY") as caught:
        await key_of(tmp_path, ProviderKeys("acme", variables=("ACME_KEY",)), ACME_KEY=key)
    assert "sk-te" not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-test\n", 'sk-"quoted\\', "sk-é"])
async def test_odd_keys_that_can_be_sent_are_trimmed_and_kept(tmp_path: Path, key: str) -> None:
    """PQ-08"""
    store(tmp_path, acme={"type": "api_key", "key": key})
    assert await key_of(tmp_path) == key.strip()


async def test_missing_key_says_how_to_get_one(tmp_path: Path) -> None:
    """HL-01"""
    with pytest.raises(ConfigError, match=r"no API key for acme: set ACME_KEY, .*`pi-trio auth login acme`"):
        await key_of(tmp_path, ProviderKeys("acme", variables=("ACME_KEY",)))


async def test_login_that_is_no_key_owns_its_provider(tmp_path: Path) -> None:
    store(tmp_path, acme={"type": "oauth", "access": "token-secret"})
    with pytest.raises(ConfigError, match="not an API key") as caught:
        await key_of(tmp_path, ACME_KEY="unused")
    assert "token-secret" not in str(caught.value)


async def test_stored_entry_of_another_shape_is_passed_over(tmp_path: Path) -> None:
    store(tmp_path, acme={"type": "api_key"}, other=3)
    assert await key_of(tmp_path) == "from-models"


async def test_broken_auth_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "auth.json").write_text('{"acme": {"type": "api_key", "key": "sk-secret",\n!}}')
    with pytest.raises(ConfigError, match=r"auth.json:2") as caught:
        await key_of(tmp_path)
    assert "sk-secret" not in str(caught.value)


async def test_failing_command_is_an_error_without_its_output(tmp_path: Path) -> None:
    keys = ProviderKeys("acme", configured="!echo sk-secret; exit 3")
    with pytest.raises(ConfigError, match="status 3") as caught:
        await key_of(tmp_path, keys)
    assert "sk-secret" not in str(caught.value)


async def test_silent_command_gives_no_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is empty"):
        await key_of(tmp_path, ProviderKeys("acme", configured="!true"))


async def test_command_that_hangs_is_stopped_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pipe that a grandchild holds open does not keep us waiting."""
    monkeypatch.setattr(auth, "COMMAND_TIMEOUT", 0.3)
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    reader = os.open(alive, os.O_RDONLY | os.O_NONBLOCK)
    command = f"!sleep 4711 > {alive} & sleep 4712 | cat"
    with pytest.raises(ConfigError, match=r"more than 0\.3 seconds"), trio.fail_after(5):
        await key_of(tmp_path, ProviderKeys("acme", configured=command))
    with trio.fail_after(5):
        await trio.lowlevel.wait_readable(reader)
    assert os.read(reader, 1) == b""  # the last writer is gone
    os.close(reader)
