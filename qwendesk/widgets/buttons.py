"""Buttons whose icon follows the theme, and `describe`, which gives a control its name and tooltip."""

from PySide6.QtCore import QRect, QSize, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QPushButton, QStyleOptionButton, QToolButton, QWidget

from qwendesk.core.translation import tr
from qwendesk.widgets.icons import icon, pixmap
from qwendesk.widgets.theme_keeper import app_theme, current_theme

# Size of a chevron, and its distance from the end of a button and of one with little padding, in logical pixels.
_CHEVRON, _CHEVRON_EDGE, _SMALL_CHEVRON_EDGE = 14, 10, 3
ENTER_KEYS = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


def describe(widget: QWidget, name: str, text: str, tooltip: str = "", shortcut: str = "") -> None:
    """Set the objectName, the accessible name and the tooltip of a control, with its shortcut if it has one."""
    widget.setObjectName(name)
    widget.setAccessibleName(text)
    tip = tooltip or text
    if shortcut:
        keys = QKeySequence(shortcut).toString(QKeySequence.SequenceFormat.NativeText)
        tip = tr("{0} ({1})", tip, keys)
    widget.setToolTip(tip)


def press_by_enter(window: QWidget, event: QKeyEvent) -> bool:
    """Press the focused button of `window` if the key is Enter. Return True if there is one.

    On most systems Qt has only the space bar press it, and in a dialog Enter press the default button instead.
    """
    focus: QWidget | None = window.focusWidget()
    if event.key() not in ENTER_KEYS or event.isAutoRepeat() or not isinstance(focus, QPushButton | QToolButton):
        return False
    focus.click()
    return True


class StatusButton(QToolButton):
    """A text of the bottom bar that leads to what `said` says: it looks like a label, but not under the mouse.

    With a `chip`, the name of a tone, it looks like a chip.
    """

    def __init__(self, name: str, said: str, *, chip: str = "") -> None:
        super().__init__()
        describe(self, name, said)
        self._said = said
        self.setProperty("kind", "status")
        if chip:
            self.setProperty("chip", chip)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def setText(self, text: str) -> None:
        super().setText(text)
        self.setAccessibleName(f"{self._said}: {text}" if text else self._said)


class ThemedIcon:
    """Draws a button's icon in the colour of a theme role."""

    def __init__(self, button: QAbstractButton, role: str, size: int) -> None:
        self._button = button
        self._role = role
        self._size = size
        self._name = ""
        button.setIconSize(QSize(size, size))

    def show(self, name: str, role: str = "") -> None:
        """Show the icon `name`; an empty name removes the icon."""
        self._name, self._role = name, role or self._role
        self.refresh()

    def refresh(self) -> None:
        if self._name:
            theme = current_theme()
            self._button.setIcon(icon(self._name, theme[self._role], self._size, theme["text_dim"]))


class IconButton(QToolButton):
    """A square button that shows only an icon."""

    def __init__(self, icon_name: str, *, role: str = "text_dim", size: int = 18, side: int = 32) -> None:
        super().__init__()
        self.themed = ThemedIcon(self, role, size)
        self.themed.show(icon_name)
        self.setFixedSize(side, side)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        app_theme().changed.connect(self._on_theme)

    def _on_theme(self) -> None:
        self.themed.refresh()


class TextButton(QPushButton):
    """A button with text and an optional icon. `kind` selects its style in the stylesheet."""

    def __init__(
        self, text: str = "", *, kind: str = "", icon_name: str = "", role: str = "text_dim", size: int = 16
    ) -> None:
        super().__init__()
        # A space keeps the text off the icon: Qt has no option for that.
        self._gap = " " if icon_name else ""
        self.setText(text)
        if kind:
            self.setProperty("kind", kind)
        self.setAutoDefault(False)
        self.themed = ThemedIcon(self, role, size)
        if icon_name:
            self.themed.show(icon_name)
        app_theme().changed.connect(self._on_theme)

    def setText(self, text: str) -> None:
        super().setText(f"{self._gap}{text}" if text else "")

    def text(self) -> str:
        """Return the text without the space that keeps it off the icon."""
        return super().text().removeprefix(self._gap)

    def _on_theme(self) -> None:
        self.themed.refresh()


class ChevronButton(TextButton):
    """A button with a chevron at its end: "down" if it opens a menu, "right" or "down" for something that unfolds.

    The stylesheet keeps room for the chevron.
    """

    def __init__(self, text: str = "", *, kind: str = "", icon_name: str = "", size: int = 16) -> None:
        super().__init__(text, kind=kind, icon_name=icon_name, size=size)
        self.chevron = "down"
        self.setProperty("chevron", "true")

    def show_chevron(self, name: str) -> None:
        self.chevron = name
        self.update()

    def initStyleOption(self, option: QStyleOptionButton) -> None:
        """Leave out the style's own menu arrow, for which it would shift the text."""
        super().initStyleOption(option)
        option.features &= ~QStyleOptionButton.ButtonFeature.HasMenu

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        is_mirrored = self.layoutDirection() is Qt.LayoutDirection.RightToLeft
        edge = _SMALL_CHEVRON_EDGE if self.property("kind") == "size" else _CHEVRON_EDGE
        left = edge if is_mirrored else self.width() - _CHEVRON - edge
        place = QRect(left, (self.height() - _CHEVRON) // 2, _CHEVRON, _CHEVRON)
        color = current_theme()["text_dim" if self.isEnabled() else "text_off"]
        painter = QPainter(self)
        painter.drawPixmap(place, pixmap(self.chevron, color, _CHEVRON, self.devicePixelRatioF()))
        painter.end()


def restyle(widget: QWidget, name: str, value: str) -> None:
    """Set a dynamic property that the stylesheet uses, and apply the stylesheet again."""
    if widget.property(name) != value:
        widget.setProperty(name, value)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


# How long a button says that it copied. Half of it was too short to be noticed on a busy PC.
_COPIED_MS = 4000


def copy_text(button: TextButton, text: str) -> None:
    """Copy a text to the clipboard, and have the button that was clicked say so for a moment."""
    QGuiApplication.clipboard().setText(text)
    usual = button.property("usual") or button.text()
    button.setProperty("usual", usual)
    button.setText(tr("Copied"))
    QTimer.singleShot(_COPIED_MS, button, lambda: button.setText(usual))
