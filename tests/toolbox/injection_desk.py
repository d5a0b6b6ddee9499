"""A chat with tools and a user, in front of an engine that obeys what it reads; and the ways a text gets to it."""

import asyncio
import json
import re
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

import msgspec
from PIL import Image, ImageDraw

from qwendesk.chat.documents.document_reader import read_document
from qwendesk.chat.image_parts import current_part
from qwendesk.chat.service import ChatService
from qwendesk.chat.tree_edits import new_answer, new_question
from qwendesk.core.chats import ChatSettings
from qwendesk.core.conversation import ChatNode, ChatTree, Turn
from qwendesk.core.messages import DocumentPart, ImagePart, Message, TextPart, ToolCall, text_message
from qwendesk.core.options import LoadOptions
from qwendesk.core.tool_context import CallContext, ConsentRequest, Decision
from qwendesk.engines.engine_service import EngineService
from qwendesk.toolbox.builtin import builtin_tools
from qwendesk.toolbox.knowledge.folder_indexes import FolderIndexes
from qwendesk.toolbox.service import ToolService
from tests.chat.documents.test_document_reader import pdf
from tests.chat.exchange.kit import Kit, gpt_chat, gpt_node
from tests.fakes.engine import decide_by_default
from tests.fakes.obedient_engine import ObedientEngine
from tests.toolbox.recording_tools import RecordingTools

FOREIGN = "weather"
"""A tool that only some attempts have, with a description by others."""
ON = (
    "current_time", "calculate", "list_files", "search_files", "read_file", "edit_file", "look_up", "read_page",
    "send_mail", "fetch_address", "run_command", "write_note", FOREIGN,
)  # fmt: skip
"""The tools that are on in the chat."""
QUESTION = "Help me, and tell me what 6 * 7 is."


class Attempt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of injections.toml."""

    says: str
    calls: tuple[str, ...]
    at_once: bool = False
    thinks: str = ""
    writes: str = ""
    allowed: Literal["", "chat", "always"] = ""
    outcome: Literal["asks", "refused"] = "asks"

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(map(_tool_call, self.calls))


def _tool_call(written: str) -> ToolCall:
    """Read "NAME ARGUMENTS". The name may have escapes as in JSON; DEEP and LONG stand for what is long."""
    found = re.fullmatch(r"(.*?) ([\[{\"].*|null)", written)
    assert found, written
    arguments = found[2].replace("DEEP", "[" * 5000 + "]" * 5000).replace("LONG", "The sea is wide. " * 2000)
    return ToolCall(json.loads(f'"{found[1]}"'), arguments)


class Desk:
    """The user allows each call once, or refuses each, as `decision` says."""

    def __init__(self, attempt: Attempt, place: Path, decision: Decision) -> None:
        """`place` is an empty folder."""
        calls = attempt.tool_calls
        rounds = (calls,) if attempt.at_once else tuple((call,) for call in calls)
        self.attempt = attempt
        self.engine = ObedientEngine(attempt.says, rounds, reasoning=attempt.thinks, text=attempt.writes)
        self.folder, self.store = place / "home" / "folder", place / "store"
        for each in (self.folder, self.store):
            each.mkdir(parents=True)
        self.recording = RecordingTools()
        self._indexes = FolderIndexes(place / "indexes")
        self.tools = [*builtin_tools(self._indexes), *self.recording.all]
        self.settings = ChatSettings(tools=ON, tool_folders=(str(self.folder),))
        self.tree = ChatTree()
        self.attached_pictures: list[ImagePart] = []
        self.attached_documents: list[DocumentPart] = []
        self.asked: list[ConsentRequest] = []
        self._decision = decision
        self._models = EngineService(self.engine, decide=decide_by_default)

    async def start(self) -> None:
        """Open the chat with all that was put into it."""
        self.toolbox = ToolService(self.tools)
        self.toolbox.waiting.subscribe(self._decide)
        self.chat = ChatService(self.engine, self._models, tools=self.toolbox)
        self.chat.open("chat", self.tree, self.settings)
        await self._models.load(LoadOptions(model="/models/qwendesk-demo.gguf"))

    async def allow(self, call: ToolCall) -> None:
        """Make a call and allow it as the attempt says, while the chat holds nothing but what the user typed."""
        decision, self._decision = self._decision, self.attempt.allowed or self._decision
        own = tuple(name for name in ON if name != FOREIGN)
        before = CallContext(self.chat.chat_id, msgspec.structs.replace(self.settings, tools=own))
        for _ in range(2):
            record = await self.toolbox.run(call, before)
            assert record.consent == self.attempt.allowed, record.error
        assert len(self.asked) == 1, "the second call did not ask"
        self._decision = decision
        self.asked.clear()
        self.recording.ran.clear()

    async def ask(self) -> Turn:
        return await self.chat.send(QUESTION, self.attached_pictures, self.attached_documents)

    async def close(self) -> None:
        await self._indexes.close()
        await self._models.close()

    def files(self) -> dict[str, bytes]:
        """Return what is in the user's folder and beside it."""
        home = self.folder.parent
        return {path.relative_to(home).as_posix(): path.read_bytes() for path in home.rglob("*") if path.is_file()}

    def _decide(self, request: ConsentRequest | None) -> None:
        if request is not None:
            self.asked.append(request)
            self.toolbox.decide(request, self._decision)


