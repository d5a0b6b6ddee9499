"""Reads the values of one chat from a JSON stream. An unusable value affects no other chat."""

from collections.abc import Iterator
from typing import Literal, TypeVar

import msgspec

from qwendesk.chat.exchange.json_stream import JsonStream, ValueTooLong
from qwendesk.chat.exchange.limits import MAX_CHAT_BYTES, MAX_MESSAGES
from qwendesk.core.json_decoding import decode_json

T = TypeVar("T")


class ChatValues:
    """Reads the chat at the position of `stream`; `problem` says why it can't be used."""

    def __init__(self, stream: JsonStream) -> None:
        self._stream = stream
        self._begin = stream.position
        self.problem: Literal["", "unreadable", "too_large"] = ""

    def value(self, limit_bytes: int, kind: type[T]) -> T | None:
        """Return the next value; None, with `problem` set, if it is too long or of another type."""
        try:
            return decode_json(self._stream.raw(limit_bytes), kind)
        except ValueTooLong:
            self.problem = "too_large"
        except msgspec.DecodeError:
            self.problem = self.problem or "unreadable"
        return None

    def members(self) -> Iterator[str]:
        """Yield the keys of the next object, as long as the chat is usable."""
        return self._usable(self._stream.members()) if self._is_at(b"{") else iter(())

    def elements(self) -> Iterator[None]:
        """Yield once for each element of the next array, as long as the chat is usable."""
        return self._usable(self._stream.elements()) if self._is_at(b"[") else iter(())

    def _is_at(self, opening: bytes) -> bool:
        if self._stream.peek() != opening:
            self.problem = self.problem or "unreadable"
        return not self.problem

    def _usable(self, items: Iterator[T]) -> Iterator[T]:
        """Consume all `items`, so that the stream is past them, but yield only usable ones."""
        for number, item in enumerate(items, 1):
            if number > MAX_MESSAGES or self._stream.position - self._begin > MAX_CHAT_BYTES:
                self.problem = "too_large"
            if not self.problem:
                yield item
