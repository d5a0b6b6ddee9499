"""Values of the export and import of chats, the limits of an import, and how values are read from a JSON stream."""

from collections.abc import Iterator
from typing import Literal, TypeVar

import msgspec
from msgspec.structs import astuple

from qwendesk.chat.exchange.json_stream import JsonStream, ValueTooLong
from qwendesk.core.chats import ChatSummary
from qwendesk.core.conversation import ChatTree
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.number_format import show_count
from qwendesk.core.translation import join_list, join_sentences, mark, tr, tr_n
from qwendesk.core.units import GIB, MIB, show_bytes

ExportFormat = Literal["markdown", "markdown_thoughts", "json", "html"]


class ExchangedChat(msgspec.Struct, frozen=True):
    """A chat with all its messages."""

    summary: ChatSummary
    tree: ChatTree


class LeftOut(msgspec.Struct, frozen=True):
    """Numbers of what chats of other programs hold or refer to and what is not imported."""

    pictures: int = 0
    """Missing from the export, too large, not a picture, or made by a tool."""
    recordings: int = 0
    files: int = 0
    tool_messages: int = 0
    """Calls, their results, and messages of unknown kinds."""

    def __add__(self, other: "LeftOut") -> "LeftOut":
        return LeftOut(*(ours + theirs for ours, theirs in zip(astuple(self), astuple(other), strict=True)))

    @property
    def sentence(self) -> str:
        """What was left out, as text for the user; "" for nothing."""
        found = join_list(
            (
                tr_n("{0} picture", "{0} pictures", self.pictures) if self.pictures else "",
                tr_n("{0} recording", "{0} recordings", self.recordings) if self.recordings else "",
                tr_n("{0} file", "{0} files", self.files) if self.files else "",
                tr_n("{0} message of a tool", "{0} messages of tools", self.tool_messages)
                if self.tool_messages
                else "",
            )
        )
        return tr("Not imported: {0}.", found) if found else ""


class ReadChat(msgspec.Struct, frozen=True):
    """A chat that was read from a file to be imported."""

    chat: ExchangedChat | None = None
    """None if it can't be read or has no message."""
    problem: Literal["", "unreadable", "too_large"] = ""
    left_out: LeftOut = LeftOut()


class ImportReport(msgspec.Struct, frozen=True):
    """Counts of what an import added and what it didn't."""

    chats: int = 0
    messages: int = 0
    already_here: int = 0
    unreadable: int = 0
    too_large: int = 0
    left_out: LeftOut = LeftOut()

    def __add__(self, other: "ImportReport") -> "ImportReport":
        return ImportReport(*(ours + theirs for ours, theirs in zip(astuple(self), astuple(other), strict=True)))

    @property
    def sentence(self) -> str:
        """The report as text for the user."""
        if self.already_here and not (self.chats or self.unreadable or self.too_large):
            return tr_n(
                "Nothing new: the chat is already here.",
                "Nothing new: all {0} chats are already here.",
                self.already_here,
            )
        messages = tr_n("{0} message", "{0} messages", self.messages)
        parts = [tr_n("Imported {0} chat with {1}.", "Imported {0} chats with {1}.", self.chats, messages)]
        if self.already_here:
            parts.append(tr_n("{0} chat was already here.", "{0} chats were already here.", self.already_here))
        if self.unreadable:
            parts.append(tr_n("{0} chat couldn't be read.", "{0} chats couldn't be read.", self.unreadable))
        if self.too_large:
            limits = show_bytes(MAX_CHAT_BYTES), show_count(MAX_MESSAGES)
            parts.append(
                tr_n(
                    "Skipped {0} chat with more than {1} or {2} messages.",
                    "Skipped {0} chats with more than {1} or {2} messages.",
                    self.too_large,
                    *limits,
                )
            )
        return join_sentences(*parts, self.left_out.sentence)


NOT_AN_EXPORT = mark(
    "QwenDesk can't import this. Choose an export of QwenDesk, ChatGPT or Open WebUI, or a conversation of LM Studio."
)
# A heading in an answer looks there like the next message, and pictures and other versions are missing.
FOR_READING = mark(
    "Chats exported as Markdown or as a web page are for reading and can't be imported. Export them as JSON, which "
    "QwenDesk can import."
)
READING_ENDINGS = (".md", ".markdown", ".html", ".htm")


class BadExchange(QwenDeskError):
    """A file can't be imported or written; the sentence says why."""


# Size of the chats' JSON, unpacked. It is read in pieces, so this limits the time rather than the memory.
MAX_FILE_BYTES = 1 * GIB
MAX_CHAT_BYTES = 128 * MIB
# Per chat.
MAX_MESSAGES = 200_000
# Per message in QwenDesk's own format, including its documents.
MAX_MESSAGE_BYTES = 64 * MIB
# Per message in formats of others, which are decoded without a schema: a byte of JSON can take 30 bytes in memory.
MAX_FOREIGN_MESSAGE_BYTES = 8 * MIB
# Per small value, such as a title, a time or the settings of a chat.
MAX_SMALL_VALUE_BYTES = MIB
# Per chat. Each branch repeats the reasoning before it, so the total can be far larger than the file.
MAX_REASONING_CHARACTERS = 64 * MIB
MAX_PICTURE_BYTES = 128 * MIB
# Size of a ZIP's file list, which is read into memory as a whole. This is enough for 100,000 files.
MAX_ARCHIVE_DIRECTORY_BYTES = 16 * MIB


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
