"""The widget kit: labels, buttons, rows, columns and cards, and the one grid that all pages share.

A page is written with these functions. The theme and `widgets/stylesheet.py` decide what a kind looks like.
"""

from typing import Final, TypeVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QLabel, QLayout, QSizePolicy, QVBoxLayout, QWidget

from qwendesk.widgets.buttons import ChevronButton, TextButton, describe
from qwendesk.widgets.icons import pixmap
from qwendesk.widgets.text_layout import WrappingLabel
from qwendesk.widgets.theme_keeper import app_theme, current_theme

# Widest column of a page, and of what is read: the first start, the chat, the cards of the settings. In pixels.
PAGE_WIDTH, READING_WIDTH = 960, 752
# Least margin beside a column; gap between cards; padding of a card, and of a card that is a list.
MARGIN, GAP, PADDING, LIST_PADDING = 24, 16, 24, 16
# Heights of the main button of a page, and of a choice beside others.
MAIN_BUTTON, CHOICE = 40, 96

BoxT = TypeVar("BoxT", bound=QBoxLayout)

STRETCH: Final = "stretch"
"""An item of a row or column that takes the free space."""

Item = QWidget | QLayout | int | str
"""What a row or column holds: widgets, layouts, gaps of so many pixels, and STRETCH."""


def label(text: str = "", kind: str = "", *, name: str = "", wraps: bool = False, chip: str = "") -> QLabel:
    """Return a label that shows `text` as it is, without markup.

    `kind` and `chip` select its style in the stylesheet, and `name` is its object name. With `wraps` it uses one line
    if there is enough space and several otherwise; a chip always does.
    """
    made = WrappingLabel(text) if wraps or chip else QLabel(text)
    made.setTextFormat(Qt.TextFormat.PlainText)
    for key, value in (("kind", kind), ("chip", chip)):
        if value:
            made.setProperty(key, value)
    made.setObjectName(name)
    return made


def paragraph(text: str = "", kind: str = "", *, name: str = "", selectable: bool = False) -> QLabel:
    """Return a label for sentences: it takes the width that there is, and wraps."""
    made = label(text, kind, name=name)
    made.setWordWrap(True)
    if selectable:
        made.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return made


def button(
    text: str, name: str, *, kind: str = "", icon_name: str = "", role: str = "text_dim", said: str = "", tip: str = ""
) -> TextButton:
    """Return a button with its object name, accessible name (`said`, else the text) and tooltip (`tip`, else that)."""
    made = TextButton(text, kind=kind, icon_name=icon_name, role=role)
    describe(made, name, said or text, tip)
    return made


def row(*items: Item, spacing: int = 8, margins: tuple[int, int, int, int] = (0, 0, 0, 0)) -> QHBoxLayout:
    """Return a layout with `items` side by side; the margins are left, top, right and bottom."""
    return _filled(QHBoxLayout(), items, spacing, margins)


def column(*items: Item, spacing: int = 8, margins: tuple[int, int, int, int] = (0, 0, 0, 0)) -> QVBoxLayout:
    """Return a layout with `items` below each other; the margins are left, top, right and bottom."""
    return _filled(QVBoxLayout(), items, spacing, margins)


def card(content: QLayout, kind: str = "modelcard", *, name: str = "", padding: int = PADDING) -> QFrame:
    """Return a frame around `content`, whose margins become `padding` pixels."""
    frame = QFrame()
    frame.setProperty("kind", kind)
    frame.setObjectName(name)
    content.setContentsMargins(padding, padding, padding, padding)
    frame.setLayout(content)
    return frame


def centred(widget: QWidget, widest: int, *, margin: int = 0) -> QHBoxLayout:
    """Return a layout with `widget` in the middle, at most `widest` pixels wide; it takes what is there if less is."""
    widget.setMaximumWidth(widest)
    made = row(STRETCH, widget, STRETCH, spacing=0, margins=(margin, 0, margin, 0))
    made.setStretchFactor(widget, 1000)
    return made


class IconLabel(QLabel):
    """Shows an icon in the colour of a theme role, also after the theme has changed."""

    def __init__(self, icon_name: str = "", role: str = "text_dim", size: int = 16) -> None:
        super().__init__()
        self._icon_name, self._role, self._size = icon_name, role, size
        app_theme().changed.connect(self._draw)
        self._draw()

    def show_icon(self, icon_name: str, role: str = "") -> None:
        """Show another icon; "" shows none. A role of the theme stays until another is given."""
        self._icon_name, self._role = icon_name, role or self._role
        self._draw()

    def _draw(self) -> None:
        if self._icon_name:
            color = current_theme()[self._role]
            self.setPixmap(pixmap(self._icon_name, color, self._size, self.devicePixelRatioF()))
        else:
            self.clear()


class Fold(QWidget):
    """A heading that opens and closes what is below it. It begins closed."""

    def __init__(self, name: str, text: str, content: QWidget) -> None:
        super().__init__()
        self._content = content
        self.button = ChevronButton(text, kind="quiet")
        describe(self.button, name, text)
        self.button.clicked.connect(lambda: self.show_open(is_open=not self.is_open))
        self.setLayout(column(row(self.button, STRETCH), content))
        self.show_open(is_open=False)

    @property
    def is_open(self) -> bool:
        return not self._content.isHidden()

    def show_open(self, *, is_open: bool) -> None:
        """Open or close it."""
        self._content.setVisible(is_open)
        self.button.show_chevron("up" if is_open else "down")


def rule() -> QFrame:
    """Return a thin line between two rows."""
    line = QFrame()
    line.setProperty("kind", "rule")
    line.setFixedHeight(1)
    return line


def may_shrink(widget: QWidget) -> QWidget:
    """Let `widget` be as wide as it likes or narrower, for texts that are elided."""
    widget.setSizePolicy(QSizePolicy.Policy.Maximum, widget.sizePolicy().verticalPolicy())
    widget.setMinimumWidth(1)
    return widget


def keep_room(widget: QWidget) -> None:
    """Have `widget` keep its room while it is hidden, so that nothing moves."""
    policy = widget.sizePolicy()
    policy.setRetainSizeWhenHidden(True)
    widget.setSizePolicy(policy)


def _filled(box: BoxT, items: tuple[Item, ...], spacing: int, margins: tuple[int, int, int, int]) -> BoxT:
    box.setContentsMargins(*margins)
    box.setSpacing(spacing)
    for item in items:
        if isinstance(item, QWidget):
            box.addWidget(item)
        elif isinstance(item, QLayout):
            box.addLayout(item)
        elif isinstance(item, int):
            box.addSpacing(item)
        else:
            box.addStretch(1)
    return box
