"""Chooses the theme from the system's or the user's setting, decides whether anything may move, and signals changes."""

import weakref
from collections.abc import Callable, Iterator
from typing import Any, Literal, cast

from PySide6.QtCore import QEasingCurve, QEvent, QObject, Qt, QTimer, QVariantAnimation, Signal
from PySide6.QtGui import QWheelEvent, QWindow
from PySide6.QtWidgets import QApplication, QScrollArea, QWidget

from qwendesk.widgets.app_style import AppStyle
from qwendesk.widgets.stylesheet import stylesheet
from qwendesk.widgets.theme import Theme, load_theme, palette

ThemeChoice = Literal["system", "dark", "light", "contrast"]
Density = Literal["comfortable", "compact"]
_SMALLEST, _LARGEST, _STEP = 0.8, 1.6, 0.1
# Least time between two text sizes, in which the window draws the first one and takes the keys that wait.
_PAUSE_MS = 50
# What a wheel reports for one notch, in eighths of a degree (QWheelEvent.angleDelta); touchpads report less at a time.
_NOTCH = 120
_POLISHED, _HAS_OWN_STYLE = Qt.WidgetAttribute.WA_WState_Polished, Qt.WidgetAttribute.WA_SetStyle

# Property of the QApplication that holds a weak reference to its ThemeKeeper.
_PROPERTY = "qwendesk_theme_keeper"


def app_theme() -> "ThemeKeeper":
    """Return the application's ThemeKeeper. Raise RuntimeError if there is none yet."""
    app = QApplication.instance()
    reference = app.property(_PROPERTY) if app is not None else None
    keeper = reference() if reference is not None else None
    if keeper is None:
        raise RuntimeError("Make a ThemeKeeper before the first widget.")
    return cast("ThemeKeeper", keeper)


def current_theme() -> Theme:
    """Return the current theme."""
    return app_theme().theme


class ThemeKeeper(QObject):
    """Owns the current Theme and applies it to the whole application."""

    changed = Signal()
    """The theme has changed. Emitted after the palette and stylesheet are applied.

    Hidden widgets get the stylesheet when they are shown: see `follow`.
    """
    chosen = Signal()
    """`choice` or `text_scale` was set, even if the theme hasn't changed."""

    def __init__(self, app: QApplication, choice: ThemeChoice) -> None:
        super().__init__(app)
        self._app = app
        self._choice: ThemeChoice = choice
        self._text_scale = 1.0
        self._density: Density = "comfortable"
        self.motion = Motion(app, self)
        self._restyler = _Restyler(app, self)
        self._pause = QTimer(self, singleShot=True, interval=_PAUSE_MS)
        self._pause.timeout.connect(self._apply)
        app.setStyle(AppStyle())
        app.styleHints().colorSchemeChanged.connect(self._on_system_changed)
        app.styleHints().accessibility().contrastPreferenceChanged.connect(self._on_system_changed)
        self._theme = self._wanted()
        self._applied: Theme | None = None
        self._apply()
        app.setProperty(_PROPERTY, weakref.ref(self))

    @property
    def theme(self) -> Theme:
        return self._theme

    @property
    def choice(self) -> ThemeChoice:
        return self._choice

    @property
    def text_scale(self) -> float:
        """The text size relative to normal (1.0)."""
        return self._text_scale

    def choose(self, choice: ThemeChoice) -> None:
        self._choice = choice
        self._refresh()
        self.chosen.emit()

    def set_text_scale(self, scale: float) -> None:
        """Set the text size relative to normal (1.0), limited to the allowed range.

        Of several steps in a short time, the first and the last are shown.
        """
        self._text_scale = round(min(_LARGEST, max(_SMALLEST, scale)), 2)
        if self._pause.isActive():
            self._theme = self._wanted()
        else:
            self._refresh()
            self._pause.start()
        self.chosen.emit()

    @property
    def density(self) -> Density:
        return self._density

    def set_density(self, density: Density) -> None:
        if density != self._density:
            self._density = density
            self._refresh()

    def zoom(self, steps: int) -> None:
        """Make the text larger (positive) or smaller; 0 restores the normal size."""
        self.set_text_scale(1.0 if steps == 0 else self._text_scale + steps * _STEP)

    def follow(self, widget: QWidget, fit: Callable[[], None]) -> None:
        """Call `fit`, a method of `widget`, when the theme has changed, and again when a hidden `widget` got its style.

        For what a widget measures, and for fonts that it sets beside the stylesheet.
        """
        self.changed.connect(fit)
        self._restyler.followers.setdefault(widget, []).append(weakref.WeakMethod(fit))

    def _wanted(self) -> Theme:
        hints = self._app.styleHints()
        name: str = self._choice
        if name in ("system", "contrast"):
            is_contrast = hints.accessibility().contrastPreference() is Qt.ContrastPreference.HighContrast
            scheme = "light" if hints.colorScheme() is Qt.ColorScheme.Light else "dark"
            name = f"contrast-{scheme}" if name == "contrast" or is_contrast else scheme
        return load_theme(name, self._text_scale, is_compact=self._density == "compact")

    def _on_system_changed(self, _asked: object) -> None:
        """Follow a change of the system's colour scheme or contrast."""
        self._refresh()

    def _refresh(self) -> None:
        self._theme = self._wanted()
        self._apply()

    def _apply(self) -> None:
        if self._theme == self._applied:
            return
        is_first, self._applied = self._applied is None, self._theme
        self._app.setFont(self._theme.font(13))
        self._app.setPalette(palette(self._theme))
        self._restyler.apply(stylesheet(self._theme))
        if not is_first:
            self.changed.emit()


