"""Each chat keeps its settings, and new chats take over the preset, after a restart too."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from qwendesk.core.chats import ChatSettings
from tests.window_desk import Desk


async def opened(desk: Desk, folder: Path) -> Desk:
    desk.parts.chats.start(folder)
    await desk.until(lambda: desk.parts.chats.services.chat_list.state.value.is_loaded)
    return desk


async def restarted(desk: Desk, make_desk: Callable[[], Desk], folder: Path) -> tuple[Desk, Path]:
    """Another window on what is on the disk, not opened yet; the first ends with the test."""
    await desk.parts.chats.services.chat_list.wait_for_writes()
    copy = folder.with_name(folder.name + "-again")
    await asyncio.to_thread(shutil.copytree, folder, copy)
    return make_desk(), copy


async def test_all_settings_are_restored(
    qt_loop: asyncio.Runner, make_desk: Callable[[], Desk], tmp_path: Path
) -> None:
    desk = await opened(make_desk(), tmp_path)
    await desk.load_demo()
    chosen = ChatSettings(
        preset="custom", preset_name="Mine", preset_values={"temperature": "0.3", "stop": "END;"}
    )  # fmt: skip
    whole = msgspec.structs.replace(
        chosen, thinking=False, overrides={"thinking_budget": "512", "top_k": "7"}, system_prompt="Be kind.",
        json_schema='{"type": "object"}',
    )  # fmt: skip
    desk.parts.chat.change_settings(whole)
    await desk.ask("First")
    answered = desk.parts.chat.settings
    assert answered.model, "the model that answered is kept too"
    original, turn = desk.parts.chat.chat_id, desk.parts.chat.conversation.turns[0]
    desk.parts.chat.branch(turn.id)
    branched = msgspec.structs.replace(answered, branched_from=original, branched_at=turn.answer_id)
    assert desk.parts.chat.settings == branched
    desk.parts.chat.new_chat()
    assert desk.parts.chat.settings == chosen, "the preset, not what was changed for one chat"
    desk, folder = await restarted(desk, make_desk, tmp_path)
    await opened(desk, folder)
    await desk.until(lambda: desk.parts.chat.settings == chosen)
    await desk.load_demo()
    assert desk.text_of("composer.preset") == "Mine"
    assert "On" in desk.text_of("composer.thinking")
    (first, second) = desk.parts.chats.services.chat_list.chats.summaries
    for chat_id in (first, second):
        await desk.parts.chats.services.chat_list.open(chat_id)
        await desk.until(lambda chat_id=chat_id: desk.parts.chats.services.chat_list.current_id == chat_id)
        assert desk.parts.chat.settings == (answered if chat_id == original else branched)


async def test_settings_changed_while_the_store_opens_are_kept(
    qt_loop: asyncio.Runner, make_desk: Callable[[], Desk], tmp_path: Path
) -> None:
    desk = await opened(make_desk(), tmp_path)
    desk.parts.chat.set_style("precise")
    desk, folder = await restarted(desk, make_desk, tmp_path)
    desk.window.chat_page.toggle_thinking()
    await opened(desk, folder)
    await desk.parts.chats.services.chat_list.wait_for_writes()
    assert desk.parts.chat.settings == ChatSettings(thinking=False)
