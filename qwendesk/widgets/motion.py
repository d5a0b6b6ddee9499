"""Decides whether the window may animate anything."""

from typing import Any, Literal

from PySide6.QtCore import QEasingCurve, QObject, Qt, QVariantAnimation, Signal
from PySide6.QtWidgets import QApplication

MotionChoice = Literal["system", "on", "off"]
"""Values of the setting "Reduced motion"."""
QUICK_MS = 140
"""Duration of the animation of a small control."""
_EFFECTS = (
    Qt.UIEffect.UI_AnimateMenu,
    Qt.UIEffect.UI_FadeMenu,
    Qt.UIEffect.UI_AnimateCombo,
    Qt.UIEffect.UI_AnimateTooltip,
    Qt.UIEffect.UI_FadeTooltip,
    Qt.UIEffect.UI_AnimateToolBox,
)


class Motion(QObject):
    """Decides, from the user's choice and the system's setting, whether motion is reduced."""

    changed = Signal()

    def __init__(self, app: QApplication, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._app = app
        self._choice: MotionChoice = "system"
        self._system: bool | None = None
        self._reduced = False
        self._effects_before: dict[Qt.UIEffect, bool] = {}
        self._blink_before_ms = app.cursorFlashTime()

    @property
    def is_reduced(self) -> bool:
        return self._reduced

    def choose(self, choice: MotionChoice) -> None:
        self._choice = choice
        self._refresh()

    def set_system(self, reduced: bool | None) -> None:
        """Set whether the system asks for reduced motion; None (unknown) counts as False."""
        self._system = reduced
        self._refresh()

    def slide(self, animation: QVariantAnimation, start: Any, end: Any) -> None:
        """Run `animation` from `start` to `end`, or jump to `end` if motion is reduced."""
        animation.stop()
        animation.setStartValue(start)
        animation.setEndValue(end)
        animation.setEasingCurve(QEasingCurve.Type.OutCubic)
        animation.setDuration(0 if self._reduced else QUICK_MS)
        animation.start()

    def _refresh(self) -> None:
        reduced = self._choice == "on" or (self._choice == "system" and self._system is True)
        if reduced == self._reduced:
            return
        self._reduced = reduced
        if reduced:
            self._effects_before = {effect: self._app.isEffectEnabled(effect) for effect in _EFFECTS}
            self._blink_before_ms = self._app.cursorFlashTime()
        for effect, before in self._effects_before.items():
            self._app.setEffectEnabled(effect, before and not reduced)
        self._app.setCursorFlashTime(0 if reduced else self._blink_before_ms)
        self.changed.emit()
