"""Files without a chat template, and tokens that are no text: what strangers' models do to whoever asks them."""

import html
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
import pytest_asyncio
from PySide6.QtWidgets import QAbstractButton, QLabel

from qwendesk.cli import main as cli
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.protocol import TemplateAbilities
from qwendesk.engines.engine_service import EngineService
from qwendesk.server.served_models import ServedModels
from qwendesk.server.service import ServerOptions, ServerService
from tests.fakes.engine import DEMO_REPORT, ScriptedAnswer, decide_by_default
from tests.field.grid import SERVER, Kind, Way, case
from tests.templateless_model import write_templateless
from tests.window_desk import Desk

NO_MODELS = {
    Way.MCP: "an MCP server offers tools, no models",
    Way.IMPORT: "an imported chat is a text that was written before: no model runs",
}
NO_TEMPLATE = Kind("A model without a chat template answers garbage", NO_MODELS)
CONTROL_TOKENS = Kind("Control tokens come out as text", NO_MODELS)

BASE_MODEL = "This is a base model: it continues text and wasn't trained to chat."
PROMPT = "<start_of_turn>user\nWhat is VRAM spill?<end_of_turn>\n<start_of_turn>model\n"
VISION_START = 2024
"""A control token of the demo's vocabulary, and the models made of it."""
BASE = TemplateAbilities(
    source="builtin", enable_thinking=False, preserve_thinking=False, tools=False, formats=("gemma", "plain", "none"),
    is_base=True,
)  # fmt: skip


@pytest.fixture(scope="module")
def base_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_templateless(tmp_path_factory.mktemp("base") / "tiny-base.gguf", "gemma")


class ServedBase:
    """A server with the real engine and a base model, whose answers are greedy."""

    def __init__(self, address: str, session: aiohttp.ClientSession) -> None:
        self._address, self._session = address, session

    async def post(self, path: str, **body: Any) -> Any:
        async with self._session.post(self._address + path, json=body) as response:
            return await response.json()

    async def texts(self, **changes: Any) -> list[str]:
        """The answers of the three APIs to the same question."""
        messages = [{"role": "user", "content": "What is VRAM spill?"}]
        chat = await self.post("/v1/chat/completions", messages=messages, **changes)
        response = await self.post("/v1/responses", input="What is VRAM spill?", **changes)
        message = await self.post("/v1/messages", messages=messages, max_tokens=8, **changes)
        return [
            chat["choices"][0]["message"]["content"],
            "".join(part["text"] for item in response["output"] for part in item["content"]),
            "".join(part["text"] for part in message["content"]),
        ]


@pytest_asyncio.fixture
async def served_base(base_model: Path, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[ServedBase]:
    bias = getattr(request, "param", ())
    client = WorkerClient()
    engine = EngineService(client, decide=decide_by_default)
    (tmp_path / "keys").write_text("test-key-0123456789\n", encoding="utf-8")

    async def default() -> LoadOptions:
        return LoadOptions(model=str(base_model), n_ctx=1024, n_threads=1)

    options = GenerationOptions(temperature=0, presence_penalty=0, max_tokens=8, logit_bias=bias)
    server = ServerService(client, ServedModels(engine, default), lambda _question, _report: options)
    await server.start(ServerOptions(port=0, key_file=tmp_path / "keys"))
    try:
        async with aiohttp.ClientSession(headers={"Authorization": "Bearer test-key-0123456789"}) as session:
            yield ServedBase(server.state.address, session)
    finally:
        await server.stop()
        await engine.close()


@case(NO_TEMPLATE, *SERVER, report="gemma-3-270m of PyPI, by hand", before="failed")
async def test_a_question_to_the_server_is_put_as_its_family_puts_it(served_base: ServedBase) -> None:
    completed = await served_base.post("/v1/completions", prompt=PROMPT)
    expected = completed["choices"][0]["text"].strip()
    assert expected
    assert [text.strip() for text in await served_base.texts()] == [expected] * 3


@pytest.mark.parametrize("served_base", [(f"{VISION_START}=1000",)], indirect=True)
@case(CONTROL_TOKENS, *SERVER, report="gemma-3-270m of PyPI, by hand", before="held")
async def test_a_control_token_is_no_text_of_an_answer(served_base: ServedBase) -> None:
    assert await served_base.texts() == [""] * 3
    messages = [{"role": "user", "content": "What is VRAM spill?"}]
    chat = await served_base.post("/v1/chat/completions", messages=messages, logprobs=True, top_logprobs=3)
    assert "<|vision_start|>" not in json.dumps(chat)


@case(NO_TEMPLATE, Way.CLI, report="gemma-3-270m of PyPI, by hand", before="failed")
@case(CONTROL_TOKENS, Way.CLI, report="ask --json of gemma-3-270m, by hand", before="failed")
def test_the_command_says_what_the_model_is(base_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--model", str(base_model), "--max-tokens", "8", "--set", "n_ctx=1024", "--set", "temperature=0"]
    assert cli.main(["ask", "--json", *arguments, "What is VRAM spill?"]) == 0
    out, err = capsys.readouterr()
    assert BASE_MODEL in err
    result = json.loads(out)
    assert result["load"]["template"]["formats"] == ["gemma", "plain", "none"]
    assert (result["load"]["can_think"], result["turns"][0]["reasoning"]) == (False, "")
    assert not any(token in out for token in ("<start_of_turn>", "<end_of_turn>", "<|vision_start|>", "<tool_call>"))


async def loaded_base(desk: Desk) -> None:
    desk.client.report = msgspec.structs.replace(DEMO_REPORT, template=BASE, can_think=False, name="Tiny")
    await desk.parts.engine.load(LoadOptions(model="/models/tiny-base.gguf"))


@case(NO_TEMPLATE, Way.WINDOW, report="gemma-3-270m of PyPI, by hand", before="failed")
async def test_the_window_says_what_the_model_is_and_offers_another_template(desk: Desk) -> None:
    await loaded_base(desk)
    assert BASE_MODEL in html.unescape(desk.find("welcome.text", QLabel).text())
    await desk.ask("What is VRAM spill?")
    assert not desk.find("composer.thinking", QAbstractButton).isEnabled()
    turn = desk.parts.chat.conversation.turns[-1].id
    assert desk.text_of(f"thread.template.words.{turn}") == BASE_MODEL
    formats = []
    for _ in range(3):
        n_asked = len(desk.client.asked)
        desk.click(f"thread.footer.template.{turn}")
        await desk.until(lambda n_asked=n_asked: len(desk.client.asked) > n_asked and not desk.parts.chat.busy)
        await desk.until(lambda: desk.is_shown(f"thread.footer.template.{turn}"))
        formats.append(desk.client.asked[-1].options.chat_format)
    assert formats == ["plain", "none", "gemma"]
    await desk.ask("And a quant?")
    assert desk.client.asked[-1].options.chat_format == "gemma", "the chat keeps it"
    assert not desk.is_shown(f"thread.template.{turn}"), "only the last answer offers it"


@case(CONTROL_TOKENS, Way.WINDOW, report="gemma-3-270m of PyPI, by hand", before="held")
async def test_what_an_answer_spells_is_shown_as_it_is_spelt(desk: Desk) -> None:
    """The engine sends no control token; a text that is spelt like one is a text, and stays."""
    await loaded_base(desk)
    desk.client.answers = [ScriptedAnswer(text="The mark is `<end_of_turn>`.")]
    await desk.ask("What ends a turn?")
    assert desk.parts.chat.conversation.turns[-1].answer.text == "The mark is `<end_of_turn>`."
