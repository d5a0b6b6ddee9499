"""The chat page with the sidebar on its left and the inspector on its right."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from qwendesk.chat.view.sidebar.sidebar import Sidebar
from qwendesk.widgets.theme_keeper import app_theme, current_theme

# Width in logical pixels below which the sidebar covers the page: a window of 900 pixels without the rail.
NARROW_BELOW = 836
# Minimum width in logical pixels of the page beside a panel. If there is less, the panel covers the page.
_MIN_PAGE_WIDTH = 400
# Opacity of the colour over the page that a panel covers.
_DIMMING = 0.6


class ChatArea(QWidget):
    """Shows the panels beside the page if there is space.

    Otherwise a panel covers the page after the user has opened it, until Esc or a click beside it. If there is space
    for only one panel, it is for the inspector.
    """

    def __init__(self, page: QWidget, sidebar: Sidebar) -> None:
        super().__init__()
        self._sidebar = sidebar
        self._is_sidebar_wanted = self._is_sidebar_needed = True
        self._inspector: QWidget | None = None
        self._is_inspector_wanted = False
        self._over_page: QWidget | None = None
        """The panel that covers the page."""
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(0)
        self._row.addWidget(page, 1)
        self._dimmed_page = _DimmedPage(self)
        self._dimmed_page.clicked.connect(self.uncover_page)
        sidebar.setParent(self)
        sidebar.chat_chosen.connect(self._close_sidebar_over_page)
        self._arrange()

    @property
    def is_sidebar_wanted(self) -> bool:
        """Whether the sidebar is shown when the window is wide enough."""
        return self._is_sidebar_wanted

    @property
    def is_inspector_wanted(self) -> bool:
        """Whether the inspector is shown when the window is wide enough."""
        return self._is_inspector_wanted

    def set_inspector(self, inspector: QWidget) -> None:
        """Add the inspector, closed."""
        self._inspector = inspector
        inspector.setParent(self)
        self._arrange()

    def set_sidebar_needed(self, is_needed: bool) -> None:
        """Set whether the sidebar has something to show. If not, it is hidden until the user opens it."""
        self._is_sidebar_needed = is_needed
        self._arrange()

    def panel_with(self, widget: QWidget) -> QWidget | None:
        """Return the open panel that contains `widget`, if one does."""
        panels = (self._sidebar, self._inspector)
        return next((each for each in panels if each and each.isVisible() and each.isAncestorOf(widget)), None)

    def restore_inspector(self) -> None:
        """Show the inspector as soon as there is space for it."""
        self._is_inspector_wanted = True
        self._arrange()

    def toggle_inspector(self) -> None:
        if self._is_inspector_beside_page or self._covers_page(self._inspector):
            self._close_inspector()
        else:
            self.show_inspector()

    def show_inspector(self) -> None:
        self._is_inspector_wanted = True
        if not self._is_inspector_beside_page:
            self._over_page = self._inspector
        self._arrange()

    def toggle_sidebar(self) -> None:
        if self._covers_page(self._sidebar):
            self._over_page = None
        elif self._has_space_for_sidebar:
            self._is_sidebar_wanted = not (self._is_sidebar_wanted and self._is_sidebar_needed)
            self._is_sidebar_needed = True
        else:
            self._over_page = self._sidebar
        self._arrange()

    def show_sidebar(self) -> None:
        self._is_sidebar_wanted = self._is_sidebar_needed = True
        if not self._has_space_for_sidebar:
            self._over_page = self._sidebar
        self._arrange()

    def uncover_page(self) -> bool:
        """Close the panel that covers the page. Return False if none does."""
        if self._over_page is None:
            return False
        if self._covers_page(self._inspector):
            self._close_inspector()
        else:
            self._close_sidebar_over_page()
        return True

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    @property
    def _is_inspector_beside_page(self) -> bool:
        if self._inspector is None or not self._is_inspector_wanted:
            return False
        return self.width() - self._inspector.width() >= _MIN_PAGE_WIDTH

    @property
    def _has_space_for_sidebar(self) -> bool:
        right = self._inspector.width() if self._inspector is not None and self._is_inspector_beside_page else 0
        return self.width() >= NARROW_BELOW and self.width() - self._sidebar.width() - right >= _MIN_PAGE_WIDTH

    def _covers_page(self, panel: QWidget | None) -> bool:
        return panel is not None and self._over_page is panel

    def _close_inspector(self) -> None:
        self._is_inspector_wanted = False
        if self._covers_page(self._inspector):
            self._over_page = None
        self._arrange()

    def _close_sidebar_over_page(self) -> None:
        if self._covers_page(self._sidebar):
            self._over_page = None
        self._arrange()

    def _arrange(self) -> None:
        sidebar, inspector = self._sidebar, self._inspector
        has_left = self._is_sidebar_wanted and self._is_sidebar_needed and self._has_space_for_sidebar
        has_right = self._is_inspector_beside_page
        if (has_left and self._covers_page(sidebar)) or (has_right and self._covers_page(inspector)):
            self._over_page = None
        sidebar.setGeometry(0, 0, sidebar.width(), self.height())
        right = 0
        if inspector is not None:
            right = inspector.width() if has_right else 0
            inspector.setGeometry(self.width() - inspector.width(), 0, inspector.width(), self.height())
        self._row.setContentsMargins(sidebar.width() if has_left else 0, 0, right, 0)
        self._dimmed_page.setGeometry(self.rect())
        self._dimmed_page.setVisible(self._over_page is not None)
        self._dimmed_page.raise_()
        if inspector is not None:
            inspector.setVisible(has_right or self._covers_page(inspector))
            inspector.raise_()
        sidebar.setVisible(has_left or self._covers_page(sidebar))
        sidebar.raise_()


class _DimmedPage(QWidget):
    """Dims what a panel covers, and takes the click that closes the panel."""

    clicked = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("chat.dimmed")
        app_theme().changed.connect(self.update)

    def mousePressEvent(self, _event: QMouseEvent) -> None:
        self.clicked.emit()

    def paintEvent(self, _event: QPaintEvent) -> None:
        color = current_theme().color("window")
        color.setAlphaF(_DIMMING)
        painter = QPainter(self)
        painter.fillRect(self.rect(), color)
        painter.end()
