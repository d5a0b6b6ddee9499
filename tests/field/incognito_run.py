"""The real window with an incognito chat, for a process that is killed: `incognito_run.py MOMENT PICTURE DOCUMENT`.

It prints a line with what was shown once the moment to kill it has come.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from PySide6.QtCore import QMimeData
from PySide6.QtGui import QImage

import qwendesk.app.main
from qwendesk.app.parts import Parts
from tests.window_desk import Desk

QUESTION = "What does the purple pelican 7391 eat?"
DRAFT = "And where does the yellow walrus 2846 sleep?"
CHANGED = "What does the orange ocelot 6170 drink?"


async def act(parts: Parts, moment: str, picture: Path, document: Path) -> None:
    desk = Desk(parts, None)  # type: ignore[arg-type]
    await parts.chats.opened()
    await desk.load_demo()
    parts.chats.services.chat_list.new(incognito=moment != "as a usual chat")
    composer = desk.window.chat_page.composer
    mime = QMimeData()
    mime.setImageData(QImage(str(picture)))
    desk.paste(mime)
    await desk.until(lambda: len(composer.attachments.items) == 1)
    desk.drop(document)
    await desk.until(lambda: len(composer.attachments.items) == 2)
    if moment == "while it is written":
        desk.type(QUESTION)
        await save_drafts(parts)
        tell("")
        return
    asked = asyncio.ensure_future(desk.ask(QUESTION))
    turns = lambda: desk.parts.chat.conversation.turns  # noqa: E731
    await desk.until(lambda: bool(turns()) and bool(turns()[0].answer.text))
    if moment == "while it is answered":
        tell("")
    await asked
    answer = turns()[0].answer.text
    await go_on(desk, moment)
    desk.type(DRAFT)
    await save_drafts(parts)
    await parts.engine.eject()
    tell(answer)


async def go_on(desk: Desk, moment: str) -> None:
    """Do what may write a copy of the chat."""
    chat, chat_list = desk.parts.chat, desk.parts.chats.services.chat_list
    turn = chat.conversation.turns[0]
    match moment:
        case "when its question was changed":
            await chat.edit_question(turn.id, CHANGED)
        case "when it was branched":
            chat.branch(turn.id)
            await desk.ask(CHANGED)
        case "when another chat was opened":
            desk.type(CHANGED)
            chat_list.new()
            await desk.ask("Hello")
            return
        case "when it was deleted":
            chat_list.delete([chat_list.current_id])


async def act_or_say_why_not(parts: Parts) -> None:
    try:
        await act(parts, sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        raise


async def save_drafts(parts: Parts) -> None:
    """Do at once what a timer does."""
    drafts = parts.chats.services.chat_list.drafts
    drafts.save_now()
    await drafts.wait_for_writes()


def tell(answer: str) -> None:
    print(json.dumps({"answer": answer}), flush=True)


def main() -> int:
    begin = qwendesk.app.main._begin

    def begin_and_act(parts: Parts, *more: Any) -> None:
        begin(parts, *more)
        parts.tasks.start(act_or_say_why_not(parts))

    qwendesk.app.main._begin = begin_and_act
    return qwendesk.app.main.main([])


if __name__ == "__main__":
    sys.exit(main())
