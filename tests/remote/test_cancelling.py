"""Whoever changes between a model on this PC and one on a server may be cancelled at any moment."""

import itertools

import pytest

from qwendesk.core.messages import text_message
from qwendesk.core.options import LoadOptions
from qwendesk.core.served_model import ServedModel
from qwendesk.engine.answer_meter import AnswerMeter
from qwendesk.engine.protocol import Finished, Generate, LoadReport
from qwendesk.engine.state import Phase
from qwendesk.engines.engine_service import EngineService
from qwendesk.remote.client import RemoteClient
from qwendesk.remote.routed_client import RoutedClient
from qwendesk.remote.servers import RemoteServer
from tests.cancelling import cancelled_at
from tests.fakes.engine import FakeEngineClient, decide_by_default
from tests.remote.made_up_server import MadeUpServer, Stream, piece

HERE = LoadOptions(model="/models/a.gguf")
MODELS = {"object": "list", "data": [{"id": "bird", "object": "model"}]}
ANSWER = Stream([piece({"content": "Hello."}), piece({}, "stop")])


async def answers(client: RoutedClient) -> bool:
    items = [item async for item in client.generate(Generate(messages=(text_message("user", "Hi"),)))]
    return isinstance(items[-1], Finished)


@pytest.mark.parametrize("when_done", [False, True])
@pytest.mark.parametrize("begins_there", [False, True])
async def test_cancelled_at_each_await_a_change_of_place_leaves_one_model_or_none(
    begins_there: bool, when_done: bool
) -> None:
    server = await MadeUpServer({"/v1/models": MODELS, "/v1/chat/completions": ANSWER}).start()
    there = LoadOptions(model=ServedModel(server.address, "bird").text)
    for number in itertools.count(1):
        local, remotes = FakeEngineClient(), []

        def make_remote(remotes: list[RemoteClient] = remotes) -> RemoteClient:
            remotes.append(RemoteClient(RemoteServer, lambda _: ""))
            return remotes[-1]

        client = RoutedClient(local, make_remote, AnswerMeter())
        engine = EngineService(client, decide=decide_by_default)
        assert isinstance(await engine.load(there if begins_there else HERE), LoadReport)
        change = engine.load(HERE if begins_there else there)
        has_ended = await cancelled_at(number, change, when_done=when_done)
        await engine.wait_until_settled()
        await engine.wait_for_retry()
        state = engine.state
        assert state.phase in (Phase.OFF, Phase.IDLE, Phase.READY)
        assert (state.phase is Phase.READY) == (state.report is not None) == await answers(client)
        assert local.is_loaded() == (state.local_report is not None)
        assert isinstance(await engine.load(there), LoadReport)
        assert await answers(client)
        await engine.close()
        assert not local.is_running
        if has_ended:
            break
    await server.close()
