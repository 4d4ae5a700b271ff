"""The garbage collector stands aside where much is made that stays: here nearly everything does, and
what does not is freed without it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["paused_collector", "spare_what_is_there"]

FULL_PASSES = 100
"""How many passes over what is young come before one over everything. Python's are 10."""


def spare_what_is_there() -> None:
    """What was made so far stays, and no later pass looks at it; over what comes there are few full ones.

    For programs: modules are made once, and a pass over a whole history costs more than what it
    finds, and holds up keys and tools meanwhile.
    """
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], FULL_PASSES)


@contextmanager
def paused_collector() -> Iterator[None]:
    """For reading a whole session: the collector would look at all of it again and again, for nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
