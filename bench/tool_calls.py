"""How many answers and tool calls are lost by the app's parser, and by llama-server's on the same tokens.

    python -m tools.build_peer      # once: llama-server from the engine's own source
    python -m bench.tool_calls [--conversations N]
    LLAMA_SERVER=/path/to/llama-server python -m bench.tool_calls

Both get the answers of the made conversations (tests/engine/worker/made_conversations.py), in which models damage
their calls in the ways that they do. The app's side is the worker's own writer, which takes tokens. llama-server gets
each answer as the beginning of one that it continues; the demo model, to which all tokens but the end of the text are
forbidden, adds nothing. Its parser reads the beginning as if it had written that, and its reply has what it read.
"""

import argparse
import json
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.llama_server import request_of, running_llama_server
from bench.peers.__main__ import find_server
from qwendesk.core import paths
from qwendesk.core.messages import Message
from qwendesk.engine.worker.log import EngineLog
from tests.engine.worker.conftest import Demo, open_demo
from tests.engine.worker.made_calls import TOOLS_JSON
from tests.engine.worker.made_conversations import (
    DAMAGES,
    DIALECTS,
    N_CONVERSATIONS,
    TEMPLATES,
    Conversation,
    Made,
    Round,
    made_conversations,
)
from tests.engine.worker.parsed_answers import parsed

_END_OF_TEXT = "<|im_end|>"
_BIAS = 10_000.0
_TAGS = ("<tool_call>", "</tool_call>", "<think>", "</think>", "<function", "<parameter", "</function>")


class Seen(msgspec.Struct, frozen=True):
    """What a client gets to see of an answer."""

    reasoning: str = ""
    text: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    """Names and arguments."""
    refusal: str = ""
    """The error in place of the answer."""


class Losses(msgspec.Struct):
    """Counts over answers."""

    answers: int = 0
    texts: int = 0
    """Answers whose text or reasoning is not whole."""
    calls: int = 0
    """Calls that are missing, or have other arguments."""
    refused: int = 0
    """Answers in whose place an error came. They count in the two above as well."""
    tags: int = 0
    """Answers whose text shows tags of calls or thinking."""

    def count(self, each: Round, seen: Seen) -> None:
        self.answers += 1
        self.texts += not (_squeezed(each.text) in _squeezed(seen.text) and each.made.reasoning in seen.reasoning)
        self.calls += _meant_calls(each.made) != seen.calls
        self.refused += bool(seen.refusal)
        self.tags += any(tag in seen.text for tag in _TAGS)

    def add(self, other: "Losses") -> None:
        for field in self.__struct_fields__:
            setattr(self, field, getattr(self, field) + getattr(other, field))

    def __str__(self) -> str:
        return f"{self.calls} | {self.texts} | {self.refused} | {self.tags}"


def app_sees(demo: Demo, conversation: Conversation, each: Round) -> Seen:
    answer = parsed(demo, each.written, in_reasoning=conversation.thinking)
    calls = [called.call for called in answer.calls if called.call is not None]
    return Seen(answer.reasoning, answer.text, tuple((call.name, json.loads(call.arguments_json)) for call in calls))


