"""The list of chats on a real store, started and closed like in the app."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from qwendesk.chat.chat_list import ChatListService, ChatOpened
from qwendesk.chat.chat_saver import StoreChatSaver
from qwendesk.chat.drafts import Drafts
from qwendesk.core.conversation import ChatNode
from tests.store.chat_nodes import node

EventT = TypeVar("EventT")


class ChatsKit:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.saver = StoreChatSaver(partial_every_s=0.0)
        self.chat_list = ChatListService(self.saver, Drafts(every_s=0.0))
        self.events: list[object] = []
        self.chat_list.subscribe(self.events.append)

    async def start(self) -> "ChatsKit":
        await self.chat_list.start(self.folder)
        return self

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110 - what it looks at has no event
            await asyncio.sleep(0)

    async def chat(self, text: str, name: str) -> str:
        """A new chat with a question of that text; returns its id once it is in the list."""
        self.chat_list.new()
        chat_id = self.chat_list.current_id
        await self.say(chat_id, node(f"q{name}", text=text))
        return chat_id

    async def say(self, chat_id: str, message: ChatNode) -> None:
        self.saver.save(chat_id, message)
        await self.saver.wait_for_writes()
        await self.until(lambda: chat_id in self.chat_list.chats.summaries)

    def last(self, kind: type[EventT]) -> EventT:
        return next(event for event in reversed(self.events) if isinstance(event, kind))

    @property
    def opened(self) -> ChatOpened:
        return self.last(ChatOpened)

    @property
    def titles(self) -> set[str]:
        return {each.title for each in self.chat_list.chats.summaries.values()}
