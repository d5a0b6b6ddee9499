"""The command palette: every command of the window, found by typing a few of its letters."""

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from qwendesk.core.translation import tr
from qwendesk.widgets.actions import COMMANDS, ActionId, keys_text
from qwendesk.widgets.search_popover import SearchPopover
from qwendesk.widgets.theme_keeper import current_theme

MOST_RECENT = 8
_WIDTH, _ROW = 560, 36
_MOST_ROWS = 10
_HIDDEN: tuple[ActionId, ...] = ("palette", "menu", "stop")
"""Commands that make no sense in the palette."""
_WORD_START, _CONSECUTIVE, _OTHER = 8.0, 5.0, 1.0
_LENGTH_PENALTY = 0.1
"""Points for each matching letter, and the penalty for each letter of the text."""


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
