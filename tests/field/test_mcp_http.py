"""MCP servers over HTTP that do harm, or that are none."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from qwendesk.mcp.server_config import NewServer, ServerConfig, new_id
from qwendesk.mcp.service import CallFailed, McpService
from tests.field.grid import SERVER, Kind, Way, case
from tests.mcp.conftest import no_keyring, service
from tests.mcp.servers import added, call, phase, problem, until
from tests.remote.conftest import RemoteDesk, remote
from tests.remote.made_up_server import Asked, MadeUpServer, Refusal, Stream

__all__ = ["no_keyring", "remote", "service"]

_ITS_WAY = "it shows what the way MCP lets through"
OVER_HTTP = Kind(
    "An MCP server over HTTP fills the memory, leads elsewhere, or fails without a sentence",
    {
        Way.WINDOW: _ITS_WAY,
        Way.CLI: _ITS_WAY,
        **dict.fromkeys(SERVER, "the server's clients run their tools themselves"),
        Way.IMPORT: "an import asks no server",
    },
)
FOUND = "found by attack, November 2026"
SESSION = {"Mcp-Session-Id": "one"}
ENDLESS = [b" " * 1024 * 1024] * 4096
"""4 GiB of a text that never becomes a value."""


def mcp(answer: Callable[[Asked], Any]) -> Callable[[Asked], Any]:
    """Return the replies of a server with a tool `go`, whose calls `answer` answers."""

    def reply(asked: Asked) -> Any:
        if asked.method != "POST":
            return Refusal(405, {})
        result: dict[str, Any]
        match asked.body.get("method"):
            case "initialize":
                version = asked.body["params"]["protocolVersion"]
                about = {"name": "Made up", "version": "1"}
                result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
            case "tools/list":
                result = {"tools": [{"name": "go", "description": "A tool.", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                return answer(asked)
            case method if method is not None and method.startswith("notifications/"):
                return Refusal(202, b"")
            case _:
                error = {"code": -32601, "message": "Method not found"}
                return {"jsonrpc": "2.0", "id": asked.body.get("id"), "error": error}
        return Refusal(200, {"jsonrpc": "2.0", "id": asked.body["id"], "result": result}, dict(SESSION))

    return reply


async def serve(remote: RemoteDesk, service: McpService, answer: Callable[[Asked], Any]) -> tuple[MadeUpServer, str]:
    """Add such a server; return it and its id."""
    server = await remote.serve({"/mcp": mcp(answer)})
    config = await added(service, NewServer(ServerConfig(new_id(), "Made up", address=f"{server.address}/mcp")))
    assert phase(service, config.id) == "running", problem(service)
    return server, config.id


def done(asked: Asked, text: str = "Done.") -> Any:
    result = {"content": [{"type": "text", "text": text}], "isError": False}
    return {"jsonrpc": "2.0", "id": asked.body["id"], "result": result}


@case(OVER_HTTP, Way.MCP, report=FOUND, before="failed")
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_an_endless_answer_is_cut_off(remote: RemoteDesk, service: McpService, kind: str) -> None:
    _server, identity = await serve(remote, service, lambda _: Stream(ENDLESS, content_type=kind))
    with pytest.raises(CallFailed, match=r"more than QwenDesk accepts|byte limit") as caught:
        await call(service, "go")
    assert "HTTP" not in str(caught.value), "405 to the question for a stream, which few servers have, says nothing"
    await service.test(identity)
    assert phase(service, identity) == "running"


@case(OVER_HTTP, Way.MCP, report=FOUND, before="held")
@pytest.mark.parametrize("status", [302, 307])
async def test_a_redirect_leads_to_no_other_server(remote: RemoteDesk, service: McpService, status: int) -> None:
    """One in the private network, for example, that trusts this PC; the headers may have a key."""
    private = await remote.serve({"/secret": {"key": "of the router"}})
    to = {"Location": f"{private.address}/secret"}
    await serve(remote, service, lambda _: Refusal(status, b"", to))
    with pytest.raises(CallFailed, match="Redirect"):
        await call(service, "go")
    assert private.asked == []


@case(OVER_HTTP, Way.MCP, report=FOUND, before="held")
@pytest.mark.parametrize("status", [301, 308])
async def test_an_address_that_redirects_is_said(remote: RemoteDesk, service: McpService, status: int) -> None:
    private = await remote.serve({})
    server = await remote.serve({"/mcp": Refusal(status, b"", {"Location": f"{private.address}/mcp"})})
    await added(service, NewServer(ServerConfig(new_id(), "Moved", address=f"{server.address}/mcp")))
    assert "Redirect" in problem(service)
    assert private.asked == []


@case(OVER_HTTP, Way.MCP, report=FOUND, before="held")
@pytest.mark.parametrize("body", [b"<html>Sign in to the hotel's network</html>", b"", b"\xff\xfe"])
@pytest.mark.parametrize("kind", ["text/html", "application/json", "text/event-stream", ""])
async def test_a_page_is_no_mcp_server(remote: RemoteDesk, service: McpService, body: bytes, kind: str) -> None:
    server = await remote.serve({"/mcp": Refusal(200, body, {"Content-Type": kind})})
    await added(service, NewServer(ServerConfig(new_id(), "Page", address=f"{server.address}/mcp")))
    assert f"{server.address}/mcp" in problem(service)
    assert "Check the address" in problem(service)


@case(OVER_HTTP, Way.MCP, report=FOUND, before="held")
@pytest.mark.parametrize("kind", ["text/html", "application/json", "text/event-stream"])
async def test_a_call_that_gets_a_page_fails_in_words(remote: RemoteDesk, service: McpService, kind: str) -> None:
    answers = [Refusal(200, b"<html>Sign in</html>", {"Content-Type": kind})]
    _server, identity = await serve(remote, service, lambda asked: answers.pop() if answers else done(asked))
    with pytest.raises(CallFailed) as caught:
        await call(service, "go")
    assert str(caught.value).strip()
    if phase(service, identity) != "running":
        await service.test(identity)
    assert await call(service, "go") == "Done."


@case(OVER_HTTP, Way.MCP, report=FOUND, before="held")
async def test_a_session_that_the_server_forgot_begins_anew(remote: RemoteDesk, service: McpService) -> None:
    answers = [Refusal(404, b"")]
    _server, identity = await serve(remote, service, lambda asked: answers.pop() if answers else done(asked))
    with pytest.raises(CallFailed):
        await call(service, "go")
    await until(service, lambda: phase(service, identity) == "failed")
    await service.test(identity)
    assert await call(service, "go") == "Done."


@case(OVER_HTTP, Way.MCP, report=FOUND, before="held")
@pytest.mark.parametrize("status", [401, 403])
async def test_refused_access_names_the_header(remote: RemoteDesk, service: McpService, status: int) -> None:
    server = await remote.serve({"/mcp": Refusal(status, {"error": "no token"})})
    await added(service, NewServer(ServerConfig(new_id(), "Locked", address=f"{server.address}/mcp")))
    assert f"/mcp refuses access (HTTP {status}). Enter the header that it asks for" in problem(service)


@case(OVER_HTTP, Way.MCP, report=FOUND, before="held")
async def test_a_token_that_ends_while_it_runs_is_said(remote: RemoteDesk, service: McpService) -> None:
    await serve(remote, service, lambda _: Refusal(401, json.dumps({"error": "expired"}).encode()))
    with pytest.raises(CallFailed, match="HTTP 401"):
        await call(service, "go")
