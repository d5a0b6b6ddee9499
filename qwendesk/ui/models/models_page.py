"""The Models page: a title, tabs, alerts about files on top, and the tab that is open."""

from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from qwendesk.ui.kit.buttons import describe
from qwendesk.ui.kit.flow import FlowLayout
from qwendesk.ui.kit.text import tr

ORDER: Final = ("pc", "mine", "hub", "downloads")
"""Tabs by key, left to right: For this PC, My models, Hugging Face, Downloads."""
_WIDEST = 1136
_SCROLL_BAR = 12
"""Its width, which the head leaves free to stand over the cards."""
_MARGIN = 40


class ModelsPage(QWidget):
    """Rooms add their tabs with `add_tab`; `tab_shown` carries the key of the one that was opened."""

    tab_shown = Signal(str)
    files_help_asked = Signal()
    """What is said of a file is not understood."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "page")
        self._keys: list[str] = []
        self._buttons: dict[str, QPushButton] = {}
        title = QLabel(tr("Models"))
        title.setProperty("kind", "pagetitle")
        self._machine = QLabel()
        self._machine.setProperty("kind", "dim")
        self._machine.setObjectName("models.machine")
        self._machine.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        # In a narrow window it is the one that gives way, not the tabs.
        self._machine.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        tabs = QWidget()
        tabs.setObjectName("models.tabs")
        tabs.setAccessibleName(tr("Parts of the Models page"))
        self._tabs = FlowLayout(tabs, spacing=4)
        holder = QWidget()
        holder.setMaximumWidth(_WIDEST)
        head = QHBoxLayout(holder)
        head.setContentsMargins(0, 0, 0, 0)
        head.setSpacing(24)
        head.addWidget(title)
        head.addWidget(tabs)
        head.addWidget(self._machine, 1)
        self._alerts = QVBoxLayout()
        self._alerts.setContentsMargins(_MARGIN, 0, _MARGIN + _SCROLL_BAR, 0)
        self._stack = QStackedWidget()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 16, 0, 0)
        column.setSpacing(12)
        column.addLayout(_centred(holder, right=_SCROLL_BAR))
        column.addLayout(self._alerts)
        column.addWidget(self._stack, 1)

    @property
    def shown_tab(self) -> str:
        """Key of the open tab; "" before there is one."""
        return self._keys[self._stack.currentIndex()] if self._keys else ""

    def add_tab(self, key: str, title: str, widget: QWidget, *, scrolls: bool = True) -> None:
        """A tab joins once it works, in the place ORDER gives it. `scrolls` False: `widget` scrolls by itself."""
        place = sum(ORDER.index(each) < ORDER.index(key) for each in self._keys)
        button = QPushButton(title)
        button.setProperty("kind", "tab")
        button.setCheckable(True)
        button.setAutoDefault(False)
        describe(button, f"models.tab.{key}", title)
        button.clicked.connect(lambda: self.show_tab(key))
        self._buttons[key] = button
        self._keys.insert(place, key)
        self._tabs.insertWidget(place, button)
        self._stack.insertWidget(place, _scrolled(widget) if scrolls else _framed(widget))
        self._stack.setCurrentIndex(0)
        self._check(self._keys[0])

    def show_tab(self, key: str) -> None:
        """Open a tab. Raises ValueError for one that was not added."""
        self._stack.setCurrentIndex(self._keys.index(key))
        self._check(key)
        self.tab_shown.emit(key)

    def set_title(self, key: str, title: str) -> None:
        """Another text for a tab: "Downloads · 1"."""
        self._buttons[key].setText(title)
        self._buttons[key].setAccessibleName(title)

    def set_alerts(self, widget: QWidget) -> None:
        """The strip that stands above every tab. It hides itself while there is nothing to say."""
        self._alerts.addWidget(widget)

    def show_machine(self, text: str) -> None:
        """What this PC is, at the right: "RTX 3090, 24 GB (1 GB reserved) · 64 GB RAM"."""
        self._machine.setText(text)

    def _check(self, key: str) -> None:
        # Not an exclusive QButtonGroup: of that, the Tab key reaches only the checked button.
        for name, button in self._buttons.items():
            button.setChecked(name == key)


def _scrolled(widget: QWidget) -> QScrollArea:
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidget(_framed(widget))
    return area


def _framed(widget: QWidget) -> QWidget:
    """`widget` at most as wide as reads well, with the page's margins, from the top."""
    holder = QWidget()
    holder.setProperty("kind", "column")
    widget.setMaximumWidth(_WIDEST)
    row = _centred(widget)
    row.setContentsMargins(_MARGIN, 4, _MARGIN, 24)
    holder.setLayout(row)
    return holder


def _centred(widget: QWidget, *, right: int = 0) -> QHBoxLayout:
    row = QHBoxLayout()
    row.setContentsMargins(_MARGIN, 0, _MARGIN + right, 0)
    row.addStretch(1)
    row.addWidget(widget, 1000)
    row.addStretch(1)
    return row
