"""What another server sends can neither stop the window, nor fill the memory, nor go on for ever."""

import asyncio
import contextlib
import functools
import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import pytest
import pytest_asyncio

from qwendesk.cli import main as cli
from qwendesk.core import paths
from qwendesk.core.app_options import AppOptions
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import text_message
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.served_model import ServedModel
from qwendesk.engine.protocol import Delta, Finished, Generate, LoadReport, PromptProgress
from qwendesk.hub.network import HubError, Network
from qwendesk.hub.remote import Hub
from qwendesk.mcp.server import RunningMcpServer
from qwendesk.mcp.server_config import NewServer, ServerConfig, new_id
from qwendesk.mcp.service import McpService
from qwendesk.remote import answer_reader, answer_stream, connection
from qwendesk.remote.answer_reader import ThinkSplitter
from qwendesk.remote.connection import Connection
from qwendesk.remote.inspection import list_models
from qwendesk.remote.servers import RemoteServer
from qwendesk.remote.service import RemoteService
from qwendesk.server.served_models import ServedModels
from qwendesk.server.service import ServerOptions, ServerService
from tests.field.grid import SERVER, Kind, Way, case
from tests.mcp.servers import added, problem, until
from tests.remote import made_up_server
from tests.remote.conftest import RemoteDesk
from tests.remote.made_up_server import Refusal, Stream, piece, usage
from tests.remote.server_thread import served
from tests.remote.test_answers import MODEL, answered

_FILES = "an import reads a file of this PC, whose limits are in chat/exchange/values.py"
FLOOD = Kind(
    "A server's answer stops the window for seconds, or fills the memory",
    {Way.IMPORT: _FILES},
)
DEAD = Kind(
    "The stream of a server went dead, and the answer never ends",
    {Way.IMPORT: _FILES},
)
ODD_NUMBERS = Kind(
    "Numbers and names of a server are stored and shown whatever they are",
    {
        Way.CLI: "it shows the report and the statistics that the window's case looks at",
        **dict.fromkeys(SERVER, "the usage that it reports is made of the statistics that the window's case looks at"),
        Way.MCP: "an MCP server's offer is cut in mcp/host/offers.py, see tests/mcp/test_hostile.py",
        Way.IMPORT: _FILES,
    },
)
FOUND = "found by attack, November 2026"
APIS = {
    Way.CHAT: ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "stream": True}),
    Way.RESPONSES: ("/v1/responses", {"input": "Hi", "stream": True}),
    Way.MESSAGES: ("/v1/messages", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 99, "stream": True}),
}
BOMB = Refusal(200, gzip.compress(bytes(20_000_000)), {"Content-Encoding": "gzip", "Content-Type": "text/event-stream"})
HANGS = Stream([piece({"content": "On and"})], holds=True)


@pytest_asyncio.fixture
async def remote() -> AsyncIterator[RemoteDesk]:
    desk = RemoteDesk()
    yield desk
    await desk.close()


@pytest.fixture
def short_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "SILENCE_S", 0.05)


