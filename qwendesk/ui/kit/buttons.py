"""Buttons whose icon follows the theme, and which never lack a name or a tooltip."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QAbstractButton, QPushButton, QToolButton, QWidget

from qwendesk.ui.kit.icons import icon
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper


def describe(widget: QWidget, name: str, text: str, tooltip: str = "", shortcut: str = "") -> None:
    """Give a control its objectName, accessible name and tooltip (with the shortcut, if it has one)."""
    widget.setObjectName(name)
    widget.setAccessibleName(text)
    tip = tooltip or text
    if shortcut:
        keys = QKeySequence(shortcut).toString(QKeySequence.SequenceFormat.NativeText)
        tip = tr("{0} ({1})", tip, keys)
    widget.setToolTip(tip)


class ThemedIcon:
    """Keeps one button's icon in a role's colour."""

    def __init__(self, keeper: ThemeKeeper, button: QAbstractButton, role: str, size: int) -> None:
        self._keeper = keeper
        self._button = button
        self._role = role
        self._size = size
        self._name = ""
        button.setIconSize(QSize(size, size))

    def show(self, name: str, role: str = "") -> None:
        """Draw the icon NAME; an empty name removes it."""
        self._name, self._role = name, role or self._role
        self.refresh()

    def refresh(self) -> None:
        if self._name:
            theme = self._keeper.theme
            self._button.setIcon(icon(self._name, theme[self._role], self._size, theme["text_dim"]))


class IconButton(QToolButton):
    """A square button with only an icon."""

    def __init__(
        self, keeper: ThemeKeeper, icon_name: str, *, role: str = "text_dim", size: int = 18, side: int = 32
    ) -> None:
        super().__init__()
        self.themed = ThemedIcon(keeper, self, role, size)
        self.themed.show(icon_name)
        self.setFixedSize(side, side)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        keeper.changed.connect(self._on_theme)

    def _on_theme(self) -> None:
        self.themed.refresh()


class TextButton(QPushButton):
    """A button with text and perhaps an icon; `kind` chooses its look in the stylesheet."""

    def __init__(
        self,
        keeper: ThemeKeeper,
        text: str = "",
        *,
        kind: str = "",
        icon_name: str = "",
        role: str = "text_dim",
        size: int = 16,
    ) -> None:
        super().__init__(text)
        if kind:
            self.setProperty("kind", kind)
        self.setAutoDefault(False)
        self.themed = ThemedIcon(keeper, self, role, size)
        if icon_name:
            self.themed.show(icon_name)
        keeper.changed.connect(self._on_theme)

    def _on_theme(self) -> None:
        self.themed.refresh()


def restyle(widget: QWidget, name: str, value: str) -> None:
    """Set a dynamic property that the stylesheet looks at, and apply its rules again."""
    if widget.property(name) != value:
        widget.setProperty(name, value)
        widget.style().unpolish(widget)
        widget.style().polish(widget)
