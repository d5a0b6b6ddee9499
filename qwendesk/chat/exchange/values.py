"""Values of the export and import of chats."""

from typing import Literal

import msgspec

from qwendesk.chat.exchange.limits import MAX_CHAT_BYTES, MAX_MESSAGES
from qwendesk.core.chat_tree import ChatTree
from qwendesk.core.chats import ChatSummary
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.number_format import show_count
from qwendesk.core.translation import mark, tr_n
from qwendesk.core.units import show_bytes

ExportFormat = Literal["markdown", "markdown_thoughts", "json", "html"]


class ExchangedChat(msgspec.Struct, frozen=True):
    """A chat with all its messages."""

    summary: ChatSummary
    tree: ChatTree


class ReadChat(msgspec.Struct, frozen=True):
    """A chat that was read from a file to be imported."""

    chat: ExchangedChat | None = None
    """None if it can't be read or has no message."""
    problem: Literal["", "unreadable", "too_large"] = ""
    left_out_pictures: int = 0
    """Number of pictures that are not imported: missing from the ZIP, too large, not a picture, or made by a tool."""


class ImportReport(msgspec.Struct, frozen=True):
    """Counts of what an import added and what it didn't."""

    chats: int = 0
    messages: int = 0
    already_here: int = 0
    unreadable: int = 0
    left_out_pictures: int = 0
    too_large: int = 0

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
        if self.left_out_pictures:
            parts.append(
                tr_n(
                    "Skipped {0} picture of ChatGPT's export.",
                    "Skipped {0} pictures of ChatGPT's export.",
                    self.left_out_pictures,
                )
            )
        return " ".join(parts)


NOT_AN_EXPORT = mark("QwenDesk can't import this. Choose a JSON export. It may come from QwenDesk or ChatGPT.")
FOR_READING = mark(
    "Chats exported as Markdown or as a web page are for reading and can't be imported. Export them as JSON, which "
    "QwenDesk can import."
)
"""A heading in an answer looks there like the next message, and pictures and other versions are missing."""
READING_ENDINGS = (".md", ".markdown", ".html", ".htm")


class BadExchange(QwenDeskError):
    """A file can't be imported or written; the sentence says why."""
