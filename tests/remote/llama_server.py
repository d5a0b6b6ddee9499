"""The real llama-server with the demo model, and a proxy before it that makes the demo call a tool.

The demo is too small to decide on a call by itself. The proxy asks for the token that begins one, and llama-server's
own grammar and parser do the rest: so the call that arrives is llama-server's.
"""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiohttp import ClientSession, web

from qwendesk.core.paths import demo_mmproj, demo_model
from tools.build_peer import peer_server

TEMPLATE = Path(__file__).parent / "demo_with_tools.jinja"
needs_llama_server = pytest.mark.skipif(
    not peer_server().is_file(), reason="llama-server isn't built: python -m tools.build_peer"
)
_LONGEST_START_S = 120


class LlamaServer:
    """A llama-server on a free port, which can be killed and started again on the same one."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it has loaded the demo. Blocks."""
        command: list[str | Path] = [
            peer_server(),
            "--model",
            demo_model(),
            "--mmproj",
            demo_mmproj(),
            "--alias",
            "QwenDesk-Demo-Q8_0",
        ]
        command += ["--jinja", "--chat-template-file", TEMPLATE, "--port", str(self.port), "--parallel", "1"]
        command += ["--ctx-size", "8192", "--threads", "1"]
        environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, start_new_session=True
        )
        ends_at = time.monotonic() + _LONGEST_START_S
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > ends_at:
                raise RuntimeError("llama-server didn't start")
            time.sleep(0.05)  # it reports nothing, so it has to be asked

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
            self._process.wait()
            self._process = None

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False


@contextmanager
def running_llama_server() -> Iterator[LlamaServer]:
    server = LlamaServer()
    try:
        server.start()
        yield server
    finally:
        server.kill()


class UrgingProxy:
    """Passes everything on. A question with "time" in it, asked with tools, is answered by a call."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._runner: web.AppRunner | None = None
        self.address = ""

    async def start(self) -> None:
        app = web.Application(client_max_size=64 * 1024**2)
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        self._runner = web.AppRunner(app, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.address = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        content = await request.read()
        if request.path.endswith("/chat/completions"):
            content = json.dumps(_urged(json.loads(content))).encode()
        url = f"{self._server}{request.path_qs}"
        headers = {"Content-Type": "application/json"} if content else {}
        async with (
            ClientSession() as session,
            session.request(request.method, url, data=content or None, headers=headers) as answer,
        ):
            passed = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
            await passed.prepare(request)
            async for piece in answer.content.iter_any():
                await passed.write(piece)
            await passed.write_eof()
            return passed


def _urged(body: dict[str, object]) -> dict[str, object]:
    messages = body.get("messages")
    last = messages[-1] if isinstance(messages, list) else {}
    if not body.get("tools") or last.get("role") != "user" or "time" not in str(last.get("content")):
        return body
    thinks_not = {"chat_template_kwargs": {"enable_thinking": False}}
    return {**body, **thinks_not, "logit_bias": [["<tool_call>", 100]], "parallel_tool_calls": False}
