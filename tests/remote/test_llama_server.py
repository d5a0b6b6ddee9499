"""The real llama-server, built from the engine's own source, with the demo model."""

import asyncio
import json
from collections.abc import Iterator

import msgspec
import pytest

from qwendesk.chat.request import question_message
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions
from qwendesk.core.served_model import ServedModel
from qwendesk.engine.protocol import Called, Delta, Finished, Generate, PromptProgress, RequestFailed
from tests.remote.conftest import RemoteDesk
from tests.remote.llama_server import LlamaServer, UrgingProxy, needs_llama_server, running_llama_server

pytestmark = [needs_llama_server, pytest.mark.timeout(300)]
GREEDY = GenerationOptions(temperature=0.0, max_tokens=200)
TOOL = json.dumps(
    {
        "type": "function",
        "function": {"name": "current_time", "description": "", "parameters": {"type": "object", "properties": {}}},
    }
)


@pytest.fixture(scope="module")
def server() -> Iterator[LlamaServer]:
    with running_llama_server() as server:
        yield server


async def use(remote: RemoteDesk, address: str):
    return await remote.engine.load(LoadOptions(model=ServedModel(address, "").text))


async def items_of(stream):
    return [item async for item in stream]


async def test_what_it_can_do_is_found_out(remote, server):
    report = await use(remote, server.address)
    assert (report.name, report.n_ctx, report.served_by.program) == ("QwenDesk-Demo-Q8_0", 8192, "llama-server")
    assert (report.can_think, report.can_see, report.template.tools) == (True, True, True)


async def test_thinking_is_apart_and_can_be_turned_off(remote, server):
    await use(remote, server.address)
    remote.chat.set_thinking(True)
    thought = (await remote.chat.send("Hello")).answer
    assert thought.reasoning
    assert thought.text
    assert "</think>" not in thought.text
    remote.chat.set_thinking(False)
    direct = (await remote.chat.send("Hello")).answer
    assert not direct.reasoning
    assert direct.text


async def test_speed_and_reuse_are_those_that_it_reports(remote, server):
    await use(remote, server.address)
    await remote.chat.send("Hello")
    stats = (await remote.chat.send("Hello again")).answer.stats
    assert stats.is_reuse_known
    assert 0 < stats.reused_tokens < stats.prompt_tokens
    assert stats.decode_s > 0


async def test_the_thinking_budget_is_kept(remote, server):
    await use(remote, server.address)
    asked = [question_message("What time is it?", (), ())]
    limited = msgspec.structs.replace(GREEDY, enable_thinking=True, thinking_budget=2)
    free = msgspec.structs.replace(limited, thinking_budget=-1)
    thoughts = []
    for options in (limited, free):
        items = await items_of(remote.client.generate(Generate(messages=asked, options=options)))
        thoughts.append("".join(each.text for each in items if isinstance(each, Delta) and each.kind == "reasoning"))
    assert len(thoughts[0]) < len(thoughts[1])


async def test_a_picture_is_seen(remote, server, shape_picture):
    await use(remote, server.address)
    answer = (await remote.chat.send("What is in this picture?", (shape_picture("red", "circle"),))).answer
    assert "red circle" in answer.text


async def test_progress_of_a_long_prompt_is_shown(remote, server):
    await use(remote, server.address)
    asked = [question_message("word " * 1500 + "?", (), ())]
    items = await items_of(
        remote.client.generate(Generate(messages=asked, options=msgspec.structs.replace(GREEDY, max_tokens=1)))
    )
    progress = [item for item in items if isinstance(item, PromptProgress)]
    assert progress
    assert progress[-1].done == progress[-1].total


async def test_a_call_of_its_own_grammar_arrives_whole(remote, server):
    proxy = UrgingProxy(server.address)
    await proxy.start()
    try:
        await use(remote, proxy.address)
        asked = [question_message("What time is it?", (), ())]
        items = await items_of(remote.client.generate(Generate(messages=asked, options=GREEDY, tools_json=(TOOL,))))
    finally:
        await remote.client.unload()
        await proxy.close()
    (called,) = [item for item in items if isinstance(item, Called)]
    assert (called.call.name, called.call.arguments_json) == ("current_time", "{}")
    assert isinstance(items[-1], Finished)
    assert items[-1].stop_reason == "tool_calls"


async def test_a_stopped_answer_goes_on_where_it_was(remote, server):
    await use(remote, server.address)
    remote.chat.set_thinking(False)
    remote.chat.change_settings(msgspec.structs.replace(remote.chat.settings, overrides={"max_tokens": "6"}))
    turn = await remote.chat.send("Hello")
    begun = turn.answer.text
    assert turn.answer.stop_reason == "max_tokens"
    remote.chat.change_settings(msgspec.structs.replace(remote.chat.settings, overrides={}))
    await remote.chat.resume(turn.id)
    continued = remote.chat.conversation.turns[-1].answer.text
    assert continued.startswith(begun)
    assert len(continued) > len(begun)


async def test_a_killed_server_is_said_and_a_restarted_one_is_used_again(remote):
    with running_llama_server() as server:
        await use(remote, server.address)
        asked = [question_message("Count: 1, 2, 3", (), ())]
        endless = msgspec.structs.replace(GREEDY, max_tokens=4000, logit_bias=())
        stream = remote.client.generate(Generate(messages=asked, options=endless))
        items = []
        async for item in stream:
            items.append(item)
            if isinstance(item, Delta):
                await asyncio.to_thread(server.kill)
                break
        items += await items_of(stream)
        assert isinstance(items[-1], RequestFailed | Finished)
        refused = await items_of(remote.client.generate(Generate(messages=asked, options=GREEDY)))
        assert isinstance(refused[-1], RequestFailed)
        assert "Start the server" in refused[-1].sentence
        await asyncio.to_thread(server.start)
        again = await items_of(remote.client.generate(Generate(messages=asked, options=GREEDY)))
        assert isinstance(again[-1], Finished)
