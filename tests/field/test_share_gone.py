"""The model's drive or share goes away while the model is loaded: a mapped file ends too early, or is there no more."""

import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from qwendesk.chat.service import ChatService
from qwendesk.cli import main as cli
from qwendesk.core.options import LoadOptions
from qwendesk.core.paths import demo_model
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.protocol import LoadReport
from qwendesk.engines.engine_service import EngineService
from tests.fakes.engine import decide_by_default
from tests.field.grid import SERVER, Kind, Way, case
from tests.field.serving import served

GONE = Kind(
    "The share with the model goes away, and the app hangs, ends, or says nothing",
    {
        Way.MCP: "an MCP server has no part in the model's file",
        Way.IMPORT: "an import of chats uses no model; for one of models see tests/hub/test_model_import.py",
    },
)
FOUND = "found by cutting the file of a loaded model, November 2026"
_FIRST_PAGE_BYTES = 4096
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows lets nobody cut or delete a mapped file")


class LoadedModel:
    """The real engine with a model whose file the test cuts or deletes."""

    def __init__(self, file: Path) -> None:
        self.file = file
        shutil.copy(demo_model(), file)
        self._client = WorkerClient()
        self.engine = EngineService(self._client, decide=decide_by_default)
        self.chat = ChatService(self._client, self.engine)

    async def load(self, load_mode: str = "mmap") -> object:
        return await self.engine.load(LoadOptions(model=str(self.file), n_ctx=4096, load_mode=load_mode))  # type: ignore[arg-type]

    async def ask(self) -> tuple[str, str]:
        """Return the answer and its error, once the engine has come back or given up."""
        answer = (await self.chat.send("Hello")).answer
        await self.engine.wait_until_settled()
        return answer.text, answer.error

    async def close(self) -> None:
        await self.chat.stop()
        await self.engine.close()


@pytest_asyncio.fixture
async def loaded(tmp_path: Path) -> AsyncIterator[LoadedModel]:
    made = LoadedModel(tmp_path / "model.gguf")
    assert isinstance(await made.load(), LoadReport)
    yield made
    await made.close()


def cut(file: Path) -> None:
    os.truncate(file, _FIRST_PAGE_BYTES)


@case(GONE, Way.WINDOW, report=FOUND, before="held")
@pytest.mark.parametrize(("is_deleted", "kind"), [(False, "truncated"), (True, "missing_file")])
async def test_a_cut_file_ends_the_worker_alone(loaded: LoadedModel, is_deleted: bool, kind: str) -> None:
    cut(loaded.file)
    if is_deleted:
        loaded.file.unlink()

    text, error = await loaded.ask()

    assert text == ""
    assert "a file that it had mapped became shorter, or its disk was removed" in error
    failure = loaded.engine.state.failure
    assert failure is not None
    assert (failure.kind, "model.gguf" in failure.sentence) == (kind, True)
    assert "No model is loaded" in (await loaded.ask())[1]


@case(GONE, Way.WINDOW, report=FOUND, before="held")
async def test_the_chat_goes_on_when_the_share_is_back(loaded: LoadedModel) -> None:
    assert (await loaded.ask())[0]
    cut(loaded.file)
    await loaded.ask()
    shutil.copy(demo_model(), loaded.file)

    assert isinstance(await loaded.load(), LoadReport)

    assert (await loaded.ask())[0]
    assert len(loaded.chat.conversation.turns) == 3


@case(GONE, Way.WINDOW, report=FOUND, before="held")
async def test_a_deleted_file_is_used_on(loaded: LoadedModel) -> None:
    loaded.file.unlink()
    text, error = await loaded.ask()
    assert (bool(text), error) == (True, "")


@case(GONE, Way.WINDOW, report=FOUND, before="held")
async def test_a_copied_model_needs_its_file_no_more(loaded: LoadedModel) -> None:
    assert isinstance(await loaded.load("none"), LoadReport)
    cut(loaded.file)
    text, error = await loaded.ask()
    assert (bool(text), error) == (True, "")


@case(GONE, *SERVER, report=FOUND, before="held")
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
async def test_a_program_is_told_and_the_server_goes_on(tmp_path: Path, path: str) -> None:
    file = tmp_path / "model.gguf"
    shutil.copy(demo_model(), file)
    client = WorkerClient()
    try:
        async with served(client, "--model", str(file)) as server:
            assert (await server.ask(path))[0] == 200
            cut(file)
            status, body = await server.ask(path)
            assert (status >= 500, "ends too early" in str(body)) == (True, True), body
            shutil.copy(demo_model(), file)
            await server.services.engine.wait_until_settled()
            assert (await server.ask(path))[0] == 200
    finally:
        await client.close()


@case(GONE, Way.CLI, report=FOUND, before="held")
@pytest.mark.parametrize(("is_there", "words"), [(True, "Incomplete model file"), (False, "could not be found")])
def test_the_command_line_says_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_there: bool, words: str
) -> None:
    file = tmp_path / "model.gguf"
    if is_there:
        file.write_bytes(demo_model().read_bytes()[:100_000])
    assert cli.main(["ask", "--model", str(file), "Hello"]) != 0
    assert words in capsys.readouterr().err
