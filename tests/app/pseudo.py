"""A language that nobody speaks: every letter has an accent and every text is 40% longer.

What a window shows in it with plain letters did not come through tr, or is not in what tools/i18n.py collects.
"""

import re
from collections.abc import Collection, Iterator

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QLabel,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QTabBar,
    QTextEdit,
    QWidget,
)

from qwendesk.core.translation import FORM_SEPARATOR
from qwendesk.widgets.text_layout import ElidedLabel

_PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ACCENTED = str.maketrans(_PLAIN, "àþçðèƒğĥìĵķĺɱñòƥɋŕšţùṽŵẋýžÀßÇÐÈƑĞĤÌĴĶĹṀÑÒƤɊŔŠŢÙṼŴẊÝŽ")
_KEPT = re.compile(r"(\{\w*\}|&\w+;|<[^<>]*>|\*\.\w+)")
"""Placeholders, tags and file patterns stay as they are."""
_NO_WORDS = re.compile(r"""<[^<>]*>|--[\w-]+|\{\w+\}|"\w+"|(?<!\w)/\S+|[A-Z]:\\\S+|\S+\.(?:png|pdf|gguf|co)(?![a-z])""")
"""Tags, flags, places for values, JSON, paths and names of files."""
_PLAIN_WORD = re.compile(r"[A-Za-z]{2,}")
LONGER = 0.4


def pseudo(text: str) -> str:
    """ "Öþéñ··": the same text with accents, longer by LONGER."""
    pieces = _KEPT.split(text)
    accented = "".join(piece if index % 2 else piece.translate(_ACCENTED) for index, piece in enumerate(pieces))
    n_more = round(LONGER * sum(map(len, pieces[::2])))
    more = "õ" * n_more if n_more < 8 else " ".join(["õõõõõ"] * max(1, n_more // 6))
    return accented + (" " if n_more >= 8 and not text.endswith("\n") else "") + more


class PseudoTranslator:
    """Translates the texts that a language file may hold, and no others."""

    def __init__(self, sources: Collection[str]) -> None:
        self._sources = sources

    def translate(self, source: str, count: int = -1) -> str | None:
        if source not in self._sources:
            return None
        forms = source.split(FORM_SEPARATOR) if count >= 0 else [source]
        return pseudo(forms[0] if count == 1 else forms[-1])


def plain_words(text: str) -> set[str]:
    """The words of a text that were not translated."""
    return set(_PLAIN_WORD.findall(_NO_WORDS.sub(" ", text)))


def texts_of(widget: QWidget) -> Iterator[tuple[str, str]]:
    """Each text that a widget shows or says to a screen reader, by what it is."""
    yield "tooltip", widget.toolTip()
    yield "accessible name", widget.accessibleName()
    yield "accessible description", widget.accessibleDescription()
    if widget.isWindow():
        yield "window title", widget.windowTitle()
    if isinstance(widget, QLabel | QAbstractButton):
        yield "text", widget.text()
    if isinstance(widget, QLineEdit | QPlainTextEdit | QTextEdit):
        yield "placeholder", widget.placeholderText()
    if isinstance(widget, QTabBar):
        for index in range(widget.count()):
            yield "tab", widget.tabText(index)
    if isinstance(widget, QMenu):
        yield "title", widget.title()
    if isinstance(widget, QAbstractItemView) and (model := widget.model()) is not None:
        for row in range(model.rowCount()):
            for role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
                yield f"row {row}", str(model.index(row, 0).data(role) or "")
    for action in widget.actions():
        yield from texts_of_action(action)


def texts_of_action(action: QAction) -> Iterator[tuple[str, str]]:
    yield "action", action.text()
    yield "tooltip", action.toolTip()


def name_of(widget: QWidget) -> str:
    """Its objectName, or that of the nearest parent that has one, with its class."""
    at: QWidget | None = widget
    while at is not None and (not at.objectName() or at.objectName().startswith("qt_")):
        at = at.parentWidget()
    inner = "" if at is widget else f" > {type(widget).__name__}"
    return f"{at.objectName() if at is not None else ''}{inner}"


def too_small(widget: QWidget) -> str:
    """Why the text of a label or button that is on screen cannot be read as a whole; "" when it can."""
    if not isinstance(widget, QLabel | QAbstractButton) or not widget.isVisible():
        return ""
    if not any(letter.isalpha() for letter in widget.text()):
        return ""  # a sign drawn with a font
    if widget.visibleRegion().isEmpty():
        return ""  # scrolled out of view
    if isinstance(widget, ElidedLabel) and widget.toolTip() == widget.text():
        return ""  # elided on purpose, and its tooltip has all of it
    if isinstance(widget, QLabel) and widget.wordWrap():
        needed = widget.heightForWidth(widget.width())
        if needed - widget.height() > widget.fontMetrics().descent():
            return f"needs a height of {needed}, has {widget.height()}"
    elif (needed := _width_of_text(widget)) > widget.width():
        return f"needs a width of {needed}, has {widget.width()}"
    shown = widget.visibleRegion().boundingRect()
    if shown.width() < widget.width() - 1 and not _scrolls_sideways(widget):
        return f"only {shown.width()} of {widget.width()} are in view"
    return ""


def _width_of_text(widget: QLabel | QAbstractButton) -> int:
    """Without what a style puts around it."""
    if isinstance(widget, QLabel):
        return widget.sizeHint().width() - 1
    words = widget.fontMetrics().horizontalAdvance(widget.text())
    is_beside = isinstance(widget, QPushButton) and not widget.icon().isNull()
    return words + (widget.iconSize().width() if is_beside else 0)


def _scrolls_sideways(widget: QWidget) -> bool:
    at = widget.parentWidget()
    while at is not None:
        if isinstance(at, QScrollArea) and at.horizontalScrollBarPolicy() != Qt.ScrollBarPolicy.ScrollBarAlwaysOff:
            return at.horizontalScrollBar().maximum() > 0
        at = at.parentWidget()
    return False
