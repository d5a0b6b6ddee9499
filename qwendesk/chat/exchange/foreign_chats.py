"""Reads chats of ChatGPT, Open WebUI and LM Studio: a list of chats, or one chat. Its fields tell which program's."""

import hashlib
from collections.abc import Iterator
from typing import Any

from qwendesk.chat.exchange import lm_studio, open_webui
from qwendesk.chat.exchange.chatgpt import chatgpt_node
from qwendesk.chat.exchange.foreign_tree import ForeignNode, foreign_tree, read_object, read_text, read_time
from qwendesk.chat.exchange.json_stream import JsonStream
from qwendesk.chat.exchange.values import (
    MAX_FOREIGN_MESSAGE_BYTES,
    MAX_SMALL_VALUE_BYTES,
    NOT_AN_EXPORT,
    BadExchange,
    ChatValues,
    ExchangedChat,
    LeftOut,
    ReadChat,
)
from qwendesk.chat.exchange.zip_pictures import Pictures
from qwendesk.chat.tree_edits import new_id
from qwendesk.core.chats import ChatSettings, ChatSummary, title_of
from qwendesk.core.translation import tr

# The messages of a chat are in one of these, by program.
CHATGPT, OPEN_WEBUI, LM_STUDIO = "mapping", "chat", "messages"
_FACTS = (
    # ChatGPT
    "id", "conversation_id", "title", "create_time", "update_time", "is_archived", "current_node",
    "default_model_slug",
    # Open WebUI
    "created_at", "updated_at", "archived", "pinned", "system", "params",
    # LM Studio
    "name", "createdAt", "userLastMessagedAt", "assistantLastMessagedAt", "systemPrompt", "perChatPredictionConfig",
    "lastUsedModel",
)  # fmt: skip
# If the first elements, up to this many, contain no chat, the file is not an export.
_NO_CHATS_AMONG = 100


def read_foreign_head(stream: JsonStream) -> Iterator[None]:
    """Read the whole file once to check that it is complete. Raises BadExchange if it isn't an export."""
    if stream.peek() == b"{":
        stream.skip()
        stream.check_end()
        return
    any_chat = False
    for number, _ in enumerate(stream.elements(), 1):
        any_chat = any_chat or stream.peek() == b"{"
        if number == _NO_CHATS_AMONG and not any_chat:
            break
        stream.skip()
        yield
    else:
        stream.check_end()
        return
    raise BadExchange(tr("Chats not imported"), tr(NOT_AN_EXPORT))


def read_foreign_chats(stream: JsonStream, pictures: Pictures) -> Iterator[ReadChat]:
    """Yield the chats of a checked file."""
    if stream.peek() == b"{":
        yield _ForeignChat(stream, pictures).read()
        return
    for _ in stream.elements():
        yield _ForeignChat(stream, pictures).read()


class _ForeignChat:
    """Reads the chat at the position of `stream`."""

    def __init__(self, stream: JsonStream, pictures: Pictures) -> None:
        self._values, self._pictures = ChatValues(stream), pictures
        self._nodes: dict[str, ForeignNode] | None = None
        self._facts: dict[str, Any] = {}
        self._current = self._system_prompt = ""

    def read(self) -> ReadChat:
        for key in self._values.members():
            if key == CHATGPT:
                self._read_chatgpt()
            elif key == OPEN_WEBUI:
                self._read_open_webui()
            elif key == LM_STUDIO:
                self._read_lm_studio()
            elif key in _FACTS:
                self._facts[key] = self._values.value(MAX_SMALL_VALUE_BYTES, object)
        if self._values.problem or self._nodes is None:
            return ReadChat(problem=self._values.problem or "unreadable")
        left_out = sum((node.left_out for node in self._nodes.values()), LeftOut())
        facts, current = self._facts, self._current or read_text(self._facts.get("current_node"))
        last_model = read_text(read_object(facts.get("lastUsedModel")).get("identifier"))
        tree = foreign_tree(self._nodes, current, (read_text(facts.get("default_model_slug")) or last_model)[:100])
        if not tree.nodes:
            return ReadChat(left_out=left_out)
        first = next((node.message.text for node in tree.nodes.values() if node.message.role == "user"), "")
        created_s, changed_s = self._time("create_time", "created_at", "createdAt"), self._changed_s()
        system_prompt = self._system_prompt or lm_studio.system_prompt(facts)
        summary = ChatSummary(
            id=self._id(created_s, changed_s),
            title=" ".join(read_text(facts.get("title") or facts.get("name")).split())[:500] or title_of(first),
            created_s=created_s,
            changed_s=changed_s or created_s,
            pinned=facts.get("pinned") is True,
            archived=(facts.get("is_archived") or facts.get("archived")) is True,
            settings=ChatSettings(is_imported=True, system_prompt=system_prompt),
        )
        return ReadChat(ExchangedChat(summary, tree), left_out=left_out)

    def _read_chatgpt(self) -> None:
        self._nodes = {
            key: chatgpt_node(value, self._pictures) for key, value in self._messages() if isinstance(value, dict)
        }

    def _read_open_webui(self) -> None:
        self._nodes = {}
        chat: dict[str, Any] = {}
        for key in self._values.members():
            if key == "history":
                for name in self._values.members():
                    if name == "currentId":
                        self._current = read_text(self._values.value(MAX_SMALL_VALUE_BYTES, object))
                    elif name == "messages":
                        self._nodes = {
                            each: open_webui.open_webui_node(value, self._pictures)
                            for each, value in self._messages()
                            if isinstance(value, dict)
                        }
            elif key in ("title", "system", "params"):
                chat[key] = self._values.value(MAX_SMALL_VALUE_BYTES, object)
        self._system_prompt = open_webui.system_prompt(chat)
        self._facts.setdefault("title", chat.get("title"))

    def _read_lm_studio(self) -> None:
        found = lm_studio.LmStudioNodes()
        for _ in self._values.elements():
            value = self._values.value(MAX_FOREIGN_MESSAGE_BYTES, object)
            if isinstance(value, dict):
                found.add(value)
        self._nodes, self._current = found.nodes, found.last

    def _messages(self) -> Iterator[tuple[str, object]]:
        for key in self._values.members():
            yield key, self._values.value(MAX_FOREIGN_MESSAGE_BYTES, object)

    def _time(self, *names: str) -> float:
        return max(read_time(self._facts.get(name)) for name in names)

    def _changed_s(self) -> float:
        return self._time("update_time", "updated_at", "userLastMessagedAt", "assistantLastMessagedAt")

    def _id(self, created_s: float, changed_s: float) -> str:
        """Return an id that the same chat gets from each later export, unless it was continued in between."""
        name = read_text(self._facts.get("conversation_id")) or read_text(self._facts.get("id"))
        if not name and "createdAt" in self._facts and created_s:
            name = f"LM Studio {created_s}"
        return hashlib.sha256(f"{name} {changed_s}".encode()).hexdigest()[:32] if name else new_id()
