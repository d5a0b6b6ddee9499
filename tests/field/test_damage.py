"""Damage of a chat's file must be found and said, and must never make a chat look safer than it was."""

import json
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from qwendesk.app.window.main_window import MainWindow
from qwendesk.chat.chat_list import StoreProblem
from qwendesk.chat.chat_services import ChatServices
from qwendesk.core import paths
from qwendesk.core.app_options import AppOptions
from qwendesk.core.chats import ChatSettings, ChatSummary
from qwendesk.core.conversation import ChatNode
from qwendesk.core.messages import CallRecord, Message, TextPart, ToolCall, ToolStep
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.tool_context import ConsentRequest
from qwendesk.engines.engine_service import EngineService
from qwendesk.mcp.server_config import McpServerList, ServerConfig, new_id, server_list_file
from qwendesk.settings.service import settings_file
from qwendesk.store.opening import FILE_NAME, open_store
from qwendesk.store.rows import settings as settings_of
from qwendesk.toolbox.builtin import builtin_tools
from qwendesk.toolbox.knowledge.folder_indexes import FolderIndexes
from qwendesk.toolbox.service import Grant, ToolService, fingerprint
from tests.chat.exchange.kit import Kit, gpt_chat, gpt_node
from tests.fakes.answer_stream import ScriptedAnswer
from tests.fakes.engine import FakeEngineClient, decide_by_default
from tests.field.grid import SERVER, Kind, Way, case
from tests.store.chat_nodes import node
from tests.window_desk import Desk

_STATELESS = "it answers what a request has, and neither reads nor keeps chats"
UNTAINTED = Kind(
    "Damage of a saved chat removes the taint, and a tool acts without asking",
    {
        Way.CLI: "qwendesk ask opens no saved chat, and has no consents that last",
        **dict.fromkeys(SERVER, _STATELESS),
        Way.MCP: "a call of an MCP server's tool always taints; what is kept of it are the same rows",
    },
)
FOUND = "found by attack, November 2026"
CHAT, ANSWER = "c" * 32, "a" * 32


class ToolDesk:
    """The chats in a folder, with the tools that edit files in it, which the user allowed there for always."""

    def __init__(self, place: Path) -> None:
        self.place, self.folder = place / "store", place / "folder"
        for each in (self.place, self.folder):
            each.mkdir(exist_ok=True)
        self.folder.joinpath("plan.txt").write_text("Buy bread.\n", encoding="utf-8")
        self.client = FakeEngineClient()
        self._indexes = FolderIndexes(place / "indexes")
        self.tools = ToolService(builtin_tools(self._indexes))
        grant = Grant(fingerprint(self.tools.tools["edit_file"]), folder=str(self.folder), name="edit_file")
        self.tools.grants.set((grant,))
        self.asked: list[ConsentRequest] = []
        self.tools.waiting.subscribe(self._refuse)
        self.engine = EngineService(self.client, decide=decide_by_default)
        self.chats = ChatServices(
            self.client, self.engine, Observed(AppOptions(chat_states_gb=0, prepare_ahead=False)), tools=self.tools
        )
        self.problems: list[StoreProblem] = []
        self.chats.chat_list.subscribe(lambda event: isinstance(event, StoreProblem) and self.problems.append(event))

    async def start_and_ask(self) -> None:
        await self.chats.start(self.place)
        await self.ask()

    async def ask(self) -> None:
        """Open the saved chat, and let the model change a file."""
        await self.chats.chat_list.open(CHAT)
        on = self.settings()  # damaged settings have no tools, and the user switches them on again
        kept = self.chats.chat.settings
        self.chats.chat.change_settings(msgspec.structs.replace(kept, tools=on.tools, tool_folders=on.tool_folders))
        await self.engine.load(LoadOptions(model="/models/qwendesk-demo.gguf"))
        call = ToolCall("edit_file", json.dumps({"path": "plan.txt", "old": "bread", "new": "gold"}))
        self.client.answers = [ScriptedAnswer(calls=(call,)), ScriptedAnswer(text="Done.")]
        self.turn = await self.chats.chat.send("Go on.")

    async def close(self) -> None:
        await self.chats.close()
        await self._indexes.close()
        await self.engine.close()

    @property
    def plan(self) -> str:
        return self.folder.joinpath("plan.txt").read_text(encoding="utf-8")

    def settings(self, **more: bool) -> ChatSettings:
        return ChatSettings(tools=("read_file", "edit_file"), tool_folders=(str(self.folder),), **more)

    def _refuse(self, request: ConsentRequest | None) -> None:
        if request is not None:
            self.asked.append(request)
            self.tools.decide(request, "refuse")


