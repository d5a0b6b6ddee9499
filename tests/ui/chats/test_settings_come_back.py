"""What a chat is answered by is kept with it, and what was chosen last holds for new chats, after a restart too."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

from qwendesk.core.chats import ChatSettings
from tests.ui.desk import Desk


async def opened(desk: Desk, folder: Path) -> Desk:
    desk.parts.chats.start(folder)
    await desk.until(lambda: desk.parts.chats.service.is_open)
    return desk


async def restarted(desk: Desk, make_desk: Callable[[], Desk], folder: Path) -> tuple[Desk, Path]:
    """Another window on what is on the disk, not opened yet; the first ends with the test."""
    await desk.parts.chats.service.written()
    copy = folder.with_name(folder.name + "-again")
    await asyncio.to_thread(shutil.copytree, folder, copy)
    return make_desk(), copy


async def test_all_of_it_comes_back(qt_loop: asyncio.Runner, make_desk: Callable[[], Desk], tmp_path: Path) -> None:
    desk = await opened(make_desk(), tmp_path)
    await desk.load_demo()
    chosen = ChatSettings(
        preset="custom", preset_name="Mine", preset_values={"temperature": "0.3", "stop": "END;"}, thinking=False,
        overrides={"thinking_budget": "512", "top_k": "7"},
    )  # fmt: skip
    whole = ChatSettings(
        **{name: getattr(chosen, name) for name in chosen.__struct_fields__}
        | {"system_prompt": "Be kind.", "json_schema": '{"type": "object"}'}
    )
    desk.parts.chat.change_settings(whole)
    await desk.ask("First")
    answered = desk.parts.chat.settings
    assert answered.model, "the model that answered is kept too"
    desk.parts.chat.branch(desk.parts.chat.conversation.turns[0].id)
    assert desk.parts.chat.settings == answered, "a branch goes on as its chat"
    desk.parts.chat.new_chat()
    assert desk.parts.chat.settings == chosen, "how, not what about"
    desk, folder = await restarted(desk, make_desk, tmp_path)
    await opened(desk, folder)
    await desk.until(lambda: desk.parts.chat.settings == chosen)
    await desk.load_demo()
    assert desk.text_of("composer.preset") == "Mine, changed ▾"
    assert "Off" in desk.text_of("composer.thinking")
    (first, second) = desk.parts.chats.service.summaries
    for chat_id in (first, second):
        await desk.parts.chats.service.open(chat_id)
        await desk.until(lambda chat_id=chat_id: desk.parts.chats.service.current_id == chat_id)
        assert desk.parts.chat.settings == answered


async def test_a_choice_made_while_the_file_opens_wins(
    qt_loop: asyncio.Runner, make_desk: Callable[[], Desk], tmp_path: Path
) -> None:
    desk = await opened(make_desk(), tmp_path)
    desk.parts.chat.choose_style("precise")
    desk, folder = await restarted(desk, make_desk, tmp_path)
    desk.parts.chat.toggle_thinking()
    await opened(desk, folder)
    await desk.parts.chats.service.written()
    assert desk.parts.chat.settings == ChatSettings(thinking=False)
