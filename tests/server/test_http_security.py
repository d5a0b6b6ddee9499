"""Who gets in over HTTP, and what happens to requests that are too large, too slow or no requests at all."""

import asyncio
import json
import ssl
from pathlib import Path

import aiohttp
import pytest

from qwendesk.server.http_app import DIALECTS
from qwendesk.server.refusals import Limits
from tests.fakes.answer_stream import ScriptedAnswer
from tests.server.http_desk import ASKED, KEY, http_desk

CHAT = "/v1/chat/completions"


async def test_every_path_but_health_needs_the_key(tmp_path: Path) -> None:
    async with http_desk(tmp_path) as desk:
        for path in (*DIALECTS, "/v1/messages/count_tokens", "/v1/embeddings", "/tokenize"):
            for key in ("", "wrong", f"{KEY}x", KEY[:-1], "\xff"):
                assert await desk.status("POST", path, ASKED, key) == 401, (path, key)
        for path in ("/v1/models", "/props", "/v1/models/x"):
            assert await desk.status("GET", path, key="") == 401
        assert await desk.status("GET", "/health", key="") == 200
        assert not desk.client.asked


async def test_a_key_is_taken_from_both_headers_and_from_nowhere_else(tmp_path: Path) -> None:
    async with http_desk(tmp_path) as desk:
        assert await desk.status("GET", "/v1/models", key="", x_api_key=KEY) == 200
        assert await desk.status("GET", f"/v1/models?key={KEY}&api_key={KEY}", key="") == 401
        assert await desk.status("GET", "/v1/models", key="", Cookie=f"key={KEY}") == 401
        assert await desk.status("GET", "/v1/models", key="", Authorization=f"Basic {KEY}") == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", ""]
)
async def test_a_name_that_a_web_page_owns_does_not_lead_here(tmp_path: Path, host: str) -> None:
    async with http_desk(tmp_path) as desk:
        assert await desk.status("GET", "/v1/models", Host=host) == 403
        assert await desk.status("POST", CHAT, ASKED, Host=host) == 403
        assert not desk.client.asked


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:1", "[::1]:80", "192.168.1.2"])
async def test_numbers_and_localhost_lead_here(tmp_path: Path, host: str) -> None:
    async with http_desk(tmp_path) as desk:
        assert await desk.status("GET", "/v1/models", Host=host) == 200


async def test_a_web_page_writes_nothing_into_the_list_of_requests(tmp_path: Path) -> None:
    """It can have a picture loaded from here: that is refused, but listed."""
    async with http_desk(tmp_path) as desk:
        path = "/%0a%0aYour%20key%20is%20stolen!%3Cimg%20src=x%3E"
        sent = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        assert b" 401 " in (await desk.raw(sent.encode())).splitlines()[0]
        assert desk.server.requests.observed.value[0].path == path
        assert await desk.status("GET", f"/{'x' * 5000}", key="") == 401
        assert len(desk.server.requests.observed.value[0].path) < 100


async def test_web_pages_may_use_it_only_if_they_are_on_the_list(tmp_path: Path) -> None:
    async with http_desk(tmp_path, origins=("https://good.example",)) as desk:
        for origin in ("https://evil.example", "http://good.example", "https://good.example.evil.example", "null"):
            async with desk.request("POST", CHAT, ASKED, Origin=origin) as response:
                assert response.status == 403
                assert "Access-Control-Allow-Origin" not in response.headers
            assert await desk.status("OPTIONS", CHAT, key="", Origin=origin) == 403
        async with desk.request("POST", CHAT, ASKED, Origin="https://good.example") as response:
            assert response.status == 200
            assert response.headers["Access-Control-Allow-Origin"] == "https://good.example"
        preflight = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "authorization"}
        async with desk.request("OPTIONS", CHAT, key="", Origin="https://good.example", **preflight) as response:
            assert response.status == 204
            assert "POST" in response.headers["Access-Control-Allow-Methods"]
            assert "authorization" in response.headers["Access-Control-Allow-Headers"].lower()


