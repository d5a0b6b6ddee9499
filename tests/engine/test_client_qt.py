"""The same client under the Qt event loop, as the window runs it."""

import sys
from pathlib import Path

import psutil
import pytest

from qwendesk.core.failures import EngineExit
from qwendesk.core.messages import text_message
from qwendesk.core.options import DecidedOptions
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.protocol import Delta, Finished, Generate, LoadReport
from tests.fakes import worker as fake_worker


def run(main) -> None:
    qasync = pytest.importorskip("qasync")
    from PySide6.QtWidgets import QApplication

    app = QApplication.instance() or QApplication([])
    with qasync.QEventLoop(app) as loop:
        loop.run_until_complete(main)


def client_of(manner: str) -> WorkerClient:
    return WorkerClient((sys.executable, str(Path(fake_worker.__file__)), *manner.split()))


async def load_and_read(client: WorkerClient) -> list:
    assert isinstance(await client.load(DecidedOptions(model="/models/a.gguf")), LoadReport)
    return [item async for item in client.generate(Generate(messages=(text_message("user", "Hi"),)))]


def test_answer_streams_and_the_worker_exits():
    async def main() -> None:
        client = client_of("well")
        items = await load_and_read(client)
        assert isinstance(items[-1], Finished)
        assert sum(isinstance(item, Delta) for item in items) == fake_worker.WORDS
        await client.close()
        assert client.worker_pid is None

    run(main())


def test_a_long_line_arrives_whole():
    async def main() -> None:
        client = client_of("long line")
        items = await load_and_read(client)
        assert "".join(item.text for item in items if isinstance(item, Delta)) == fake_worker.LONG_TEXT
        await client.close()

    run(main())


def test_killed_worker_is_reported():
    async def main() -> None:
        client = client_of("endless")
        assert isinstance(await client.load(DecidedOptions(model="/models/a.gguf")), LoadReport)
        stream = client.generate(Generate(messages=(text_message("user", "Hi"),)))
        items = []
        async for item in stream:
            if isinstance(item, Delta) and not any(isinstance(each, Delta) for each in items):
                psutil.Process(client.worker_pid).kill()
            items.append(item)
        assert isinstance(items[-1], EngineExit)
        await client.close()

    run(main())
