"""The empty chat: what is offered fits, and nothing is offered without a model."""

import pytest
from PySide6.QtWidgets import QAbstractButton, QApplication

from qwendesk.core.options import LoadOptions
from qwendesk.engine.state import EngineState, Phase
from qwendesk.ui.chat.welcome import Welcome
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from tests.fakes.gaming_pc import REPORT


def chips(welcome: Welcome) -> list[QAbstractButton]:
    found = welcome.findChildren(QAbstractButton)
    return [each for each in found if each.objectName().startswith("welcome.suggestion") and each.isVisible()]


def test_without_a_model_there_are_no_empty_boxes(keeper: ThemeKeeper, app: QApplication) -> None:
    welcome = Welcome(keeper)
    welcome.show()

    assert chips(welcome) == []

    welcome.deleteLater()


@pytest.mark.parametrize("width", [360, 700, 1200])
def test_no_suggestion_is_cut(keeper: ThemeKeeper, app: QApplication, width: int) -> None:
    welcome = Welcome(keeper)
    welcome.resize(width, 700)
    welcome.show()

    welcome.show_state(
        EngineState(phase=Phase.READY, wanted=LoadOptions(model="/models/Qwen3.5-35B-A3B.gguf"), report=REPORT)
    )
    app.processEvents()

    assert len(chips(welcome)) == 4
    assert all(chip.width() >= chip.sizeHint().width() for chip in chips(welcome))

    welcome.deleteLater()
