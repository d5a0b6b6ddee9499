"""What one client of the server learns of what another asked: nothing."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio

from qwendesk.chat.service import ChatService
from qwendesk.core import paths
from qwendesk.core.options import LoadOptions
from qwendesk.engine.client import WorkerClient
from tests.fakes.engine import FakeEngineClient
from tests.field.grid import SERVER, Kind, Way, case
from tests.server.http_desk import KEY, OTHER_KEY, HttpDesk, http_desk

OTHERS_PROMPTS = Kind(
    "How many tokens were reused tells one key what another asked",
    {
        Way.CLI: "each command is a process with an engine of its own",
        Way.MCP: "an MCP server gets no prompts",
        Way.IMPORT: "an import asks nothing; an imported chat is one of the window's",
    },
)
SHORT = {"temperature": 0, "max_tokens": 4}


def secret(of: str) -> str:
    """A text that is long enough for its state to be kept in RAM."""
    return f"{of}: " + " ".join(f"Patient {number} was told of the result on Monday." for number in range(40))


def bodies() -> dict[str, dict[str, Any]]:
    """The same request to each API, with other words."""
    chat, messages = (secret(of) for of in ("Chat", "Messages"))
    return {
        "/v1/chat/completions": {"messages": [{"role": "user", "content": chat}], "reasoning_effort": "none", **SHORT},
        "/v1/responses": {"input": secret("Responses"), "reasoning": {"effort": "none"}, "max_output_tokens": 4},
        "/v1/messages": {"messages": [{"role": "user", "content": messages}], **SHORT},
        "/v1/completions": {"prompt": secret("Completions"), **SHORT},
    }


def n_cached(answer: dict[str, Any]) -> int:
    usage = answer["usage"]
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    return int(details.get("cached_tokens", usage.get("cache_read_input_tokens", 0)))


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncIterator[HttpDesk]:
    """A server on the real engine."""
    client = WorkerClient()
    async with http_desk(tmp_path, client=client, model=paths.demo_model()) as desk:
        yield desk
    await client.close()


@case(OTHERS_PROMPTS, *SERVER, report="found by attack: 593 of 600 tokens cached for the right guess", before="failed")
async def test_only_the_key_that_asked_has_its_prompt_in_memory(desk: HttpDesk) -> None:
    for path, body in bodies().items():
        await desk.json("POST", path, body)
        again = n_cached(await desk.json("POST", path, body))
        guessed = n_cached(await desk.json("POST", path, body, key=OTHER_KEY))
        assert (again > 300, guessed) == (True, 0), path
        if path != "/v1/completions":  # of which no state is kept
            assert n_cached(await desk.json("POST", path, body)) == again, path


@case(OTHERS_PROMPTS, Way.WINDOW, report="found by attack", before="failed")
async def test_no_key_has_a_prompt_of_the_window_in_memory(desk: HttpDesk) -> None:
    await desk.engine.load(LoadOptions(model=str(paths.demo_model())))
    chat = ChatService(desk.client, desk.engine)
    chat.set_thinking(False)
    chat.set_overrides({"max_tokens": "4", "temperature": "0"})
    for question in (secret("Chat"), "Go on."):
        await chat.send(question)
    assert chat.conversation.turns[1].answer.stats.reused_tokens > 300
    path = "/v1/chat/completions"
    assert n_cached(await desk.json("POST", path, bodies()[path])) == 0


async def test_the_engine_is_not_told_the_key(tmp_path: Path) -> None:
    async with http_desk(tmp_path) as desk:
        for key in (KEY, OTHER_KEY, KEY):
            await desk.json("POST", "/v1/chat/completions", bodies()["/v1/chat/completions"], key=key)
        names = [each.client for each in desk.client.asked]
        assert isinstance(desk.client, FakeEngineClient)
        assert names[0] == names[2] != names[1]
        assert all(name and key not in name for name in names for key in (KEY, OTHER_KEY))
