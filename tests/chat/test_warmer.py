"""When the engine is asked to process something ahead, and what."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from PIL import Image

from qwendesk.chat.open_chat import NoChatSaver
from qwendesk.chat.service import ChatService
from qwendesk.chat.state_files import StateFiles
from qwendesk.chat.warmer import Warmer, runs_on_battery
from qwendesk.core.app_options import AppOptions
from qwendesk.core.chats import ChatSettings
from qwendesk.core.messages import DocumentPart, ImagePart, TextPart
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions, decided_options
from qwendesk.engines.engine_service import EngineService
from qwendesk.toolbox.calculator import CALCULATOR
from qwendesk.toolbox.service import ToolService
from tests.fakes.engine import DEMO_REPORT, FakeEngineClient, ScriptedAnswer

MODEL = LoadOptions(model=DEMO_REPORT.options.model)


class Desk:
    def __init__(
        self, folder: Path, saver: NoChatSaver, *, is_on: bool, on_battery: bool, tools: ToolService | None
    ) -> None:
        self.client = FakeEngineClient()
        self.engine = EngineService(self.client, decide=lambda options, _devices: decided_options(options))
        self.files = StateFiles(self.client, Observed(AppOptions(chat_states_gb=1)), folder)
        self.chat = ChatService(self.client, self.engine, saver, states=self.files)
        self.warmer = Warmer(
            self.client, self.engine, self.chat, self.files, Observed(AppOptions(prepare_ahead=is_on)), tools=tools,
            on_battery=lambda: on_battery, delay_s=0.0,
        )  # fmt: skip

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110 - the state of another object
            await asyncio.sleep(0)

    async def settled(self) -> None:
        """Wait until a task that was scheduled now would have run."""
        for _ in range(20):
            await asyncio.sleep(0)
        await asyncio.to_thread(lambda: None)
        for _ in range(20):
            await asyncio.sleep(0)


class Incognito(NoChatSaver):
    def is_excluded(self, chat_id: str) -> bool:
        return True


@contextlib.asynccontextmanager
async def desk(
    folder: Path,
    saver: NoChatSaver | None = None,
    *,
    is_on: bool = True,
    on_battery: bool = False,
    tools: ToolService | None = None,
) -> AsyncIterator[Desk]:
    made = Desk(folder, saver or NoChatSaver(), is_on=is_on, on_battery=on_battery, tools=tools)
    try:
        yield made
    finally:
        await made.warmer.close()
        await made.engine.close()


def picture(folder: Path) -> ImagePart:
    Image.new("RGB", (64, 64), "red").save(folder / "red.png")
    return ImagePart(path=str(folder / "red.png"), sha256="")


async def test_the_system_prompt_after_a_load(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.chat.set_system_prompt("Be brief.")
        await here.engine.load(MODEL)
        await here.until(lambda: bool(here.client.warmed))
        (message,) = here.client.warmed[0].messages
        assert (message.role, message.text) == ("system", "Be brief.")
        assert here.client.warmed[0].chat == here.chat.chat_id
        assert here.client.warmed[0].state_file == str(here.files.file_of(here.chat.chat_id))


async def test_tools_of_the_chat_stand_in_the_prompt_too(tmp_path: Path) -> None:
    async with desk(tmp_path, tools=ToolService([CALCULATOR])) as here:
        here.chat.change_settings(ChatSettings(system_prompt="Be brief.", tools=("calculate",)))
        await here.engine.load(MODEL)
        await here.until(lambda: bool(here.client.warmed))
        [definition] = here.client.warmed[-1].tools_json
        assert "calculate" in definition


async def test_an_empty_chat_without_a_system_prompt_has_nothing_to_process(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.engine.load(MODEL)
        await here.settled()
        assert here.client.warmed == []


async def test_the_chat_after_its_answer(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.engine.load(MODEL)
        await here.chat.send("Hello")
        await here.until(lambda: bool(here.client.warmed))
        assert [message.role for message in here.client.warmed[-1].messages] == ["user", "assistant"]
        await here.until(lambda: not here.warmer.is_preparing.value)


async def test_an_answer_that_may_be_continued_keeps_its_memory(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.engine.load(MODEL)
        here.client.answers.append(ScriptedAnswer(reasoning="", text="Cut", stop_reason="max_tokens"))
        await here.chat.send("Hello")
        await here.settled()
        assert here.client.warmed == []


async def test_files_from_the_drop_on(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.engine.load(MODEL)
        document = DocumentPart(name="notes.txt", text="Some notes.")
        here.warmer.show_files((picture(tmp_path),), (document,))
        await here.until(lambda: bool(here.client.warmed))
        (question,) = here.client.warmed[0].messages
        assert question.role == "user"
        assert [type(part) for part in question.parts] == [ImagePart, TextPart]
        assert question.images[0].sha256
        assert "Some notes." in question.text


async def test_a_file_that_cannot_be_read_is_left_to_the_question(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.engine.load(MODEL)
        here.warmer.show_files((ImagePart(path=str(tmp_path / "gone.png"), sha256=""),), ())
        await here.settled()
        assert here.client.warmed == []


async def test_another_chat_when_it_is_opened(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.engine.load(MODEL)
        await here.chat.send("Hello")
        tree, settings, first = here.chat.tree, here.chat.settings, here.chat.chat_id
        here.chat.new_chat()
        await here.settled()
        here.client.warmed.clear()
        here.chat.open(first, tree, settings)
        await here.until(lambda: bool(here.client.warmed))
        assert here.client.warmed[0].chat == first


async def test_another_chat_ends_what_was_processed_for_the_last_one(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.engine.load(MODEL)
        cancelled = asyncio.Event()

        async def endless(*_arguments: object, **_named: object) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        here.client.ask = endless
        here.chat.set_system_prompt("Be brief.")
        await here.until(lambda: here.warmer.is_preparing.value)
        here.chat.new_chat()
        await cancelled.wait()


async def test_of_an_incognito_chat_no_file_is_named(tmp_path: Path) -> None:
    async with desk(tmp_path, Incognito()) as here:
        await here.engine.load(MODEL)
        await here.chat.send("Hello")
        await here.until(lambda: bool(here.client.warmed))
        assert (here.client.warmed[0].chat, here.client.warmed[0].state_file) == ("", "")


async def test_what_stands_before_a_question_that_is_edited(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.engine.load(MODEL)
        await here.chat.send("First")
        await here.chat.send("Second", (picture(tmp_path),))
        await here.settled()
        here.client.warmed.clear()

        here.warmer.show_edit(here.chat.conversation.turns[1].id)
        await here.until(lambda: bool(here.client.warmed))
        asked = here.client.warmed[-1]
        assert [message.role for message in asked.messages] == ["user", "assistant", "user"]
        assert asked.messages[0].text == "First"
        assert asked.messages[2].images, "the picture of the edited question"
        assert asked.messages[2].text == ""
        assert asked.chat == "", "the whole chat is kept, because the edit may be cancelled"
        assert asked.state_file

        here.warmer.show_edit(None)
        await here.until(lambda: len(here.client.warmed) == 2)
        assert here.client.warmed[-1].chat == here.chat.chat_id
        assert len(here.client.warmed[-1].messages) == 4


async def test_the_first_question_is_edited_after_the_system_prompt(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.engine.load(MODEL)
        here.chat.set_system_prompt("Be brief.")
        await here.chat.send("First")
        await here.settled()
        here.client.warmed.clear()
        here.warmer.show_edit(here.chat.conversation.turns[0].id)
        await here.until(lambda: bool(here.client.warmed))
        assert [message.role for message in here.client.warmed[-1].messages] == ["system"]


async def test_an_edit_of_a_chat_that_is_left_is_forgotten(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.engine.load(MODEL)
        await here.chat.send("First")
        here.warmer.show_edit(here.chat.conversation.turns[0].id)
        here.chat.new_chat()
        here.chat.set_system_prompt("Be brief.")
        here.client.warmed.clear()
        await here.until(lambda: bool(here.client.warmed))
        assert here.client.warmed[-1].chat == here.chat.chat_id


@pytest.mark.parametrize("why", ["is_on", "on_battery"])
async def test_switched_off_and_on_battery_nothing_is_asked(tmp_path: Path, why: str) -> None:
    async with desk(tmp_path, is_on=why != "is_on", on_battery=why == "on_battery") as here:
        await here.engine.load(MODEL)
        await here.chat.send("Hello")
        await here.settled()
        assert here.client.warmed == []


async def test_without_a_model_nothing_is_asked(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.chat.set_system_prompt("Be brief.")
        await here.settled()
        assert here.client.warmed == []


async def test_system_that_knows_no_batteries_is_not_on_battery(monkeypatch: pytest.MonkeyPatch) -> None:
    def sensors_battery() -> None:
        raise FileNotFoundError(2, "No such file or directory", "/sys/class/power_supply")

    monkeypatch.setattr("psutil.sensors_battery", sensors_battery, raising=False)
    assert not runs_on_battery()
