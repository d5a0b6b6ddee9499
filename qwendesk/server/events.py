"""What the writers of all APIs have in common: they turn the items of an answer into events of a stream."""

from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from qwendesk.engine.contract import AnswerItem
from qwendesk.server.answer import WrittenAnswer
from qwendesk.server.refusals import Refused


class StreamEvent(msgspec.Struct, frozen=True):
    """A server-sent event. A text as data is sent as it is; `name` is its event field."""

    data: dict[str, Any] | str
    name: str = ""

    def encoded(self) -> bytes:
        head = f"event: {self.name}\n".encode() if self.name else b""
        data = self.data.encode() if isinstance(self.data, str) else msgspec.json.encode(self.data)
        return b"%sdata: %s\n\n" % (head, data)


class Comment(msgspec.Struct, frozen=True):
    """A line that clients ignore, which keeps the connection from looking dead."""

    text: str

    def encoded(self) -> bytes:
        return f": {self.text}\n\n".encode()


Frame = StreamEvent | Comment


class EventWriter(Protocol):
    """Writes one answer as the stream of an API. Pure: it sends nothing."""

    def begin(self) -> Iterable[Frame]:
        """Return the events before the first item."""

    def write(self, item: AnswerItem) -> Iterable[Frame]:
        """Return the events for an item that is neither the last one nor PromptProgress."""

    def wait(self) -> Frame:
        """Return what is sent from time to time while the client waits for the next item."""

    def end(self, answer: WrittenAnswer) -> Iterable[Frame]:
        """Return the last events."""

    def fail(self, refused: Refused) -> Iterable[Frame]:
        """Return the last events of an answer that failed after the stream had begun."""
