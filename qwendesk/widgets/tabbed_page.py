"""A page of the window with tabs beside its title."""

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QGridLayout,
    QLabel,
    QLayout,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from qwendesk.widgets.buttons import describe
from qwendesk.widgets.kit import MARGIN, PAGE_WIDTH, centred
from qwendesk.widgets.layouts import SCROLL_BAR, FlowLayout, steady_scroll_area

# Width in pixels of the scroll bar of a tab that scrolls itself, with the gap before it.
OWN_SCROLL: Final = 20
# Pixels below the last thing of a tab.
BELOW: Final = 24
_HEAD_GAP = 24
_NARROW_MARGIN = 16
# Below this width of the page its margins are narrow.
_NARROW = 800


class TabbedPage(QWidget):
    """A page with a title, tabs, and a corner widget at the right. `tab_shown` carries the key of the opened tab."""

    tab_shown = Signal(str)
    height_changed = Signal(int)

    def __init__(self, name: str, title: str, tabs_name: str, order: Sequence[str], corner: QWidget) -> None:
        """`name` begins the object names, `tabs_name` is the accessible name of the tabs, `order` has their keys."""
        super().__init__()
        self.setProperty("kind", "page")
        self._name, self._order = name, tuple(order)
        self._keys: list[str] = []
        self._buttons: dict[str, QPushButton] = {}
        self._places = (False, False)
        """Whether the tabs are below the title, and whether the corner is below the tabs."""
        self._margins: list[tuple[QLayout, int]] = []
        """Layouts with the margins of the page, and the width added to the right margin of each."""
        self._title = QLabel(title)
        self._title.setProperty("kind", "pagetitle")
        self._tabs_holder = QWidget()
        self._tabs_holder.setObjectName(f"{name}.tabs")
        self._tabs_holder.setAccessibleName(tabs_name)
        self._tabs = FlowLayout(self._tabs_holder, spacing=4)
        holder = QWidget()
        self._head = QGridLayout(holder)
        self._head.setContentsMargins(0, 0, 0, 0)
        self._head.setHorizontalSpacing(_HEAD_GAP)
        self._head.setVerticalSpacing(8)
        self._head.setColumnStretch(2, 1)
        self._head.addWidget(self._title, 0, 0)
        self._head.addWidget(self._tabs_holder, 0, 1)
        self._head.addWidget(corner, 0, 2)
        self._corner = corner
        corner.installEventFilter(self)
        self._alerts = QVBoxLayout()
        self._alerts.setContentsMargins(0, 0, 0, 0)
        head_row = centred(holder, PAGE_WIDTH)
        self._margins += [(head_row, SCROLL_BAR), (self._alerts, SCROLL_BAR)]
        self._stack = QStackedWidget()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 16, 0, 0)
        column.setSpacing(12)
        column.addLayout(head_row)
        column.addLayout(self._alerts)
        column.addWidget(self._stack, 1)

    @property
    def shown_tab(self) -> str:
        """Key of the open tab; "" before there is one."""
        return self._keys[self._stack.currentIndex()] if self._keys else ""

    def add_tab(self, key: str, title: str, widget: QWidget, *, scrolls: bool = True) -> None:
        """Add a tab at its place in the page's order.

        Pass `scrolls=False` if `widget` scrolls itself. It gets OWN_SCROLL more width, for its scroll bar and a gap.
        """
        place = sum(self._order.index(each) < self._order.index(key) for each in self._keys)
        button = QPushButton(title)
        button.setProperty("kind", "tab")
        button.setCheckable(True)
        button.setAutoDefault(False)
        describe(button, f"{self._name}.tab.{key}", title)
        button.clicked.connect(lambda: self.show_tab(key))
        self._buttons[key] = button
        self._keys.insert(place, key)
        self._tabs.insertWidget(place, button)
        frame = QWidget()
        frame.setProperty("kind", "column")
        self._stack.insertWidget(place, steady_scroll_area(frame) if scrolls else frame)
        self._stack.setCurrentIndex(0)
        row = centred(widget, PAGE_WIDTH if scrolls else PAGE_WIDTH + OWN_SCROLL)
        row.setContentsMargins(0, 4, 0, BELOW if scrolls else 0)
        self._margins.append((row, 0 if scrolls else SCROLL_BAR - OWN_SCROLL))
        self._set_margins()
        # Last, because Qt styles the whole tab again whenever a widget around it gets a parent.
        frame.setLayout(row)
        self._check(self._keys[0])

    def show_tab(self, key: str) -> None:
        """Open a tab. Raises ValueError if it wasn't added."""
        self._stack.setCurrentIndex(self._keys.index(key))
        self._check(key)
        if self.window().focusWidget() in self._buttons.values():
            self._buttons[key].setFocus()  # the page was shown by a link to this tab, and has focused the first one
        self.tab_shown.emit(key)

    def set_tab_title(self, key: str, title: str) -> None:
        self._buttons[key].setText(title)
        self._buttons[key].setAccessibleName(title)
        self._place_tabs()

    def set_alerts(self, widget: QWidget) -> None:
        """Put `widget` above all tabs."""
        self._alerts.addWidget(widget)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Place the tabs again when the corner needs another width."""
        if watched is self._corner and event.type() == QEvent.Type.LayoutRequest:
            self._place_tabs()
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._set_margins()
        self._place_tabs()
        self.height_changed.emit(self.height())

    def _place_tabs(self) -> None:
        """Place the tabs beside the title, or below it if they would wrap there, and the corner where it has room."""
        tabs, margins = self._tabs_holder, self._margins[0][0].contentsMargins()
        room = min(self.width() - margins.left() - margins.right(), PAGE_WIDTH) - 2 * _HEAD_GAP
        title, corner = self._title.sizeHint().width(), self._corner_width()
        places = (title + tabs.sizeHint().width() + corner > room, title + corner > room)
        if self._places == places:
            return
        self._places = places
        tabs_below, corner_below = places
        self._head.addWidget(tabs, *((1, 0, 1, 3) if tabs_below else (0, 1, 1, 1)))
        self._head.addWidget(self._corner, *((2, 0, 1, 3) if corner_below else (0, 2, 1, 1)))

    def _corner_width(self) -> int:
        """Return the width that the corner needs. One that is shortened where there is no room needs none."""
        is_shortened = self._corner.sizePolicy().horizontalPolicy() == QSizePolicy.Policy.Ignored
        return 0 if is_shortened else self._corner.sizeHint().width()

    def _set_margins(self) -> None:
        margin = MARGIN if self.width() >= _NARROW else _NARROW_MARGIN
        for layout, right in self._margins:
            above, below = layout.contentsMargins().top(), layout.contentsMargins().bottom()
            layout.setContentsMargins(margin, above, margin + right, below)

    def _check(self, key: str) -> None:
        # Not an exclusive QButtonGroup, because the Tab key reaches only its checked button.
        for name, button in self._buttons.items():
            button.setChecked(name == key)
