"""The tour that the demo model gives: what it says and runs, step by step."""

from __future__ import annotations

from attrs import frozen

__all__ = ["STEPS", "TOUR", "Step"]

TOUR = "Take me on the tour."
"""The prompt that begins it."""


@frozen
class Step:
    """Something to say, and the shell commands that run after it."""

    text: str
    commands: tuple[str, ...] = ()


STEPS = (
    Step(
        "# Two minutes\n\n"
        "I am the **demo model**: no key, no network, no cost. The tools I use are real.\n\n"
        "**Tools run side by side.** Two commands run now. Each has one line here; `ctrl+o` unfolds "
        "them all, and `f3` opens the pane with their whole output.\n\n",
        ("ls", "for step in one two three four; do echo step $step; sleep 0.5; done"),
    ),
    Step(
        "**Esc stops, always.** The next command would take twenty seconds. Press `esc` now and see that "
        "nothing of it is left; then press `enter` on the empty prompt, and I go on.\n\n"
        "Or write something meanwhile: `enter` says it to me before my next step, `tab` has it wait "
        "until I am done, and `↑` edits what waits.\n\n",
        ("sleep 20",),
    ),
    Step(
        "**Nothing is lost.** Every prompt is a place in a tree.\n\n"
        "- `ctrl+t`, then `↑` and `b`: change an earlier prompt, as a new branch; `-` goes back\n"
        "- `f` in the tree: go on from there in a session of its own, while this one works on\n"
        "- `ctrl+s`: all sessions, also those that run now; `f6` shows the next open one\n\n"
        "**The prompt** completes `/` commands and `@` files, `!` runs a command of yours, and "
        "`ctrl+g` opens your editor.\n\n"
        "**A real model**: `/login` stores a key, `/model` chooses, and models that Ollama, llama.cpp or "
        "LM Studio serve are found by themselves. `?` shows every key.\n\n"
        "That was the tour. `ctrl+n` begins a new session.\n"
    ),
)