class WheelZoom(QObject):
    """Makes the text larger or smaller when the user turns the wheel with Ctrl, wherever the pointer is.

    It filters a window's own events, which come before those of its widgets: a list would scroll, and a text zoom
    itself alone.
    """

    def __init__(self, window: QWindow) -> None:
        super().__init__(window)
        self._turned = 0
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if not isinstance(event, QWheelEvent) or not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            return False
        self._turned += event.angleDelta().y()
        steps = int(self._turned / _NOTCH)
        if steps:
            self._turned -= steps * _NOTCH
            app_theme().zoom(steps)
        return True


class _Restyler(QObject):
    """Applies a stylesheet to the widgets that can be seen, and to each other one when it is shown.

    Qt would apply it to all widgets, and to each as often as it has ancestors: two seconds for the whole window.
    """

    def __init__(self, app: QApplication, parent: QObject) -> None:
        super().__init__(parent)
        self._app = app
        self.followers: weakref.WeakKeyDictionary[QWidget, list[weakref.WeakMethod[Callable[[], None]]]]
        self.followers = weakref.WeakKeyDictionary()
        self._remembers = QWidget()
        """Has a stylesheet of its own: when the last one is removed, Qt forgets the fonts and colours that widgets have
        without any."""
        self._remembers.setStyleSheet("QWidget { margin: 0px; }")

    def apply(self, sheet: str) -> None:
        """Make `sheet` the application's stylesheet."""
        widgets = self._app.allWidgets()
        polished = [widget for widget in widgets if widget.testAttribute(_POLISHED)]
        styleless = [widget for widget in widgets if not widget.testAttribute(_HAS_OWN_STYLE)]
        # Qt leaves out widgets that were never shown, and says nothing to those with a style of their own.
        for widget in polished:
            widget.setAttribute(_POLISHED, False)
        for widget in styleless:
            widget.setAttribute(_HAS_OWN_STYLE, True)
        self._app.setStyleSheet("")
        self._app.setStyleSheet(sheet)
        for widget in polished:
            widget.setAttribute(_POLISHED, True)
        for widget in styleless:
            widget.setAttribute(_HAS_OWN_STYLE, False)
        for window in self._app.topLevelWidgets():
            if window.parentWidget() is None:
                self._restyle(window)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Show and isinstance(watched, QWidget):
            watched.removeEventFilter(self)
            fits = [fit() for each in self._restyle(watched) for fit in self.followers.get(each, ())]
            for fit in fits:
                if fit is not None:
                    fit()
        return False

    def _restyle(self, widget: QWidget) -> list[QWidget]:
        """Restyle the part of the widget that can be seen. Return its widgets."""
        shown = list(self._shown_in(widget))
        style = self._app.style()
        for each in shown:  # a child takes fonts and colours from its parent, which comes first
            style.polish(each)
        for each in shown:
            if isinstance(each, QScrollArea):
                continue  # it would measure its content at once, and does so again when that is arranged
            QApplication.sendEvent(each, QEvent(QEvent.Type.StyleChange))
        return shown

    def _shown_in(self, widget: QWidget, *, in_popup: bool = False) -> Iterator[QWidget]:
        """Yield the widget and its children that can be seen, with their menus and popups.

        A popup isn't left for later, because its size is chosen before it is shown. The other widgets are restyled when
        they are shown.
        """
        is_popup = in_popup or (widget.isWindow() and widget.parentWidget() is not None)
        if not (widget.isVisible() or is_popup):
            widget.installEventFilter(self)
            return
        if widget.testAttribute(_POLISHED):
            yield widget
        for child in widget.children():
            if isinstance(child, QWidget):
                yield from self._shown_in(child, in_popup=is_popup)


# Values of the setting "Reduced motion".
MotionChoice = Literal["system", "on", "off"]
# Duration of the animation of a small control.
QUICK_MS = 140
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

    def __init__(self, app: QApplication, parent: QObject) -> None:
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
