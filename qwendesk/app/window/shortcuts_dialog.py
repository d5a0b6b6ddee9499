"""The dialog with all keyboard shortcuts (F1), built from the table of commands."""

from collections.abc import Mapping

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from qwendesk.core.translation import tr
from qwendesk.widgets.actions import COMMANDS, FIXED_KEYS, GROUPS, ActionId, keys_text
from qwendesk.widgets.buttons import describe
from qwendesk.widgets.question_dialog import Dialog


class ShortcutsDialog(Dialog):
    """Lists the shortcuts of the commands that are installed in the window."""

    def __init__(self, actions: Mapping[ActionId, QAction], parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("shortcuts")
        self.setWindowTitle(tr("Keyboard shortcuts"))
        self.resize(min(820, parent.width() - 40), min(640, parent.height() - 40))
        area = QScrollArea()
        area.setObjectName("shortcuts.area")
        area.setAccessibleName(tr("Keyboard shortcuts"))
        area.setToolTip(tr("Keyboard shortcuts"))
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(_content(actions))
        close = QPushButton(tr("Close"))
        close.setProperty("kind", "primary")
        describe(close, "shortcuts.close", tr("Close"), shortcut="Esc")
        close.clicked.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(12)
        keys = (keys_text(COMMANDS["menu"].shortcut), keys_text(COMMANDS["palette"].shortcut))
        hint = QLabel(tr("All other commands are in the menu ({0}) and the command palette ({1}).", *keys))
        hint.setProperty("kind", "dim")
        hint.setWordWrap(True)
        column.addWidget(hint)
        column.addWidget(area, 1)
        column.addWidget(close, 0, Qt.AlignmentFlag.AlignRight)
        close.setFocus()
        self.finished.connect(self.deleteLater)


def rows(actions: Mapping[ActionId, QAction]) -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """Return commands and their keys by heading, without commands that have no key."""
    result: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for group in GROUPS:
        result[tr(group)] = [
            (action.text(), tuple(keys_text(keys) for keys in COMMANDS[key].shortcuts))
            for key, action in actions.items()
            if COMMANDS[key].group == group and COMMANDS[key].shortcut
        ]
    result[tr("In certain places")] = [(tr(each.text), (keys_text(each.keys),)) for each in FIXED_KEYS]
    return {heading: lines for heading, lines in result.items() if lines}


def _content(actions: Mapping[ActionId, QAction]) -> QWidget:
    inner = QWidget()
    inner.setProperty("kind", "page")
    grid = QGridLayout(inner)
    grid.setContentsMargins(0, 0, 12, 0)
    grid.setHorizontalSpacing(24)
    grid.setVerticalSpacing(8)
    grid.setColumnStretch(0, 1)
    line = 0
    for heading, lines in rows(actions).items():
        title = QLabel(heading)
        title.setProperty("kind", "heading")
        title.setContentsMargins(0, 12 if line else 0, 0, 0)
        grid.addWidget(title, line, 0, 1, 2)
        line += 1
        for text, keys in lines:
            words = QLabel(text)
            words.setWordWrap(True)
            grid.addWidget(words, line, 0)
            grid.addLayout(_keys(keys), line, 1, Qt.AlignmentFlag.AlignRight)
            line += 1
    grid.setRowStretch(line, 1)
    return inner


def _keys(keys: tuple[str, ...]) -> QHBoxLayout:
    row = QHBoxLayout()
    row.setSpacing(6)
    for each in keys:
        label = QLabel(each)
        label.setProperty("kind", "key")
        row.addWidget(label)
    return row
