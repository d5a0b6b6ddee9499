"""A question: a card on the right with its pictures, clips and documents."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent, QTextCursor
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from qwendesk.chat.view.answer.text_search import mark_found
from qwendesk.chat.view.thread.document_chip import DocumentChip
from qwendesk.chat.view.thread.message_actions import MessageActions
from qwendesk.chat.view.thread.pictures.clip_strip import ClipStrip
from qwendesk.chat.view.thread.pictures.thumbnails import PreviewCache, Thumbnail
from qwendesk.chat.view.thread.turn_editor import edit_in_place, reopen_edit
from qwendesk.chat.view.thread.turn_intents import TurnIntents
from qwendesk.core.clips import pictures_and_clips
from qwendesk.core.conversation import Turn
from qwendesk.core.messages import ImagePart, Message
from qwendesk.core.number_format import show_count
from qwendesk.core.translation import tr
from qwendesk.widgets.drag_and_drop import make_draggable
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.text_pane import TextPane, reading_line_format
from qwendesk.widgets.theme_keeper import app_theme, current_theme

_PADDING = 14
_WIDEST_SHARE = 0.8
_THUMBNAIL = QSize(184, 132)
_IN_A_ROW = 3


class UserMessage(QWidget):
    picture_opened = Signal(str, object)
    """Path of a clicked picture, and its ClipFrame if it is a frame of a clip."""

    def __init__(self, question: Message, previews: PreviewCache) -> None:
        super().__init__()
        self._card = QFrame()
        self._card.setProperty("kind", "question")
        inside = QVBoxLayout(self._card)
        # The bottom margin is smaller with a text, because its last line already has line spacing below it.
        inside.setContentsMargins(_PADDING, 10, _PADDING, 7 if question.text.strip() else 10)
        inside.setSpacing(8)
        attached = pictures_and_clips(question.images)
        pictures = [images[0] for images in attached if images[0].frame is None]
        if pictures:
            inside.addLayout(self._thumbnails(pictures, previews))
        self._clips: list[ClipStrip] = []
        for images in attached:
            if (clip := images[0].frame) is not None:
                strip = ClipStrip(images, clip, f"thread.clip.{len(self._clips) + 1}", previews)
                strip.opened.connect(self.picture_opened)
                self._clips.append(strip)
                inside.addWidget(strip, 0, Qt.AlignmentFlag.AlignLeft)
        for number, document in enumerate(question.documents, 1):
            inside.addWidget(DocumentChip(document, number), 0, Qt.AlignmentFlag.AlignLeft)
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
        app_theme().follow(self, self._show_text)

    def mark_found(self, query: str, number: int) -> int:
        """Highlight the matches of `query`. Return how far below the top match `number` is."""
        place = mark_found(self._text, current_theme(), query, number)
        return self._text.mapTo(self, place.topLeft()).y() if place is not None else 0

    def add_actions(self, turn: Turn, intents: TurnIntents) -> None:
        """Add the actions for this question."""
        actions = MessageActions(turn, "question", intents, self)
        self._column.addWidget(actions, 0, Qt.AlignmentFlag.AlignRight)
        actions.show()

        def edit() -> None:
            edit_in_place(turn, intents, self._column, [self._card, actions], question=True)

        actions.edit.clicked.connect(edit)
        reopen_edit(self, turn.question_id, intents, edit)

    def _thumbnails(self, images: Sequence[ImagePart], previews: PreviewCache) -> QGridLayout:
        grid = QGridLayout()
        grid.setSpacing(8)
        largest = _THUMBNAIL if len(images) == 1 else QSize(132, 104)
        for index, image in enumerate(images):
            path = Path(image.path)
            thumbnail = Thumbnail(path, largest)
            thumbnail.setObjectName(f"thread.picture.{index + 1}")
            thumbnail.opened.connect(lambda path: self.picture_opened.emit(path, None))
            make_draggable(thumbnail, partial(previews.mime, path))
            if image.longest_side:
                thumbnail.note = tr("sent at up to {0} px", show_count(image.longest_side))
            grid.addWidget(thumbnail, index // _IN_A_ROW, index % _IN_A_ROW, Qt.AlignmentFlag.AlignTop)
            window_tasks().start(thumbnail.fill(previews), thumbnail)
        grid.setColumnStretch(_IN_A_ROW, 1)
        return grid

    def _show_text(self) -> None:
        self._text.document().setDefaultFont(current_theme().font(14))
        self._text.setPlainText(self._words)
        cursor = QTextCursor(self._text.document())
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.mergeBlockFormat(reading_line_format())
        self._fit_width()

    def _fit_width(self) -> None:
        """Make the card as wide as its text, its documents and its clips, up to a share of the column."""
        widest = round(self.width() * _WIDEST_SHARE) - 2 * _PADDING
        document = self._text.document()
        document.setTextWidth(-1)
        documents = [chip.sizeHint().width() for chip in self._card.findChildren(DocumentChip)]
        clips = [strip.fit_width(widest) for strip in self._clips]
        width = max(40, min(widest, max(round(document.idealWidth()) + 2, *documents, *clips, 0)))
        self._text.setFixedWidth(width)
        document.setTextWidth(width)
        self._text.fit_height()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit_width()
