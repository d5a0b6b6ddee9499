"""llama-server as a peer: started on loopback on the same file, asked over HTTP, its own timings read."""

import contextlib
import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

_START_LIMIT_S = 120.0

Ask = Callable[[Sequence[tuple[str, str]], int], tuple[float, float]]
"""(messages as (role, text), tokens to write) -> (decode tokens per second, seconds of prompt reading)."""


@contextlib.contextmanager
def chat_through_llama_server(server: Path, model: Path, *, n_ctx: int, n_threads: int) -> Iterator[Ask]:
    """A running server; it is gone afterwards."""
    with running_llama_server(server, model, n_ctx=n_ctx, n_threads=n_threads) as port:
        yield lambda messages, n_tokens: _ask(port, messages, n_tokens)


@contextlib.contextmanager
def running_llama_server(
    server: Path, model: Path, *, n_ctx: int, n_threads: int, template: Path | None = None
) -> Iterator[int]:
    """The port on which a server answers until the end. `template` is a chat template in place of the model's."""
    port = _free_port()
    arguments = [
        "--model",
        model,
        "--port",
        port,
        "--ctx-size",
        n_ctx,
        "--threads",
        n_threads,
        "--parallel",
        1,
        "--jinja",
        *(("--chat-template-file", template) if template else ()),
    ]
    process = subprocess.Popen(
        [str(server), *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    with process:
        try:
            _wait_until_healthy(port, process)
            yield port
        finally:
            process.terminate()


def _ask(port: int, messages: Sequence[tuple[str, str]], n_tokens: int) -> tuple[float, float]:
    body = {
        "messages": [{"role": role, "content": text} for role, text in messages],
        "max_tokens": n_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    timings: dict[str, float] = {}
    with urllib.request.urlopen(request_of(port, "/v1/chat/completions", body)) as reply:
        for line in reply:
            if line.startswith(b"data: {"):
                timings = json.loads(line.removeprefix(b"data: ")).get("timings", timings)
    return timings["predicted_per_second"], timings["prompt_ms"] / 1000


def request_of(port: int, path: str, body: Mapping[str, object]) -> urllib.request.Request:
    return urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )


def _wait_until_healthy(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _START_LIMIT_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health").close()
            return
        time.sleep(0.2)
    raise SystemExit("llama-server did not start")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
