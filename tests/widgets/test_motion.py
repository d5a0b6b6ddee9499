"""What moves is still when somebody asks for that."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from qwendesk.widgets.controls import Switch
from qwendesk.widgets.theme_keeper import ThemeKeeper


@pytest.fixture
def switch(keeper: ThemeKeeper) -> Iterator[Switch]:
    switch = Switch()
    switch.show()
    yield switch
    switch.hide()
    switch.deleteLater()


def test_switch_slides_or_jumps_with_reduced_motion(keeper: ThemeKeeper, switch: Switch) -> None:
    switch.click()
    assert switch.isChecked()
    assert switch.knob_place < 1
    keeper.motion.choose("on")
    switch.click()
    assert switch.knob_place == 0


def test_reduced_motion_follows_the_system_unless_off(keeper: ThemeKeeper) -> None:
    keeper.motion.set_system(True)
    assert keeper.motion.is_reduced
    keeper.motion.choose("off")
    assert not keeper.motion.is_reduced
    keeper.motion.choose("system")
    keeper.motion.set_system(None)
    assert not keeper.motion.is_reduced


def test_reduced_motion_stops_menus_and_text_cursor_until_it_ends(app: QApplication, keeper: ThemeKeeper) -> None:
    blink_ms, fades = app.cursorFlashTime(), app.isEffectEnabled(Qt.UIEffect.UI_FadeMenu)
    keeper.motion.choose("on")
    assert app.cursorFlashTime() == 0
    assert not app.isEffectEnabled(Qt.UIEffect.UI_FadeMenu)
    keeper.motion.choose("off")
    assert (app.cursorFlashTime(), app.isEffectEnabled(Qt.UIEffect.UI_FadeMenu)) == (blink_ms, fades)
