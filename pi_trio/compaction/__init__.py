"""Making room in the context: sizes, pruning, summaries, and what to do about an overflow.

Everything here is a function of a session's branch, except that summaries are asked for
through a coroutine that the caller gives. Nothing here writes: entries are made, and the
caller appends them.
"""
