"""The chat page with the list of chats at its left and the inspector at its right, which fold away where the window is
narrow."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

FOLDED_BELOW = 836
"""Width of the room in logical pixels: that of a window of 900 without the rail."""
_LEAST_PAGE = 400
"""So much of the page stays between both panels; where there is less, the inspector lies over it."""


class ChatRoom(QWidget):
    """In a wide room the list has a place of its own; in a narrow one it lies over the page when it is asked for."""

    def __init__(self, page: QWidget) -> None:
        super().__init__()
        self._sidebar: QWidget | None = None
        self._wanted = True
        self._over = False
        self._inspector: QWidget | None = None
        self._inspects = False
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(0)
        self._row.addWidget(page, 1)

    @property
    def is_narrow(self) -> bool:
        return self.width() < FOLDED_BELOW

    @property
    def is_sidebar_wanted(self) -> bool:
        """Whether the list is beside the page where there is room."""
        return self._wanted

    @property
    def is_inspector_wanted(self) -> bool:
        """Whether it is open."""
        return self._inspects

    def set_sidebar(self, sidebar: QWidget) -> None:
        self._sidebar = sidebar
        sidebar.setParent(self)
        self._arrange()

    def set_inspector(self, inspector: QWidget) -> None:
        """Closed until it is asked for."""
        self._inspector = inspector
        inspector.setParent(self)
        self._arrange()

    def toggle_inspector(self) -> None:
        self._inspects = not self._inspects
        self._arrange()

    def show_inspector(self) -> None:
        self._inspects = True
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
        elif event.oldSize().width() >= FOLDED_BELOW:
            self._inspects = False
        self._arrange()

    def _arrange(self) -> None:
        sidebar, inspector = self._sidebar, self._inspector
        left = right = 0
        beside = self._wanted and not self.is_narrow
        if sidebar is not None:
            left = sidebar.width() if beside else 0
            sidebar.setGeometry(0, 0, sidebar.width(), self.height())
        if inspector is not None:
            width = inspector.width()
            if self._inspects and not self.is_narrow and self.width() - left - width >= _LEAST_PAGE:
                right = width
            inspector.setGeometry(self.width() - width, 0, width, self.height())
        self._row.setContentsMargins(left, 0, right, 0)
        if inspector is not None:
            self._show(inspector, wanted=self._inspects)
        if sidebar is not None:
            self._show(sidebar, wanted=beside or self._over)

    def _show(self, panel: QWidget, *, wanted: bool) -> None:
        focus: QWidget | None = self.window().focusWidget()
        had_focus = focus is not None and panel.isAncestorOf(focus)
        panel.setVisible(wanted)
        panel.raise_()
        if had_focus and not panel.isVisible():
            self.setFocus(Qt.FocusReason.OtherFocusReason)
