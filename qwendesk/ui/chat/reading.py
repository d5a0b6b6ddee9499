"""Where somebody reads, between the thread (by turns) and the store (by messages)."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from qwendesk.core.chats import OF_MESSAGE, ReadPosition, SearchHit
from qwendesk.core.conversation import Turn


class Place(Protocol):
    """What lies at the top of the thread: a frozen struct of the thread's own."""

    @property
    def turn(self) -> int: ...
    @property
    def part(self) -> str: ...
    @property
    def section(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def in_text(self) -> bool: ...
    @property
    def at_end(self) -> bool: ...


@runtime_checkable
class KeepsPlace(Protocol):
    """A thread that can say where its reader is, and go there again."""

    def position(self) -> Any: ...

    def show_position(self, position: Any) -> None: ...


class ShowsHits(Protocol):
    """Marks what a search in all chats found."""

    def show_hit(self, turn_id: int, part: Any, words: str, *, in_thought: bool) -> None: ...


def go_to_hit(shows: ShowsHits, turns: Sequence[Turn], hit: SearchHit) -> None:
    """Puts the words that were found into view, marked; the top of their message when only its file has them."""
    words = next((text for text, is_found in hit.snippet if is_found), "")
    for turn in turns:
        if hit.node_id in (turn.question_id, turn.answer_id):
            part = "question" if hit.node_id == turn.question_id else "answer"
            shows.show_hit(turn.id, part, words, in_thought=hit.in_reasoning)
            return


def place_of_reader(thread: object, turns: Sequence[Turn]) -> ReadPosition:
    """By message; the empty position for a reader at the end."""
    if not isinstance(thread, KeepsPlace):
        return ReadPosition()
    place: Place = thread.position()
    turn = next((each for each in turns if each.id == place.turn), None)
    if turn is None or place.at_end:
        return ReadPosition()
    node_id = turn.question_id if place.part == "question" else turn.answer_id
    return ReadPosition(node_id, place.section if place.in_text else OF_MESSAGE, place.offset)


def go_to(thread: object, turns: Sequence[Turn], position: ReadPosition) -> None:
    """Puts that message at the top of the view; nothing happens when it is not among the turns."""
    if not position.node_id or not isinstance(thread, KeepsPlace):
        return
    for turn in turns:
        if position.node_id in (turn.question_id, turn.answer_id):
            part = "question" if position.node_id == turn.question_id else "answer"
            in_text = position.section != OF_MESSAGE and part == "answer"
            where = {"section": max(0, position.section), "offset": int(position.offset), "in_text": in_text}
            changes = {"turn": turn.id, "part": part, **where}
            thread.show_position(msgspec.structs.replace(thread.position(), **changes, at_end=False))
            return
