"""The main menu, the command palette and the dialog with all keyboard shortcuts."""

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QObject, Qt, Signal
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

from qwendesk.app.window.main_window import MainWindow
from qwendesk.core.translation import tr
from qwendesk.widgets.actions import COMMANDS, FIXED_KEYS, GROUPS, ActionId, install, installed, keys_text
from qwendesk.widgets.buttons import describe
from qwendesk.widgets.popups import Menu, SearchPopover
from qwendesk.widgets.question_dialog import Dialog
from qwendesk.widgets.theme_keeper import app_theme, current_theme

# The actions of this group are in the menu itself; each other group has a submenu.
_UNGROUPED = "App"

# Distance of the palette from the upper edge of the window, in pixels.
_PALETTE_TOP = 64


class CommandMenus(QObject):
    """Opens the menus, and remembers the most recently used commands."""

    recent_changed = Signal()

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._recent: tuple[str, ...] = ()
        install(
            window,
            {
                "palette": self.open_palette,
                "menu": self.open_menu,
                "shortcuts": self.open_shortcuts,
                "theme_system": lambda: app_theme().choose("system"),
                "theme_dark": lambda: app_theme().choose("dark"),
                "theme_light": lambda: app_theme().choose("light"),
                "theme_contrast": lambda: app_theme().choose("contrast"),
            },
        )
        window.top_bar.menu_asked.connect(self.open_menu)

    @property
    def recent(self) -> tuple[str, ...]:
        """Ids of the most recently used commands, the latest first."""
        return self._recent

    def remember(self, recent: Sequence[str]) -> None:
        """Restore the most recently used commands of an earlier run."""
        self._recent = tuple(recent)[:MOST_RECENT]

    def open_palette(self) -> None:
        palette = Palette(installed(self._window), self._recent, self._window)
        palette.chosen.connect(self._on_chosen)
        palette.open_at(self._window, _PALETTE_TOP)

    def open_menu(self) -> None:
        button = self._window.top_bar.menu_button
        menu = _main_menu(self._window, installed(self._window))
        menu.open_at(button, is_right_aligned=True)

    def open_shortcuts(self) -> None:
        ShortcutsDialog(installed(self._window), self._window).open()

    def _on_chosen(self, key: str) -> None:
        self._recent = (key, *(each for each in self._recent if each != key))[:MOST_RECENT]
        self.recent_changed.emit()


def _main_menu(parent: QWidget, actions: Mapping[ActionId, QAction]) -> Menu:
    """Build the menu from the table of commands. It deletes itself when it is closed."""
    menu = Menu(parent)
    menu.setObjectName("menu")
    menu.setAccessibleName(tr("Menu"))
    for group in GROUPS:
        mine = [action for key, action in actions.items() if COMMANDS[key].group == group and key != "menu"]
        if group == _UNGROUPED:
            menu.addSeparator()
            menu.addActions(mine)
        elif mine:
            submenu = menu.add_submenu(tr(group), f"menu.{group.lower()}")
            submenu.addActions(mine)
    menu.aboutToHide.connect(menu.deleteLater)
    return menu


MOST_RECENT = 8
_WIDTH, _ROW = 560, 36
_MOST_ROWS = 10
# Commands that make no sense in the palette.
_HIDDEN: tuple[ActionId, ...] = ("palette", "menu", "stop")
_WORD_START, _CONSECUTIVE, _OTHER = 8.0, 5.0, 1.0
# Points for each matching letter, and the penalty for each letter of the text.
_LENGTH_PENALTY = 0.1


class Palette(SearchPopover):
    """Built each time it is opened. Emits `chosen` with the id of the command that was run."""

    chosen = Signal(str)

    def __init__(self, actions: Mapping[ActionId, QAction], recent: Sequence[str], parent: QWidget) -> None:
        height = max(_ROW, current_theme().px(13) + 20)
        super().__init__(
            "palette", tr("Search commands"), parent, width=_WIDTH, row_height=height, most_rows=_MOST_ROWS
        )
        self._actions = {key: action for key, action in actions.items() if key not in _HIDDEN}
        self._recent = tuple(recent)
        self.describe_parts(tr("Search commands"), tr("Type a few letters, then press Enter"), tr("Commands"))

    def fill(self, query: str) -> str:
        keys = ranked(query, {key: action.text() for key, action in self._actions.items()}, self._recent)
        for key in keys:
            self._add(key)
        return "" if keys else tr("No matching command")

    def choose(self, key: str) -> None:
        action = next(action for name, action in self._actions.items() if name == key)
        self.chosen.emit(key)
        action.trigger()

    def _add(self, key: ActionId) -> None:
        keys = keys_text(COMMANDS[key].shortcut)
        text = self._actions[key].text()
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
        self.add_row(key, row, tr("{0} ({1})", text, keys) if keys else text)


def ranked(query: str, texts: Mapping[ActionId, str], recent: Sequence[str]) -> list[ActionId]:
    """Return the commands that match `query`, best first; recently used ones come first among equals."""
    order = {key: place for place, key in enumerate(recent)}
    scored = [(match_score(query, text), key) for key, text in texts.items()]
    matching = [(score, key) for score, key in scored if score is not None]
    if not query.strip():
        return sorted((key for _, key in matching), key=lambda key: order.get(key, len(order)))
    return [key for _, key in sorted(matching, key=lambda pair: (-pair[0], order.get(pair[1], len(order))))]


def match_score(query: str, text: str) -> float | None:
    """Return how well the letters of `query` match `text`; None unless `text` has them in this order.

    Higher is better: letters at the start of words count most, then letters in a row. An empty query matches all.
    """
    letters, text = query.lower().replace(" ", ""), text.lower()
    starts = [index for index, letter in enumerate(text) if letters[:1] in ("", letter)]
    scores = (_score_from(letters, text, start) for start in starts or [0])
    return max((score for score in scores if score is not None), default=None)


def _score_from(letters: str, text: str, start: int) -> float | None:
    """Return the score of a match whose first letter is at or after `start`."""
    total, place, previous = 0.0, start, -2
    for letter in letters:
        found = text.find(letter, place)
        if found != place or found == start:
            # Prefer a later start of a word to the next letter that happens to match.
            word = text.find(f" {letter}", max(0, place - 1))
            found = word + 1 if word >= 0 and previous != found - 1 else found
        if found < 0:
            return None
        if found == previous + 1:
            total += _CONSECUTIVE
        elif found == 0 or text[found - 1] == " ":
            total += _WORD_START
        else:
            total += _OTHER
        previous, place = found, found + 1
    return total - _LENGTH_PENALTY * len(text)


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
