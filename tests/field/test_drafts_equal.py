"""An answer that was decoded with lookup drafts is the answer without them, by each way to the real engine."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from qwendesk.cli import main as cli
from qwendesk.core import paths
from qwendesk.core.options import LoadOptions
from qwendesk.engine.client import WorkerClient
from tests.field.grid import SERVER, Kind, Way, case
from tests.server.http_desk import http_desk
from tests.window_desk import Desk

DRAFTS = Kind(
    "Drafts change what an answer says",
    {
        Way.MCP: "an MCP server asks nothing of the engine",
        Way.IMPORT: "an imported chat is asked as one of the window",
    },
)
REPORT = "llama.cpp#22746 and others: speculative decoding of hybrid models"
QUESTION = "Repeat: VRAM spill is slow. VRAM spill is slow. What is VRAM spill?"
SPECULATIVE = ("off", "lookup")
N_TOKENS = 60


def options(speculative: str) -> LoadOptions:
    return msgspec.convert({"model": str(paths.demo_model()), "n_ctx": 4096, "speculative": speculative}, LoadOptions)


@pytest.fixture
def client(qt_loop: asyncio.Runner) -> WorkerClient:
    """The window's engine: a real one."""

    class Client(WorkerClient):
        closed = False

        async def close(self) -> None:
            await super().close()
            self.closed = True

    return Client()


@case(DRAFTS, Way.WINDOW, report=REPORT, before="held")
async def test_the_window_shows_the_same(make_desk: Callable[[], Desk]) -> None:
    desk, answers = make_desk(), []
    fixed = {"temperature": "0", "presence_penalty": "0", "max_tokens": str(N_TOKENS), "enable_thinking": "false"}
    for speculative in SPECULATIVE:
        await desk.parts.engine.load(options(speculative))
        desk.parts.chat.new_chat()
        desk.parts.chat.change_settings(msgspec.structs.replace(desk.parts.chat.settings, overrides=fixed))
        await desk.ask(QUESTION)
        answers.append(desk.parts.chat.conversation.turns[-1].answer.text)
    assert answers[0] == answers[1] != ""


@case(DRAFTS, Way.CLI, report=REPORT, before="held")
def test_the_command_line_prints_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    answers = []
    for speculative in SPECULATIVE:
        options = [f"speculative={speculative}", "temperature=0", "presence_penalty=0"]
        given = [part for option in options for part in ("--set", option)]
        assert cli.main(["ask", *given, "--no-think", "--max-tokens", str(N_TOKENS), "--json", QUESTION]) == 0
        (turn,) = json.loads(capsys.readouterr().out)["turns"]
        answers.append(turn["answer"])
    assert answers[0] == answers[1] != ""


@case(DRAFTS, *SERVER, report=REPORT, before="held")
async def test_a_program_gets_the_same(tmp_path: Path) -> None:
    question = [{"role": "user", "content": QUESTION}]
    asked = {"temperature": 0, "presence_penalty": 0, "max_tokens": N_TOKENS, "enable_thinking": False}
    bodies = {
        "/v1/chat/completions": asked | {"messages": question},
        "/v1/responses": asked | {"input": question},
        "/v1/messages": asked | {"messages": question},
    }
    answers: list[list[str]] = []
    for speculative in SPECULATIVE:
        client = WorkerClient()
        async with http_desk(tmp_path, client=client, model=paths.demo_model()) as desk:
            await desk.engine.load(options(speculative))
            report = desk.engine.state.report
            assert report is not None
            assert report.options.speculative == speculative
            found = [await desk.json("POST", path, body) for path, body in bodies.items()]
        await client.close()
        chat, response, message = found
        texts = (chat["choices"][0]["message"]["content"], response["output"][0]["content"][0]["text"])
        answers.append([*texts, message["content"][0]["text"]])
    assert answers[0] == answers[1]
    assert len(set(answers[0])) == 1
