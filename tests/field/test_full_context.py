"""A conversation that doesn't fit: each program must know it as that, or the conversation is dead."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from qwendesk.core.stats import AnswerStats
from qwendesk.engine.protocol import Finished
from tests.fakes.answer_stream import FakeAnswerStream, ScriptedAnswer
from tests.field.grid import SERVER, Kind, Way, case
from tests.server.http_desk import HttpDesk, http_desk

FULL = Kind(
    "A program doesn't know that the context is full, and repeats what can't work",
    dict.fromkeys((Way.WINDOW, Way.CLI), "there QwenDesk itself says it")
    | {Way.MCP: "no conversation goes there", Way.IMPORT: "an import asks nothing"},
)
HI = [{"role": "user", "content": "Hi"}]
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": HI},
    "/v1/responses": {"input": "Hi"},
    "/v1/messages": {"messages": HI, "max_tokens": 50},
    "/v1/completions": {"prompt": "Hi"},
}
WORDS = {
    "Claude Code": r"prompt is too long[^0-9]*(\d+)\s*tokens?\s*>\s*(\d+)",
    "Zed": r"^prompt is too long: 40000 tokens",
    "LiteLLM": r"(?i)this model's maximum context length is",
    "opencode": r"(?i)maximum context length is \d+ tokens",
    "Cline": r"(?i)\bcontext\s*(?:length|window)\b",
    "VS Code": r"exceeds the available context size",
    "Groq's clients": r"(?i)reduce the length of the messages",
}


class FullStream(FakeAnswerStream):
    """What the engine answers to a prompt that alone fills the context."""

    async def _play(self) -> Any:
        yield Finished(id=self._request.id, stop_reason="context_full", stats=AnswerStats(prompt_tokens=40_000))


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fakes.engine.FakeAnswerStream", FullStream)


async def refused(desk: HttpDesk, path: str, **more: Any) -> tuple[int, str]:
    async with desk.request("POST", path, BODIES[path] | more) as response:
        return response.status, await response.text()


@case(FULL, *SERVER, report="Claude Code, Cline, opencode, LiteLLM, Zed and VS Code look for words", before="failed")
@pytest.mark.parametrize("path", BODIES)
@pytest.mark.usefixtures("full")
async def test_every_program_finds_the_words_that_it_knows(tmp_path: Path, path: str) -> None:
    async with http_desk(tmp_path) as desk:
        status, text = await refused(desk, path)
        error = json.loads(text)["error"]
        assert (status, error["type"]) == (400, "invalid_request_error")
        assert error.get("code") == (None if path == "/v1/messages" else "context_length_exceeded")
        assert [who for who, words in WORDS.items() if not re.search(words, error["message"])] == []


@case(FULL, *SERVER, report="Codex knows a full context only as an event response.failed", before="failed")
@pytest.mark.usefixtures("full")
async def test_a_stream_says_it_where_its_programs_look(tmp_path: Path) -> None:
    async with http_desk(tmp_path) as desk:
        for path in BODIES:
            status, text = await refused(desk, path, stream=True)
            assert "prompt is too long: 40000 tokens > 32768 maximum" in text
            if path != "/v1/responses":
                assert status == 400
                continue
            events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
            assert [each["type"] for each in events] == ["response.created", "response.in_progress", "response.failed"]
            assert events[-1]["response"]["error"]["code"] == "context_length_exceeded"


@case(FULL, *SERVER, report="an answer that runs into the end of the context", before="held")
async def test_an_answer_that_fills_the_context_is_cut_as_by_its_length(tmp_path: Path) -> None:
    words = {"/v1/chat/completions": '"length"', "/v1/responses": '"incomplete"', "/v1/messages": '"max_tokens"'}
    async with http_desk(tmp_path, [ScriptedAnswer(text="One two", stop_reason="context_full")] * 3) as desk:
        for path, word in words.items():
            status, text = await refused(desk, path)
            assert (status, word in text) == (200, True), path
