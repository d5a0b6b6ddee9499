"""How soon the model goes on after a tool call: its next token, against reading nothing but the result.

    python -m bench.tool_results [--size small] [--rounds 20] [--threads 1]

A generated model calls a tool in a chat of 400 tokens and gets a result. The time is the client's, from sending the
result to the first text. The peer is the shortest loop over the same C API (bench/bare.py), in which the chat and the
call are in memory: it reads as many tokens as the result has with what the template writes around it. Both take turns
in one run. `processed` says how many tokens the worker read; more than the result's means that it read the call again.
"""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.bare import BareLoop
from bench.engine import generated_model, long_text
from qwendesk.core.failures import LoadFailure
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import Message, ToolCall, text_message
from qwendesk.core.options import DecidedOptions
from qwendesk.core.stats import AnswerStats
from qwendesk.engine import protocol
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.process import SHORT_SPIN, SPIN_VARIABLE
from tests.engine.worker.templates import QWEN_LIKE
from tools import bench_model

_CHAT_TOKENS = 400
_RESULT_TOKENS = (100, 500)
_MOST_TOKENS = 2_000
"""Of a chat with its result."""
_TARGET = 1.1
_TOOL = json.dumps(
    {
        "name": "read_file",
        "parameters": {
            "type": "object",
            "properties": {
                "path": {"enum": ["notes/summer holidays.txt", "src/simulation/integrator.py"]},
                "first_line": {"enum": [1, 200, 4000]},
            },
            "required": ["path", "first_line"],
        },
    }
)


class Written(msgspec.Struct, frozen=True):
    """An answer, and the seconds to its first text."""

    message: Message
    first_s: float
    stats: AnswerStats


class Turn(msgspec.Struct, frozen=True):
    """The answer to a result: seconds of the app and of the bare loop, and how many tokens each read."""

    ours_s: float
    peer_s: float
    processed: int
    of_result: int


class Chat:
    """A client with a loaded model."""

    def __init__(self) -> None:
        self._client = WorkerClient()

    async def load(self, model: Path, template: Path, n_threads: int) -> None:
        values: dict[str, object] = {"model": str(model), "chat_template_file": str(template), "n_ctx": 4096}
        values |= {"n_gpu_layers": 0, "n_cpu_moe": 0, "load_mode": "mmap", "n_threads": n_threads}
        report = await self._client.load(msgspec.convert(values, DecidedOptions))
        if isinstance(report, LoadFailure):
            raise SystemExit(f"{report.title}: {report.sentence}")

    async def ask(self, messages: Sequence[Message], *, must_call: str = "", n_tokens: int = -1) -> Written:
        """Return the answer. With `must_call`, it is a call."""
        options = GenerationOptions(temperature=0.0, presence_penalty=0.0, enable_thinking=False, max_tokens=n_tokens)
        request = protocol.Generate(messages=tuple(messages), options=options, tools_json=(_TOOL,), must_call=must_call)
        calls: list[ToolCall] = []
        text, first_s, began = "", 0.0, time.perf_counter()
        async for event in self._client.generate(request):
            if isinstance(event, protocol.Delta | protocol.CallDelta) and not first_s:
                first_s = time.perf_counter() - began
            if isinstance(event, protocol.Delta):
                text += event.text
            elif isinstance(event, protocol.Called) and event.call is not None:
                calls.append(event.call)
            elif isinstance(event, protocol.Finished):
                message = msgspec.structs.replace(text_message("assistant", text), tool_calls=tuple(calls))
                return Written(message, first_s, event.stats)
        raise SystemExit(f"the engine did not answer: {event}")

    async def close(self) -> None:
        await self._client.close()


async def measure(model: Path, template: Path, rounds: int, n_threads: int) -> dict[int, list[Turn]]:
    """Return the turns by the number of tokens of the result."""
    bare, chat = BareLoop(model, n_ctx=4096, n_threads=n_threads), Chat()
    turns: dict[int, list[Turn]] = {n_tokens: [] for n_tokens in _RESULT_TOKENS}
    try:
        await chat.load(model, template, n_threads)
        for number in range(rounds):
            for n_tokens, done in turns.items():
                question = text_message("user", f"{number} {n_tokens} {long_text(_CHAT_TOKENS, bare)}")
                done.append(await _turn(chat, bare, question, long_text(n_tokens, bare)))
    finally:
        await chat.close()
        bare.close()
    return turns


async def _turn(chat: Chat, bare: BareLoop, question: Message, result: str) -> Turn:
    called = await chat.ask([question], must_call="*")
    if not called.message.tool_calls:
        raise SystemExit("the model made no call")
    after = [question, called.message, text_message("tool", result)]
    answer = await chat.ask(after, n_tokens=2)
    n_before = called.stats.prompt_tokens + called.stats.answer_tokens
    n_result = answer.stats.prompt_tokens - n_before
    tokens = bare.tokens(long_text(_MOST_TOKENS, bare))
    bare.read(tokens[:n_before])
    peer_s = bare.read(tokens[n_before : n_before + n_result], position=n_before)
    return Turn(answer.first_s, peer_s, answer.stats.reread_tokens, n_result)


def table(turns: dict[int, list[Turn]]) -> str:
    """Return the medians as a Markdown table."""
    lines = ["| result, tokens | ours, s | bare loop, s | ratio | target | | processed |", "|---" * 7 + "|"]
    for done in turns.values():
        ours, peer = (statistics.median(values) for values in zip(*((t.ours_s, t.peer_s) for t in done), strict=True))
        ratio = statistics.median(turn.ours_s / turn.peer_s for turn in done)
        verdict = "met" if ratio <= _TARGET else "MISSED"
        processed = statistics.median(turn.processed for turn in done)
        lines.append(
            f"| {done[-1].of_result} | {ours:.3f} | {peer:.3f} | {ratio:.3f} | at most {_TARGET} | {verdict} | "
            f"{processed:.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.tool_results", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=list(bench_model.SIZES), default="small")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    # Before the engine's library is loaded: the bare loop waits like the worker.
    os.environ.setdefault(SPIN_VARIABLE, SHORT_SPIN)
    model = generated_model(chosen.size)
    with tempfile.TemporaryDirectory() as folder:
        template = Path(folder) / "template.jinja"
        template.write_text(QWEN_LIKE, encoding="utf-8")
        print(table(asyncio.run(measure(model, template, chosen.rounds, chosen.threads))))


if __name__ == "__main__":
    main()