async def test_a_body_that_is_too_large_is_refused(tmp_path: Path) -> None:
    async with http_desk(tmp_path, limits=Limits(body_bytes=1000)) as desk:
        large = {"messages": [{"role": "user", "content": "x" * 2000}]}
        async with desk.request("POST", CHAT, large) as response:
            assert response.status == 413
            assert (await response.json())["error"]["message"]
        assert (await desk.json("POST", "/v1/messages", large))["error"]["type"] == "request_too_large"
        head = (
            f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\nTransfer-Encoding: chunked\r\n"
        )
        chunks = (b"200\r\n" + b"x" * 512 + b"\r\n") * 4 + b"0\r\n\r\n"
        assert b" 413 " in (await desk.raw(f"{head}Connection: close\r\n\r\n".encode() + chunks)).splitlines()[0]
        assert await desk.status("POST", CHAT, ASKED) == 200


async def test_a_body_that_does_not_come_is_refused(tmp_path: Path) -> None:
    async with http_desk(tmp_path, limits=Limits(body_s=0.05)) as desk:
        head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\nConnection: close\r\n"
        answer = await desk.raw(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        assert b" 408 " in answer.splitlines()[0]
        assert not desk.client.asked


async def test_a_connection_on_which_no_request_comes_is_closed(tmp_path: Path) -> None:
    async with http_desk(tmp_path, limits=Limits(head_s=0.05)) as desk:
        assert await desk.raw(b"") == b""
        assert await desk.raw(b"POST /v1/chat/completions HTTP/1.1\r\nHost: local") == b""
        assert await desk.status("POST", CHAT, ASKED) == 200


async def test_a_client_that_takes_nothing_of_its_answer_is_dropped(tmp_path: Path) -> None:
    long = ScriptedAnswer(text="word " * 100_000)
    async with http_desk(tmp_path, [long], limits=Limits(send_s=0.05)) as desk:
        body = json.dumps({**ASKED, "stream": True}).encode()
        head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
        _, writer = await asyncio.open_connection("127.0.0.1", desk.port)
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await desk.until(lambda: [each for each in desk.server.requests.observed.value if each.phase == "stopped"])
        assert await desk.status("POST", CHAT, ASKED) == 200
        writer.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 what TLS begins with\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"a" * 20_000 + b"\r\n\r\n",
    ],
)  # fmt: skip
async def test_what_is_no_request_is_refused_and_the_server_goes_on(tmp_path: Path, sent: bytes) -> None:
    async with http_desk(tmp_path, limits=Limits(head_s=1.0)) as desk:
        answer = await desk.raw(sent)
        assert not answer or b" 40" in answer.splitlines()[0], answer
        assert b"Traceback" not in answer
        assert await desk.status("POST", CHAT, ASKED) == 200


async def test_beyond_this_pc_there_is_tls_with_the_fingerprint_that_is_shown(tmp_path: Path) -> None:
    async with http_desk(tmp_path, host="0.0.0.0") as desk:
        state = desk.server.state
        assert state.address.startswith("https://")
        url = f"https://127.0.0.1:{desk.port}/v1/models"
        digest = bytes.fromhex(state.fingerprint.replace(":", ""))
        headers = {"Authorization": f"Bearer {KEY}"}
        async with desk.session.get(url, headers=headers, ssl=aiohttp.Fingerprint(digest)) as response:
            assert response.status == 200
        with pytest.raises(aiohttp.ServerFingerprintMismatch):
            await desk.session.get(url, headers=headers, ssl=aiohttp.Fingerprint(bytes(32)))
        context = ssl.create_default_context(cafile=state.certificate_file)
        async with desk.session.get(url, headers=headers, ssl=context) as response:
            assert response.status == 200
        with pytest.raises(aiohttp.ClientError):
            await desk.session.get(url.replace("https", "http"), headers=headers)


async def test_more_requests_than_may_wait_are_told_to_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with http_desk(tmp_path, most_waiting=1) as desk:
        await desk.json("POST", CHAT, ASKED)
        blocked = asyncio.Event()

        async def wait_for_release(*_: object) -> None:
            await blocked.wait()

        monkeypatch.setattr(desk.client, "pause", wait_for_release)
        first = asyncio.create_task(desk.status("POST", CHAT, ASKED))
        await desk.until(lambda: len(desk.client.asked) == 2)
        second = asyncio.create_task(desk.status("POST", CHAT, ASKED))
        await desk.until(lambda: desk.n_running == 2)
        async with desk.request("POST", CHAT, ASKED) as response:
            assert response.status == 429
            assert int(response.headers["Retry-After"]) > 0
        blocked.set()
        assert (await first, await second) == (200, 200)
