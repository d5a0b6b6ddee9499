"""A server over a real socket that answers what a test wrote down, as llama-server, Ollama, vLLM and LM Studio would.

The bodies follow the servers' documentation, see qwendesk/remote/dialects.py.
"""

import asyncio
import json
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Asked:
    """One request that arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Stream:
    """An answer in server-sent events. `cut` closes the connection after them, without an end."""

    events: Sequence[Any]
    """What is not text is sent as JSON; text is sent as it stands after "data: ". Bytes are sent raw."""
    cut: bool = False
    holds: bool = False
    """Send the events, and then nothing, until the client goes away."""
    ends: bool = True
    """Whether "[DONE]" follows."""
    content_type: str = "text/event-stream"


@dataclass
class Refusal:
    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)


Reply = Any
"""A value that is sent as JSON, a Stream, or a Refusal. A function of the request returns one."""


class MadeUpServer:
    """Answers by path. Other paths are refused as by most servers, or as `missing` says."""

    def __init__(self, replies: dict[str, Reply], *, key: str = "", missing: Refusal | None = None) -> None:
        self.replies, self.key = replies, key
        self.missing = missing or Refusal(404, {"error": {"message": "File Not Found", "type": "not_found_error"}})
        self.asked: list[Asked] = []
        self.client_left = asyncio.Event()
        """Set when the client closes a connection whose answer `holds`."""
        self.is_holding = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._scheme = "http"
        self._tasks: set[asyncio.Task[Any]] = set()

    async def start(self, port: int = 0, tls: ssl.SSLContext | None = None) -> "MadeUpServer":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, ssl=tls)
        self._scheme = "http" if tls is None else "https"
        return self

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def address(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    @property
    def chats(self) -> list[Any]:
        """The bodies of the requests for answers."""
        return [asked.body for asked in self.asked if asked.path == "/v1/chat/completions"]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._server.wait_closed()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._serve_one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError, ssl.SSLError, asyncio.CancelledError):
                await writer.wait_closed()
            self._tasks.discard(task)

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        method, path, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        content = await reader.readexactly(int(headers.get("content-length", "0")))
        asked = Asked(method, path, headers, json.loads(content) if content else None)
        self.asked.append(asked)
        if self.key and headers.get("authorization") != f"Bearer {self.key}":
            return await _send(writer, Refusal(401, {"error": {"message": "Invalid API Key", "type": "auth"}}))
        reply = self.replies.get(path, self.missing)
        if callable(reply):
            reply = reply(asked)
        if isinstance(reply, Stream):
            await self._stream(reader, writer, reply)
            return False
        return await _send(writer, reply)

    async def _stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stream: Stream) -> None:
        kind = f"Content-Type: {stream.content_type}\r\n" if stream.content_type else ""
        writer.write(f"HTTP/1.1 200 OK\r\n{kind}Transfer-Encoding: chunked\r\n\r\n".encode())
        for event in stream.events:
            if isinstance(event, bytes):
                data = event
            else:
                data = f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode()
            writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0)
        if stream.holds:
            self.is_holding.set()
            await reader.read()
            self.client_left.set()
            return
        if stream.cut:
            writer.transport.abort()
            return
        end = b"data: [DONE]\n\n" if stream.ends else b""
        writer.write((f"{len(end):x}\r\n".encode() + end + b"\r\n" if end else b"") + b"0\r\n\r\n")
        await writer.drain()


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
    """Answer one request with `head`, and then a byte after the other until the client has left."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(head)
    while not writer.is_closing():
        writer.write(b"x")
        await asyncio.sleep(0.01)


async def _send(writer: asyncio.StreamWriter, reply: Any) -> bool:
    status, body, headers = 200, reply, {}
    if isinstance(reply, Refusal):
        status, body, headers = reply.status, reply.body, reply.headers
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    writer.write(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + data)
    await writer.drain()
    return True


def piece(delta: dict[str, Any], finish: str | None = None, **others: Any) -> dict[str, Any]:
    """One chunk of an answer."""
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": choices, **others}


def usage(prompt: int, completion: int, cached: int | None = None) -> dict[str, Any]:
    """The last chunk, with the tokens."""
    details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {"id": "chatcmpl-1", "choices": [], "usage": counts | details}


HELLO = Stream(
    [
        piece({"role": "assistant", "content": ""}),
        piece({"content": "Hel"}),
        piece({"content": "lo."}),
        piece({}, "stop"),
        usage(20, 2),
    ]
)


