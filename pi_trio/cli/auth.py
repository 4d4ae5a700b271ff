"""`pi-trio auth`: keys stored, removed, looked at and brought over from pi."""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import trio

from pi_trio.cli.options import add_command, make_parser
from pi_trio.cli.words import flush, say
from pi_trio.errors import ConfigError, PiError
from pi_trio.llm.auth import checked_key, literal
from pi_trio.llm.auth_file import copy_keys, remove_entry, store_entry
from pi_trio.llm.catalogue import Provider
from pi_trio.llm.listing import can_list, check_key
from pi_trio.llm.registry import Models
from pi_trio.llm.sign_in import SIGN_INS
from pi_trio.resources.paths import absolute, find_agent_dir, find_pi_dir
from pi_trio.resources.settings import Settings, load_settings

__all__ = ["run"]


def run(argv: Sequence[str]) -> int:
    """Do what the arguments after `auth` say. Returns the exit status; raises `PiError`."""
    options = _parser().parse_args(argv)
    agent_dir = find_agent_dir()
    settings, _ = load_settings(agent_dir / "settings.json")
    status: int = options.act(Models(agent_dir), settings, options)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = make_parser(
        "pi-trio auth", "Look after the keys of model providers, kept in auth.json for you alone to read."
    )
    parser.set_defaults(act=_list)
    acts = parser.add_subparsers(metavar="COMMAND", help="default: list")
    add_command(acts, "list", "list the providers that have a key, and where it is from").set_defaults(
        act=_list
    )
    login = add_command(acts, "login", "store a key, read from the keyboard or standard input")
    login.add_argument("provider", metavar="PROVIDER", help="such as openai or anthropic")
    login.add_argument("--key", action="store_true", help="ask for a key where signing in is possible too")
    login.set_defaults(act=_login)
    logout = add_command(acts, "logout", "remove a stored key")
    logout.add_argument("provider", metavar="PROVIDER", help="such as openai or anthropic")
    logout.set_defaults(act=_logout)
    check = add_command(acts, "check", "ask providers whether they take the keys")
    check.add_argument("providers", nargs="*", metavar="PROVIDER", help="default: all that have a key")
    check.set_defaults(act=_check)
    bring = add_command(acts, "import-pi", "copy the API keys that pi has stored")
    bring.add_argument("--from", dest="source", metavar="DIR", help="pi's directory (default: ~/.pi/agent)")
    bring.set_defaults(act=_import_pi)
    return parser


# ------------------------------------------------------------------ login, logout


def _login(models: Models, settings: Settings, options: argparse.Namespace) -> int:
    provider = models.provider(options.provider)
    if provider.id in SIGN_INS and not options.key and _has_keyboard():
        entry = trio.run(_sign_in, provider.id, settings.http_proxy)
    else:
        entry = {"type": "api_key", "key": literal(_read_key(provider.name))}
    store_entry(models.auth.path, provider.id, entry)
    say(f"The key of {provider.name} is stored in {models.auth.path}.")
    return 0


async def _sign_in(provider: str, proxy: str | None) -> Mapping[str, Any]:
    return await SIGN_INS[provider](_show_address, proxy=proxy)


def _show_address(address: str) -> None:
    say("Open this address in a browser on this machine, or stop with ctrl+c and use --key:")
    say(address)
    flush()


def _read_key(name: str) -> str:
    """A key that never stands on a command line or on the screen."""
    if _has_keyboard():
        try:
            key = getpass.getpass(f"API key of {name}: ")
        except EOFError:  # ctrl+d
            key = ""
    else:
        key = sys.stdin.readline() if sys.stdin else ""
    if not key.strip():
        raise ConfigError("No key was given; nothing was stored.")
    return checked_key(key.strip(), "key that was given")


def _has_keyboard() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _logout(models: Models, settings: Settings, options: argparse.Namespace) -> int:
    removed = remove_entry(models.auth.path, options.provider)
    say(f"{'Removed from' if removed else 'No key of ' + options.provider + ' is in'} {models.auth.path}.")
    if source := models.key_source(options.provider):
        say(f"Still used: {source}.")
    return 0 if removed else 1


# ------------------------------------------------------------------ list, check


def _list(models: Models, settings: Settings, options: argparse.Namespace) -> int:
    for provider in _keyed(models):
        say(f"{provider.id}: {models.key_source(provider.id)}")
    return 0


def _keyed(models: Models) -> list[Provider]:
    """The providers that have a key. Raises `ConfigError` if there is none."""
    found = [each for each in models.providers if not each.keys.keyless and models.key_source(each.id)]
    if not found:
        raise ConfigError("No key was found for any provider: `pi-trio auth login PROVIDER` stores one.")
    return found


def _check(models: Models, settings: Settings, options: argparse.Namespace) -> int:
    providers = [models.provider(name) for name in options.providers] or _keyed(models)
    outcomes: dict[str, str | None] = {}
    trio.run(_ask_all, models, providers, settings.http_proxy, outcomes)
    for provider in providers:
        problem = outcomes[provider.id]
        say(f"{provider.id}: {problem or 'accepted'} ({models.key_source(provider.id) or 'no key'})")
    return 1 if any(outcomes.values()) else 0


async def _ask_all(
    models: Models, providers: Sequence[Provider], proxy: str | None, outcomes: dict[str, str | None]
) -> None:
    async def ask(provider: Provider) -> None:
        outcomes[provider.id] = await _problem(models, provider, proxy)

    async with trio.open_nursery() as nursery:
        for provider in providers:
            nursery.start_soon(ask, provider)


async def _problem(models: Models, provider: Provider, proxy: str | None) -> str | None:
    """What is wrong with the provider's key; None if the provider takes it."""
    if not can_list(provider.api):
        return f"cannot be checked, since it speaks {provider.api!r}"
    try:
        credential = await models.auth.resolve(provider.keys)
        await check_key(provider.id, provider.api, provider.base_url, credential, proxy)
    except PiError as error:
        return str(error)
    return None


# ------------------------------------------------------------------ import


def _import_pi(models: Models, settings: Settings, options: argparse.Namespace) -> int:
    folder = absolute(options.source) if options.source else find_pi_dir()
    source = folder / "auth.json"
    if source.resolve() == models.auth.path.resolve():
        raise ConfigError(f"{source} is the file that is used already.")
    outcomes = copy_keys(source, models.auth.path)
    if not outcomes:
        raise ConfigError(f"There are no keys in {source}.")
    for provider, outcome in outcomes.items():
        say(f"{provider}: {outcome}")
    return 0
