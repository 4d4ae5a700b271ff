"""`pi-trio models`: which models there are, what they take and cost, and asking providers anew."""

from __future__ import annotations

import argparse
import fnmatch
from collections.abc import Iterable, Iterator, Sequence

import trio

from pi_trio.cli.options import add_command, make_parser
from pi_trio.cli.with_extensions import with_extensions
from pi_trio.cli.words import say, tell
from pi_trio.codec import dumps, to_json
from pi_trio.errors import ConfigError, PiError
from pi_trio.llm.catalogue import built_in_date, read_listed
from pi_trio.llm.listing import can_list
from pi_trio.llm.protocol import Model
from pi_trio.llm.registry import Models
from pi_trio.resources.paths import find_agent_dir
from pi_trio.resources.settings import load_settings
from pi_trio.text import plural

__all__ = ["run"]

_LOOK_FOR = 1.0
"""Seconds that local servers have here, where a person asked."""


def run(argv: Sequence[str]) -> int:
    """Do what the arguments after `models` say. Returns the exit status; raises `PiError`."""
    options = _parser().parse_args(argv)
    models = Models(find_agent_dir())
    for finding in models.findings:
        tell(str(finding))
    status: int = options.act(models, options)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("pi-trio models", "Look up the models that can be asked, and those that could be.")
    parser.set_defaults(act=_list, pattern=None, all=False, json=False)
    acts = parser.add_subparsers(metavar="COMMAND", help="default: list")
    listing = add_command(acts, "list", "list models that have a key, and those of servers on this machine")
    listing.add_argument("pattern", nargs="?", metavar="PATTERN", help="part of a name, or `provider/*`")
    listing.add_argument("--all", action="store_true", help="list also those without a key")
    listing.add_argument(
        "--json", action="store_true", help="print one JSON object a line, in the form of models.json"
    )
    listing.set_defaults(act=_list)
    search = add_command(acts, "search", "list all known models with these words in their name")
    search.add_argument("pattern", metavar="WORDS", help="part of a name, or `provider/*`")
    search.add_argument(
        "--json", action="store_true", help="print one JSON object a line, in the form of models.json"
    )
    search.set_defaults(act=_list, all=True)
    refresh = add_command(acts, "refresh", "ask providers which models they have now")
    refresh.add_argument("providers", nargs="*", metavar="PROVIDER", help="default: all that have a key")
    refresh.set_defaults(act=_refresh)
    return parser


# ------------------------------------------------------------------ list, search


def _list(models: Models, options: argparse.Namespace) -> int:
    return trio.run(_list_all, models, options)


async def _list_all(models: Models, options: argparse.Namespace) -> int:
    async with with_extensions(models) as furnished:
        await furnished.discover(_LOOK_FOR)
        return _show(furnished, options)


def _show(models: Models, options: argparse.Namespace) -> int:
    known = models.all() if options.all else models.available()
    chosen = [model for model in known if _matches(model, options.pattern or "")]
    if not chosen:
        tell(f"no model is called {options.pattern!r}")
        return 1
    if options.json:
        for model in chosen:
            say(dumps(to_json(model)).decode())
    else:
        for line in [*_table(models, chosen), "", _dates(models)]:
            say(line)
    return 0


def _matches(model: Model, pattern: str) -> bool:
    """Whether all words of the pattern are in the name, or the reference is of its shape."""
    wanted, name = pattern.lower(), f"{model.reference} {model.name}".lower()
    if "*" in wanted or "?" in wanted:
        return fnmatch.fnmatchcase(model.reference.lower(), wanted)
    return all(word in name for word in wanted.split())


def _table(models: Models, chosen: Iterable[Model]) -> Iterator[str]:
    sources = {provider.id: models.key_source(provider.id) or "no key" for provider in models.providers}
    rows = [("MODEL", "CONTEXT", "ANSWER", "PRICE PER MILLION", "ABLE TO", "KEY")]
    rows += [
        (
            model.reference,
            _size(model.context_window),
            _size(model.max_tokens),
            _price(model),
            " ".join(_abilities(model)) or "-",
            sources[model.provider],
        )
        for model in chosen
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _size(tokens: int) -> str:
    return f"{tokens / 1e6:.3g}M" if tokens >= 1_000_000 else f"{tokens / 1000:.3g}k"


def _price(model: Model) -> str:
    if model.cost is None:
        return "unknown"
    if not model.cost.input and not model.cost.output:
        return "free"
    return f"${model.cost.input:g} in, ${model.cost.output:g} out"


def _abilities(model: Model) -> Iterator[str]:
    if model.reasoning:
        yield "think"
    if "image" in model.input:
        yield "see"


def _dates(models: Models) -> str:
    listed = read_listed(models.listed_path)
    lists = "".join(f" {name} was asked on {each.date[:10]}." for name, each in sorted(listed.items()))
    return f"Limits and prices are of {built_in_date()}.{lists} `pi-trio models refresh` asks the providers."


# ------------------------------------------------------------------ refresh


def _refresh(models: Models, options: argparse.Namespace) -> int:
    names = options.providers or [
        each.id
        for each in models.providers
        if not each.keys.keyless and can_list(each.api) and models.key_source(each.id)
    ]
    if not names:
        raise ConfigError("No key was found for any provider: `pi-trio auth login PROVIDER` stores one.")
    settings, _ = load_settings(models.path.with_name("settings.json"))
    return trio.run(_refresh_all, models, names, settings.http_proxy)


async def _refresh_all(models: Models, names: Sequence[str], proxy: str | None) -> int:
    failed = False
    for name in names:
        try:
            say(f"{name}: {plural(await models.refresh(name, proxy), 'model')}")
        except PiError as error:
            failed = True
            say(f"{name}: {error}")
    return 1 if failed else 0
