"""Shared by the tests of export and import: chats in a folder of their own, and chats in ChatGPT's format."""

import asyncio
import hashlib
import json

from qwendesk.chat.exchange.service import ExchangeService
from qwendesk.chat.exchange.values import ImportReport
from qwendesk.core.conversation import ChatTree
from tests.chat.chats_kit import ChatsKit

PICTURE = b"\x89PNG and so on"
SHA = hashlib.sha256(PICTURE).hexdigest()


class Kit(ChatsKit):
    @property
    def exchange(self) -> ExchangeService:
        return ExchangeService(self.chat_list)

    async def tree(self) -> ChatTree:
        """Of the only chat."""
        (chat_id,) = self.chat_list.chats.summaries
        return await self.chat_list.tree(chat_id)

    async def import_bytes(self, content: bytes, name: str = "import.json") -> ImportReport:
        path = self.folder / name
        await asyncio.to_thread(path.write_bytes, content)
        return await self.exchange.import_from(path)

    async def import_value(self, value: object) -> ImportReport:
        return await self.import_bytes(json.dumps(value).encode())


def gpt_node(key: str, parent: str | None, role: str = "user", text: str = "", **more) -> dict:
    content = {"content_type": "text", "parts": [text]}
    message = {"author": {"role": role}, "content": content, "create_time": 1.5, "metadata": {}} | more
    return {"id": key, "parent": parent, "children": [], "message": message}


def gpt_chat(*nodes: dict, **more) -> dict:
    return {"title": "From outside", "create_time": 1.0, "update_time": 2.0} | {
        "mapping": {node["id"]: node for node in nodes},
        **more,
    }
