"""Two agents take turns at one server: what is processed again? `python -m bench.two_agents`.

    python -m bench.two_agents [--turns 20] [--tokens 8000] [--model F] [--threads N]

Each agent sends its whole conversation with each request, as coding agents do: a long system prompt of its own, then
results of tools and answers. Their requests alternate. Of each request, the tokens that no earlier request of this
agent had, and that no answer to it had, are new; every other token that the engine processes is processed again.
llama-server, if tools.build_peer built it, gets the same requests with one slot and its own defaults.
"""

import argparse
import json
import statistics
import time
import urllib.request
from pathlib import Path
from typing import Any

import msgspec
import psutil

from bench.llama_server import running_llama_server
from bench.peers.rows import Material
from bench.served import served
from tools import bench_model
from tools.build_peer import peer_server
from tools.setup.project import ROOT

_TARGET = 0.02
_RESULT_TOKENS = 150
_ANSWER_TOKENS = 32
_COUNTED_WORDS = 1000
_LIMIT_S = 600.0


class Request(msgspec.Struct, frozen=True):
    prompt_tokens: int
    processed_tokens: int
    answer_tokens: int
    seconds: float
    """From the request to the whole answer."""


class Agent:
    """One agent, which remembers its conversation and how much of it the server has seen."""

    def __init__(self, name: str, material: Material, n_tokens: int) -> None:
        self._name, self._material = name, material
        self._messages = [{"role": "system", "content": material.text(f"{name} is an agent.", n_tokens)}]
        self._seen_tokens = 0
        self.requests: list[Request] = []
        self.again: list[int] = []
        """How many tokens each request had processed again."""

    def take_turn(self, url: str, key: str) -> None:
        number = len(self.requests) + 1
        self._messages.append({"role": "user", "content": self._material.text(f"Result {number}:", _RESULT_TOKENS)})
        answer, request = ask(url, key, self._messages)
        self._messages.append({"role": "assistant", "content": answer})
        new = request.prompt_tokens - self._seen_tokens
        self.requests.append(request)
        self.again.append(max(0, request.processed_tokens - new))
        self._seen_tokens = request.prompt_tokens + request.answer_tokens


def post(url: str, key: str, body: dict[str, Any]) -> dict[str, Any]:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=_LIMIT_S) as reply:
        answer: dict[str, Any] = json.load(reply)
    return answer


def words_per_token(url: str, key: str) -> float:
    """Return how many words of the texts that agents send are a token of the served model."""
    text = Material(Path()).text("", _COUNTED_WORDS)
    return _COUNTED_WORDS / len(post(f"{url}/tokenize", key, {"content": text})["tokens"])


def ask(url: str, key: str, messages: list[dict[str, str]]) -> tuple[str, Request]:
    body = {
        "messages": messages,
        "max_tokens": _ANSWER_TOKENS,
        "temperature": 0,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    began = time.perf_counter()
    answer = post(f"{url}/v1/chat/completions", key, body)
    seconds = time.perf_counter() - began
    usage, timings = answer["usage"], answer["timings"]
    text = answer["choices"][0]["message"]["content"] or ""
    return text, Request(usage["prompt_tokens"], timings["prompt_n"], usage["completion_tokens"], seconds)


def alternate(url: str, key: str, turns: int, n_tokens: int) -> list[Agent]:
    """Let two agents take turns, and return them."""
    material = Material(Path(), words_per_token(url, key))
    agents = [Agent(name, material, n_tokens) for name in ("Anna", "Bert")]
    for _ in range(turns):
        for agent in agents:
            agent.take_turn(url, key)
    return agents


def row(name: str, agents: list[Agent]) -> str:
    """Return a row of the table."""
    requests = [request for agent in agents for request in agent.requests]
    prompts = sum(request.prompt_tokens for request in requests)
    again = sum(sum(agent.again) for agent in agents)
    later = [request.seconds for agent in agents for request in agent.requests[1:]]
    longest = max(request.prompt_tokens for request in requests)
    return (
        f"| {name} | {len(requests)} | {longest:,} | {prompts:,} | {sum(r.processed_tokens for r in requests):,} "
        f"| {again:,} | {again / prompts:.2%} | {statistics.median(later):.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.two_agents", description=__doc__)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=8000, help="of each agent's system prompt (default 8000)")
    parser.add_argument("--model", type=Path, help="default: a generated one of Qwen3.5-35B-A3B's architecture")
    parser.add_argument("--threads", type=int, default=psutil.cpu_count(logical=False) or 1)
    options = parser.parse_args()
    model = options.model or ROOT / ".work" / "bench-small-q4_k_m.gguf"
    if options.model is None and not model.exists():
        model.parent.mkdir(exist_ok=True)
        bench_model.make(model, "small")
    n_ctx = 2 * options.tokens + 2 * options.turns * (_RESULT_TOKENS + _ANSWER_TOKENS)
    print("| server | requests | longest prompt | prompt tokens | processed | again | share | median s, turn 2 on |")
    print("|---|---|---|---|---|---|---|---|")
    with served(model, load=(f"n_ctx={n_ctx}", f"n_threads={options.threads}")) as ours:
        agents = alternate(ours.url, ours.keys[0], options.turns, options.tokens)
    print(row("QwenDesk", agents), flush=True)
    if peer_server().is_file():
        with running_llama_server(peer_server(), model, n_ctx=n_ctx, n_threads=options.threads) as port:
            print(row("llama-server", alternate(f"http://127.0.0.1:{port}", "", options.turns, options.tokens)))
    again = sum(sum(agent.again) for agent in agents)
    share = again / sum(request.prompt_tokens for agent in agents for request in agent.requests)
    print(f"\nprocessed again: {share:.2%}, target at most {_TARGET:.0%}: {'met' if share <= _TARGET else 'MISSED'}")


if __name__ == "__main__":
    main()
