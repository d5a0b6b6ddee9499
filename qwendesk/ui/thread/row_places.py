"""Places in a conversation that stay when heights change: from pixels to what is there, and back."""

from collections.abc import Sequence

from qwendesk.ui.thread.column import Column
from qwendesk.ui.thread.message_assistant import AssistantMessage
from qwendesk.ui.thread.rows import ReadPosition, Row


class RowPlaces:
    """Looks at the rows of one conversation and the column they lie in; changes neither.

    It tries the row first that it found last.
    """

    def __init__(self, rows: Sequence[Row], column: Column) -> None:
        self._rows = rows
        self._column = column
        self._last: int = 0

    def index(self, turn_id: int, part: str) -> int:
        """The row of a turn; -1 for none. The last turns are found first."""
        for index in (self._last, *range(len(self._rows) - 1, -1, -1)):
            row = self._rows[index] if index < len(self._rows) else None
            if row is not None and row.turn.id == turn_id and row.part == part:
                self._last = index
                return self._last
        return -1

    def at(self, y: int) -> ReadPosition:
        """What lies at a height, in pixels from the column's top."""
        if not self._rows:
            return ReadPosition()
        index = self._column.at(max(0, y))
        row = self._rows[index]
        offset, section = y - self._column.top(index), 0
        if isinstance(row.widget, AssistantMessage) and offset > row.widget.answer_view.y():
            section, offset = row.widget.answer_view.place_at(offset - row.widget.answer_view.y())
            return ReadPosition(row.turn.id, row.part, section, offset, at_end=False, in_text=True)
        return ReadPosition(row.turn.id, row.part, section, offset, at_end=False)

    def y_of(self, position: ReadPosition) -> int | None:
        """The height of a place now; None when its turn is not here any more."""
        index = self.index(position.turn, position.part)
        if index < 0:
            return None
        row, y = self._rows[index], self._column.top(index)
        if position.in_text and isinstance(row.widget, AssistantMessage):
            view = row.widget.answer_view
            return y + view.y() + view.y_of(position.section, position.offset)
        return y + position.offset