class PeerParser:
    """llama-server's parser of one dialect."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._end = self._post("/tokenize", {"content": _END_OF_TEXT, "parse_special": True})["tokens"][0]

    def sees(self, conversation: Conversation, number: int) -> Seen:
        """Let it read the answer of round `number`."""
        written, thinking = conversation.rounds[number].written, conversation.thinking
        part = "reasoning_content" if thinking else "content"
        body = {
            "messages": [
                *map(_for_api, conversation.messages_before(number)),
                {"role": "assistant", "content": "", part: written},
            ],
            "tools": [json.loads(tool) for tool in TOOLS_JSON],
            "continue_final_message": part,
            "add_generation_prompt": False,
            "echo": True,
            "max_tokens": 1,
            "temperature": 0,
            "logit_bias": [[self._end, _BIAS]],
            "chat_template_kwargs": {"enable_thinking": thinking},
        }
        try:
            message = self._post("/v1/chat/completions", body)["choices"][0]["message"]
        except urllib.error.HTTPError as error:
            return Seen(refusal=error.read().decode(errors="replace"))
        functions = [call["function"] for call in message.get("tool_calls") or ()]
        calls = tuple((function["name"], _value(function["arguments"])) for function in functions)
        return Seen(message.get("reasoning_content") or "", message.get("content") or "", calls)

    def _post(self, path: str, body: Mapping[str, object]) -> Any:
        with urllib.request.urlopen(request_of(self._port, path, body)) as reply:
            return json.load(reply)


def measure(server: Path, conversations: Sequence[Conversation]) -> dict[tuple[str, str], tuple[Losses, Losses]]:
    """Return the losses of both sides by dialect and damage."""
    found: dict[tuple[str, str], tuple[Losses, Losses]] = {
        (dialect, damage): (Losses(), Losses()) for dialect in DIALECTS for damage in DAMAGES[dialect]
    }
    log = EngineLog()
    log.install()
    with open_demo() as demo, tempfile.TemporaryDirectory() as folder:
        for dialect in DIALECTS:
            template = Path(folder) / f"{dialect}.jinja"
            template.write_text(TEMPLATES[dialect], encoding="utf-8")
            with running_llama_server(server, paths.demo_model(), n_ctx=4096, n_threads=1, template=template) as port:
                peer = PeerParser(port)
                for conversation, number, each in _answers(conversations, dialect):
                    ours, theirs = found[dialect, each.damage]
                    ours.count(each, app_sees(demo, conversation, each))
                    theirs.count(each, peer.sees(conversation, number))
    return found


def _answers(conversations: Sequence[Conversation], dialect: str) -> Iterator[tuple[Conversation, int, Round]]:
    for conversation in conversations:
        if conversation.dialect == dialect:
            for number, each in enumerate(conversation.rounds):
                yield conversation, number, each


def table(found: Mapping[tuple[str, str], tuple[Losses, Losses]]) -> str:
    """Return the losses as a Markdown table."""
    counts = ("calls lost", "texts lost", "refused", "tags in the text")
    columns = ("dialect", "damage", "answers", *(f"{side}: {count}" for side in ("ours", "peer") for count in counts))
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    totals = Losses(), Losses()
    for (dialect, damage), (ours, theirs) in found.items():
        lines.append(f"| {dialect} | `{damage}` | {ours.answers} | {ours} | {theirs} |")
        for total, losses in zip(totals, (ours, theirs), strict=True):
            total.add(losses)
    lines.append(f"| all | | {totals[0].answers} | {totals[0]} | {totals[1]} |")
    return "\n".join(lines)


def _meant_calls(made: Made) -> tuple[tuple[str, Any], ...]:
    return ((made.name, made.arguments),) if made.name else ()


def _for_api(message: Message) -> dict[str, object]:
    passed: dict[str, object] = {"role": message.role, "content": message.text}
    if message.role == "tool":
        passed["tool_call_id"] = "call"
    if message.reasoning:
        passed["reasoning_content"] = message.reasoning
    if message.tool_calls:
        calls = [{"name": call.name, "arguments": call.arguments_json} for call in message.tool_calls]
        passed["tool_calls"] = [{"id": "call", "type": "function", "function": call} for call in calls]
    return passed


def _value(arguments: str) -> Any:
    """Return the arguments; as text where they are no JSON, because the call is not whole."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def main(arguments: Sequence[str]) -> int:
    """Print the table. Return 1 if the app's parser lost anything."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.tool_calls", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--conversations", type=int, default=N_CONVERSATIONS, metavar="N")
    chosen = parser.parse_args(arguments)
    found = measure(find_server(), made_conversations()[: chosen.conversations])
    print(table(found))
    return int(any(ours.calls or ours.texts or ours.tags for ours, _ in found.values()))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
