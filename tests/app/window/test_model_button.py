"""What the model button says while the model is unloaded."""

import asyncio

from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QAbstractButton

from qwendesk.app.window.top_bar import fitting_label
from qwendesk.core.options import LoadOptions
from qwendesk.engine.state import EngineState, Phase
from qwendesk.widgets.theme_keeper import current_theme
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


async def test_only_the_name_is_shortened_and_only_where_there_is_no_room(desk: Desk) -> None:
    """It read "SmolLM2-135M-Instruct.Q4_1…ads with your next message", with free room on both sides."""
    label = "SmolLM2-135M-Instruct.Q4_1 · loads with your next message"
    button = desk.find("model.button", QAbstractButton)
    metrics = QFontMetrics(button.font())
    full = metrics.horizontalAdvance(label)
    assert fitting_label(label, metrics, full) == label
    short = fitting_label(label, metrics, full - 40)
    assert short.endswith(" · loads with your next message")
    assert short.startswith("Smol")
    assert metrics.horizontalAdvance(short) <= full - 40
    assert fitting_label(label, metrics, 150).startswith("SmolLM2-"), "without room for both, the end is cut"

    desk.window.resize(1280, 760)
    desk.window.top_bar.model.show_state(
        EngineState(idle_unloaded=LoadOptions(model="/models/SmolLM2-135M-Instruct.Q4_1.gguf"))
    )
    await desk.until(lambda: button.width() == button.sizeHint().width())
    drawn, room = QFontMetrics(current_theme().font(13)), desk.window.top_bar.model.text_room.width()
    assert fitting_label(button.text(), drawn, room) == label, "the window is wide enough for all of it"


async def test_an_error_while_chats_are_saved_does_not_leave_the_text(desk: Desk) -> None:
    async def fail() -> None:
        raise OSError("the disk is gone")

    desk.parts.engine.before_unload = fail
    failed: list[str] = []
    desk.parts.tasks.failed.connect(lambda title, _sentence: failed.append(title))
    desk.find("model.eject", QAbstractButton).click()
    await desk.until(lambda: bool(failed))
    assert desk.text_of("model.button") != "Keeping your chats ready…"


async def test_it_says_why_the_model_is_unloaded_while_something_is_measured(desk: Desk) -> None:
    button = desk.find("model.button", QAbstractButton)
    await desk.parts.engine.unload_idle()
    assert "next message" in button.toolTip()
    desk.parts.services.measuring.set("The speed test")
    assert "while a measurement needs the memory" in button.toolTip()
    desk.parts.services.measuring.set("")
    assert "next message" in button.toolTip()
