"""The composer's buttons have words while there is room for all of them, and none is ever cut off."""

from collections.abc import Iterator

import msgspec
import pytest
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from qwendesk.chat.view.composer.composer import Composer
from qwendesk.core.chats import ChatSettings
from qwendesk.core.tool_context import ToolChoice
from qwendesk.core.translation import install_translator, languages_folder, read_language
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.fakes.engine import DEMO_REPORT

_BUTTONS = "thinking", "tools", "preset", "answernow"


@pytest.fixture
def page(keeper: ThemeKeeper) -> Iterator[QWidget]:
    """A page that is as narrow as can be."""
    page = QWidget()
    yield page
    page.deleteLater()


def _composer(page: QWidget, width: int) -> Composer:
    """Return a composer with tools, whose answer thinks."""
    composer = Composer()
    composer.setParent(page)
    composer.resize(width, 110)
    page.show()
    composer.tools.show_tools((ToolChoice("Clock", "", ("clock",), 10),), ChatSettings(tools=("clock",)), None)
    composer.set_busy(busy=True)
    composer.show_answer_now(visible=True)
    QApplication.processEvents()
    return composer


def _texts(composer: Composer) -> list[str]:
    buttons = [composer.findChild(QAbstractButton, f"composer.{name}") for name in _BUTTONS]
    assert not [each.text() for each in buttons if each.isVisible() and each.width() < each.sizeHint().width()]
    return [button.text() for button in buttons]


def test_model_that_thinks_although_it_cannot_be_asked_to_is_not_called_off(page: QWidget) -> None:
    composer = _composer(page, 900)
    composer.show_answer_now(visible=False)
    composer.show_thinking(on=True, report=msgspec.structs.replace(DEMO_REPORT, can_think=False))
    for is_thinking, text in ((False, "Thinking: Off"), (True, "Thinking: On"), (False, "Thinking: Off")):
        composer.show_answer_now(visible=is_thinking)
        QApplication.processEvents()
        assert _texts(composer)[0] == text


def test_words_are_left_out_while_an_answer_leaves_no_room_for_them(page: QWidget) -> None:
    composer = _composer(page, 900)
    assert _texts(composer) == ["Thinking: On", "Tools: 1", "General", "Answer now"]

    composer.resize(520, 110)
    QApplication.processEvents()
    assert _texts(composer) == ["On", "1", "General", ""]

    composer.resize(420, 110)
    QApplication.processEvents()
    assert _texts(composer)[:2] == ["", "1"]

    composer.resize(520, 110)
    composer.show_answer_now(visible=False)
    QApplication.processEvents()
    assert _texts(composer)[:3] == ["Thinking: On", "Tools: 1", "General"]


@pytest.mark.parametrize("width", [420, 500, 560, 600, 640, 680, 720, 820])
def test_no_german_word_is_cut_off(page: QWidget, width: int) -> None:
    install_translator(read_language(languages_folder() / "de.json"), "de")
    try:
        composer = _composer(page, width)
        assert _texts(composer)[0] in ("Denken: an", "An", "")
    finally:
        install_translator(None)
