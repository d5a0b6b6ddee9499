"""A process that writes chats until it is killed. Prints a line for each write that is on the disk.

Usage: python -m tests.store.writing FOLDER RUN. A line is "CHAT NODE WORDS".
"""

import asyncio
import itertools
import sys
from collections import deque
from pathlib import Path

from qwendesk.core.chat_tree import ChatNode
from qwendesk.core.messages import text_message
from qwendesk.services.chat.keeping import Kept, StoreKeeper
from qwendesk.store.opening import open_store


async def write(folder: Path, run: str) -> None:
    store, _report = await asyncio.to_thread(open_store, folder)
    keeper = StoreKeeper(store, growing_every_s=0.002)
    handed: deque[tuple[str, str, int]] = deque()

    def on_news(news: object) -> None:
        if isinstance(news, Kept):
            print(*handed.popleft(), flush=True)

    keeper.subscribe(on_news)

    def made(chat: str, name: str, parent: str, words: int) -> ChatNode:
        handed.append((chat, name, words))
        text = " ".join(str(number) for number in range(words))
        return ChatNode(
            id=name, parent_id=parent, message=text_message("user" if name[0] == "q" else "assistant", text)
        )

    for number in itertools.count():
        chat, parent = f"{run}-{number // 3}", f"a{run}-{number - 1}" if number % 3 else ""
        question, answer, words = f"q{run}-{number}", f"a{run}-{number}", 0
        keeper.save(chat, made(chat, question, parent, 5))
        for words in range(1, 400):
            keeper.grow(chat, answer, lambda: made(chat, answer, question, words))  # noqa: B023 - as it is then
            await asyncio.sleep(0)
        keeper.save(chat, made(chat, answer, question, words))
        await keeper.settled()


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), sys.argv[2]))
