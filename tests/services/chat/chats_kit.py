"""The list of chats on a real file, started and ended as the app does."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from qwendesk.core.chat_tree import ChatNode
from qwendesk.services.chat.chats import ChatOpened, ChatsService
from qwendesk.services.chat.drafts import Drafts
from qwendesk.services.chat.keeping import StoreKeeper
from tests.store.chat_nodes import node

NewsT = TypeVar("NewsT")


class ChatsKit:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.keeper = StoreKeeper(growing_every_s=0.0)
        self.chats = ChatsService(self.keeper, Drafts(every_s=0.0))
        self.news: list[object] = []
        self.chats.subscribe(self.news.append)

    async def start(self) -> "ChatsKit":
        await self.chats.start(self.folder)
        return self

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110 - what it looks at has no event
            await asyncio.sleep(0)

    async def chat(self, text: str, name: str) -> str:
        """A new chat with a question of that text; returns its id once it is in the list."""
        self.chats.new()
        chat_id = self.chats.current_id
        await self.say(chat_id, node(f"q{name}", text=text))
        return chat_id

    async def say(self, chat_id: str, message: ChatNode) -> None:
        self.keeper.save(chat_id, message)
        await self.keeper.settled()
        await self.until(lambda: chat_id in self.chats.summaries)

    def last(self, kind: type[NewsT]) -> NewsT:
        return next(news for news in reversed(self.news) if isinstance(news, kind))

    @property
    def opened(self) -> ChatOpened:
        return self.last(ChatOpened)

    @property
    def titles(self) -> set[str]:
        return {each.title for each in self.chats.summaries.values()}
