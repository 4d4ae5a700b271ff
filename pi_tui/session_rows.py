"""The rows of the list of sessions: those that are open first, then files, perhaps by their forks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve, frozen

from pi_trio.remote.offers import KeptSession
from pi_tui.open_sessions import State

__all__ = ["SessionRow", "threaded"]


@frozen(kw_only=True)
class SessionRow:
    """A session in the list. `depth` is how many forks it is away from where its thread began."""

    id: str
    title: str
    folder: str
    path: str | None = None
    modified: float = 0.0
    depth: int = 0
    state: State | None = None
    shown: bool = False
    excerpt: str = ""

    @classmethod
    def of(cls, kept: KeptSession) -> SessionRow:
        """A session file."""
        return cls(
            id=kept.id,
            title=kept.name or kept.first_message or "(no messages)",
            folder=kept.cwd,
            path=kept.path,
            modified=kept.modified,
            excerpt=kept.excerpt,
        )


def threaded(kept: Sequence[KeptSession]) -> list[SessionRow]:
    """The sessions by threads: below each one its forks. The thread with the latest message comes first."""
    by_path = {each.path: each for each in kept}
    children: dict[str | None, list[KeptSession]] = {}
    for each in kept:
        parent = each.parent_session if each.parent_session in by_path else None
        children.setdefault(parent, []).append(each)
    rows: list[SessionRow] = []
    latest = _latest(kept, by_path)
    waiting = [(each, 0) for each in _by_age(children.get(None, ()), latest)]
    seen: set[str] = set()
    while waiting:
        each, depth = waiting.pop()
        if each.path in seen:
            continue
        seen.add(each.path)
        rows.append(evolve(SessionRow.of(each), depth=depth))
        waiting += [(child, depth + 1) for child in _by_age(children.get(each.path, ()), latest)]
    return rows + [SessionRow.of(each) for each in kept if each.path not in seen]  # forks in a circle


def _by_age(sessions: Iterable[KeptSession], latest: Mapping[str, float]) -> list[KeptSession]:
    return sorted(sessions, key=lambda each: latest[each.path])


def _latest(kept: Sequence[KeptSession], by_path: Mapping[str, KeptSession]) -> dict[str, float]:
    """The latest message in each session and the forks below it."""
    latest = {each.path: each.modified for each in kept}
    for each in kept:
        at, seen = each, {each.path}
        while (parent := by_path.get(at.parent_session or "")) is not None and parent.path not in seen:
            seen.add(parent.path)
            latest[parent.path] = max(latest[parent.path], each.modified)
            at = parent
    return latest
