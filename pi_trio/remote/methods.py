"""What a client may ask of a runtime: the methods of the interface, from their signatures.

Names and fields on the wire are those of the methods, in camelCase. A method that is added
to `Runtime` can be asked for at once.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, Union

import attrs
from attrs import frozen

from pi_trio import errors
from pi_trio.codec import from_json, json_name, to_json
from pi_trio.collector import paused_collector
from pi_trio.errors import PiError, ProviderError, UsageError
from pi_trio.llm.protocol import Failure, Model
from pi_trio.remote.interface import Runtime, Snapshot
from pi_trio.remote.offers import CompletesFiles, LooksAround, SessionShelf
from pi_trio.resources.trust import Trust
from pi_trio.session.tree import EntryHead

__all__ = [
    "METHODS",
    "Method",
    "Served",
    "decode_snapshot",
    "encode_snapshot",
    "error_from_json",
    "error_to_json",
]

Decode: TypeAlias = Callable[[Any], Any]


class Served(Runtime, CompletesFiles, LooksAround, SessionShelf, Protocol):
    """What a server has: a runtime, and what only one that has files can do. Its keys are its own."""

    async def import_pi(self, *, dry_run: bool) -> Sequence[str]:
        """Bring over what pi has on the server."""


# ------------------------------------------------------------------ values


def encode_snapshot(snapshot: Snapshot) -> dict[str, Any]:
    """The JSON object of a snapshot. There may be very many heads, so each is an array."""
    data: dict[str, Any] = to_json(attrs.evolve(snapshot, heads=(), model=_without_headers(snapshot.model)))
    data["heads"] = [(head.id, head.parent_id, head.type, head.detail) for head in snapshot.heads]
    return data


def decode_snapshot(data: Mapping[str, Any]) -> Snapshot:
    """The snapshot of a JSON object. Raises `ValueError` or `TypeError` for a damaged one."""
    with paused_collector():
        heads = tuple(EntryHead(*head) for head in data["heads"])
    return attrs.evolve(from_json(Snapshot, {**data, "heads": []}), heads=heads)


def _encode(value: Any) -> Any:
    if isinstance(value, Snapshot):
        return encode_snapshot(value)
    if isinstance(value, Model):
        return to_json(_without_headers(value))
    if isinstance(value, (list, tuple)):
        return [_encode(each) for each in value]
    if isinstance(value, Trust):
        return {**to_json(value), "resources": [str(path) for path in value.resources]}
    return to_json(value)


def _without_headers(model: Model) -> Model:
    """Headers stay on the server, since they may hold a key."""
    return attrs.evolve(model, headers=None)


def _decode_trust(data: Any) -> Trust:
    trust = from_json(Trust, data)
    return attrs.evolve(trust, resources=tuple(map(Path, trust.resources)))


def _decoder(hint: Any) -> Decode:
    """How to read a value of this annotation. What it makes raises `ValueError` for one that does not fit."""
    if hint in _SPECIAL:
        return _SPECIAL[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return lambda value: _fits(value, value in args, f"one of {', '.join(map(str, args))}")
    if origin in (Union, types.UnionType):
        (inner,) = (_decoder(each) for each in args if each is not type(None))
        return lambda value: None if value is None else inner(value)
    if origin in (list, tuple, Sequence):
        item = _decoder(args[0])
        return lambda value: [item(each) for each in _fits(value, isinstance(value, list), "a list")]
    if origin is Mapping:
        return lambda value: _fits(value, isinstance(value, dict), "an object")
    if attrs.has(hint):
        return lambda value: from_json(hint, _fits(value, isinstance(value, dict), "an object"))
    return lambda value: _fits(value, type(value) is hint, _WORDS[hint])


_SPECIAL: Mapping[Any, Decode] = {
    Any: lambda value: value,
    Snapshot: decode_snapshot,
    Trust: _decode_trust,
}
_WORDS = {str: "a text", int: "a number", bool: "true or false", type(None): "null"}


def _fits(value: Any, fits: bool, what: str) -> Any:
    if not fits:
        raise ValueError(f"must be {what}")
    return value


# ------------------------------------------------------------------ methods


@frozen
class _Parameter:
    name: str
    decode: Decode
    required: bool


@frozen
class Method:
    """A method of the interface, as a command and its response."""

    name: str
    parameters: Mapping[str, _Parameter]
    _signature: inspect.Signature
    _result: Decode

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Method:
        """The method that a function of the interface declares."""
        hints, signature = typing.get_type_hints(function), inspect.signature(function)
        declared = list(signature.parameters.values())[1:]
        parameters = {
            json_name(each.name): _Parameter(
                each.name, _decoder(hints[each.name]), each.default is each.empty
            )
            for each in declared
        }
        return cls(function.__name__, parameters, signature, _decoder(hints["return"]))

    def fields(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of the command for a call with these arguments."""
        bound = self._signature.bind(None, *arguments, **keywords).arguments
        return {json_name(name): to_json(value) for name, value in list(bound.items())[1:]}

    async def run(self, runtime: Served, fields: Mapping[str, Any]) -> Any:
        """Do what a command says. Gives the data of the response; raises `PiError`s."""
        return _encode(await getattr(runtime, self.name)(**self._arguments(fields)))

    def result(self, data: Any) -> Any:
        """What the method gives, by the data of its response. Raises `ValueError` if it cannot be."""
        return self._result(data)

    def _arguments(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for key, parameter in self.parameters.items():
            if key not in fields:
                if parameter.required:
                    raise UsageError(f"`{key}` is missing.")
                continue
            try:
                given[parameter.name] = parameter.decode(fields[key])
            except ValueError as error:
                raise UsageError(f"`{key}`: {error}.") from error
        return given


_LOCAL = frozenset({"subscribe", "unsubscribe"})
"""What is done with an outbox, which stays where it is."""

METHODS: Mapping[str, Method] = {
    name: Method.of(function)
    for name, function in inspect.getmembers(Served, inspect.iscoroutinefunction)
    if not name.startswith("_") and name not in _LOCAL
}


# ------------------------------------------------------------------ errors


def error_to_json(error: PiError) -> dict[str, str]:
    """What a response says of an error."""
    return {"error": str(error), "kind": type(error).__name__}


def error_from_json(data: Mapping[str, Any]) -> PiError:
    """The error of a response, of the class that it had, or the nearest one that is known here."""
    message, kind = str(data.get("error")), getattr(errors, str(data.get("kind")), None)
    if kind is ProviderError:
        return ProviderError(Failure(message))
    if isinstance(kind, type) and issubclass(kind, PiError):
        return kind(message)
    return PiError(message)
