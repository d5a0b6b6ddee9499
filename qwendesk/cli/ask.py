"""`qwendesk ask`: one conversation with a model, on the terminal or as JSON."""

import argparse
import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.core.chats import ChatSettings
from qwendesk.core.conversation import Turn
from qwendesk.core.errors import BadOption, QwenDeskError
from qwendesk.core.failures import LoadFailure
from qwendesk.core.option_rules import load_options_of
from qwendesk.core.options import GenerationOptions, LoadOptions
from qwendesk.core.paths import demo_mmproj, demo_model
from qwendesk.core.settings import table
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.protocol import LoadReport
from qwendesk.engine.state import EngineState
from qwendesk.services.chat.sending import checked
from qwendesk.services.chat.service import ChatNews, ChatService, Wrote
from qwendesk.services.engine.beside import mmproj_beside
from qwendesk.services.engine.engines import client_here
from qwendesk.services.engine.service import EngineService

EXIT_ANSWERED, EXIT_BAD_USAGE, EXIT_CANNOT_LOAD, EXIT_ENGINE_DIED = 0, 2, 3, 4

_DEMO_NOTE = (
    "This is the built-in demo model: it knows only a few topics, all about QwenDesk. Use --model FILE for a real one."
)


class AskRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What `ask` was asked for, checked."""

    load: LoadOptions
    prompts: tuple[str, ...]
    images: tuple[Path, ...] = ()
    system: str = ""
    thinking: bool = True
    overrides: Mapping[str, str] = {}
    """Options of the answers that win over the presets."""
    as_json: bool = False


def add_ask_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("prompts", metavar="PROMPT", nargs="+", help="each one is a turn of the same conversation")
    add("--model", metavar="F", type=Path, help="the GGUF file to ask (default: the built-in demo)")
    add("--mmproj", metavar="F", help="its picture file (default: the one beside it that fits; empty: none)")
    add("--image", metavar="F", type=Path, action="append", default=[], help="a picture for the first turn; repeatable")
    add("--system", metavar="T", default="", help="the system prompt")
    add("--think", action=argparse.BooleanOptionalAction, default=True, help="reason before answering, if it can")
    add("--think-budget", metavar="N", type=int, help="tokens of thought before it must answer")
    add("--set", metavar="KEY=VALUE", dest="assignments", action="append", default=[], help="any option; repeatable")
    add("--seed", metavar="N", type=int, help="the same seed gives the same answer")
    add("--max-tokens", metavar="N", type=int, help="longest thought and answer together")
    add("--json", action="store_true", help="print one JSON object instead of streaming")


def request_of(options: argparse.Namespace) -> AskRequest:
    """The request that the parsed arguments stand for. Raises QwenDeskError for what cannot be meant."""
    named = {"thinking_budget": options.think_budget, "seed": options.seed, "max_tokens": options.max_tokens}
    overrides = {key: str(value) for key, value in named.items() if value is not None}
    for_load: dict[str, str] = {}
    for assignment in options.assignments:
        key, equals, value = assignment.partition("=")
        if not equals:
            raise BadOption("Bad option", f'--set takes KEY=VALUE, not "{assignment}".')
        (for_load if _belongs_to_load(key.strip()) else overrides)[key.strip()] = value
    checked(ChatSettings(overrides=overrides))
    missing = [str(path) for path in options.image if not path.is_file()]
    if missing:
        raise QwenDeskError("No such picture", f"There is no file {missing[0]}.")
    if not all(prompt.strip() for prompt in options.prompts[0 if not options.image else 1 :]):
        raise QwenDeskError("Nothing to ask", "A PROMPT is empty.")
    return AskRequest(
        load=load_options_of(_files(options), for_load),
        prompts=tuple(options.prompts),
        images=tuple(options.image),
        system=options.system,
        thinking=options.think,
        overrides=overrides,
        as_json=options.json,
    )


def _belongs_to_load(key: str) -> bool:
    if key in table(LoadOptions):
        return True
    if key in table(GenerationOptions):
        return False
    known = ", ".join((*table(LoadOptions), *table(GenerationOptions)))
    raise BadOption("Unknown option", f'There is no option "{key}". Known options: {known}.')


def _files(options: argparse.Namespace) -> LoadOptions:
    model = options.model.absolute() if options.model else demo_model()
    if options.mmproj is not None:
        mmproj = Path(options.mmproj).absolute() if options.mmproj else None
    else:
        mmproj = mmproj_beside(model) if options.model else demo_mmproj()
    return LoadOptions(model=str(model), mmproj=str(mmproj or ""))


async def ask(
    request: AskRequest, terminal: Terminal, interrupts: Interrupts, client: EngineClient | None = None
) -> int:
    """Loads, asks every prompt, prints; returns the exit status."""
    client = client or await client_here()
    engine = EngineService(client)
    chat = ChatService(client, engine)
    talk = _Talk(request, terminal, engine, chat)
    interrupts.on_request(talk.stop)
    try:
        return await talk.run()
    finally:
        await engine.close()


class _Talk:
    """One run of `ask`."""

    def __init__(self, request: AskRequest, terminal: Terminal, engine: EngineService, chat: ChatService) -> None:
        self._request = request
        self._terminal = terminal
        self._engine = engine
        self._chat = chat
        self._died = self._stopped = False
        self._stopping: list[asyncio.Future[None]] = []
        self._last_kind = ""

    async def run(self) -> int:
        request = self._request
        if request.load.model == str(demo_model()):
            self._terminal.note(_DEMO_NOTE)
        loaded = await self._engine.load(request.load)
        if isinstance(loaded, LoadFailure):
            return self._cannot_load(loaded)
        self._engine.subscribe(self._on_state)
        self._chat.set_thinking(request.thinking)
        self._chat.set_overrides(request.overrides)
        self._chat.set_system_prompt(request.system)
        if not request.as_json:
            self._chat.subscribe(self._show)
        turns = await self._ask_all()
        if request.as_json:
            self._terminal.write_json(result_of(request, loaded, turns))
        if self._died:
            return EXIT_ENGINE_DIED
        return EXIT_BAD_USAGE if any(turn.answer.error for turn in turns) else EXIT_ANSWERED

    def stop(self) -> None:
        """The answer that is being made ends, and no other one begins."""
        self._stopped = True
        self._stopping = [asyncio.ensure_future(end) for end in (self._chat.stop(), self._engine.cancel_load())]

    async def _ask_all(self) -> list[Turn]:
        turns: list[Turn] = []
        for number, prompt in enumerate(self._request.prompts):
            if self._stopped:
                break
            if not self._request.as_json and len(self._request.prompts) > 1:
                self._terminal.write(f"> {prompt}\n\n", dimmed=True)
            self._last_kind = ""
            turn = await self._chat.send(prompt, self._request.images if number == 0 else ())
            turns.append(turn)
            if self._last_kind:
                self._terminal.write("\n\n" if number + 1 < len(self._request.prompts) else "\n")
            if turn.answer.error:
                self._terminal.note(turn.answer.error)
                break
        return turns

    def _show(self, news: ChatNews) -> None:
        if not isinstance(news, Wrote):
            return
        if self._last_kind == "reasoning" and news.kind == "answer":
            self._terminal.write("\n\n")
        self._last_kind = news.kind
        self._terminal.write(news.text, dimmed=news.kind == "reasoning")
        if self._terminal.is_closed and not self._stopped:
            self.stop()

    def _cannot_load(self, failure: LoadFailure) -> int:
        self._terminal.note(f"{failure.title}. {failure.sentence}")
        if self._request.as_json:
            error = msgspec.to_builtins(failure)
            self._terminal.write_json({"model": self._request.load.model, "load": None, "turns": [], "error": error})
        else:
            for line in failure.engine_lines[-10:]:
                self._terminal.note(f"  {line}")
        return EXIT_CANNOT_LOAD

    def _on_state(self, state: EngineState) -> None:
        self._died = self._died or state.death is not None


def result_of(request: AskRequest, loaded: LoadReport, turns: list[Turn]) -> dict[str, Any]:
    """The object that --json prints."""
    return {
        "model": request.load.model,
        "load": msgspec.to_builtins(loaded),
        "turns": [_turn_result(turn) for turn in turns],
    }


def _turn_result(turn: Turn) -> dict[str, Any]:
    answer, stats = turn.answer, turn.answer.stats
    result = {
        "prompt": turn.question.text,
        "reasoning": answer.reasoning,
        "answer": answer.text,
        "stop_reason": answer.stop_reason,
        "prompt_tokens": stats.prompt_tokens,
        "reused_tokens": stats.reused_tokens,
        "reread_tokens": stats.reread_tokens,
        "image_tokens": stats.image_tokens,
        "reasoning_tokens": stats.reasoning_tokens,
        "answer_tokens": stats.answer_tokens,
        "ttft_s": stats.ttft_s,
        "prefill_s": stats.prefill_s,
        "decode_tok_s": stats.decode_tok_s,
        "cache_note": stats.cache_note,
    }
    return result | ({"error": answer.error} if answer.error else {})
