"""When the states of chats are written to files, which are deleted, and what a chat asks of the engine."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from qwendesk.chat.open_chat import NoChatSaver
from qwendesk.chat.service import ChatService
from qwendesk.chat.state_files import StateFiles
from qwendesk.core.app_options import AppOptions
from qwendesk.core.failures import EngineExit
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions, decided_options
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import RequestFailed, SaveState, StateSaved
from qwendesk.engines.engine_service import EngineService
from tests.fakes.engine import DEMO_REPORT, FakeEngineClient

GB = 10**9


def room(n_bytes: int) -> Observed[AppOptions]:
    """The app's options that allow so much disk space."""
    return Observed(AppOptions(chat_states_gb=n_bytes / GIB))


class Client:
    """Writes files of `n_bytes`, and remembers the chats."""

    def __init__(self, n_bytes: int = 100) -> None:
        self.n_bytes = n_bytes
        self.saved: list[str] = []
        self.before_write: Callable[[], None] = lambda: None
        self.stalls = False

    async def ask(self, request: SaveState) -> StateSaved | RequestFailed | EngineExit:
        if self.stalls:
            await asyncio.Event().wait()
        self.before_write()
        self.saved.append(request.chat)
        if self.n_bytes > request.most_bytes:
            return StateSaved(id=0, n_bytes=0)
        self.write(Path(request.path))
        return StateSaved(id=0, n_bytes=self.n_bytes)

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(self.n_bytes))
        os.utime(path, (1000 * len(self.saved), 1000 * len(self.saved)))


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


def answer(files: StateFiles, chat: str, n_tokens: int = 5000) -> None:
    files.begin_answer(chat)
    files.end_answer(chat, n_tokens)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - the state of another object
        await asyncio.sleep(0)


def test_a_state_is_written_once_the_engine_is_idle(tmp_path: Path) -> None:
    async def test() -> None:
        client = Client()
        files = StateFiles(client, room(GB), tmp_path, idle_s=0.01)
        answer(files, "one")
        await until(files.file_of("one").exists)
        await files.close()
        assert client.saved == ["one"]

    run(test)


def test_an_answer_that_begins_puts_writing_off(tmp_path: Path) -> None:
    async def test() -> None:
        client = Client()
        files = StateFiles(client, room(GB), tmp_path, idle_s=0.01)
        answer(files, "one")
        files.begin_answer("one")
        await files.save_before_unload()
        assert client.saved == [], "the engine is busy"
        files.end_answer("one", 6000)
        await until(lambda: client.saved == ["one"])
        await files.close()

    run(test)


def test_a_chat_that_hardly_grew_is_written_only_before_an_unload(tmp_path: Path) -> None:
    async def test() -> None:
        client = Client()
        files = StateFiles(client, room(GB), tmp_path, idle_s=0.01)
        answer(files, "one", 20_000)
        await until(lambda: client.saved == ["one"])
        answer(files, "one", 20_900)
        answer(files, "two", 2000)
        await until(lambda: len(client.saved) > 1)
        assert client.saved == ["one", "two"]
        await files.save_before_unload()
        assert client.saved == ["one", "two", "one"]
        await files.save_before_unload()
        assert client.saved == ["one", "two", "one"], "nothing has changed since"

    run(test)


@pytest.mark.parametrize("budget", [0, 150])
def test_without_enough_room_nothing_is_written(tmp_path: Path, budget: int) -> None:
    async def test() -> None:
        files = StateFiles(Client(), room(budget), tmp_path)
        file = files.begin_answer("one")
        assert bool(file) == bool(budget)
        files.end_answer("one", 5000)
        await files.close()
        assert names(tmp_path) == []

    run(test)


def test_the_oldest_files_are_deleted_beyond_the_budget(tmp_path: Path) -> None:
    async def test() -> None:
        (tmp_path / "mine.txt").write_bytes(bytes(1000))
        files = StateFiles(Client(), room(250), tmp_path)
        for chat in ("one", "two", "three"):
            answer(files, chat)
            await files.save_before_unload()
        kept = {chat for chat in ("one", "two", "three") if files.file_of(chat).exists()}
        assert kept == {"two", "three"}
        assert (tmp_path / "mine.txt").exists()
        await files.close()

    run(test)


def test_a_deleted_chat_leaves_no_file_even_if_it_was_being_written(tmp_path: Path) -> None:
    async def test() -> None:
        client = Client()
        files = StateFiles(client, room(GB), tmp_path)
        answer(files, "one")
        await files.save_before_unload()
        files.forget(["one", "unknown"])
        assert names(tmp_path) == []
        answer(files, "one")
        client.before_write = lambda: files.forget(["one"])
        await files.save_before_unload()
        assert names(tmp_path) == []

    run(test)


