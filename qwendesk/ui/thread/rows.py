"""The rows of a conversation: a question or an answer each, as data, and as a widget while it is near."""

from dataclasses import dataclass
from typing import Literal

import msgspec
from PySide6.QtWidgets import QApplication, QWidget

from qwendesk.core.conversation import Turn
from qwendesk.ui.thread.message_assistant import AssistantMessage
from qwendesk.ui.thread.message_user import UserMessage
from qwendesk.ui.thread.turn_editor import EDITED

Part = Literal["question", "answer"]
_LINE = 22.0
_CHARACTERS_IN_LINE = 100.0


class ReadPosition(msgspec.Struct, frozen=True):
    """Where somebody reads: what lies at the top of the view. It survives other widths, themes and new turns."""

    turn: int = 0
    part: Part = "question"
    section: int = 0
    """The answer's section, 0 in a question."""
    offset: int = 0
    """Pixels from that section's top (or the row's) down to the top of the view."""
    in_text: bool = False
    """Section and offset are of the answer's text, not of the row."""
    at_end: bool = True
    """The reader is at the end and follows it."""


@dataclass
class Row:
    """One question or answer. Changes with its turn; `widget` is None while it is far from the viewport."""

    part: Part
    turn: Turn
    widget: UserMessage | AssistantMessage | None = None
    is_open: bool = False
    """The answer is being made: its widget stays, since only that holds what came so far."""
    thought_open: bool = False

    @property
    def is_held(self) -> bool:
        """Whether the widget must not be taken away now: it grows, or somebody works in it or has marked some of it."""
        if self.widget is None:
            return False
        focus = QApplication.focusWidget()
        if self.is_open or self.widget.property(EDITED) or (focus is not None and self.widget.isAncestorOf(focus)):
            return True
        return isinstance(self.widget, AssistantMessage) and self.widget.answer_view.is_held

    def guess(self, width: int) -> int:
        """Its height before it is drawn, in pixels."""
        share = max(0.3, width / 772)
        if self.part == "question":
            text = self.turn.question.text
            attached = (150 if self.turn.question.images else 0) + 38 * len(self.turn.question.documents)
            return round(_lines(text, share * 0.8) * _LINE + 22 + attached)
        answer = self.turn.answer
        height = _lines(answer.text, share) * _LINE * 1.1 + 36
        return round(height + (42 if answer.reasoning else 0) + (50 if answer.error else 0))


def _lines(text: str, share: float) -> float:
    return text.count("\n") * 0.8 + len(text) / (_CHARACTERS_IN_LINE * share) + 1


def settled_height(widget: QWidget, width: int) -> int:
    """The height a message wants at a width; its layouts are worked out at once. It is not resized to it."""
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
