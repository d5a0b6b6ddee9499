"""The peer's side: llama-server on loopback, asked over HTTP with streaming."""

import base64
import contextlib
import json
import os
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.peers.programs import ask_together
from bench.peers.sides import Answer, Pieces, Setup, SideFailure, Speculation, Turn, sampling_values

_START_LIMIT_S = 120.0
_STOP_LIMIT_S = 20.0
_ANSWER_LIMIT_S = 600.0
# An answer is cut after so long: beside a busy process its spinning threads write about one token a second.
_WRITING_LIMIT_S = 10.0
_SLOT = 0
_SPECULATION: Mapping[Speculation, tuple[str, ...]] = {
    "": (),
    "mtp": ("--spec-type", "draft-mtp"),
    "lookup": ("--spec-type", "ngram-simple"),
}


class LlamaServer:
    """A running llama-server with a slot for each client and its own prompt cache in RAM, which is on by default.

    It implements Side.
    """

    is_ours = False

    def __init__(self, program: Path, setup: Setup) -> None:
        self._program, self._setup = program, setup
        self._folder = tempfile.TemporaryDirectory(prefix="bench-slots-")
        self._saved: set[str] = set()
        self._to_restore: set[str] = set()
        try:
            self._start()
        except SideFailure:
            self._folder.cleanup()
            raise

    def ask(self, turns: tuple[Turn, ...], n_tokens: int, chat: str) -> Answer:
        if self._setup.n_clients > 1:
            url = f"http://127.0.0.1:{self._port}"
            return ask_together(url, [""] * self._setup.n_clients, self._setup.values, turns, n_tokens)
        body = {
            "messages": [_message(turn) for turn in turns],
            "max_tokens": n_tokens,
            **sampling_values(self._setup.values),
            "ignore_eos": True,
            "stream": True,
            "chat_template_kwargs": {"enable_thinking": False},
        }
        pieces = Pieces(time.perf_counter())
        if chat in self._to_restore:
            self._to_restore.clear()
            self._slot("restore", chat)
        timings: dict[str, Any] = {}
        n_pieces = 0
        with self._post("/v1/chat/completions", body) as reply:
            for line in reply:
                if line.startswith(b"data: {"):
                    chunk = json.loads(line.removeprefix(b"data: "))
                    timings = chunk.get("timings", timings)
                    if text := chunk_text(chunk):
                        n_pieces += 1
                        pieces.add(text, n_pieces, time.perf_counter())
                        if pieces.written_s > _WRITING_LIMIT_S:
                            break
        return pieces.answer(timings.get("prompt_n", 0), timings.get("predicted_n", 0))

    def save(self, chat: str) -> None:
        self._slot("save", chat)
        self._saved.add(chat)

    def restart(self) -> None:
        self._stop()
        self._to_restore = set(self._saved)
        self._start()

    def prepare(self, turns: tuple[Turn, ...], chat: str) -> None:
        """Do nothing: llama-server has no request for a question that is still being typed."""

    def close(self) -> None:
        self._stop()
        self._folder.cleanup()

    def _start(self) -> None:
        self._port = _free_port()
        command = [str(self._program), *server_arguments(self._setup, self._port, Path(self._folder.name))]
        # Its own default for waiting threads, even where this process was told another.
        environment = {name: value for name, value in os.environ.items() if name != "GOMP_SPINCOUNT"}
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # as the app's worker: Linux shares the cores between sessions
        )
        deadline = time.monotonic() + _START_LIMIT_S
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{self._port}/health", timeout=5).close()
                return
            time.sleep(0.1)
        self._stop()
        raise SideFailure(f"llama-server did not start with: {' '.join(command[1:])}")

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _slot(self, action: str, chat: str) -> None:
        self._post(f"/slots/{_SLOT}?action={action}", {"filename": f"{chat}.bin"}).close()

    def _post(self, path: str, body: Mapping[str, object]) -> Any:
        """Return the open reply. Raise SideFailure with the server's own words if it refuses."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            return urllib.request.urlopen(request, timeout=_ANSWER_LIMIT_S)
        except urllib.error.HTTPError as error:
            raise SideFailure(f"llama-server refused: {error.read().decode(errors='replace')}") from error
        except OSError as error:
            raise SideFailure(f"llama-server did not answer: {error}") from error


def server_arguments(setup: Setup, port: int, slots: Path) -> list[str]:
    """Return the arguments with which llama-server loads what the app loads."""
    values = {
        "--model": setup.model,
        "--port": port,
        "--ctx-size": setup.n_ctx,
        "--threads": setup.n_threads,
        "--threads-batch": setup.n_threads,
        "--parallel": setup.n_clients,
        "--n-gpu-layers": 0,
        "--slot-save-path": slots,
        **({"--mmproj": setup.mmproj} if setup.mmproj else {}),
    }
    pairs = [str(item) for pair in values.items() for item in pair]
    return [*pairs, "--jinja", *_SPECULATION[setup.speculation]]


def chunk_text(chunk: Mapping[str, Any]) -> str:
    """Return the text in one piece of a streamed answer; "" for pieces with only a role or statistics."""
    choices = chunk.get("choices") or [{}]
    return str(choices[0].get("delta", {}).get("content") or "")


def _message(turn: Turn) -> dict[str, object]:
    if turn.picture is None:
        return {"role": turn.role, "content": turn.text}
    encoded = base64.b64encode(turn.picture.read_bytes()).decode()
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{encoded}"}}
    return {"role": turn.role, "content": [picture, {"type": "text", "text": turn.text}]}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
