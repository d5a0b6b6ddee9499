"""The welcome page: its suggestions fit, and without a model it offers ways to load one."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel

from qwendesk.chat.view.welcome import WelcomePage
from qwendesk.core.options import LoadOptions
from qwendesk.core.translation import install_translator, languages_folder, read_language
from qwendesk.engine.state import EngineState, Phase
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.fakes.gaming_pc import REPORT
from tests.models.view.start_desk import first_start
from tests.window_desk import Desk

MODEL = str(Path("/models/Qwen3.5-9B-Q4_K_M.gguf"))


def chips(welcome: WelcomePage) -> list[QAbstractButton]:
    found = welcome.findChildren(QAbstractButton)
    return [each for each in found if each.objectName().startswith("welcome.suggestion") and each.isVisible()]


def test_no_suggestions_are_shown_without_a_model(keeper: ThemeKeeper, app: QApplication) -> None:
    welcome = WelcomePage()
    welcome.show()

    assert chips(welcome) == []

    welcome.deleteLater()


@pytest.mark.parametrize("width", [360, 700, 1200])
def test_no_suggestion_is_cut_off(keeper: ThemeKeeper, app: QApplication, width: int) -> None:
    welcome = WelcomePage()
    welcome.resize(width, 700)
    welcome.show()

    welcome.show_state(
        EngineState(phase=Phase.READY, requested=LoadOptions(model="/models/Qwen3.5-35B-A3B.gguf"), report=REPORT)
    )
    app.processEvents()

    assert len(chips(welcome)) == 4
    assert all(chip.width() >= chip.sizeHint().width() for chip in chips(welcome))

    welcome.deleteLater()


async def load_and_eject(desk: Desk) -> None:
    desk.window.load_model(MODEL)
    engine = desk.parts.engine
    await desk.until(lambda: engine.state.report is not None and not desk.is_shown("model.demo"))
    desk.click("model.eject")
    await desk.until(lambda: desk.is_shown("welcome.last"))


async def test_last_model_is_loaded_again_in_one_click_after_eject(desk: Desk) -> None:
    await load_and_eject(desk)
    assert "Qwen3.5-9B-Q4_K_M" in desk.text_of("welcome.text")
    assert all(desk.is_shown(name) for name in ("welcome.pick", "welcome.get", "welcome.demo"))
    desk.click("welcome.last")
    await desk.until(lambda: desk.parts.engine.state.report is not None)
    wanted = desk.parts.engine.state.requested
    assert wanted is not None
    assert wanted.model == MODEL
    assert not desk.is_shown("welcome.last")


async def test_message_without_a_model_offers_the_last_one(desk: Desk) -> None:
    await load_and_eject(desk)
    desk.send("Hello")
    desk.click("composer.last")
    await desk.until(lambda: desk.parts.engine.state.report is not None)
    assert desk.composer_text.toPlainText() == "Hello"
    assert not desk.is_shown("composer.notice")


async def test_ejected_demo_leads_back_to_the_first_start(make_desk: Callable[[], Desk]) -> None:
    desk = await first_start(make_desk)
    await desk.load_demo()
    assert not desk.is_shown("start")
    desk.click("model.eject")
    await desk.until(lambda: desk.is_shown("start.demo"))


async def test_start_without_a_load_offers_the_last_model(make_desk: Callable[[], Desk], tmp_path: Path) -> None:
    model = tmp_path / "model.gguf"
    model.write_bytes(b"x")
    desk = make_desk()
    desk.window.load_model(str(model))
    await desk.until(lambda: desk.parts.services.models.last_model.read() is not None)
    again = make_desk()
    settings = again.parts.services.settings
    settings.change({"load_last_model": False})
    try:
        again.parts.begin()
        await again.until(lambda: again.is_shown("welcome.last"))
        assert not again.is_shown("start")
        assert again.parts.engine.state.requested is None
    finally:
        settings.change({"load_last_model": True})
        model.unlink()


def test_sentence_shows_no_tags(keeper: ThemeKeeper, app: QApplication) -> None:
    welcome = WelcomePage()
    welcome.show()
    welcome.show_state(EngineState(phase=Phase.READY, requested=LoadOptions(model=MODEL), report=REPORT))
    [sentence] = welcome.findChildren(QLabel, "welcome.text")
    assert sentence.textFormat() is Qt.TextFormat.RichText
    welcome.deleteLater()


def test_suggestions_are_in_the_language_of_the_window(keeper: ThemeKeeper, app: QApplication) -> None:
    install_translator(read_language(languages_folder() / "de.json"), "de")
    try:
        welcome = WelcomePage()
        welcome.show()
        welcome.show_state(EngineState(phase=Phase.READY, requested=LoadOptions(model=MODEL), report=REPORT))
        assert chips(welcome)[0].text() == "Wie funktioniert ein Mixture-of-Experts-Modell?"
        welcome.deleteLater()
    finally:
        install_translator(None)