Carrier = Callable[[Desk], Awaitable[None]]
"""Puts the attempt's text where the engine will read it."""


def _told_by(name: str, **arguments: str) -> Carrier:
    async def carry(desk: Desk) -> None:
        desk.recording.told = desk.attempt.says
        desk.engine.first = (ToolCall(name, json.dumps(arguments)),)

    return carry


def _in_file(name: str, before: str, tool: str, **arguments: str) -> Carrier:
    async def carry(desk: Desk) -> None:
        desk.folder.joinpath(name).write_text(f"{before}\n{desk.attempt.says}\n", encoding="utf-8")
        desk.engine.first = (ToolCall(tool, json.dumps(arguments)),)

    return carry


async def _as_file_name(desk: Desk) -> None:
    desk.folder.joinpath(desk.attempt.says).write_text("x", encoding="utf-8")
    desk.engine.first = (ToolCall("list_files"),)


_LINE = 20
"""Characters that fit on a page of the PDF."""


async def _in_pdf(desk: Desk) -> None:
    path = desk.store / "letter.pdf"
    path.write_bytes(pdf(*textwrap.wrap(desk.attempt.says, _LINE)))
    desk.attached_documents.append(await asyncio.to_thread(read_document, path))


async def _on_picture(desk: Desk) -> None:
    path = desk.store / "picture.png"
    image = Image.new("RGB", (600, 60), "white")
    ImageDraw.Draw(image).text((5, 20), desk.attempt.says, fill="black")
    image.save(path)
    part = current_part(ImagePart(str(path), ""))
    desk.engine.written_on[part.sha256] = desk.attempt.says
    desk.attached_pictures.append(part)


async def _in_description(desk: Desk) -> None:
    desk.tools.append(desk.recording.effect(FOREIGN, "sends", "city", description=desk.attempt.says))


async def _in_imported_chat(desk: Desk) -> None:
    theirs = await _kit(desk.store / "theirs")
    theirs.chat_list.new()
    for node in _turn(text_message("user", desk.attempt.says), "Fine."):
        await theirs.say(theirs.chat_list.current_id, node)
    await theirs.exchange.export(desk.store / "chats.json", "json")
    await theirs.chat_list.close()
    ours = await _kit(desk.store / "ours")
    await ours.exchange.import_from(desk.store / "chats.json")
    await _open_the_imported(desk, ours)


async def _in_chat_from_chatgpt(desk: Desk) -> None:
    ours = await _kit(desk.store / "ours")
    question = gpt_node("q", None, "user", desk.attempt.says)
    await ours.import_value([gpt_chat(question, gpt_node("a", "q", "assistant", "Fine."))])
    await _open_the_imported(desk, ours)


async def _kit(folder: Path) -> Kit:
    await asyncio.to_thread(folder.mkdir)
    kit = Kit(folder)
    await kit.start()
    return kit


async def _open_the_imported(desk: Desk, kit: Kit) -> None:
    desk.tree = await kit.tree()
    (summary,) = kit.chat_list.chats.summaries.values()
    await kit.chat_list.close()
    # The user turns the tools on.
    desk.settings = msgspec.structs.replace(
        summary.settings, tools=desk.settings.tools, tool_folders=desk.settings.tool_folders
    )


async def _in_earlier_answer(desk: Desk) -> None:
    """The question had a letter, and the answer tells what stands in it."""
    question = Message("user", (DocumentPart("letter.txt", "A letter."), TextPart("What is it?")))
    for node in _turn(question, desk.attempt.says):
        desk.tree = desk.tree.with_node(node)


def _turn(question: Message, answer: str) -> tuple[ChatNode, ChatNode]:
    asked = new_question("", question)
    return asked, msgspec.structs.replace(new_answer(asked.id), message=text_message("assistant", answer))


CARRIERS: dict[str, Carrier] = {
    "result": _told_by("look_up", word="spill"),
    "page": _told_by("read_page", address="https://example.com"),
    "note": _told_by("look_up", word="notes"),
    "file": _in_file("notes.txt", "Notes", "read_file", path="notes.txt"),
    "code": _in_file("login.py", "import this", "read_file", path="login.py"),
    "search": _in_file("invoices.txt", "Invoices", "search_files", query="invoice"),
    "file_name": _as_file_name,
    "pdf": _in_pdf,
    "picture": _on_picture,
    "description": _in_description,
    "imported": _in_imported_chat,
    "chatgpt": _in_chat_from_chatgpt,
    "answer": _in_earlier_answer,
}
"""By the kinds of injections.toml."""
