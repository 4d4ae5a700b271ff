"""Small figures in words: durations, sizes, money, ages."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.cells import cell_len

from pi_trio.text import plural

__all__ = ["age", "clock", "duration", "in_rows", "money", "plural", "short_path", "tokens"]


def duration(seconds: float) -> str:
    """`14 ms`, `2.1s`, `42s`, `3m10s`, `1h05m`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    if not minutes:
        return f"{rest}s"
    hours, minutes_left = divmod(minutes, 60)
    return f"{hours}h{minutes_left:02}m" if hours else f"{minutes}m{rest:02}s"


def clock(seconds: float) -> str:
    """Elapsed time that is still running: `0:42`."""
    minutes, rest = divmod(max(int(seconds), 0), 60)
    return f"{minutes}:{rest:02}"


def tokens(count: int) -> str:
    """`840`, `21k`, `1.2M`."""
    if count < 1000:
        return str(count)
    return f"{count / 1000:.0f}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"


def money(dollars: float) -> str:
    """`$0.00`, `$0.004`, `$0.61`, `$12.30`."""
    return f"${dollars:.3f}" if 0 < dollars < 0.01 else f"${dollars:.2f}"


def age(timestamp: str, now: datetime | None = None) -> str:
    """How long ago an entry was written: `now`, `70m`, `2h`, `3d`; nothing if that is unknown."""
    try:
        then = datetime.fromisoformat(timestamp)
    except ValueError:
        return ""
    minutes = int(((now or datetime.now(UTC)) - then).total_seconds() // 60)
    if minutes < 1:
        return "now"
    if minutes < 100:
        return f"{minutes}m"
    hours = minutes // 60
    return f"{hours}h" if hours < 48 else f"{hours // 24}d"


def in_rows(parts: str, width: int) -> list[str]:
    """Parts with a `·` between them, on as many rows of `width` cells as they need."""
    rows: list[str] = []
    for part in parts.split(" · "):
        longer = f"{rows[-1]} · {part}" if rows else part
        if rows and cell_len(longer) <= width:
            rows[-1] = longer
        else:
            rows.append(part)
    return rows


def short_path(path: str, home: str) -> str:
    """A path with `~` for the home directory."""
    return "~" + path[len(home) :] if home and (path == home or path.startswith(home + "/")) else path