def test_nothing_stays_that_should_not(tmp_path: Path) -> None:
    """Unfinished files of an earlier run, and all files once they are switched off."""

    async def test() -> None:
        options = room(GB)
        files = StateFiles(Client(), options, tmp_path)
        answer(files, "one")
        await files.save_before_unload()
        unfinished = tmp_path / f"{files.file_of('two').name}.4711.new"
        unfinished.write_bytes(bytes(10))
        files.forget(["two"])
        assert not unfinished.exists()
        unfinished.write_bytes(bytes(10))
        await files.tidy()
        assert names(tmp_path) == [files.file_of("one").name]
        options.set(AppOptions(chat_states_gb=0))
        await files.close()
        assert names(tmp_path) == []

    run(test)


def test_a_file_that_could_not_be_written_is_tried_again(tmp_path: Path) -> None:
    async def test() -> None:
        class FullDrive(Client):
            is_full = True

            async def ask(self, request: SaveState) -> StateSaved | RequestFailed | EngineExit:
                if self.is_full:
                    return RequestFailed(id=0, title="Engine error", sentence="No space left on device.")
                return await super().ask(request)

        client = FullDrive()
        files = StateFiles(client, room(GB), tmp_path)
        answer(files, "one")
        await files.save_before_unload()
        client.is_full = False
        await files.save_before_unload()
        assert client.saved == ["one"]

    run(test)


def test_an_engine_that_does_not_answer_holds_up_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qwendesk.chat.state_files._UNLOAD_WAIT_S", 0.05)

    async def test() -> None:
        client = Client()
        client.stalls = True
        files = StateFiles(client, room(GB), tmp_path)
        answer(files, "one")
        await files.save_before_unload()
        client.stalls = False
        await files.close()
        assert client.saved == ["one"], "it is tried again"

    run(test)


def test_an_engine_that_died_is_no_error(tmp_path: Path) -> None:
    async def test() -> None:
        class Dead(Client):
            async def ask(self, request: SaveState) -> EngineExit:
                return EngineExit(-9, "The engine stopped.")

        files = StateFiles(Dead(), room(GB), tmp_path)
        answer(files, "one")
        await files.close()
        assert names(tmp_path) == []

    run(test)


class Incognito(NoChatSaver):
    def is_excluded(self, chat_id: str) -> bool:
        return True


async def loaded(tmp_path: Path, saver: NoChatSaver) -> tuple[FakeEngineClient, EngineService, ChatService, StateFiles]:
    client = FakeEngineClient()
    engine = EngineService(client, decide=lambda options, _devices: decided_options(options))
    files = StateFiles(client, room(GB), tmp_path)
    engine.before_unload = files.save_before_unload
    await engine.load(LoadOptions(model=DEMO_REPORT.options.model))
    return client, engine, ChatService(client, engine, saver, states=files), files


def test_a_chat_names_itself_and_its_file_and_is_saved_before_an_unload(tmp_path: Path) -> None:
    async def test() -> None:
        client, engine, chat, files = await loaded(tmp_path, NoChatSaver())
        turn = await chat.send("What is a quant?")
        (asked,) = client.asked
        assert (asked.chat, asked.state_file) == (chat.chat_id, str(files.file_of(chat.chat_id)))
        await engine.unload_idle()
        assert files.file_of(chat.chat_id).exists()
        chat.delete(turn.id, "answer")
        assert not files.file_of(chat.chat_id).exists()
        await engine.close()

    run(test)


def test_of_an_incognito_chat_nothing_is_kept(tmp_path: Path) -> None:
    async def test() -> None:
        client, engine, chat, files = await loaded(tmp_path, Incognito())
        await chat.send("What is a quant?")
        (asked,) = client.asked
        assert (asked.chat, asked.state_file) == ("", "")
        await engine.eject()
        await files.close()
        assert not any(isinstance(each, SaveState) for each in client.requests)
        assert names(tmp_path) == []
        await engine.close()

    run(test)


def test_a_load_while_states_are_saved_is_not_undone_by_the_unload(tmp_path: Path) -> None:
    async def test() -> None:
        client, engine, _, _ = await loaded(tmp_path, NoChatSaver())
        saving, may_go_on = asyncio.Event(), asyncio.Event()

        async def save() -> None:
            saving.set()
            await may_go_on.wait()

        engine.before_unload = save
        unload = asyncio.create_task(engine.unload_idle())
        await saving.wait()
        load = asyncio.create_task(engine.load(LoadOptions(model="/models/other.gguf")))
        await asyncio.sleep(0)
        may_go_on.set()
        await asyncio.gather(unload, load)
        assert client.is_loaded()
        await engine.close()

    run(test)
