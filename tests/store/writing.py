"""A process that writes chats until it is killed. Prints a line for each write that is on the disk.

Usage: python -m tests.store.writing FOLDER RUN. A line is "CHAT NODE WORDS".
"""

import asyncio
import itertools
import sys
from collections import deque
from pathlib import Path

from qwendesk.chat.chat_saver import ChatSaved, StoreChatSaver
from qwendesk.core.conversation import ChatNode
from qwendesk.core.messages import text_message
from qwendesk.store.opening import open_store


async def write(folder: Path, run: str) -> None:
    store, _report = await asyncio.to_thread(open_store, folder)
    saver = StoreChatSaver(store, partial_every_s=0.002)
    handed: deque[tuple[str, str, int]] = deque()

    def on_event(event: object) -> None:
        if isinstance(event, ChatSaved):
            print(*handed.popleft(), flush=True)

    saver.subscribe(on_event)

    def made(chat: str, name: str, parent: str, words: int) -> ChatNode:
        handed.append((chat, name, words))
        text = " ".join(str(number) for number in range(words))
        return ChatNode(
            id=name, parent_id=parent, message=text_message("user" if name[0] == "q" else "assistant", text)
        )

    for number in itertools.count():
        chat, parent = f"{run}-{number // 3}", f"a{run}-{number - 1}" if number % 3 else ""
        question, answer, words = f"q{run}-{number}", f"a{run}-{number}", 0
        saver.save(chat, made(chat, question, parent, 5))
        for words in range(1, 400):
            saver.save_partial(chat, answer, lambda: made(chat, answer, question, words))  # noqa: B023 - as it is then
            await asyncio.sleep(0)
        saver.save(chat, made(chat, answer, question, words))
        await saver.wait_for_writes()


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), sys.argv[2]))