async def on_desk(place: Path, work: Callable[[ToolDesk], Awaitable[None]]) -> ToolDesk:
    desk = ToolDesk(place)
    try:
        await work(desk)
    finally:
        await desk.close()
    return desk


def save(desk: ToolDesk, *, reads: bool, backs_up: bool = False, **settings: bool) -> Path:
    """Save the chat, whose model has read a file if `reads`. Return the path of the chats file."""
    read = CallRecord(ToolCall("read_file", '{"path": "plan.txt"}'), is_done=True, result="Buy bread.")
    steps = (ToolStep((read,)),) if reads else ()
    store, _report = open_store(desk.place)
    assert store is not None
    store.chats.save_summary(ChatSummary(id=CHAT, title="Plans", settings=desk.settings(**settings)))
    store.chats.save_node(CHAT, node("q" * 32, text="What is there to buy?"))
    message = Message("assistant", (TextPart("Bread."),), steps=steps)
    answer = ChatNode(id=ANSWER, parent_id="q" * 32, message=message, stop_reason="eos")
    store.chats.save_node(CHAT, answer).result()
    if backs_up:
        assert store.back_up() is not None
    store.close()
    return desk.place / FILE_NAME


def change_byte(path: Path, before: bytes, after: bytes) -> None:
    """Change bytes of the same length on the disk, once."""
    content = path.read_bytes()
    assert content.count(before) == 1, content.count(before)
    assert len(before) == len(after)
    path.write_bytes(content.replace(before, after))


LOST = {
    "name of the steps": (b'"steps":[', b'"stfps":[', True, {}),
    "structure": (b'"steps":[', b'"steps":{', True, {}),
    "role": (b"assistantBread.", b"assistaotBread.", True, {}),
    "tool": (b'"name":"read_file"', b'"name":"calculate"', True, {}),
    "imported": (b'"is_imported":true', b'"is_importfd":true', False, {"is_imported": True}),
    "descriptions": (b'"has_read_descriptions":true', b'"has_read_descriptionr":true', False,
                     {"has_read_descriptions": True}),
    "all settings": (b'"system_prompt":"",', b'"system_prompt":"\xff,', False, {"is_imported": True}),
}  # fmt: skip


@case(UNTAINTED, Way.WINDOW, report=FOUND, before="failed")
@pytest.mark.parametrize("damage", LOST)
async def test_a_changed_byte_never_lets_a_tool_act_without_asking(damage: str, tmp_path: Path) -> None:
    before, after, reads, settings = LOST[damage]

    async def work(desk: ToolDesk) -> None:
        change_byte(save(desk, reads=reads, **settings), before, after)
        await desk.start_and_ask()

    desk = await on_desk(tmp_path, work)

    assert [request.call.name for request in desk.asked] == ["edit_file"]
    assert desk.asked[0].choices == ("once", "refuse")
    assert desk.plan == "Buy bread.\n"
    assert [each.title for each in desk.problems] == ["Chats recovered"]
    assert "its tools ask before each change" in desk.problems[0].sentence


@case(UNTAINTED, Way.WINDOW, report=FOUND, before="failed")
async def test_damage_is_repaired_from_the_backup(tmp_path: Path) -> None:
    async def work(desk: ToolDesk) -> None:
        change_byte(save(desk, reads=True, backs_up=True), b'"steps":[', b'"stfps":[')
        await desk.start_and_ask()

    desk = await on_desk(tmp_path, work)

    assert [step.calls[0].call.name for step in desk.chats.chat.conversation.turns[0].answer.steps] == ["read_file"]
    assert [request.call.name for request in desk.asked] == ["edit_file"]
    assert "Nothing was lost." in desk.problems[0].sentence
    assert not desk.chats.chat.settings.is_damaged


@case(UNTAINTED, Way.WINDOW, report=FOUND, before="failed")
@pytest.mark.parametrize("change", ["more = replace(more, 'steps', 'stfps')", "role = replace(role, 'ant', 'aot')"])
async def test_damage_while_the_app_runs_is_told_and_taints(change: str, tmp_path: Path) -> None:
    async def work(desk: ToolDesk) -> None:
        path = save(desk, reads=True)
        await desk.chats.start(desk.place)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"UPDATE messages SET {change}")
            connection.commit()
        await desk.ask()

    desk = await on_desk(tmp_path, work)

    assert [request.call.name for request in desk.asked] == ["edit_file"]
    assert any("Restart QwenDesk" in each.sentence for each in desk.problems), "the daily backup may tell of it too"