@pytest.fixture
def own_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No MCP servers of another test."""
    monkeypatch.setattr(paths, "config_folder", lambda: tmp_path)


@case(FLOOD, Way.WINDOW, report=FOUND, before="failed")
async def test_a_compressed_answer_is_not_unpacked(remote: RemoteDesk) -> None:
    server, answer = await answered(remote, BOMB)

    assert "compresses its answers" in answer.error
    assert [each.headers["accept-encoding"] for each in server.asked] == ["identity"] * len(server.asked)


@case(FLOOD, Way.WINDOW, report=FOUND, before="failed")
@pytest.mark.parametrize("part", ["content", "reasoning_content"])
async def test_a_text_without_an_end_is_ended(remote: RemoteDesk, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    monkeypatch.setattr(answer_reader, "_MOST_CHARACTERS", 1000)
    _, answer = await answered(remote, Stream([piece({part: "word " * 20})] * 30, holds=True))

    assert "more than an answer has" in answer.error
    assert len(answer.text or answer.reasoning) == 1000, "what had arrived is kept"


@case(FLOOD, Way.WINDOW, report=FOUND, before="failed")
async def test_events_that_mean_nothing_end_at_their_size(remote: RemoteDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_MOST_STREAM_BYTES", 50_000)
    _, answer = await answered(
        remote, Stream([piece({"content": "So"}), *[b": still here\n\n" * 100] * 60], holds=True)
    )

    assert "more than an answer has" in answer.error
    assert answer.text == "So"


@case(FLOOD, Way.WINDOW, report=FOUND, before="failed")
async def test_a_server_waits_for_whoever_reads(remote: RemoteDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_stream, "_MOST_UNREAD", 4)
    words = [piece({"content": f"{number} "}) for number in range(60)]
    server = await remote.serve(made_up_server.llama_server(Stream([*words, piece({}, "stop")])))
    await remote.use(server, MODEL)
    longest = 0

    def note(_item: object) -> None:
        nonlocal longest
        longest = max(longest, running.items.qsize())

    stream = remote.client.generate(Generate(messages=(text_message("user", "Hi"),)))
    running = stream._running
    monkeypatch.setattr(running, "_publish", note)
    while running.items.qsize() < 4:  # noqa: ASYNC110 - a queue tells nobody
        await asyncio.sleep(0)
    texts = [item.text async for item in stream if isinstance(item, Delta)]

    assert "".join(texts).split() == [str(number) for number in range(60)]
    assert longest <= 4


def test_blanks_without_an_end_are_not_held_back() -> None:
    """What is held back is looked through with each piece."""
    splitter = ThinkSplitter()

    assert sum(len(text) for _ in range(15) for _kind, text in splitter.feed(" " * 100)) == 1500


@case(FLOOD, Way.WINDOW, report=FOUND, before="failed")
async def test_large_json_is_decoded_on_a_thread(remote: RemoteDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LARGE_BYTES", 300)
    decoded_by: list[str] = []
    to_thread = asyncio.to_thread

    async def note(work: Any, *given: Any) -> Any:
        decoded_by.append(getattr(work, "__name__", ""))
        return await to_thread(work, *given)

    monkeypatch.setattr(asyncio, "to_thread", note)
    _, answer = await answered(remote, Stream([piece({"content": "word " * 100}), piece({}, "stop"), usage(1, 1)]))

    assert (answer.text, answer.error) == ("word " * 100, "")
    assert {"decode_json", "decode_chunk"} <= set(decoded_by)


@case(FLOOD, Way.CLI, report=FOUND, before="failed")
def test_the_command_line_ends_too(capsys: pytest.CaptureFixture[str]) -> None:
    with served(made_up_server.llama_server(BOMB)) as server:
        assert cli.main(["ask", "--engine", server.address, "hi"]) != 0
    assert "compresses its answers" in capsys.readouterr().err


@case(FLOOD, Way.MCP, report=FOUND, before="failed")
@pytest.mark.usefixtures("own_config")
async def test_an_mcp_server_s_compressed_answer_is_not_unpacked(remote: RemoteDesk) -> None:
    server = await remote.serve({"/mcp": BOMB})
    service = McpService()
    await added(service, NewServer(ServerConfig(new_id(), "Bomb", address=f"{server.address}/mcp")))

    assert problem(service).startswith(f"{server.address}/mcp didn't answer as an MCP server")
    assert {each.headers["accept-encoding"] for each in server.asked} == {"identity"}
    await service.close()


def test_the_hub_s_compressed_answer_is_not_unpacked() -> None:
    with served({}, missing=BOMB) as server, pytest.raises(HubError, match="compressed"):
        Hub(Network(server.address)).files("owner/repo")


@case(DEAD, Way.WINDOW, report=FOUND, before="failed")
@pytest.mark.usefixtures("short_silence")
async def test_a_stream_in_which_nothing_comes_ends_with_what_had_arrived(remote: RemoteDesk) -> None:
    server, answer = await answered(remote, HANGS)

    await server.client_left.wait()
    assert answer.text == "On and"
    assert "has sent nothing for" in answer.error


@case(DEAD, Way.WINDOW, report=FOUND, before="failed")
async def test_a_server_that_never_begins_is_given_up(remote: RemoteDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "FIRST_SILENCE_S", 0.05)
    _, answer = await answered(remote, Stream([], holds=True))

    assert "doesn't answer" in answer.error


@case(DEAD, Way.WINDOW, report=FOUND, before="failed")
async def test_a_question_about_models_that_is_answered_byte_by_byte_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_WHOLE_ASK_S", 0.1)
    server = await made_up_server.MadeUpServer({"/v1/models": Stream([b"[" * 5], holds=True)}).start()
    service = RemoteService(Observed(AppOptions()))

    assert not await service.add(server.address)
    assert "doesn't answer" in service.state.value.problem
    await service.close()
    await server.close()


@case(DEAD, Way.WINDOW, report=FOUND, before="failed")
async def test_headers_and_refusals_byte_by_byte_end(remote: RemoteDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes in time, so that only a limit for all of them ends it."""
    monkeypatch.setattr(connection, "FIRST_SILENCE_S", 0.3)
    monkeypatch.setattr(connection, "_WHOLE_ASK_S", 0.3)

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.ensure_future(made_up_server.drip(reader, writer, heads.pop(0))))

    serving: list[asyncio.Future[None]] = []
    heads = [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 500 No\r\nContent-Length: 99999\r\n\r\n"]
    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    asked = Connection(RemoteServer(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
    for _ in range(2):
        with pytest.raises(httpx2.ReadTimeout):
            async with asked.stream("/v1/chat/completions", {}) as answer:
                await connection.read_beginning(answer)
    await asked.close()
    await asyncio.gather(*serving)
    server.close()
    await server.wait_closed()


@case(DEAD, Way.CLI, report=FOUND, before="failed")
@pytest.mark.usefixtures("short_silence")
def test_the_command_line_does_not_wait_for_ever(capsys: pytest.CaptureFixture[str]) -> None:
    with served(made_up_server.llama_server(HANGS)) as server:
        assert cli.main(["ask", "--engine", server.address, "hi"]) != 0
    out, err = capsys.readouterr()
    assert out.strip() == "On and"
    assert "has sent nothing for" in err


@contextlib.asynccontextmanager
async def serving(remote: RemoteDesk, folder: Path, answer: Any) -> AsyncIterator[ServerService]:
    """Our server, whose model is on another one."""
    other = await remote.serve(made_up_server.llama_server(answer))
    (folder / "keys").write_text("test-key-0123456789\n", encoding="utf-8")

    async def default() -> LoadOptions:
        return LoadOptions(model=ServedModel(other.address, MODEL).text)

    models = ServedModels(remote.engine, default)
    server = ServerService(remote.client, models, lambda _question, _: GenerationOptions())
    await server.start(ServerOptions(port=0, key_file=folder / "keys"))
    try:
        yield server
    finally:
        await server.stop()


@case(DEAD, *SERVER, report=FOUND, before="failed")
@case(FLOOD, *SERVER, report=FOUND, before="failed")
@pytest.mark.usefixtures("short_silence")
@pytest.mark.parametrize("way", APIS)
@pytest.mark.parametrize(("answer", "said"), [(HANGS, "has sent nothing for"), (BOMB, "compresses its answers")])
async def test_clients_of_our_server_are_told(
    remote: RemoteDesk, tmp_path: Path, way: Way, answer: Any, said: str
) -> None:
    path, body = APIS[way]
    async with serving(remote, tmp_path, answer) as server, aiohttp.ClientSession() as session:
        headers = {"Authorization": "Bearer test-key-0123456789"}
        content = json.dumps({"model": "any", **body}).encode()
        async with session.post(server.state.address + path, data=content, headers=headers) as response:
            text = await response.text()

    assert said in text


@case(DEAD, Way.MCP, report=FOUND, before="held")
@pytest.mark.usefixtures("own_config")
async def test_an_mcp_server_over_http_that_never_answers_is_given_up(remote: RemoteDesk) -> None:
    other = await remote.serve({"/mcp": Stream([], holds=True)})
    service = McpService(make_server=functools.partial(RunningMcpServer, start_s=1.0))
    await service.add([NewServer(ServerConfig(new_id(), "Mute", address=f"{other.address}/mcp"))])

    await until(service, lambda: "no answer within 1 s" in problem(service))
    await service.close()


@pytest.mark.parametrize("address", ["https://api.example.org", "http://192.168.1.5:8080"])
def test_a_dead_connection_is_found_wherever_the_server_is(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "getproxies", dict)
    transport = Connection(RemoteServer(address))._client._transport

    assert isinstance(transport, httpx2.AsyncHTTPTransport)
    assert transport._pool._socket_options == connection._keepalive()


@case(ODD_NUMBERS, Way.WINDOW, report=FOUND, before="failed")
@pytest.mark.parametrize("number", [10**300, -5])
async def test_the_numbers_of_an_answer_are_bounded(remote: RemoteDesk, number: int) -> None:
    timings = dict.fromkeys(("cache_n", "prompt_n", "predicted_n", "draft_n", "draft_n_accepted"), number)
    timings |= {"prompt_ms": float(number), "predicted_ms": float(number)}
    progress = {"choices": [], "prompt_progress": {"total": abs(number), "cache": number, "processed": number}}
    end = usage(number, number, cached=number) | {"timings": timings, "id": "x" * 9999}
    server = await remote.serve(made_up_server.llama_server(Stream([progress, piece({"content": "Hi"}, "stop"), end])))
    await remote.use(server, MODEL)
    items = [item async for item in remote.client.generate(Generate(messages=(text_message("user", "Hi"),)))]

    (finished,) = [item for item in items if isinstance(item, Finished)]
    stats = finished.stats
    counts = (stats.prompt_tokens, stats.reused_tokens, stats.reread_tokens, stats.answer_tokens, stats.drafted_tokens)
    assert all(0 <= each <= 2 * 10**9 for each in counts)
    assert 0 <= stats.prefill_s <= 1e7
    assert 0 <= stats.decode_s <= 1e7
    (shown,) = [item for item in items if isinstance(item, PromptProgress)]
    assert 0 <= shown.done <= shown.total <= 10**9


@case(ODD_NUMBERS, Way.WINDOW, report=FOUND, before="failed")
async def test_what_a_server_says_of_its_models_is_bounded(remote: RemoteDesk) -> None:
    odd = [{"id": "two\nlines"}, {"id": "x" * 301}, {"id": 5}, {"id": ""}]
    meta = {"n_ctx": 10**300, "n_ctx_train": -1, "n_params": 1e300, "size": True}
    models = [{"id": f"model {number}", "meta": meta} for number in range(5000)]
    replies = made_up_server.llama_server() | {"/v1/models": {"data": [*odd, *models]}}
    replies["/props"]["default_generation_settings"] = {"n_ctx": 10**300}
    server = await remote.serve(replies)
    asked = Connection(RemoteServer(server.address))

    listed = await list_models(asked, "llama-server")
    report = await remote.use(server, "model 1")

    assert listed[0].name == "model 0"
    assert len(listed) <= 1000
    assert {(each.n_ctx, each.n_ctx_train, each.n_params, each.weights_bytes) for each in listed} == {(0, 0, 0, 0)}
    assert isinstance(report, LoadReport)
    assert (report.n_ctx, report.weights_bytes) == (0, 0)
    await asked.close()


@case(ODD_NUMBERS, Way.WINDOW, report=FOUND, before="failed")
async def test_a_context_of_thousands_of_digits_is_none(remote: RemoteDesk) -> None:
    replies = made_up_server.ollama()
    replies["/api/show"] = {"parameters": f"num_ctx {'9' * 5000}", "capabilities": ["completion"] * 5000}
    report = await remote.use(await remote.serve(replies), "qwen3.5:27b")

    assert isinstance(report, LoadReport)
    assert report.n_ctx == 0
