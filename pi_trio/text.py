"""Untrusted text on its way to a terminal.

What a model, a tool, a file or a session wrote may drive the terminal or hide what it says.
`sanitise` is the one place that takes this away. It is for display only: models and files
get the original.
"""

from __future__ import annotations

import re

__all__ = ["plural", "printed", "sanitise", "settled", "without_controls"]

TAB_WIDTH = 4

_SUSPECT = re.compile(
    "["
    "\x00-\x09\x0b-\x1f\x7f-\x9f"  # C0 without line feed, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional controls
    "\u180e\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"  # invisible
    "\ud800-\udfff"  # lone surrogates, which no terminal can be sent
    "\U000e0000-\U000e007f"  # invisible tags, which spell words that only a model reads
    "]"
)

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")

_PLAIN = "[^\x00-\x1f\x7f-\x9f]*"  # inside a control string; stopping at controls keeps this linear
_STYLE = re.compile(
    "(?:\x1b\\[|\x9b)(?:[0-9;:]*m|[0-2]?K)"  # colours, erase in line
    f"|(?:\x1b\\]|\x9d)8;{_PLAIN}(?:\x07|\x1b\\\\|\x9c)"  # link targets
    "|\x1b[()][0-9A-Za-z]"  # character sets
)
_SEQUENCE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI, also unfinished
    f"|(?:\x1b[PX\\]^_]|[\x90\x98\x9d-\x9f]){_PLAIN}(?:\x07|\x1b\\\\|\x9c)"  # OSC, DCS, APC, PM, SOS
    "|\x1b[PX\\]^_]"  # … without an end: the text after it stays visible
    "|\x1b[ -/]*[0-~]?"  # any other, or ESC alone
)
_LINE_END = re.compile("(?<!\r)\r++(?=\n|\\Z)")
_OVERSTRUCK = re.compile("[^\x08\n]\x08")  # how manual pages print bold


def sanitise(text: str, *, keep_newlines: bool = True, show_all: bool = False) -> str:
    """`text` without anything that acts on a terminal or deceives its reader.

    Colours, line erasing and link targets vanish, and carriage returns before a line end; other
    sequences become one `␛`. Controls are shown as their pictures, invisible characters as
    `<U+202E>`, half characters as `�`; tabs become spaces. With `keep_newlines` false the result
    is one line. With `show_all` nothing vanishes, for text that a person approves: every control
    is a mark and what follows stays.
    """
    if _SUSPECT.search(text):
        text = _SUSPECT.sub(_mark, text if show_all else _plain(text))
    return text if keep_newlines else text.replace("\n", "⏎")


def settled(output: str) -> str:
    """What a command printed, as it stood in the end: overstriking and rewriting have had their effect.

    Only for what was meant for a terminal: of any other text this would hide a part. To be
    followed by `sanitise`.
    """
    if not _SUSPECT.search(output):
        return output
    output = _OVERSTRUCK.sub("", _STYLE.sub("", output))
    return "\n".join(map(_last_state, output.split("\n"))) if "\r" in output else output


def printed(tool_name: str, output: str) -> str:
    """The output of a tool, `settled` if it runs commands. Of a file, say, everything is worth seeing."""
    return settled(output) if tool_name == "bash" else output


def without_controls(text: str) -> str:
    """`text` for keeping, as a terminal would have left it: of controls only tabs and line feeds."""
    if not _SUSPECT.search(text):
        return text
    return _CONTROL.sub("", settled(_SEQUENCE.sub("", _STYLE.sub("", text))))


def _plain(text: str) -> str:
    text = _SEQUENCE.sub("␛", _STYLE.sub("", text))
    return _LINE_END.sub("", text).expandtabs(TAB_WIDTH)


def _last_state(line: str) -> str:
    """What a progress bar left on its line."""
    return line.rstrip("\r").rpartition("\r")[2]


def _mark(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if 0xD800 <= code <= 0xDFFF:
        return "�"
    return f"<U+{code:04X}>"


def plural(count: float, noun: str) -> str:
    """`1 tool`, `3 tools`, `2.5 seconds`, `4 entries`."""
    number = f"{count:g}" if isinstance(count, float) else str(count)
    many = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number} {noun if count == 1 else many}"