def llama_server(answer: Reply = HELLO) -> dict[str, Reply]:
    """What llama-server answers, with a template of Qwen3.8: it switches thinking, takes efforts, keeps reasoning."""
    return {
        "/props": {
            "default_generation_settings": {"n_ctx": 8192},
            "total_slots": 1,
            "model_path": "/models/Qwen3.8-27B-UD-Q4_K_XL.gguf",
            "modalities": {"vision": True, "audio": False},
            "chat_template": "...",
            "chat_template_caps": {"supports_tools": True, "supports_tool_calls": True},
            "build_info": "b11312-0c1e57098",
        },
        "/v1/models": {
            "object": "list",
            "data": [
                {
                    "id": "Qwen3.8-27B",
                    "object": "model",
                    "owned_by": "llamacpp",
                    "meta": {"n_ctx_train": 262144, "n_params": 27_000_000_000, "size": 17_559_178_144},
                },
            ],
        },
        "/apply-template": _rendered,
        "/v1/chat/completions": answer,
    }


def _rendered(asked: Asked) -> Reply:
    variables = asked.body.get("chat_template_kwargs", {})
    effort = variables.get("reasoning_effort", "xhigh")
    if effort not in ("xhigh", "medium", "low"):
        return Refusal(400, {"error": {"code": 400, "message": "unknown effort", "type": "invalid_request_error"}})
    lines = [effort if variables.get("enable_thinking", True) else "direct"]
    keeps = variables.get("preserve_thinking", True)
    lines += [
        f"{each['role']}: {each.get('reasoning_content', '') if keeps else ''}{each['content']}"
        for each in asked.body["messages"]
    ]
    return {"prompt": "\n".join(lines)}


def vllm(answer: Reply = HELLO) -> dict[str, Reply]:
    def tokens(asked: Asked) -> Reply:
        text = _rendered(asked)
        if isinstance(text, Refusal):
            return text
        ids = list(text["prompt"].encode())
        return {"count": len(ids), "max_model_len": 32768, "tokens": ids}

    return {
        "/version": {"version": "0.23.0"},
        "/v1/models": {
            "object": "list",
            "data": [
                {"id": "Qwen/Qwen3.8-27B-FP8", "object": "model", "owned_by": "vllm", "max_model_len": 32768},
            ],
        },
        "/tokenize": tokens,
        "/v1/chat/completions": answer,
    }


def ollama(answer: Reply = HELLO) -> dict[str, Reply]:
    return {
        "/api/version": {"version": "0.31.1"},
        "/v1/models": {
            "object": "list",
            "data": [
                {"id": "qwen3.5:27b", "object": "model", "created": 1, "owned_by": "library"},
                {"id": "gemma3:12b", "object": "model", "created": 1, "owned_by": "library"},
            ],
        },
        "/api/show": lambda asked: {
            "capabilities": ["completion", "vision"] + (["tools", "thinking"] if "qwen" in asked.body["model"] else []),
            "model_info": {
                "general.architecture": "qwen35",
                "qwen35.context_length": 262144,
                "general.parameter_count": 27_000_000_000,
            },
            "parameters": "temperature 1\nnum_ctx 16384",
        },
        "/api/ps": {"models": []},
        "/v1/chat/completions": answer,
    }


def lm_studio(answer: Reply = HELLO) -> dict[str, Reply]:
    """LM Studio 0.4: it answers unknown paths with status 200 and an error."""
    return {
        "/api/v1/models": {
            "models": [
                {
                    "type": "llm",
                    "key": "qwen/qwen3.5-9b",
                    "architecture": "qwen35",
                    "size_bytes": 6_548_927_017,
                    "max_context_length": 262144,
                    "loaded_instances": [{"id": "qwen/qwen3.5-9b", "config": {"context_length": 4096}}],
                    "capabilities": {
                        "vision": True,
                        "trained_for_tool_use": True,
                        "reasoning": {"allowed_options": ["off", "on"], "default": "on"},
                    },
                },
                {
                    "type": "llm",
                    "key": "mistral-7b",
                    "architecture": "mistral",
                    "max_context_length": 32768,
                    "loaded_instances": [],
                    "capabilities": {"vision": False, "trained_for_tool_use": False},
                },
                {
                    "type": "embedding",
                    "key": "text-embedding-nomic",
                    "loaded_instances": [],
                    "max_context_length": 2048,
                },
            ]
        },
        "/v1/models": {
            "object": "list",
            "data": [{"id": "qwen/qwen3.5-9b"}, {"id": "mistral-7b"}, {"id": "text-embedding-nomic"}],
        },
        "/v1/chat/completions": answer,
    }


LM_STUDIO_MISSING = Refusal(200, {"error": "Unexpected endpoint or method."})


def sglang(answer: Reply = HELLO) -> dict[str, Reply]:
    return {
        "/get_server_info": {
            "model_path": "Qwen/Qwen3.5-35B-A3B-FP8",
            "context_length": 65536,
            "reasoning_parser": "qwen3",
            "tool_call_parser": None,
            "tp_size": 2,
        },
        "/v1/models": {
            "object": "list",
            "data": [{"id": "Qwen/Qwen3.5-35B-A3B-FP8", "owned_by": "sglang", "max_model_len": 65536}],
        },
        "/v1/chat/completions": answer,
    }
