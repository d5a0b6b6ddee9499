"""What the model button says while the model is unloaded."""

import asyncio

from PySide6.QtWidgets import QAbstractButton

from qwendesk.engine.state import Phase
from tests.window_desk import Desk


async def test_it_says_that_chats_are_kept_ready_while_an_unload_waits_for_that(desk: Desk) -> None:
    may_go_on = asyncio.Event()
    desk.parts.engine.before_unload = may_go_on.wait
    desk.click("model.eject")
    await desk.until(lambda: desk.text_of("model.button") == "Keeping your chats ready…")
    assert desk.parts.engine.state.phase is Phase.READY
    may_go_on.set()
    await desk.until(lambda: desk.text_of("model.button") == "Choose a model")


async def test_it_is_said_while_another_model_replaces_the_loaded_one(desk: Desk) -> None:
    may_go_on, said = asyncio.Event(), []
    desk.parts.engine.before_unload = may_go_on.wait
    desk.parts.engine.subscribe(lambda _state: said.append(desk.text_of("model.button")))
    desk.window.load_demo()
    await desk.until(lambda: desk.text_of("model.button") == "Keeping your chats ready…")
    may_go_on.set()
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.OFF or said[-1].startswith("Loading"))
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.READY)
    assert desk.text_of("model.button").startswith("Built-in demo")


async def test_an_error_while_chats_are_saved_does_not_leave_the_text(desk: Desk) -> None:
    async def fail() -> None:
        raise OSError("the disk is gone")

    desk.parts.engine.before_unload = fail
    failed: list[str] = []
    desk.parts.tasks.failed.connect(lambda title, _sentence: failed.append(title))
    desk.find("model.eject", QAbstractButton).click()
    await desk.until(lambda: bool(failed))
    assert desk.text_of("model.button") != "Keeping your chats ready…"
