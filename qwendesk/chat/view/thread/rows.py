"""The rows of a conversation, each a question or an answer: their data, widgets and positions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

import msgspec
from PySide6.QtCore import QObject, QPoint, Signal
from PySide6.QtWidgets import QApplication, QWidget

from qwendesk.chat.view.answer.formulas import FormulaCache
from qwendesk.chat.view.answer.highlighter import Highlighter
from qwendesk.chat.view.answer.stack_geometry import StackGeometry
from qwendesk.chat.view.thread.pictures.thumbnails import PreviewCache
from qwendesk.chat.view.thread.turn_intents import EDITED, TurnIntents
from qwendesk.core.conversation import Turn
from qwendesk.widgets.kit import READING_WIDTH
from qwendesk.widgets.step_budget import StepBudget

if TYPE_CHECKING:
    from qwendesk.chat.view.thread.assistant_message import AssistantMessage
    from qwendesk.chat.view.thread.user_message import UserMessage

Part = Literal["question", "answer"]
# Widest column of the conversation, in pixels.
COLUMN_WIDTH = READING_WIDTH
_LINE = 22.0
_CHARACTERS_IN_LINE = 100.0


class ScrollAnchor(msgspec.Struct, frozen=True):
    """A reading position: the text at the top of the viewport. It stays valid when widths, themes or turns change."""

    turn: int = 0
    part: Part = "question"
    section: int = 0
    """The section of the answer; 0 in a question."""
    offset: int = 0
    """Pixels from the top of the section or row down to the top of the viewport."""
    in_text: bool = False
    """True if `section` and `offset` refer to the answer's text instead of the row."""
    at_end: bool = True
    """True if the view is at the end and follows new text."""


@dataclass
class Row:
    """A question or an answer. `widget` is None while the row is far from the viewport."""

    part: Part
    turn: Turn
    widget: "UserMessage | AssistantMessage | None" = None
    is_generating: bool = False
    """True if the answer is being generated. Its widget is then kept, because nothing else has the text so far."""
    is_thinking_expanded: bool = False

    @property
    def answer_widget(self) -> "AssistantMessage | None":
        """The widget of an answer; None for a question, and while there is no widget."""
        return cast("AssistantMessage | None", self.widget) if self.part == "answer" else None

    @property
    def question_widget(self) -> "UserMessage | None":
        return cast("UserMessage | None", self.widget) if self.part == "question" else None

    @property
    def is_in_use(self) -> bool:
        """Whether the widget must be kept: it is growing, has the focus, or contains an edit or a selection."""
        if self.widget is None:
            return False
        focus = QApplication.focusWidget()
        if (
            self.is_generating
            or self.widget.property(EDITED)
            or (focus is not None and self.widget.isAncestorOf(focus))
        ):
            return True
        answer = self.answer_widget
        return answer is not None and answer.answer_view.is_in_use

    @property
    def is_busy(self) -> bool:
        """Whether its answer is still being parsed, drawn or copied."""
        view = self.answer_widget.answer_view if self.answer_widget is not None else None
        return view is not None and (not view.is_complete or view.selection.is_copying)

    def estimate_height(self, width: int) -> int:
        """Return an estimate of its height in pixels."""
        share = max(0.3, width / COLUMN_WIDTH)
        if self.part == "question":
            text = self.turn.question.text
            is_clip = any(image.frame for image in self.turn.question.images)
            pictures = 200 if is_clip else 150 if self.turn.question.images else 0
            attached = pictures + 38 * len(self.turn.question.documents)
            return round(_lines(text, share * 0.8) * _LINE + 22 + attached)
        answer = self.turn.answer
        height = _lines(answer.text, share) * _LINE * 1.1 + 36
        return round(height + (42 if answer.reasoning else 0) + (50 if answer.error else 0))


def _lines(text: str, share: float) -> float:
    return text.count("\n") * 0.8 + len(text) / (_CHARACTERS_IN_LINE * share) + 1


def preferred_height(widget: QWidget, width: int) -> int:
    """Return the preferred height of a message at a width, computing its layouts at once."""
    layout = widget.layout()
    if widget.width() != width:
        widget.resize(width, max(1, widget.height()))
    if layout is None:
        return widget.sizeHint().height()
    wanted = -1
    for _ in range(3):
        layout.activate()
        before = wanted
        wanted = layout.totalHeightForWidth(width) if layout.hasHeightForWidth() else layout.totalSizeHint().height()
        if wanted == before:
            break
    return wanted


