"""The client, the services and the real engine on the demo model: what must hold when things go wrong."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from qwendesk.chat.chat_state import TextAdded
from qwendesk.chat.service import ChatService
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.messages import text_message
from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.core.paths import demo_mmproj, demo_model
from qwendesk.engine.client import WorkerClient, WorkerTimeouts
from qwendesk.engine.protocol import Generate, LoadReport
from qwendesk.engine.state import Phase
from qwendesk.engines.engine_service import EngineService
from tests.engine.device import TEST_DEVICE, placement
from tests.engine.processes import until_busy_for

DEMO = LoadOptions(model=str(demo_model()), mmproj=str(demo_mmproj()), n_ctx=8192, n_threads=1)
ENDLESS = {"logit_bias": "2016=-inf;2018=-inf"}
"""The demo's two end tokens are forbidden."""


@pytest_asyncio.fixture
async def client() -> AsyncIterator[WorkerClient]:
    client = WorkerClient()
    yield client
    await client.close()
    assert client.worker_pid is None


def decided(**values) -> DecidedOptions:
    base = {"model": str(demo_model()), "n_threads": 1, "n_cpu_moe": 0, "load_mode": "mmap"}
    return DecidedOptions(**(base | placement() | values))


def broken_files(folder: Path) -> dict[str, DecidedOptions]:
    model, mmproj = demo_model().read_bytes(), demo_mmproj().read_bytes()

    def file(name: str, content: bytes) -> str:
        path = folder / name
        path.write_bytes(content)
        return str(path)

    return {
        "page.gguf": decided(model=file("page.gguf", b"<html>404</html>")),
        "cut-header.gguf": decided(model=file("cut-header.gguf", model[:20_000])),
        "cut-data.gguf": decided(model=file("cut-data.gguf", model[:1_000_000])),
        "new.gguf": decided(model=file("new.gguf", model.replace(b"qwen35moe", b"qwen99moe"))),
        "renamed.gguf": decided(model=file("renamed.gguf", model.replace(b"output_norm.", b"output_morn."))),
        "gone.gguf": decided(model=str(folder / "gone.gguf")),
        "eyes-cut.gguf": decided(mmproj=file("eyes-cut.gguf", mmproj[:500_000])),
        "eyes-page.gguf": decided(mmproj=file("eyes-page.gguf", b"<html>404</html>")),
        "eyes-model.gguf": decided(mmproj=file("eyes-model.gguf", model)),
        "gone.lora": decided(lora=(str(folder / "gone.lora"),)),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("page.gguf", "not_gguf"),
        ("cut-header.gguf", "truncated"),
        ("cut-data.gguf", "truncated"),
        ("new.gguf", "unsupported_architecture"),
        ("renamed.gguf", "other"),
        ("gone.gguf", "missing_file"),
        ("eyes-cut.gguf", "truncated"),
        ("eyes-page.gguf", "not_gguf"),
        ("eyes-model.gguf", "mmproj_mismatch"),
        ("gone.lora", "missing_file"),
    ],
)
async def test_the_engines_own_failures_are_classified_and_name_the_file(client, tmp_path, name, kind):
    failure = await client.load(broken_files(tmp_path)[name])
    assert isinstance(failure, LoadFailure)
    assert failure.kind == kind
    assert name in failure.sentence
    assert failure.engine_lines
    assert isinstance(await client.load(decided()), LoadReport), "the same worker still loads a good file"


async def test_cancelled_load_is_not_an_error(client):
    client.subscribe(lambda _event: asyncio.ensure_future(client.cancel_load()))
    failure = await client.load(decided())
    assert isinstance(failure, LoadFailure)
    assert failure.kind == "cancelled"


async def test_stopped_answer_can_be_continued(client):
    engine = EngineService(client)
    chat = ChatService(client, engine)
    assert isinstance(await engine.load(DEMO), LoadReport)
    chat.set_thinking(False)
    chat.set_overrides(ENDLESS)
    chat.subscribe(lambda event: isinstance(event, TextAdded) and asyncio.ensure_future(chat.stop()))
    turn = await chat.send("Hello")
    assert turn.answer.stop_reason == "cancelled"
    assert turn.answer.text.startswith("H")
    chat.new_chat()
    chat.set_overrides({"max_tokens": "100"})
    other = ChatService(client, engine)
    assert (await other.send("What is 2 + 3?")).answer.text == "2 + 3 = 5"
    await engine.close()


async def test_killed_worker_keeps_the_partial_answer_and_is_restarted(client):
    engine = EngineService(client)
    chat = ChatService(client, engine)
    assert isinstance(await engine.load(DEMO), LoadReport)
    chat.set_thinking(False)
    chat.set_overrides(ENDLESS)
    pids = []

    def kill_once(event) -> None:
        if isinstance(event, TextAdded) and not pids:
            pids.append(client.worker_pid)
            psutil.Process(client.worker_pid).kill()

    chat.subscribe(kill_once)
    turn = await chat.send("Hello")
    assert turn.answer.text.startswith("H")
    assert ("ended by another program" if sys.platform == "win32" else "was killed") in turn.answer.error
    chat.new_chat()
    chat.set_overrides({})
    assert (await chat.send("What is 2 + 3?")).answer.text == "2 + 3 = 5"
    assert engine.state.phase is Phase.READY
    assert client.worker_pid not in pids
    await engine.close()
    assert not any(psutil.pid_exists(pid) for pid in pids)


async def test_eject_ends_the_process_and_frees_its_memory(client):
    engine = EngineService(client)
    await engine.load(DEMO)
    process = psutil.Process(client.worker_pid)
    await engine.eject()
    assert not process.is_running()
    assert engine.state.phase is Phase.OFF
    await engine.close()


@pytest.mark.skipif(bool(TEST_DEVICE), reason="only the CPU's rotation goes on for ever")
async def test_endless_decode_is_stopped_and_the_next_model_loads(tmp_path):
    """With no dimensions to rotate, ggml loops for ever inside one operation, where the abort flag is not looked at."""
    content = demo_model().read_bytes()
    value = content.index(b"rope.dimension_count") + len(b"rope.dimension_count") + 4
    endless = tmp_path / "endless.gguf"
    endless.write_bytes(content[:value] + bytes(4) + content[value + 4 :])
    client = WorkerClient(timeouts=WorkerTimeouts(answer_stall_s=0.5, cancel_s=1000))
    assert isinstance(await client.load(decided(model=str(endless))), LoadReport)
    worker = psutil.Process(client.worker_pid)
    stream = client.generate(Generate(messages=(text_message("user", "Hello"),)))
    items = []
    async for item in stream:
        items.append(item)
        await until_busy_for(worker, 1.0)  # a cancel before the decode would end the answer in order
        await stream.cancel()
    assert isinstance(items[-1], EngineExit)
    assert not worker.is_running()
    assert isinstance(await client.load(decided()), LoadReport)
    await client.close()
