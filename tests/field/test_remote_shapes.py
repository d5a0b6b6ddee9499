"""Servers whose answers differ from OpenAI's in a way that doesn't matter: they can be read."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from qwendesk.cli import main as cli
from tests.field.grid import SERVER, Kind, Way, case
from tests.field.test_remote_limits import APIS, serving
from tests.remote import made_up_server
from tests.remote.conftest import RemoteDesk
from tests.remote.made_up_server import Refusal, Stream, piece, usage
from tests.remote.server_thread import served
from tests.remote.test_answers import answered

_NO_STREAM = {
    Way.MCP: "an MCP server's messages are read by the protocol's library",
    Way.IMPORT: "an import reads a file of this PC",
}
ODD_CHUNKS = Kind("One odd field of another server's answer, such as a count that is null, ends it", _NO_STREAM)
ODD_STREAMS = Kind(
    "A stream with another content type, a mark at its beginning or other line ends isn't read", _NO_STREAM
)

HI, END = piece({"content": "Hi"}), piece({}, "stop")
COUNTS = {"prompt_tokens": None, "completion_tokens": 2.5, "prompt_tokens_details": [], "total_tokens": "many"}
CHUNKS: dict[str, list[Any]] = {
    "choices are null": [HI, {"choices": None}, END],
    "choices are an object": [HI, {"choices": {}}, END],
    "a choice is null": [HI, {"choices": [None]}, END],
    "the delta is null": [HI, {"choices": [{"delta": None, "finish_reason": "stop"}]}],
    "the id is null": [{**HI, "id": None}, END],
    "the id is a number": [{**HI, "id": 5}, END],
    "counts of a wrong kind": [HI, END, {"choices": [], "usage": COUNTS}],
    "the usage is a list": [HI, END, {"choices": [], "usage": []}],
    "endless counts": [HI, END, {"choices": [], "usage": {"prompt_tokens": 1e308, "completion_tokens": -1e308}}],
    "times are null": [HI, END, {"choices": [], "timings": {"prompt_ms": None, "predicted_n": "NaN"}}],
    "progress is null": [{"choices": [], "prompt_progress": {"total": None}}, HI, END],
    "no reason yet": [{"choices": [{"delta": {"content": "Hi"}, "finish_reason": False}]}, END],
    "content in parts": [piece({"content": [{"type": "text", "text": "H"}, {"type": "text", "text": "i"}]}), END],
    "no calls": [piece({"content": "Hi", "tool_calls": {}}), piece({"tool_calls": [None]}), END],
    "a message in place of a delta": [{"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}],
    "an error that is none": [{**HI, "error": {}}, {**END, "error": False}],
}
WHOLE = {"choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}], "usage": None}
LINES = b"".join(f"data: {json.dumps(each)}\r\r".encode() for each in (HI, END))
STREAMS: dict[str, Any] = {
    "no content type": Stream([HI, END], content_type=""),
    "plain text": Stream([HI, END], content_type="text/plain; charset=utf-8"),
    "another encoding": Stream([HI, END], content_type="text/event-stream; charset=latin1"),
    "a byte order mark": Stream([b"\xef\xbb\xbf" + LINES]),
    "old line ends": Stream([LINES]),
    "comments": Stream([b": wait\n\n:\n", HI, b"event: ping\ndata:\n\n", END]),
    "not streamed": Refusal(200, WHOLE),
}


@pytest_asyncio.fixture
async def remote() -> AsyncIterator[RemoteDesk]:
    desk = RemoteDesk()
    yield desk
    await desk.close()


@case(ODD_CHUNKS, Way.WINDOW, report="cline#8518", before="failed")
async def test_what_cant_be_read_of_a_chunk_is_left_out(remote: RemoteDesk) -> None:
    for kind, events in CHUNKS.items():
        _, answer = await answered(remote, Stream(events))
        assert (kind, answer.text, answer.error) == (kind, "Hi", "")


@case(ODD_CHUNKS, Way.WINDOW, report="cline#8518", before="failed")
async def test_a_call_is_kept_though_a_field_of_it_is_odd(remote: RemoteDesk) -> None:
    odd = {"index": "0", "id": 5, "function": None}
    begun = {"index": 0, "type": None, "function": {"name": "search", "arguments": '{"q": '}}
    rest = {"index": 0, "function": {"name": [], "arguments": '"x"}'}}
    _, answer = await answered(remote, Stream([piece({"tool_calls": [each]}) for each in (odd, begun, rest)] + [END]))
    ((record,),) = (step.calls for step in answer.steps)
    assert (record.call.name, json.loads(record.call.arguments_json)) == ("search", {"q": "x"})


@case(ODD_STREAMS, Way.WINDOW, report="ramalama#2837", before="failed")
@case(ODD_STREAMS, Way.WINDOW, report="big-AGI#681", before="failed")
async def test_a_stream_is_read_whatever_it_is_called(remote: RemoteDesk) -> None:
    for kind, stream in STREAMS.items():
        _, answer = await answered(remote, stream)
        assert (kind, answer.text, answer.error) == (kind, "Hi", "")


@case(ODD_CHUNKS, Way.CLI, report="cline#8518", before="failed")
@case(ODD_STREAMS, Way.CLI, report="ramalama#2837", before="failed")
@pytest.mark.parametrize("answer", [Stream(CHUNKS["choices are null"]), STREAMS["plain text"]])
def test_the_command_line_reads_it_too(answer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with served(made_up_server.llama_server(answer)) as server:
        assert cli.main(["ask", "--engine", server.address, "hi"]) == 0
    assert capsys.readouterr().out.strip() == "Hi"


@case(ODD_CHUNKS, *SERVER, report="cline#8518", before="failed")
@case(ODD_STREAMS, *SERVER, report="ramalama#2837", before="failed")
@pytest.mark.parametrize("way", APIS)
@pytest.mark.parametrize("answer", [Stream([HI, END, usage(1, 1) | {"usage": COUNTS}]), STREAMS["no content type"]])
async def test_clients_of_our_server_get_it(remote: RemoteDesk, tmp_path: Path, way: Way, answer: Any) -> None:
    path, body = APIS[way]
    async with serving(remote, tmp_path, answer) as server, aiohttp.ClientSession() as session:
        headers = {"Authorization": "Bearer test-key-0123456789"}
        async with session.post(server.state.address + path, json={**body, "stream": False}, headers=headers) as reply:
            assert reply.status == 200
            assert '"Hi"' in await reply.text()
