"""The banner at the top of the chat page: a problem, buttons that help, and the engine's output as details."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from qwendesk.chat.view.banner_content import BannerAction, BannerContent
from qwendesk.core.redaction import redact_user_paths
from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import IconButton, TextButton, describe, restyle
from qwendesk.widgets.layouts import DensitySpacing, FlowLayout

_MAX_LINES = 12


class Banner(QWidget):
    """Shows one BannerContent, or is hidden. After it is dismissed, it stays hidden until its content changes."""

    chosen = Signal(str)
    """A BannerAction's name."""
    content_shown = Signal(str)
    """The title and sentence that are now shown."""

    def __init__(self) -> None:
        super().__init__()
        self._content: BannerContent | None = None
        self.setObjectName("banner")
        self._card = QFrame()
        self._card.setProperty("kind", "banner")
        self._title = QLabel()
        self._title.setProperty("kind", "heading")
        self._title.setWordWrap(True)
        self._title.setObjectName("banner.title")
        self._sentence = QLabel()
        self._sentence.setWordWrap(True)
        self._sentence.setObjectName("banner.sentence")
        self._sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._details = QPlainTextEdit()
        self._details.setProperty("kind", "details")
        self._details.setObjectName("banner.lines")
        self._details.setAccessibleName(tr("Engine output"))
        self._details.setToolTip(tr("Engine output"))
        self._details.setReadOnly(True)
        self._details.setTabChangesFocus(True)
        around = QVBoxLayout(self)
        around.setContentsMargins(0, 14, 0, 6)
        around.addWidget(self._card)
        column = QVBoxLayout(self._card)
        column.setContentsMargins(16, 12, 10, 12)
        column.setSpacing(8)
        DensitySpacing(column)
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
        if content.retry:
            describe(self._actions["retry"], "banner.retry", content.retry, tr("Reload the model with this change"))
            self._actions["retry"].setText(content.retry)
        self._more.setVisible(bool(content.details))
        self._copy.setVisible(bool(content.details))
        self._more.setChecked(False)
        self._details.setPlainText("\n".join(content.details))
        self._details.ensurePolished()
        lines = min(_MAX_LINES, max(2, len(content.details)) + 1)
        self._details.setFixedHeight(lines * self._details.fontMetrics().lineSpacing() + 28)
        self._details.hide()
        self.show()
        self.content_shown.emit(f"{content.title}. {content.sentence}")

    def _first_row(self) -> QHBoxLayout:
        close = IconButton("close", size=16, side=28)
        describe(close, "banner.dismiss", tr("Dismiss"))
        close.clicked.connect(self.hide)
        row = QHBoxLayout()
        row.addWidget(self._title, 1)
        row.addWidget(close)
        return row

    def _buttons(self) -> FlowLayout:
        texts: tuple[tuple[BannerAction, str, str], ...] = (
            ("retry", tr("Try again"), tr("Reload the model with this change")),
            ("restart", tr("Restart the engine"), tr("Restart the engine and reload the model")),
            ("again", tr("Try again"), tr("Ask the server once more")),
            ("choose", tr("Choose another file…"), tr("Choose another GGUF file")),
            ("demo", tr("Use the built-in demo"), tr("Load the built-in demo model. It knows only a few topics.")),
        )
        self._actions: dict[BannerAction, TextButton] = {}
        row = FlowLayout()
        for action, text, tip in texts:
            button = TextButton(text)
            describe(button, f"banner.{action}", text, tip)
            button.clicked.connect(lambda _checked=False, action=action: self.chosen.emit(action))
            self._actions[action] = button
            row.addWidget(button)
        self._more = TextButton(tr("Details"), kind="quiet")
        self._more.setCheckable(True)
        describe(self._more, "banner.details", tr("Details"), tr("Show the engine's output"))
        self._more.toggled.connect(self._details.setVisible)
        self._copy = TextButton(" " + tr("Copy"), kind="quiet", icon_name="copy")
        describe(self._copy, "banner.copy", tr("Copy"), tr("Copy this message with its details"))
        self._copy.clicked.connect(self._copy_all)
        row.addWidget(self._more)
        row.addWidget(self._copy)
        return row

    def _copy_all(self) -> None:
        if self._content is not None:
            lines = (self._content.title, self._content.sentence, "", *self._content.details)
            QGuiApplication.clipboard().setText(redact_user_paths("\n".join(lines)))
