"""The form of the settings, over real files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from textual import events

from pi_tui.screens.settings import SettingsScreen

pytestmark = pytest.mark.asyncio


class Form:
    """The form on a screen, and the files behind it."""

    def __init__(self, screen, folder: Path) -> None:
        self.screen = screen
        self.files = {"global": folder / "settings.json", "project": folder / ".pi" / "settings.json"}
        screen._runtimes[0].setting_files = self.files

    def says(self, scope: str = "global"):
        path = self.files[scope]
        return json.loads(path.read_text()) if path.exists() else None

    async def open(self, search: str, *, key: str = "f2") -> None:
        await self.screen.press(key)
        await self.screen.until(lambda: isinstance(self.screen.app.screen, SettingsScreen))
        await self.screen.press(*search)
        await self.screen.until(self.screen.sees(f"· {search}"))


@pytest.mark.key("app.settings")
async def test_a_number_is_written_and_a_wrong_one_said_at_its_row(open_screen, tmp_path):
    async with open_screen() as screen:
        form = Form(screen, tmp_path)
        await form.open("maxpar", key="f2")
        assert "› maxParallelToolCalls" in screen.text()
        assert "how many tool calls run at once" in screen.text()
        await screen.press("enter", "backspace", "backspace", "0", "enter")
        await screen.until(screen.sees("✗ maxParallelToolCalls must be a whole number, 1 or more"))
        assert form.says() is None
        await screen.press("backspace", "5", "enter")
        await screen.until(lambda: form.says() == {"maxParallelToolCalls": 5})
        await screen.until(screen.sees("yours"))
        await screen.press("delete")
        await screen.until(lambda: form.says() == {})
        await screen.press("escape")
        await screen.until(lambda: screen.log == ["reload"])
        await screen.until(screen.sees("The settings are saved and hold from now on."))


async def test_a_flag_is_switched_and_a_choice_is_chosen(open_screen, tmp_path):
    async with open_screen() as screen:
        form = Form(screen, tmp_path)
        await form.open("recordstream")
        await screen.press("enter")
        await screen.until(lambda: form.says() == {"recordStream": False})
        await screen.press(*["backspace"] * 12, *"gate.mode")
        await screen.until(screen.sees("› gate.mode"))
        await screen.press("enter")
        await screen.until(screen.sees("› auto"))
        await screen.press("down", "enter")
        await screen.until(lambda: form.says() == {"recordStream": False, "gate": {"mode": "ask"}})


async def test_a_folder_has_settings_of_its_own_and_not_all_of_them(open_screen, tmp_path):
    async with open_screen() as screen:
        form = Form(screen, tmp_path)
        await form.open("retry.enabled")
        await screen.press("tab", "enter")
        await screen.until(screen.sees("this folder's settings"))
        await screen.until(lambda: form.says("project") == {"retry": {"enabled": False}})
        await screen.until(screen.sees("folder"))
        assert form.says() is None
        await screen.press(*["backspace"] * 13, *"defaultprojecttrust")
        await screen.until(screen.sees("› defaultProjectTrust"))
        await screen.press("enter")
        await screen.until(screen.sees("✗ defaultProjectTrust cannot be set for a folder"))


async def test_what_was_written_is_left_with_escape_and_nothing_is_changed(open_screen, tmp_path):
    async with open_screen() as screen:
        form = Form(screen, tmp_path)
        await form.open("shellpath")
        await screen.press("enter", *"/bin/zsh", "escape")
        await screen.until(screen.sees("letters search"))
        await screen.press("escape")
        await screen.until(lambda: screen.app.screen is screen.main)
        assert form.says() is None
        assert screen.log == []


async def test_a_file_that_is_not_json_is_left_as_it_is(open_screen, tmp_path):
    async with open_screen() as screen:
        form = Form(screen, tmp_path)
        await form.open("recordstream")
        form.files["global"].write_text("{broken")
        await screen.press("enter")
        await screen.until(screen.sees("settings.json is not changed"))
        assert form.files["global"].read_text() == "{broken"


@pytest.mark.command("settings")
async def test_the_command_opens_the_form(open_screen, tmp_path):
    async with open_screen() as screen:
        Form(screen, tmp_path)
        await screen.send("/settings")
        await screen.until(lambda: isinstance(screen.app.screen, SettingsScreen))
        await screen.press("escape")
        await screen.until(lambda: screen.app.screen is screen.main)
        await screen.send("/settings retry.maxRetries")
        await screen.until(screen.sees("how often at most"))


@pytest.mark.parametrize("keys", ["f2 f2", "f2 x", "ctrl+s down", "ctrl+s x"])
async def test_a_key_that_comes_before_the_parts_of_a_dialog_breaks_nothing(open_screen, keys):
    async with open_screen() as screen:
        for key in keys.split():
            screen.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await screen.until(lambda: len(screen.app.screen_stack) > 1)
        await screen.pilot.pause()
        assert screen.app.return_code is None
