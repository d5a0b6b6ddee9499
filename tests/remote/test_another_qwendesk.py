"""Another QwenDesk as the engine: `qwendesk serve` with the real engine and the demo model."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qwendesk.core import paths
from qwendesk.core.options import LoadOptions
from qwendesk.core.served_model import ServedModel
from qwendesk.engine.protocol import LoadReport
from qwendesk.remote.connection import Connection
from qwendesk.remote.inspection import find_kind, list_models
from qwendesk.remote.servers import RemoteServer
from tests.remote.conftest import RemoteDesk

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def another(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The address and the key of one that runs."""
    key_file = tmp_path / "key"
    command = [sys.executable, "-m", "qwendesk", "serve", "--port", "0", "--json", "--key-file", str(key_file)]
    command += ["--model", str(paths.demo_model()), "--set", "n_ctx=4096"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process:
        ready = json.loads(process.stdout.readline())
        yield ready["url"], ready["key"]
        process.terminate()


async def use(remote: RemoteDesk, another: tuple[str, str]) -> LoadReport:
    address, remote.key = another
    report = await remote.engine.load(LoadOptions(model=ServedModel(address, "").text))
    assert isinstance(report, LoadReport), report
    return report


async def test_it_is_known_for_what_it_is_and_refuses_a_wrong_key(remote, another):
    address, key = another
    connection = Connection(RemoteServer(address), key)
    try:
        assert await find_kind(connection) == "qwendesk"
        assert len(await list_models(connection, "qwendesk")) == 1
    finally:
        await connection.close()
    remote.key = "wrong"
    failure = await remote.engine.load(LoadOptions(model=ServedModel(address, "").text))
    assert "key" in failure.sentence
    assert "Other engines" in failure.sentence


async def test_it_thinks_when_asked_to_sees_pictures_and_reports_reuse(remote, another, shape_picture):
    report = await use(remote, another)
    assert report.served_by.program == "QwenDesk"
    assert report.can_think
    remote.chat.set_thinking(True)
    answer = (await remote.chat.send("Hello")).answer
    assert answer.reasoning
    assert answer.text
    remote.chat.set_thinking(False)
    answer = (await remote.chat.send("Who are you?")).answer
    assert not answer.reasoning
    assert "demo model" in answer.text
    assert answer.stats.is_reuse_known
    assert answer.stats.reused_tokens > 0
    answer = (await remote.chat.send("What is in this picture?", (Path(shape_picture("red", "circle")),))).answer
    assert "red circle" in answer.text


async def test_a_stopped_answer_frees_it_for_the_next(remote, another):
    await use(remote, another)
    sending = asyncio.ensure_future(remote.chat.send("Hello"))
    await asyncio.sleep(0)
    await remote.chat.stop()
    await sending
    assert (await remote.chat.send("Who are you?")).answer.text
