"""Many clients at a real server, whose engine is killed and whose clients leave at random."""

import asyncio
import collections
import contextlib
import json
import random
from typing import Any

import aiohttp
import psutil

from bench.served import Served

_ANSWER_LIMIT_S = 300.0
"""An answer that takes longer is lost."""


class Lost(Exception):
    """A request that got neither its answer nor an error."""


class Load:
    def __init__(self, server: Served, seed: int) -> None:
        self.server, self.chance = server, random.Random(seed)
        self.counts: collections.Counter[str] = collections.Counter()
        self.memory: list[int] = []
        """Bytes of the server's process, in order of time."""
        self.is_over = False

    async def run(self, n_clients: int, seconds: float) -> None:
        """Let the clients ask for that long, and until their last answers are there. Raise what a client raises."""
        timeout, connector = aiohttp.ClientTimeout(total=None), aiohttp.TCPConnector(limit=0)
        async with (
            aiohttp.ClientSession(timeout=timeout, connector=connector) as session,
            asyncio.TaskGroup() as tasks,
        ):
            for number in range(n_clients):
                tasks.create_task(self.client(number, session))
            tasks.create_task(self.kill_engines())
            tasks.create_task(self.watch_memory(seconds / 300))
            await asyncio.sleep(seconds)
            self.is_over = True

    async def client(self, number: int, session: aiohttp.ClientSession) -> None:
        """Ask one question after the other, each in one of the APIs, and sometimes leave before the answer."""
        key, turn = self.server.keys[number % len(self.server.keys)], 0
        while not self.is_over:
            turn += 1
            mark = f"{number}-{turn}"
            leaves_after = self.chance.uniform(0, 2) if self.chance.random() < 0.1 else _ANSWER_LIMIT_S
            try:
                async with asyncio.timeout(leaves_after):
                    outcome = await self.ask(session, key, mark)
            except TimeoutError:
                if leaves_after == _ANSWER_LIMIT_S:
                    raise Lost(mark) from None
                outcome = "left"
            self.counts[outcome] += 1
            if outcome == "429":
                await asyncio.sleep(self.chance.uniform(0.1, 1))

    async def ask(self, session: aiohttp.ClientSession, key: str, mark: str) -> str:
        """Ask for an answer that only this question can have, and return how it went."""
        api, stream = self.chance.choice(("chat", "responses", "messages")), self.chance.random() < 0.5
        path, body = question(api, mark)
        headers = {"Authorization": f"Bearer {key}"}
        async with session.post(self.server.url + path, json={**body, "stream": stream}, headers=headers) as response:
            text = await response.text()
            if response.status in (429, 503):
                json.loads(text)
                return str(response.status)
            assert response.status == 200, (response.status, text)
        answer = streamed(api, text) if stream else whole(api, json.loads(text))
        if answer is None:
            return "error in stream"
        assert json.loads(answer) == {"asked": mark}, f"{mark} got {answer}"
        return "answered"

    async def kill_engines(self) -> None:
        while not self.is_over:
            await asyncio.sleep(self.chance.uniform(2, 15))
            for worker in psutil.Process(self.server.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    if is_engine(worker.cmdline()):
                        worker.kill()
                        self.counts["engines killed"] += 1

    async def watch_memory(self, every_s: float) -> None:
        while not self.is_over:
            self.memory.append(psutil.Process(self.server.pid).memory_info().rss)
            await asyncio.sleep(every_s)


def is_engine(command: list[str]) -> bool:
    """Return whether a process is the engine worker. On Linux it has renamed itself."""
    return "--worker" in command or command[:1] == ["qwendesk-engine"]


def question(api: str, mark: str) -> tuple[str, dict[str, Any]]:
    text = f"Please say {mark}."
    schema = {"type": "object", "properties": {"asked": {"const": mark}}, "required": ["asked"]}
    form = {"type": "json_schema", "schema": schema}
    match api:
        case "chat":
            return "/v1/chat/completions", {
                "messages": [{"role": "user", "content": text}],
                "response_format": {"type": "json_schema", "json_schema": {"schema": schema}},
                "reasoning_effort": "none",
            }
        case "responses":
            return "/v1/responses", {"input": text, "text": {"format": form}, "reasoning": {"effort": "none"}}
    messages = [{"role": "user", "content": text}]
    return "/v1/messages", {"messages": messages, "max_tokens": 100, "output_config": {"format": form}}


def whole(api: str, body: dict[str, Any]) -> str:
    match api:
        case "chat":
            return str(body["choices"][0]["message"]["content"])
        case "responses":
            return "".join(part["text"] for item in body["output"] for part in item["content"])
    return "".join(block["text"] for block in body["content"])


def streamed(api: str, text: str) -> str | None:
    """Return the answer of a stream, None if it ended with an error. Raise Lost if it has no end."""
    data = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    events = [json.loads(each) for each in data if each != "[DONE]"]
    last = events[-1] if events else {}
    if "error" in last or last.get("type") in ("error", "response.failed"):
        return None
    match api:
        case "chat":
            is_whole = data[-1] == "[DONE]" and events[-1]["choices"][0]["finish_reason"] == "stop"
            pieces = [event["choices"][0]["delta"].get("content") or "" for event in events]
        case "responses":
            is_whole = last["type"] == "response.completed"
            pieces = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
        case _:
            is_whole = last["type"] == "message_stop"
            deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
            pieces = [delta["text"] for delta in deltas]
    if not is_whole:
        raise Lost(text)
    return "".join(pieces)
