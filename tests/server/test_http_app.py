"""Answers over HTTP: whole and streamed, clients that leave, engines that crash, and models that are loaded."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from qwendesk.core.failures import LoadFailure
from qwendesk.core.messages import ToolCall
from qwendesk.engine.protocol import Load, RequestFailed
from qwendesk.server.chat_completions import ChatWriter
from qwendesk.server.refusals import Limits
from qwendesk.server.service import ServerOptions
from tests.fakes.answer_stream import ScriptedAnswer
from tests.server.http_desk import ASKED, KEY, OTHER_KEY, HttpDesk, http_desk

CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
TOOL = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}


async def events(response: aiohttp.ClientResponse) -> list[Any]:
    """The data of all events, as objects where they are JSON."""
    lines = (await response.text()).splitlines()
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    return [json.loads(each) if each.startswith("{") else each for each in data]


def streamed_request() -> bytes:
    """A request for a stream, as bytes."""
    body = json.dumps({**ASKED, "stream": True}).encode()
    head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def asked(desk: HttpDesk, path: str, **fields: Any) -> list[Any]:
    async with desk.request("POST", path, {**ASKED, "max_tokens": 9, "stream": True, **fields}) as response:
        assert response.status == 200
        assert response.content_type == "text/event-stream"
        return await events(response)


async def test_an_answer_is_the_same_whole_and_streamed(tmp_path: Path) -> None:
    script = ScriptedAnswer(reasoning="Let me think.", text="It is four.")
    async with http_desk(tmp_path, [script, script]) as desk:
        [choice] = (await desk.json("POST", CHAT, ASKED))["choices"]
        chunks = await asked(desk, CHAT)
        assert chunks[-1] == "[DONE]"
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks[:-1]]
        assert "".join(delta.get("content") or "" for delta in deltas) == choice["message"]["content"] == "It is four."
        assert "".join(delta.get("reasoning_content") or "" for delta in deltas) == "Let me think."


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
async def test_paths_work_without_v1_too(tmp_path: Path, path: str) -> None:
    async with http_desk(tmp_path) as desk:
        body = {"input": "Hello"} if path == RESPONSES else {**ASKED, "max_tokens": 5}
        assert await desk.status("POST", path.removeprefix("/v1"), body) == 200


async def test_a_model_is_loaded_when_it_is_asked_for_and_again_after_it_was_unloaded(tmp_path: Path) -> None:
    async with http_desk(tmp_path) as desk:
        assert (await desk.json("GET", "/props"))["is_sleeping"]
        await desk.json("POST", CHAT, ASKED)
        await desk.json("POST", CHAT, ASKED)
        assert len([each for each in desk.client.requests if isinstance(each, Load)]) == 1
        await desk.client.unload()
        assert (await desk.json("POST", CHAT, ASKED))["choices"][0]["message"]["content"]
        assert len([each for each in desk.client.requests if isinstance(each, Load)]) == 2


async def test_while_a_game_has_the_card_a_request_waits_and_says_so(tmp_path: Path) -> None:
    async with http_desk(tmp_path, limits=Limits(ping_s=0.01)) as desk:
        await desk.json("POST", CHAT, ASKED)
        await desk.engine.unload_idle()
        desk.engine.hold_questions()
        async with desk.request("POST", CHAT, {**ASKED, "stream": True}) as response:
            pings = [await response.content.readline() for _ in range(7)]
            assert b": no answer yet\n" in pings
            assert desk.engine.state.report is None
            desk.engine.release_questions()
            assert b"data: [DONE]" in await response.content.read()
        assert desk.engine.state.report is not None


async def test_a_model_that_does_not_load_is_a_503_with_the_reason(tmp_path: Path) -> None:
    async with http_desk(tmp_path) as desk:
        desk.client.load_result = LoadFailure("other", "Not enough memory", "Choose a smaller file.")
        async with desk.request("POST", CHAT, ASKED) as response:
            assert response.status == 503
            assert "Choose a smaller file." in await response.text()
        desk.client.load_result = None
        assert await desk.status("POST", CHAT, ASKED) == 200


async def test_an_engine_that_crashes_before_the_answer_begins_is_started_again(tmp_path: Path) -> None:
    answers = [ScriptedAnswer(text="Lost.", crashes_after=0), ScriptedAnswer(text="It is four.")]
    async with http_desk(tmp_path, answers) as desk:
        body = await desk.json("POST", CHAT, ASKED)
        assert body["choices"][0]["message"]["content"] == "It is four."


@pytest.mark.parametrize(
    ("path", "is_error"),
    [
        (CHAT, lambda event: "error" in event),
        (MESSAGES, lambda event: event["type"] == "error"),
        (RESPONSES, lambda event: event["type"] == "response.failed"),
    ],
)
async def test_an_engine_that_crashes_within_an_answer_is_an_error_in_its_stream(
    tmp_path: Path, path: str, is_error: Any
) -> None:
    async with http_desk(tmp_path, [ScriptedAnswer(text="It is not over", crashes_after=2)]) as desk:
        fields = {"input": "Hello"} if path == RESPONSES else {}
        last = [event for event in await asked(desk, path, **fields) if event != "[DONE]"][-1]
        assert is_error(last), last
        assert await desk.status("POST", CHAT, ASKED) == 200, "the next answer has an engine again"


@pytest.mark.parametrize("stream", [True, False])
async def test_the_answer_of_a_client_that_leaves_is_stopped(tmp_path: Path, stream: bool) -> None:
    endless = ScriptedAnswer(text="word " * 10_000, tokens_per_second=100)
    async with http_desk(tmp_path, [endless]) as desk:

        async def ask() -> None:
            async with desk.request("POST", CHAT, {**ASKED, "stream": stream}) as response:
                await response.content.readany()
                await asyncio.Event().wait()

        task = asyncio.create_task(ask())
        await desk.until(lambda: [each for each in desk.server.requests.observed.value if each.phase == "writing"])
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await desk.until(lambda: not desk.n_running)
        assert desk.server.requests.observed.value[0].phase == "stopped"
        assert await desk.status("POST", CHAT, ASKED) == 200


async def test_what_the_engine_says_of_a_request_becomes_its_status(tmp_path: Path) -> None:
    failures = {"No model": 503, "Engine error": 500, "Invalid JSON schema": 400}
    for title, status in failures.items():
        failed = ScriptedAnswer(fail=RequestFailed(id=0, title=title, sentence="It said why."))
        async with http_desk(tmp_path, [failed]) as desk, desk.request("POST", CHAT, ASKED) as response:
            assert response.status == status
            assert "It said why." in await response.text()


async def test_a_prompt_of_a_client_gives_way_to_the_window(tmp_path: Path) -> None:
    async with http_desk(tmp_path) as desk:
        await desk.json("POST", CHAT, ASKED, User_Agent="claude-cli/2.1.197 (external, cli)")
        assert desk.client.asked[-1].gives_way
        assert desk.client.asked[-1].program == "Claude Code"
        assert desk.client.asked[-1].chat


async def test_a_request_that_the_user_stops_ends_for_its_client(tmp_path: Path) -> None:
    async with http_desk(tmp_path, [ScriptedAnswer(text="word " * 10_000, tokens_per_second=100)]) as desk:
        task = asyncio.create_task(asked(desk, CHAT))
        await desk.until(lambda: [each for each in desk.server.requests.observed.value if each.phase == "writing"])
        desk.server.requests.stop(desk.server.requests.observed.value[0].id)
        with pytest.raises(aiohttp.ClientError):
            await task


async def test_a_stream_that_waits_says_so_until_the_answer_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with http_desk(tmp_path, limits=Limits(ping_s=0.01)) as desk:
        await desk.json("POST", CHAT, ASKED)
        for path, mark in ((CHAT, b": "), (MESSAGES, b"event: ping")):
            released = asyncio.Event()

            async def wait(*_: object, until: asyncio.Event = released) -> None:
                await until.wait()

            monkeypatch.setattr(desk.client, "pause", wait)
            async with desk.request("POST", path, {**ASKED, "max_tokens": 5, "stream": True}) as response:
                n_pings = 0
                async for line in lines(response):
                    n_pings += line.startswith(mark)
                    if n_pings == 3:
                        released.set()
                assert n_pings >= 3


async def lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    async for line in response.content:
        yield line


async def test_reasoning_that_a_client_dropped_comes_back_for_that_client_alone(tmp_path: Path) -> None:
    call = ToolCall("read", '{"path": "a"}')
    script = ScriptedAnswer(reasoning="I must look.", calls=(call,))
    async with http_desk(tmp_path, [script]) as desk:
        body = {**ASKED, "tools": [TOOL]}
        message = (await desk.json("POST", CHAT, body))["choices"][0]["message"]
        del message["reasoning_content"]
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "text"}
        follow_up = {**body, "messages": [*body["messages"], message, result]}
        await desk.json("POST", CHAT, follow_up)
        assert desk.client.asked[-1].messages[1].reasoning == "I must look."
        await desk.json("POST", CHAT, follow_up, OTHER_KEY)
        assert desk.client.asked[-1].messages[1].reasoning == ""
        assert desk.client.asked[-1].chat != desk.client.asked[-2].chat


async def test_every_client_has_its_turn_and_its_own_answer(tmp_path: Path) -> None:
    async with http_desk(tmp_path) as desk:

        async def ask(number: int) -> bool:
            body = {"messages": [{"role": "user", "content": f"Say {number}"}]}
            key = OTHER_KEY if number % 2 else "test-key-0123456789"
            answer = await desk.json("POST", CHAT, body, key)
            return bool(answer["choices"][0]["message"]["content"] == f"You said: Say {number}")

        assert all(await asyncio.gather(*[ask(number) for number in range(12)]))


async def test_programs_with_one_key_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with http_desk(tmp_path) as desk:
        await desk.json("POST", CHAT, ASKED)
        released, tasks = asyncio.Event(), []

        async def wait(*_: object) -> None:
            await released.wait()

        monkeypatch.setattr(desk.client, "pause", wait)
        for number, program in enumerate(("busy/1", "busy/1", "busy/1", "busy/1", "other/1")):
            body = {"messages": [{"role": "user", "content": f"{program} {number}"}]}
            tasks.append(asyncio.create_task(desk.status("POST", CHAT, body, User_Agent=program)))
            await desk.until(lambda n=number + 1: desk.n_running == n)
        released.set()
        assert [await task for task in tasks] == [200] * 5
        order = [request.messages[0].text for request in desk.client.asked[1:]]
        assert order == ["busy/1 0", "other/1 4", "busy/1 1", "busy/1 2", "busy/1 3"]


async def test_what_other_programs_ask_a_llama_server(tmp_path: Path) -> None:
    async with http_desk(tmp_path) as desk:
        assert (await desk.json("GET", "/health")) == {"status": "ok"}
        assert (await desk.json("POST", "/tokenize", {"content": "a bc def"})) == {"tokens": [1, 2, 3]}
        props = await desk.json("GET", "/props")
        assert props["default_generation_settings"]["n_ctx"] == 32_768
        assert props["modalities"]["vision"]
        [model] = (await desk.json("GET", "/v1/models"))["data"]
        assert (await desk.json("GET", f"/v1/models/{model['id']}"))["id"] == model["id"]
        assert await desk.status("GET", "/v1/models/none") == 404


async def test_failures_have_the_shape_of_the_api_that_was_asked(tmp_path: Path) -> None:
    async with http_desk(tmp_path) as desk:
        assert (await desk.json("POST", MESSAGES, {}))["error"]["type"] == "invalid_request_error"
        assert (await desk.json("POST", CHAT, {}))["error"]["param"] == "messages"
        assert "embeddings" in (await desk.json("POST", "/v1/embeddings", {"input": "a"}))["error"]["message"]
        assert (await desk.json("GET", "/v1/nothing"))["error"]["type"] == "not_found_error"
        assert await desk.status("PUT", CHAT, {}) == 405


async def test_after_a_stop_nobody_listens_and_a_start_serves_again(tmp_path: Path) -> None:
    async with http_desk(tmp_path) as desk:
        address, port = desk.server.state.address, desk.port
        await desk.server.stop()
        assert not desk.server.state.is_on
        with pytest.raises(aiohttp.ClientConnectionError):
            await desk.session.get(f"{address}/health")
        await desk.server.start(ServerOptions(port=port, key_file=tmp_path / "keys"))
        assert await desk.status("GET", "/health") == 200


async def test_a_failure_within_an_answer_closes_the_connection_and_writes_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object) -> list[Any]:
        raise ZeroDivisionError

    monkeypatch.setattr(ChatWriter, "end", fail)
    async with http_desk(tmp_path, [ScriptedAnswer(text="It is four.")]) as desk:
        got = await desk.raw(streamed_request())
    assert got.startswith(b"HTTP/1.1 200")
    assert b"failed to serve" not in got


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_without_an_end_is_an_error_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    class NoAnswer:
        async def __aiter__(self) -> AsyncIterator[Any]:
            for item in ():
                yield item

        async def cancel(self) -> None:
            """There is nothing to cancel."""

    async with http_desk(tmp_path) as desk:
        monkeypatch.setattr(desk.client, "generate", lambda *_, **__: NoAnswer())
        assert await desk.status("POST", CHAT, {**ASKED, "stream": stream}) == 500
