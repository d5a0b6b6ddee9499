"""Fifty clients at one real server, whose engine is killed and whose clients leave at random: `make soak`.

QWENDESK_SOAK_S sets how many seconds it takes (600). `pytest -s` shows the counts at the end.
"""

import asyncio
import collections
import contextlib
import json
import os
import random
import statistics
from typing import Any

import aiohttp
import psutil
import pytest

from bench.served import Served, served
from qwendesk.core import paths

N_CLIENTS, N_KEYS = 50, 10
SOAK_S = float(os.environ.get("QWENDESK_SOAK_S", "600"))
_ANSWER_LIMIT_S = 300.0
"""An answer that takes longer is lost."""
_MIB = 1024**2
_GROWTH_BYTES = 24 * _MIB
"""How much larger the server's process may be in the last third than in the middle one."""


class Lost(Exception):
    """A request that got neither its answer nor an error."""


class Load:
    def __init__(self, server: Served, seed: int) -> None:
        self.server, self.chance = server, random.Random(seed)
        self.counts: collections.Counter[str] = collections.Counter()
        self.memory: list[int] = []
        self.is_over = False

    async def client(self, number: int, session: aiohttp.ClientSession) -> None:
        """Ask one question after the other, each in one of the APIs, and sometimes leave before the answer."""
        key, turn = self.server.keys[number % N_KEYS], 0
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

    async def watch_memory(self) -> None:
        while not self.is_over:
            self.memory.append(psutil.Process(self.server.pid).memory_info().rss)
            await asyncio.sleep(SOAK_S / 300)


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


@pytest.mark.soak
@pytest.mark.asyncio
async def test_no_answer_is_lost_or_mixed_and_memory_stays_flat() -> None:
    with served(paths.demo_model(), "--waiting", "40", n_keys=N_KEYS, load=("n_ctx=4096", "n_threads=1")) as server:
        load = Load(server, seed=20)
        timeout = aiohttp.ClientTimeout(total=None)
        async with (
            aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as session,
            asyncio.TaskGroup() as tasks,
        ):
            for number in range(N_CLIENTS):
                tasks.create_task(load.client(number, session))
            tasks.create_task(load.kill_engines())
            tasks.create_task(load.watch_memory())
            await asyncio.sleep(SOAK_S)
            load.is_over = True
        async with aiohttp.ClientSession() as session:
            assert await load.ask(session, server.keys[0], "the end") == "answered"
    third = len(load.memory) // 3
    middle, last = (statistics.median(part) for part in (load.memory[third : 2 * third], load.memory[2 * third :]))
    report = [f"{name}: {count}" for name, count in sorted(load.counts.items())]
    print("", *report, *(f"{what} {n / _MIB:.0f} MiB" for what, n in (("middle", middle), ("last", last))), sep="\n")
    assert load.counts["answered"] > 10 * load.counts["engines killed"] > 0
    assert last - middle < _GROWTH_BYTES
