"""What went wrong, in a sentence for the model."""

from __future__ import annotations

import errno

from pi_trio.errors import PiError

__all__ = ["ToolError", "check_text", "explain"]

_SENTENCES = {
    errno.ENOENT: "there is no such file or folder",
    errno.EACCES: "permission denied",
    errno.EPERM: "not permitted",
    errno.EISDIR: "it is a folder",
    errno.ENOTDIR: "it is not a folder, or a part of its path is none",
    errno.ELOOP: "its links run in a circle",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ENOSPC: "the disk is full",
    errno.EROFS: "the file system is read-only",
    errno.E2BIG: "it is too long; put it into a file first",
}


class ToolError(PiError):
    """A tool could not do what it was asked. The text goes to the model; the turn goes on."""


def explain(error: OSError, subject: str) -> ToolError:
    """The system's refusal to handle `subject`, such as a path."""
    reason = _SENTENCES.get(error.errno or 0) or error.strerror or str(error)
    return ToolError(f"{subject}: {reason}.")


def check_text(text: str, what: str) -> None:
    """Raise `ToolError` for text that no file name and no command can hold."""
    if "\0" in text:
        raise ToolError(f"The {what} contains a NUL character.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ToolError(f"The {what} contains half of a surrogate pair.") from None
