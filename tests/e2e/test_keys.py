"""What the model's commands can find out about keys."""

from __future__ import annotations

import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only /proc shows other environments")

SECRET = "s-e-c-r-e-t"


def test_commands_cannot_read_the_keys_of_the_program(program, stub) -> None:
    """SE-07: neither of their own environment nor in that of the program that runs them."""
    program.environ |= {
        "ANTHROPIC_API_KEY": SECRET,
        "OTHER_AUTH_TOKEN": SECRET,
        "KEPT": "kept-1",
        "LAST_API_KEY": SECRET,
    }
    stub.calls(
        ("bash", {"command": "env; tr '\\0' '\\n' </proc/$PPID/environ; cat /proc/$PPID/environ | wc -c"})
    )
    stub.says("Done.")
    settings = {"defaultProvider": "stub", "defaultModel": "m", "gate": {"allow": ["bash"]}}
    program.write("settings.json", settings)
    done = program.run("--mode", "json", "-p", "go")
    assert done.returncode == 0
    (result,) = [each for each in stub.requests[-1]["messages"] if each["role"] == "tool"]
    assert result["content"].count("KEPT=kept-1") == 2
    assert "ANTHROPIC_API_KEY=" in result["content"]
    assert SECRET not in done.stdout


def test_the_program_still_has_its_key(program, stub) -> None:
    """SE-07"""
    program.environ["STUB_API_KEY"] = SECRET
    models = {
        "providers": {
            "stub": {
                "baseUrl": stub.url,
                "apiKey": "$STUB_API_KEY",
                "api": "openai-completions",
                "models": [{"id": "m"}],
            }
        }
    }
    program.write("models.json", models)
    stub.says("Hello.")
    done = program.run("-p", "go")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello.\n", "")
    assert stub.keys == [f"Bearer {SECRET}"]
