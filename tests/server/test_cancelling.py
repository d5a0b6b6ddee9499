"""Whoever starts or stops the server may be cancelled at any moment, and every client may leave."""

import asyncio
import itertools
import json
import socket
from pathlib import Path

import pytest

from qwendesk.engine.state import Phase
from qwendesk.server.service import ServerOptions, ServerService
from tests.cancelling import cancelled_at, public_coroutines
from tests.fakes.answer_stream import ScriptedAnswer
from tests.server.http_desk import ASKED, KEY, HttpDesk, http_desk


async def answers(desk: HttpDesk) -> bool:
    return (await desk.status("GET", "/health"), await desk.status("POST", "/v1/chat/completions", ASKED)) == (200, 200)


async def test_every_coroutine_of_the_server_is_tried():
    assert public_coroutines(ServerService) == {"start", "stop", "close"}


@pytest.mark.parametrize("when_done", [False, True])
@pytest.mark.parametrize("name", ["start", "stop", "close"])
async def test_cancelled_at_each_await_it_leaves_a_server_that_is_on_or_off(tmp_path: Path, name, when_done):
    for number in itertools.count(1):
        async with http_desk(tmp_path) as desk:
            port = desk.port
            options = ServerOptions(port=port, key_file=tmp_path / "keys")
            work = desk.server.start(options) if name == "start" else getattr(desk.server, name)()
            has_ended = await cancelled_at(number, work, when_done=when_done)
            if desk.server.state.is_on:
                assert await answers(desk)
            else:
                with socket.socket() as free:
                    free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    free.bind(("127.0.0.1", port))
            await desk.server.start(options)
            assert await answers(desk)
        if has_ended:
            break


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"])
async def test_client_that_leaves_at_any_event_of_load_or_answer_leaves_an_idle_server(tmp_path: Path, path: str):
    body = ASKED | {"stream": True, "max_tokens": 9, "prompt": "Hello", "input": "Hello"}
    for number in itertools.count(1):
        async with http_desk(tmp_path, [ScriptedAnswer(text="One two three")]) as desk:
            left, seen = asyncio.Event(), 0

            def count(_event: object, number: int = number, left: asyncio.Event = left) -> None:
                nonlocal seen
                seen += 1
                if seen == number:
                    left.set()

            desk.client.subscribe(count)
            desk.client.load_delay_s = 0.001
            reader, writer = await asyncio.open_connection("127.0.0.1", desk.port)
            content = json.dumps(body).encode()
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
            writer.write(f"{head}Content-Length: {len(content)}\r\nConnection: close\r\n\r\n".encode() + content)
            whole, leaving = asyncio.ensure_future(reader.read()), asyncio.ensure_future(left.wait())
            await asyncio.wait({whole, leaving}, return_when=asyncio.FIRST_COMPLETED)
            has_ended = whole.done()
            leaving.cancel()
            writer.close()
            await asyncio.wait({whole})
            await desk.until(lambda desk=desk: not desk.n_running)
            await desk.engine.wait_until_settled()
            assert desk.engine.state.phase in (Phase.OFF, Phase.READY)
            assert await answers(desk)
        if has_ended:
            break
