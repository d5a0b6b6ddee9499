"""What moves is still when somebody asks for that."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from qwendesk.ui.kit.switch import Switch
from qwendesk.ui.kit.theme_keeper import ThemeKeeper


@pytest.fixture
def switch(keeper: ThemeKeeper) -> Iterator[Switch]:
    switch = Switch(keeper)
    switch.show()
    yield switch
    switch.hide()
    switch.deleteLater()


def test_a_switch_slides_and_with_reduced_motion_it_jumps(keeper: ThemeKeeper, switch: Switch) -> None:
    switch.click()
    assert switch.isChecked()
    assert switch.knob_place < 1
    keeper.motion.choose("on")
    switch.click()
    assert switch.knob_place == 0


def test_as_the_system_follows_it_and_off_does_not(keeper: ThemeKeeper) -> None:
    keeper.motion.set_system(True)
    assert keeper.motion.is_reduced
    keeper.motion.choose("off")
    assert not keeper.motion.is_reduced
    keeper.motion.choose("system")
    keeper.motion.set_system(None)
    assert not keeper.motion.is_reduced


def test_menus_and_the_text_cursor_keep_still_and_get_their_own_back(app: QApplication, keeper: ThemeKeeper) -> None:
    blink_ms, fades = app.cursorFlashTime(), app.isEffectEnabled(Qt.UIEffect.UI_FadeMenu)
    keeper.motion.choose("on")
    assert app.cursorFlashTime() == 0
    assert not app.isEffectEnabled(Qt.UIEffect.UI_FadeMenu)
    keeper.motion.choose("off")
    assert (app.cursorFlashTime(), app.isEffectEnabled(Qt.UIEffect.UI_FadeMenu)) == (blink_ms, fades)
