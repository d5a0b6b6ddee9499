"""Where the window offers the guide: the command and the banner over what is wrong."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton

from qwendesk.core import paths
from qwendesk.core.units import GIB
from qwendesk.hardware.spill import SpillState
from qwendesk.meters.meter_state import MeterState, Spill
from qwendesk.meters.spill_remedies import RemedyState
from qwendesk.meters.view.spill_banner import story_of
from tests.window_desk import Desk


def test_a_key_opens_the_guide(desk: Desk) -> None:
    assert desk.parts.help.shown is None, "nothing is read before somebody asks"
    QTest.keyClick(desk.window, Qt.Key.Key_F1, Qt.KeyboardModifier.ShiftModifier)
    guide = desk.parts.help.shown
    assert guide is not None
    assert guide.isVisible()
    assert guide.page == "index"
    assert "First chat in two minutes" in guide.view.toPlainText()


def test_missing_guide_is_reported(desk: Desk, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("qwendesk.help.view.guide_opener.guide_folder", lambda: tmp_path)
    desk.parts.help.open()
    assert desk.parts.help.shown is None
    assert desk.is_shown("banner")


def test_spill_banner_opens_its_page(desk: Desk) -> None:
    spill = Spill(
        state=SpillState.SPILLING, excess_bytes=GIB, best_tok_s=112.0, now_tok_s=15.0, slowdown=None, consumer=None
    )
    meters = MeterState(state=SpillState.SPILLING, spill=spill)
    desk.parts.spill_banner.show_story(story_of(meters, RemedyState(), on_windows=False))
    desk.click("spill.help")
    guide = desk.parts.help.shown
    assert guide is not None
    assert guide.page == "spill"


def test_flagged_files_open_their_page(desk: Desk) -> None:
    alert = desk.parts.models_page.page().findChild(QAbstractButton, "models.alert.1.help")
    assert alert is not None
    alert.click()
    guide = desk.parts.help.shown
    assert guide is not None
    assert guide.page == "flagged-files"


def test_the_guide_is_found_in_a_checkout_and_inside_the_resources(monkeypatch, tmp_path) -> None:
    assert (paths.guide_folder() / "index.md").is_file()
    (tmp_path / "guide").mkdir()
    monkeypatch.setattr(paths, "resources_folder", lambda: tmp_path)
    assert paths.guide_folder() == tmp_path / "guide"
