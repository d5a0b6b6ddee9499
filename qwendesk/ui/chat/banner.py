"""A banner over the page: what is wrong, what can be done, and the engine's own words on demand."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from qwendesk.core.person import without_this_person
from qwendesk.ui.chat.banner_content import BannerAction, BannerContent
from qwendesk.ui.kit.buttons import IconButton, TextButton, describe, restyle
from qwendesk.ui.kit.density import Airy
from qwendesk.ui.kit.flow import FlowLayout
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper

_MOST_LINES = 12


class Banner(QWidget):
    """Shows one BannerContent, or nothing. A dismissed one stays away until its content changes."""

    chosen = Signal(str)
    """A BannerAction's name."""
    told = Signal(str)
    """What it says now, in one piece."""

    def __init__(self, keeper: ThemeKeeper) -> None:
        super().__init__()
        self._keeper = keeper
        self._content: BannerContent | None = None
        self.setObjectName("banner")
        self._card = QFrame()
        self._card.setProperty("kind", "banner")
        self._title = QLabel()
        self._title.setProperty("kind", "heading")
        self._title.setObjectName("banner.title")
        self._sentence = QLabel()
        self._sentence.setWordWrap(True)
        self._sentence.setObjectName("banner.sentence")
        self._sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._details = QPlainTextEdit()
        self._details.setProperty("kind", "details")
        self._details.setObjectName("banner.lines")
        self._details.setAccessibleName(tr("The engine's own words"))
        self._details.setToolTip(tr("The engine's own words"))
        self._details.setReadOnly(True)
        self._details.setTabChangesFocus(True)
        around = QVBoxLayout(self)
        around.setContentsMargins(0, 14, 0, 6)
        around.addWidget(self._card)
        column = QVBoxLayout(self._card)
        column.setContentsMargins(16, 12, 10, 12)
        column.setSpacing(8)
        Airy(keeper, column)
        column.addLayout(self._first_row())
        column.addWidget(self._sentence)
        column.addLayout(self._buttons())
        column.addWidget(self._details)
        self.hide()

    @property
    def content(self) -> BannerContent | None:
        return self._content

    def show_content(self, content: BannerContent | None) -> None:
        if content == self._content:
            return
        self._content = content
        if content is None:
            self.hide()
            return
        restyle(self._card, "tone", content.tone)
        self._title.setText(content.title)
        self._sentence.setText(content.sentence)
        for action, button in self._actions.items():
            button.setVisible(action in content.actions)
        if content.safer:
            describe(self._actions["safer"], "banner.safer", content.safer, tr("Load again with this change"))
            self._actions["safer"].setText(content.safer)
        self._more.setVisible(bool(content.details))
        self._copy.setVisible(bool(content.details))
        self._more.setChecked(False)
        self._details.setPlainText("\n".join(content.details))
        self._details.setFont(self._keeper.theme.mono_font(12))
        lines = min(_MOST_LINES, max(2, len(content.details)) + 1)
        self._details.setFixedHeight(lines * self._details.fontMetrics().lineSpacing() + 28)
        self._details.hide()
        self.show()
        self.told.emit(f"{content.title}. {content.sentence}")

    def _first_row(self) -> QHBoxLayout:
        close = IconButton(self._keeper, "close", size=16, side=28)
        describe(close, "banner.dismiss", tr("Dismiss"))
        close.clicked.connect(self.hide)
        row = QHBoxLayout()
        row.addWidget(self._title, 1)
        row.addWidget(close)
        return row

    def _buttons(self) -> FlowLayout:
        texts: tuple[tuple[BannerAction, str, str], ...] = (
            ("safer", tr("Try again"), tr("Load again with this change")),
            ("restart", tr("Restart the engine"), tr("Start the engine and load the model again")),
            ("choose", tr("Choose another file…"), tr("Choose another GGUF file")),
            ("demo", tr("Use the built-in demo"), tr("Load the built-in demo model; it knows a few topics")),
        )
        self._actions: dict[BannerAction, TextButton] = {}
        row = FlowLayout()
        for action, text, tip in texts:
            button = TextButton(self._keeper, text)
            describe(button, f"banner.{action}", text, tip)
            button.clicked.connect(lambda _checked=False, action=action: self.chosen.emit(action))
            self._actions[action] = button
            row.addWidget(button)
        self._more = TextButton(self._keeper, tr("Details"), kind="quiet")
        self._more.setCheckable(True)
        describe(self._more, "banner.details", tr("Details"), tr("Show the engine's own words"))
        self._more.toggled.connect(self._details.setVisible)
        self._copy = TextButton(self._keeper, " " + tr("Copy"), kind="quiet", icon_name="copy")
        describe(self._copy, "banner.copy", tr("Copy"), tr("Copy this message with its details"))
        self._copy.clicked.connect(self._copy_all)
        row.addWidget(self._more)
        row.addWidget(self._copy)
        return row

    def _copy_all(self) -> None:
        if self._content is not None:
            lines = (self._content.title, self._content.sentence, "", *self._content.details)
            QGuiApplication.clipboard().setText(without_this_person("\n".join(lines)))
