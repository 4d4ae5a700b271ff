"""What a person is told of an extension that failed: the file, the line, the reason."""

from __future__ import annotations

import traceback
from pathlib import Path

__all__ = ["FAILURES", "describe"]

FAILURES = (Exception, SystemExit)
"""What an extension may raise without harm: a script that ends "the program" is one, too."""


def describe(error: BaseException, path: str) -> str:
    """One sentence that names the place in the extension's own files, wherever it was raised from."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"the extension {_place(error, path)} failed: {reason}"


def _place(error: BaseException, path: str) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    file = Path(path)
    folder = file.parent if file.name == "__init__.py" else None
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename == path or (folder is not None and folder in Path(frame.filename).parents):
            return f"{frame.filename}:{frame.lineno}"
    return path