@case(UNTAINTED, Way.WINDOW, report=FOUND, before="held")
async def test_an_undamaged_chat_of_typed_text_asks_for_nothing(tmp_path: Path) -> None:
    async def work(desk: ToolDesk) -> None:
        save(desk, reads=False)
        await desk.start_and_ask()

    desk = await on_desk(tmp_path, work)

    assert (desk.asked, desk.problems, desk.plan) == ([], [], "Buy gold.\n")


EXPORTS = {
    "QwenDesk": (b'"is_imported": false', b'"is_importfd": false'),
    "a role": (b'"role": "assistant"', b'"role": "assistaot"'),
    "ChatGPT": (b'"role": "assistant"', b'"role": "assistaot"'),
}


@case(UNTAINTED, Way.IMPORT, report=FOUND, before="held")
@pytest.mark.parametrize("kind", EXPORTS)
async def test_a_damaged_export_is_refused_or_tainted(kind: str, tmp_path: Path) -> None:
    before, after = EXPORTS[kind]
    kit = Kit(tmp_path / "store")
    kit.folder.mkdir()
    await kit.start()
    if kind == "ChatGPT":
        nodes = gpt_node("1", None, "user", "Hello"), gpt_node("2", "1", "assistant", "Hi")
        content = json.dumps([gpt_chat(*nodes)]).encode()
    else:
        await kit.chat("Hello", "1")
        chat_id = kit.chat_list.current_id
        await kit.say(chat_id, node("a" * 32, "q1", role="assistant"))
        target = tmp_path / "export.json"
        await kit.exchange.export(target, "json", [chat_id])
        content = target.read_bytes()
        kit.chat_list.delete([chat_id])
        kit.chat_list.chats.summaries.pop(chat_id, None)
    assert before in content

    report = await kit.import_bytes(content.replace(before, after))

    imported = kit.chat_list.chats.summaries.values()
    assert all(each.settings.is_imported for each in imported), "which taints"
    assert len(imported) == report.chats
    assert report.chats + report.unreadable == 1
    await kit.chat_list.close()


OWN_FILES = Kind(
    "Damage of a small file of the app switches off what the user had forbidden, and nothing is said",
    {
        Way.CLI: "it reads the same files by the same code as the window",
        **dict.fromkeys(SERVER, "its keys are compared as they are: a damaged one lets nobody in"),
        Way.IMPORT: "an import reads none of these files",
    },
)


@case(OWN_FILES, Way.MCP, report=FOUND, before="failed")
@pytest.mark.parametrize("damage", [("is_on", "is_oo"), ("tools_off", "tools_ofg")])
def test_an_mcp_server_whose_entry_is_damaged_is_off(damage: tuple[str, str], tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "config_folder", lambda: tmp_path)
        file = server_list_file()
        off = ServerConfig(new_id(), "Mail", command="mail-server", is_on=False, tools_off=("send",))
        other = ServerConfig(new_id(), "Clock", command="clock-server")
        file.write(McpServerList(servers=(off, other)))
        file.path.write_bytes(file.path.read_bytes().replace(damage[0].encode(), damage[1].encode()))

        assert [each.is_on for each in file.read().servers] == [False, True]


@case(OWN_FILES, Way.WINDOW, report=FOUND, before="failed")
async def test_damaged_settings_are_said(make_desk: Callable[[], Desk], monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(MainWindow, "report", lambda _window, title, sentence: told.append(f"{title}: {sentence}"))
    settings_file().parent.mkdir(parents=True, exist_ok=True)
    settings_file().write_bytes(b'{"offline": tr\xffe}')

    desk = make_desk()

    assert ["Offline too" in each for each in told] == [True]
    desk.window.go_to("settings")
    assert "Offline too" in desk.parts.services.settings.problem.value


def test_every_changed_bit_of_a_row_taints_it(tmp_path: Path) -> None:
    """Of the settings of a chat, and of an answer with a tool call."""
    store, _report = open_store(tmp_path)
    assert store is not None
    desk_settings = ChatSettings(tools=("edit_file",), is_imported=True)
    store.chats.save_summary(ChatSummary(id=CHAT, settings=desk_settings)).result()
    store.close()
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        ((text,),) = connection.execute("SELECT settings FROM chats").fetchall()
    content = text.encode()
    for place in range(len(content)):
        for bit in range(8):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            assert settings_of(changed.decode("utf-8", "replace")).is_tainted, (place, bit)
