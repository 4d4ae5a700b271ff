"""What an API key looks like, so that one that is pasted in the wrong place goes no further."""

from __future__ import annotations

import re

__all__ = ["find_key"]

_SHAPES = {
    "anthropic": r"sk-ant-[\w-]{16,}",
    "openrouter": r"sk-or-[\w-]{16,}",
    "openai": r"sk-(?:proj|svcacct|admin)-[\w-]{16,}",
    "google": r"AIza[\w-]{35}",
    "groq": r"gsk_[A-Za-z0-9]{20,}",
    "xai": r"xai-[A-Za-z0-9]{20,}",
    "cerebras": r"csk-[A-Za-z0-9]{20,}",
    "huggingface": r"hf_[A-Za-z0-9]{20,}",
    "": r"sk-(?=[a-z]*[A-Z\d])[A-Za-z0-9]{24,}",  # several providers have these
}
_KEY = re.compile(
    r"(?<![\w-])(?:" + "|".join(f"(?P<k{at}>{shape})" for at, shape in enumerate(_SHAPES.values())) + ")"
)


def find_key(text: str) -> tuple[str, str] | None:
    """The first thing in `text` that looks like an API key, and whose it is, if its form tells; or None."""
    found = _KEY.search(text)
    if found is None or found.lastgroup is None:
        return None
    return found[0], list(_SHAPES)[int(found.lastgroup[1:])]
