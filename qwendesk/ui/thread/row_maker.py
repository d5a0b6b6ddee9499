"""Makes the widget of a question or an answer, joined to the conversation it stands in."""

from typing import TYPE_CHECKING

from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.code_file import ask_where_to_save
from qwendesk.ui.thread.formulas import FormulaShelf
from qwendesk.ui.thread.message_assistant import AssistantMessage
from qwendesk.ui.thread.message_user import UserMessage
from qwendesk.ui.thread.rows import Row
from qwendesk.ui.thread.thumbnails import PictureShelf

if TYPE_CHECKING:
    from qwendesk.ui.thread.thread_view import ThreadView


class RowMaker:
    """One for a whole thread: its formulas and pictures are drawn once for all rows."""

    def __init__(self, thread: "ThreadView", keeper: ThemeKeeper, shelf: PictureShelf, tasks: Tasks) -> None:
        self._thread, self._keeper, self._shelf, self._tasks = thread, keeper, shelf, tasks
        self._formulas = FormulaShelf(thread)

    def question(self, row: Row) -> UserMessage:
        thread = self._thread
        question = UserMessage(self._keeper, row.turn.question, self._shelf, self._tasks)
        question.setObjectName(f"thread.question.{row.turn.id}")
        question.picture_opened.connect(thread.picture_opened)
        question.offer(row.turn, thread.intents)
        return question

    def answer(self, row: Row, width: int, height: int) -> AssistantMessage:
        """`width` is its own; it draws what lies in its first `height` pixels at once."""
        turn, thread = row.turn, self._thread
        answer = AssistantMessage(self._keeper, turn.id, self._formulas)
        answer.setObjectName(f"thread.message.{turn.id}")
        answer.resize(width, 1)
        answer.try_again.connect(lambda: thread.try_again.emit(turn.id))
        view = answer.answer_view
        view.show_range(0, height)
        view.code_saved.connect(lambda text, language: ask_where_to_save(thread, self._tasks, text, language))
        view.dragged.connect(lambda place: thread.drag.moved(view, place))
        view.jumped.connect(lambda y: thread.show_place(row, y))
        if row.is_open:
            answer.go_on(turn.answer)
            return answer
        answer.end(turn.answer)
        answer.offer(turn, thread.intents)
        if answer.think_block is not None and row.thought_open:
            answer.think_block.set_open(opened=True)
        return answer
