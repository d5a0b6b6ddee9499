"""The command palette: every action of the window, found by a few letters; those used last come first."""

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QEvent, QObject, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from qwendesk.ui.frame.actions import COMMANDS, ActionId, keys_text
from qwendesk.ui.frame.fuzzy import score
from qwendesk.ui.kit.buttons import describe
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper

MOST_RECENT = 8
_WIDTH, _HEIGHT, _ROW = 560, 420, 36
_MOVES = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: 8, Qt.Key.Key_PageUp: -8}
_HIDDEN: tuple[ActionId, ...] = ("palette", "menu", "stop")
"""What makes no sense from here."""


class Palette(QFrame):
    """Made each time it is opened. `chosen` tells which action was started, for the order of next time."""

    chosen = Signal(str)

    def __init__(
        self, keeper: ThemeKeeper, actions: Mapping[ActionId, QAction], recent: Sequence[str], parent: QWidget
    ) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self._keeper = keeper
        self._actions = {key: action for key, action in actions.items() if key not in _HIDDEN}
        self._recent = tuple(recent)
        self._window = parent
        self.setObjectName("palette")
        self.setProperty("kind", "popover")
        self.setAccessibleName(tr("Find a command"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setFixedSize(min(_WIDTH, parent.width() - 40), min(_HEIGHT, parent.height() - 80))
        self._query = QLineEdit()
        self._query.setPlaceholderText(tr("Find a command"))
        describe(self._query, "palette.query", tr("Find a command"), tr("Type a few letters, then Enter"))
        self._list = QListWidget()
        self._list.setProperty("kind", "palette")
        self._list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        describe(self._list, "palette.list", tr("Commands"))
        self._nothing = QLabel(tr("No command is called that."))
        self._nothing.setObjectName("palette.nothing")
        self._nothing.setProperty("kind", "small")
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 12, 12, 12)
        column.setSpacing(8)
        column.addWidget(self._query)
        column.addWidget(self._nothing)
        column.addWidget(self._list, 1)
        self._query.installEventFilter(self)
        self._query.textChanged.connect(self._fill)
        self._query.returnPressed.connect(self._run_current)
        self._list.itemClicked.connect(lambda _item: self._run_current())
        self._fill("")

    def open(self) -> None:
        """Over the upper half of the window, ready to type."""
        self.move(self._window.mapToGlobal(QPoint((self._window.width() - self.width()) // 2, 64)))
        self.show()
        self._query.setFocus()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._query and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            step = _MOVES.get(Qt.Key(event.key()))
            if step is not None:
                last = self._list.count() - 1
                self._list.setCurrentRow(max(0, min(last, self._list.currentRow() + step)))
                return True
        return super().eventFilter(watched, event)

    def _fill(self, query: str) -> None:
        self._list.clear()
        for key in ranked(query, {key: action.text() for key, action in self._actions.items()}, self._recent):
            self._add(key)
        self._list.setCurrentRow(0)
        self._nothing.setVisible(self._list.count() == 0)

    def _add(self, key: ActionId) -> None:
        item = QListWidgetItem()
        item.setData(Qt.ItemDataRole.UserRole, key)
        keys = keys_text(COMMANDS[key].shortcut)
        text = self._actions[key].text()
        item.setData(Qt.ItemDataRole.AccessibleTextRole, tr("{0} ({1})", text, keys) if keys else text)
        item.setSizeHint(QSize(0, max(_ROW, self._keeper.theme.px(13) + 20)))
        row = QWidget()
        line = QHBoxLayout(row)
        line.setContentsMargins(12, 0, 12, 0)
        line.addWidget(QLabel(text), 1)
        group = QLabel(tr(COMMANDS[key].group))
        group.setProperty("kind", "small")
        line.addWidget(group)
        if keys:
            shortcut = QLabel(keys)
            shortcut.setProperty("kind", "key")
            line.addWidget(shortcut, 0, Qt.AlignmentFlag.AlignVCenter)
        self._list.addItem(item)
        self._list.setItemWidget(item, row)

    def _run_current(self) -> None:
        if self._list.currentRow() < 0:
            return
        key: ActionId = self._list.currentItem().data(Qt.ItemDataRole.UserRole)
        action = self._actions[key]
        self.chosen.emit(key)
        self.close()
        action.trigger()


def ranked(query: str, texts: Mapping[ActionId, str], recent: Sequence[str]) -> list[ActionId]:
    """The actions whose words fit, best first; without a query those used last, then all in the table's order."""
    order = {key: place for place, key in enumerate(recent)}
    scored = [(score(query, text), key) for key, text in texts.items()]
    fitting = [(found, key) for found, key in scored if found is not None]
    if not query.strip():
        return sorted((key for _, key in fitting), key=lambda key: order.get(key, len(order)))
    return [key for _, key in sorted(fitting, key=lambda pair: (-pair[0], order.get(pair[1], len(order))))]
