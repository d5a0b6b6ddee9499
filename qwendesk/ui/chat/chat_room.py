"""The chat page with the list of chats at its left, which folds away where the window is narrow."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

FOLDED_BELOW = 836
"""Width of the room in logical pixels: that of a window of 900 without the rail."""


class ChatRoom(QWidget):
    """In a wide room the list has a place of its own; in a narrow one it lies over the page when it is asked for."""

    def __init__(self, page: QWidget) -> None:
        super().__init__()
        self._sidebar: QWidget | None = None
        self._wanted = True
        self._over = False
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(0)
        self._row.addWidget(page, 1)

    @property
    def is_narrow(self) -> bool:
        return self.width() < FOLDED_BELOW

    def set_sidebar(self, sidebar: QWidget) -> None:
        self._sidebar = sidebar
        sidebar.setParent(self)
        self._arrange()

    def toggle_sidebar(self) -> None:
        if self.is_narrow:
            self._over = not self._over
        else:
            self._wanted = not self._wanted
        self._arrange()

    def show_sidebar(self) -> None:
        self._wanted = True
        self._over = self.is_narrow
        self._arrange()

    def fold(self) -> None:
        """After a choice: takes the list away where it lies over the page."""
        self._over = False
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if not self.is_narrow:
            self._over = False
        self._arrange()

    def _arrange(self) -> None:
        sidebar = self._sidebar
        if sidebar is None:
            return
        beside = self._wanted and not self.is_narrow
        self._row.setContentsMargins(sidebar.width() if beside else 0, 0, 0, 0)
        sidebar.setGeometry(0, 0, sidebar.width(), self.height())
        focus: QWidget | None = self.window().focusWidget()
        had_focus = focus is not None and sidebar.isAncestorOf(focus)
        sidebar.setVisible(beside or self._over)
        sidebar.raise_()
        if had_focus and not sidebar.isVisible():
            self.setFocus(Qt.FocusReason.OtherFocusReason)
