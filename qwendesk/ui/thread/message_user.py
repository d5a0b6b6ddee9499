"""A question: a quiet card at the right, with its pictures and documents."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent, QTextCursor
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from qwendesk.core.conversation import Turn
from qwendesk.core.messages import ImagePart, Message
from qwendesk.ui.kit.dragging import drag_out
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.text_pane import TextPane, airy_lines
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.document_chip import DocumentChip
from qwendesk.ui.thread.find_marks import mark_found
from qwendesk.ui.thread.message_actions import MessageActions
from qwendesk.ui.thread.thumbnails import PictureShelf, Thumbnail
from qwendesk.ui.thread.turn_editor import edit_in_place, reopen_edit
from qwendesk.ui.thread.turn_intents import TurnIntents

_PADDING = 14
_WIDEST_SHARE = 0.8
_THUMBNAIL = QSize(184, 132)
_IN_A_ROW = 3


class UserMessage(QWidget):
    """One question. `picture_opened` carries the path of a picture that was clicked."""

    picture_opened = Signal(str)

    def __init__(self, keeper: ThemeKeeper, question: Message, shelf: PictureShelf, tasks: Tasks) -> None:
        super().__init__()
        self._keeper = keeper
        self._card = QFrame()
        self._card.setProperty("kind", "question")
        inside = QVBoxLayout(self._card)
        # The last line of words has the air below it that lines have between them.
        inside.setContentsMargins(_PADDING, 10, _PADDING, 7 if question.text.strip() else 10)
        inside.setSpacing(8)
        if question.images:
            inside.addLayout(self._thumbnails(question.images, shelf, tasks))
        for number, document in enumerate(question.documents, 1):
            inside.addWidget(DocumentChip(keeper, document, number), 0, Qt.AlignmentFlag.AlignLeft)
        self._text = TextPane()
        self._text.setObjectName("thread.question.text")
        self._text.setAccessibleName(tr("Your question"))
        inside.addWidget(self._text)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(2)
        row = QHBoxLayout()
        self._column.addLayout(row)
        row.addStretch(1)
        row.addWidget(self._card)
        self._words = question.text.strip()
        self._text.setHidden(not self._words)
        self._show_text()
        keeper.changed.connect(self._show_text)

    def mark_found(self, words: str, number: int) -> int:
        """Mark places with `words`; returns how far below the top number `number` of them is."""
        place = mark_found(self._text, self._keeper.theme, words, number)
        return self._text.mapTo(self, place.topLeft()).y() if place is not None else 0

    def offer(self, turn: Turn, intents: TurnIntents) -> None:
        """What can be done with this question, under it."""
        actions = MessageActions(self._keeper, turn, "question", intents, self)
        self._column.addWidget(actions, 0, Qt.AlignmentFlag.AlignRight)
        actions.show()

        def edit() -> None:
            edit_in_place(self._keeper, turn, intents, self._column, [self._card, actions], question=True)

        actions.edit.clicked.connect(edit)
        reopen_edit(self, turn.question_id, intents, edit)

    def _thumbnails(self, images: Sequence[ImagePart], shelf: PictureShelf, tasks: Tasks) -> QGridLayout:
        grid = QGridLayout()
        grid.setSpacing(8)
        largest = _THUMBNAIL if len(images) == 1 else QSize(132, 104)
        for index, image in enumerate(images):
            path = Path(image.path)
            thumbnail = Thumbnail(self._keeper, path, largest)
            thumbnail.setObjectName(f"thread.picture.{index + 1}")
            thumbnail.opened.connect(self.picture_opened)
            drag_out(thumbnail, partial(shelf.mime, path))
            if image.longest_side:
                thumbnail.note = tr("sent with at most {0} px", f"{image.longest_side:,}")
            grid.addWidget(thumbnail, index // _IN_A_ROW, index % _IN_A_ROW, Qt.AlignmentFlag.AlignTop)
            tasks.start(thumbnail.fill(shelf), thumbnail)
        grid.setColumnStretch(_IN_A_ROW, 1)
        return grid

    def _show_text(self) -> None:
        self._text.document().setDefaultFont(self._keeper.theme.font(14))
        self._text.setPlainText(self._words)
        cursor = QTextCursor(self._text.document())
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.mergeBlockFormat(airy_lines())
        self._fit_width()

    def _fit_width(self) -> None:
        """As wide as the text needs, up to a share of the column."""
        widest = round(self.width() * _WIDEST_SHARE) - 2 * _PADDING
        document = self._text.document()
        document.setTextWidth(-1)
        width = max(40, min(widest, round(document.idealWidth()) + 2))
        self._text.setFixedWidth(width)
        document.setTextWidth(width)
        self._text.fit_height()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit_width()