class RowPositions:
    """Converts between pixels and positions in a conversation.

    The row that was found last is tried first.
    """

    def __init__(self, rows: Sequence[Row], geometry: StackGeometry) -> None:
        self._rows = rows
        self._geometry = geometry
        self._last: int = 0

    def index_of(self, turn_id: int, part: str) -> int:
        """Return the index of a row; -1 if there is none. The last turns are searched first."""
        for index in (self._last, *range(len(self._rows) - 1, -1, -1)):
            row = self._rows[index] if index < len(self._rows) else None
            if row is not None and row.turn.id == turn_id and row.part == part:
                self._last = index
                return self._last
        return -1

    @staticmethod
    def _ends_above(row: Row, offset: int) -> bool:
        """Return whether all of a row is above this offset, since its height was measured before its text was drawn."""
        widget = row.widget
        return widget is not None and not row.is_busy and offset > preferred_height(widget, widget.width())

    def anchor_at(self, y: int) -> ScrollAnchor:
        """Return the position at `y`, in pixels from the top of the column."""
        if not self._rows:
            return ScrollAnchor()
        index = self._geometry.index_at(max(0, y))
        row = self._rows[index]
        offset, section = y - self._geometry.top(index), 0
        if self._ends_above(row, offset) and index + 1 < len(self._rows):
            index, row = index + 1, self._rows[index + 1]
            return ScrollAnchor(row.turn.id, row.part, 0, y - self._geometry.top(index), at_end=False)
        answer = row.answer_widget
        if answer is not None and offset > answer.answer_view.y():
            section, offset = answer.answer_view.place_at(offset - answer.answer_view.y())
            return ScrollAnchor(row.turn.id, row.part, section, offset, at_end=False, in_text=True)
        return ScrollAnchor(row.turn.id, row.part, section, offset, at_end=False)

    def y_of(self, position: ScrollAnchor) -> int | None:
        """Return the current y of a position, in pixels; None if its turn is gone."""
        index = self.index_of(position.turn, position.part)
        if index < 0:
            return None
        row, y = self._rows[index], self._geometry.top(index)
        if position.in_text and row.answer_widget is not None:
            view = row.answer_widget.answer_view
            return y + view.y() + view.y_of(position.section, position.offset)
        return y + position.offset


def import_message_widgets() -> None:
    """Import the widgets of messages, so that the first answer needn't wait for that. Blocks for up to 0.2 s."""
    import qwendesk.chat.view.answer.code_card  # noqa: PLC0415
    import qwendesk.chat.view.thread.assistant_message  # noqa: PLC0415
    import qwendesk.chat.view.thread.user_message  # noqa: F401, PLC0415


class RowFactory(QObject):
    """Creates the widgets of rows. They share formulas, pictures and the highlighter; their signals are forwarded."""

    picture_opened = Signal(str, object)
    """Path of a picture, and its ClipFrame if it is a frame of a clip."""
    try_again = Signal(int)
    """Asks to answer the question of this turn again."""
    page_asked = Signal(str, str)
    """Text and language of HTML or SVG to show in the browser."""
    dragged = Signal(object, QPoint)
    """A selection is being dragged: the AnswerView, and the mouse position in its coordinates."""
    parsed = Signal(object)
    """The answer of this Row is complete and completely parsed."""
    jumped = Signal(object, int)
    """The user followed a footnote link: the Row, and the position in pixels from the top of its answer."""

    def __init__(self, thread: QWidget, previews: PreviewCache, budget: StepBudget, intents: TurnIntents) -> None:
        super().__init__(thread)
        self._thread, self._previews = thread, previews
        self._budget, self._intents = budget, intents
        self._formulas = FormulaCache(thread)
        self.highlighter = Highlighter(thread)

    def question(self, row: Row) -> "UserMessage":
        # Not imported with this module, like what an answer needs: the window opens sooner (import_message_widgets).
        from qwendesk.chat.view.thread.user_message import UserMessage  # noqa: PLC0415

        question = UserMessage(row.turn.question, self._previews)
        question.setObjectName(f"thread.question.{row.turn.id}")
        question.picture_opened.connect(self.picture_opened)
        question.add_actions(row.turn, self._intents)
        return question

    def answer(self, row: Row, width: int, height: int) -> "AssistantMessage":
        """Return the widget of an answer, `width` pixels wide, with the first `height` pixels drawn."""
        from qwendesk.chat.view.answer.code_card import ask_to_save_code  # noqa: PLC0415
        from qwendesk.chat.view.thread.assistant_message import AssistantMessage  # noqa: PLC0415

        turn = row.turn
        intents = self._intents
        answer = AssistantMessage(
            turn.id, self._formulas, self.highlighter, self._budget, intents.calls, intents.sources
        )
        answer.setObjectName(f"thread.message.{turn.id}")
        answer.resize(width, 1)
        answer.try_again.connect(lambda: self.try_again.emit(turn.id))
        answer.answer_view.show_range(0, height)
        answer.code_saved.connect(lambda text, language: ask_to_save_code(self._thread, text, language))
        answer.page_asked.connect(self.page_asked)
        answer.dragged.connect(self.dragged.emit)
        answer.parsed.connect(lambda: self.parsed.emit(row))
        answer.jumped.connect(lambda y: self.jumped.emit(row, y))
        if row.is_generating:
            answer.resume(turn.answer)
            return answer
        answer.end(turn.answer)
        answer.add_actions(turn, self._intents)
        if answer.think_block is not None and row.is_thinking_expanded:
            answer.think_block.set_open(opened=True)
        return answer
