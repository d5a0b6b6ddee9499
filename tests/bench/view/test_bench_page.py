"""The Bench page: three questions, and earlier results."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QWidget

from tests.bench.view.conftest import BenchDesk

CTRL = Qt.KeyboardModifier.ControlModifier


async def test_ctrl_4_opens_three_questions_which_say_that_a_model_is_missing(desk: BenchDesk) -> None:
    desk.window.go_to("chat")

    desk.press(Qt.Key.Key_4, CTRL)

    assert desk.window.page == "bench"
    assert "Choose a model" in desk.text_of("bench.model")
    assert not desk.find("bench.speed", QAbstractButton).isEnabled()
    assert not desk.find("bench.tune", QAbstractButton).isEnabled()
    assert desk.find("bench.compare", QAbstractButton).isEnabled()
    assert not desk.is_shown("bench.results")


async def test_a_question_is_answered_and_its_result_found_again(desk: BenchDesk) -> None:
    await desk.load_demo()
    await desk.until(lambda: desk.find("bench.speed", QAbstractButton).isEnabled())
    assert desk.text_of("bench.time") == "" or "about" in desk.text_of("bench.time")

    desk.click("bench.speed")
    await desk.until(lambda: desk.is_shown("bench.headline"))
    await desk.parts.engine.wait_until_settled()
    desk.click("bench.speed.back")

    assert desk.window.focusWidget() is desk.find("bench.speed", QAbstractButton)
    assert desk.text_of("bench.result.0").startswith("75 words a second (100 tok/s): 19 times as fast as you read · ")
    desk.click("bench.show.0")
    assert desk.is_shown("bench.headline")


async def test_every_section_is_reached_and_left_by_keyboard(desk: BenchDesk) -> None:
    for key in ("compare", "quality", "pc"):
        desk.find(f"bench.{key}", QAbstractButton).setFocus()
        desk.press(Qt.Key.Key_Space)
        assert desk.window.focusWidget() is desk.find(f"bench.{key}.back", QWidget)
        desk.press(Qt.Key.Key_Space)
        assert desk.window.focusWidget() is desk.find(f"bench.{key}", QWidget)


@pytest.mark.usefixtures("pages_in_steps")
async def test_a_question_is_answered_although_its_section_has_yet_to_be_built(desk: BenchDesk) -> None:
    await desk.load_demo()
    await desk.until(lambda: desk.has("bench.speed") and desk.find("bench.speed", QAbstractButton).isEnabled())

    desk.click("bench.speed")

    assert not desk.is_shown("bench.stop")
    await desk.until(lambda: desk.is_shown("bench.headline"))
    await desk.parts.engine.wait_until_settled()


@pytest.mark.usefixtures("pages_in_steps")
async def test_the_keyboard_goes_on_in_a_section_once_it_is_built(desk: BenchDesk) -> None:
    await desk.until(lambda: desk.has("bench.compare"))
    for key in ("compare", "quality", "pc"):
        desk.find(f"bench.{key}", QAbstractButton).setFocus()
        desk.press(Qt.Key.Key_Space)
        assert not desk.has(f"bench.{key}.back")
        await desk.until(lambda key=key: desk.has(f"bench.{key}.back"))  # type: ignore[misc]
        await desk.until(lambda key=key: desk.find(f"bench.{key}.back", QWidget).hasFocus())  # type: ignore[misc]
        desk.press(Qt.Key.Key_Space)
        assert desk.window.focusWidget() is desk.find(f"bench.{key}", QWidget)
