"""`qwendesk ask`: asks a model one or more questions and prints its answers as text or JSON."""

import argparse
import asyncio
import difflib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from qwendesk.chat.chat_settings import check_settings
from qwendesk.chat.chat_state import CallsChanged, ChatEvent, TextAdded
from qwendesk.chat.service import ChatService
from qwendesk.cli.ask_tools import AskTools, CommandLineTools, read_tools, typed_answer
from qwendesk.cli.terminal import Interrupts, Terminal, check_text
from qwendesk.core.chats import ChatSettings
from qwendesk.core.conversation import Turn
from qwendesk.core.errors import BadOption, QwenDeskError
from qwendesk.core.failures import LoadFailure
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.messages import CallRecord, ImagePart
from qwendesk.core.option_rules import parse_load_options
from qwendesk.core.options import LoadOptions
from qwendesk.core.paths import demo_mmproj, demo_model
from qwendesk.core.served_model import ServedModel, is_served, served_model
from qwendesk.core.settings import table
from qwendesk.core.translation import mark, tr
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.protocol import LoadReport
from qwendesk.engine.state import EngineState
from qwendesk.engines.engine_choice import preferred_client
from qwendesk.engines.engine_service import EngineService
from qwendesk.hub.access_tokens import load_token
from qwendesk.hub.companion_pairing import find_draft_head, find_mmproj
from qwendesk.hub.gguf import first_shard
from qwendesk.remote.addresses import address_warning, read_address
from qwendesk.remote.service import RemoteService
from qwendesk.settings.service import SettingsService

EXIT_ANSWERED, EXIT_NO_ANSWER, EXIT_CANNOT_LOAD, EXIT_ENGINE_CRASHED = 0, 2, 3, 4

KEY_VARIABLE = "QWENDESK_ENGINE_KEY"
# From this similarity on, one word is taken for a misspelt option; "temprature" has 0.95.
_CLOSE = 0.8
_DEMO_NOTE = mark(
    "This is the built-in demo model. It knows only a few topics about QwenDesk. Use --model FILE for a real model."
)


class AskRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The checked arguments of `ask`."""

    load: LoadOptions
    prompts: tuple[str, ...]
    images: tuple[Path, ...] = ()
    videos: tuple[Path, ...] = ()
    system: str = ""
    thinking: bool = True
    overrides: Mapping[str, str] = {}
    """Generation options that override the presets, by name."""
    as_json: bool = False
    tools: AskTools = AskTools()


def add_ask_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("prompts", metavar="PROMPT", nargs="+", help="a message; each further one continues the same chat")
    add(
        "--model", metavar="F", help="the GGUF file to load (default: the built-in demo model), or with --engine a name"
    )
    add(
        "--engine",
        metavar="URL",
        help="ask a model on this server instead: llama-server, Ollama, LM Studio, vLLM and others. Its key is the "
        f"saved one, or that in the variable {KEY_VARIABLE}",
    )
    add("--mmproj", metavar="F", help="its vision file (default: a matching one in its folder; empty: none)")
    add(
        "--image",
        metavar="F",
        type=Path,
        action="append",
        default=[],
        help="a picture for the first message; repeatable",
    )
    add(
        "--video",
        metavar="F",
        type=Path,
        action="append",
        default=[],
        help="a clip for the first message, whose frames the model gets; repeatable",
    )
    add("--system", metavar="T", default="", help="the system prompt")
    add("--think", action=argparse.BooleanOptionalAction, default=True, help="think before answering, if the model can")
    add("--think-budget", metavar="N", type=int, help="the most tokens to think before answering")
    add(
        "--set",
        metavar="KEY=VALUE",
        dest="assignments",
        action="append",
        default=[],
        help="set any option; write --set before each one",
    )
    add("--seed", metavar="N", type=int, help="the same seed gives the same answer")
    add("--max-tokens", metavar="N", type=int, help="the most tokens of thinking and answer together")
    add(
        "--tools",
        metavar="LIST",
        default="",
        help="what the model may call, separated by commas, such as clock,files:FOLDER (reads there),mcp:NAME (an MCP "
        "server of the settings); an unknown name lists all",
    )
    add(
        "--yes",
        action="store_true",
        help="run what --tools names without asking, apart from what sends something out",
    )
    add("--json", action="store_true", help="print one JSON object instead of streaming")


def request_of(options: argparse.Namespace) -> AskRequest:
    """Check the parsed arguments. Raises QwenDeskError for invalid ones."""
    named = {"thinking_budget": options.think_budget, "seed": options.seed, "max_tokens": options.max_tokens}
    overrides = {key: str(value) for key, value in named.items() if value is not None}
    for_load: dict[str, str] = {}
    for assignment in options.assignments:
        key, equals, value = assignment.partition("=")
        if not equals:
            raise BadOption(tr("Bad option"), tr('--set takes KEY=VALUE, not "{0}".', assignment))
        (for_load if _belongs_to_load(key.strip()) else overrides)[key.strip()] = value
    check_settings(ChatSettings(overrides=overrides))
    for title, paths in ((tr("Picture not found"), options.image), (tr("Clip not found"), options.video)):
        missing = [str(path) for path in paths if not path.is_file()]
        if missing:
            raise QwenDeskError(title, tr("{0} could not be found. Check the path.", missing[0]))
    shown = (*options.image, *options.video)
    if not all(prompt.strip() for prompt in options.prompts[0 if not shown else 1 :]):
        raise QwenDeskError(tr("Nothing to ask"), tr("A PROMPT is empty."))
    _refuse_assignments(options.prompts)
    files = _load_options(options)
    for path in (files.model, files.mmproj, *(str(path.absolute()) for path in shown)):
        check_text(path, tr("A file's path"))
    return AskRequest(
        load=parse_load_options(files, for_load),
        prompts=tuple(options.prompts),
        images=tuple(options.image),
        videos=tuple(options.video),
        system=options.system,
        thinking=options.think,
        overrides=overrides,
        as_json=options.json,
        tools=read_tools(options.tools, yes=options.yes),
    )


def _refuse_assignments(prompts: Sequence[str]) -> None:
    """Raise BadOption for a prompt that looks like an option without --set: it begins with a key, or nearly so."""
    known = (*table(LoadOptions), *table(GenerationOptions))
    for prompt in prompts:
        key, equals, _ = prompt.partition("=")
        is_close = not any(map(str.isspace, prompt)) and difflib.get_close_matches(key, known, 1, _CLOSE)
        if equals and (key in known or is_close):
            raise BadOption(
                tr("Bad option"),
                tr(
                    '"{0}" looks like an option. Write --set before each option: --set a=b --set c=d. To send it as a '
                    "prompt, start it with a space.",
                    prompt,
                ),
            )


def _belongs_to_load(key: str) -> bool:
    if key in table(LoadOptions):
        return True
    if key in table(GenerationOptions):
        return False
    known = ", ".join((*table(LoadOptions), *table(GenerationOptions)))
    raise BadOption(tr("Unknown option"), tr('There is no option "{0}". Known options: {1}.', key, known))


def _load_options(options: argparse.Namespace) -> LoadOptions:
    if options.engine is not None:
        return LoadOptions(model=ServedModel(read_address(options.engine), options.model or "").text)
    model = first_shard(Path(options.model).absolute()) if options.model else demo_model()
    if options.mmproj is not None:
        mmproj = Path(options.mmproj).absolute() if options.mmproj else None
    else:
        mmproj = find_mmproj(model) if options.model else demo_mmproj()
    head = find_draft_head(model) if options.model else None
    return LoadOptions(model=str(model), mmproj=str(mmproj or ""), draft_model=str(head or ""))


async def ask(
    request: AskRequest, terminal: Terminal, interrupts: Interrupts, client: EngineClient | None = None
) -> int:
    """Load the model, send every prompt, print the answers and return the exit status."""
    client = client or (_server_client() if is_served(request.load.model) else await preferred_client())
    engine = EngineService(client)
    tools = CommandLineTools(request.tools, terminal, typed_answer())
    chat = ChatService(client, engine, tools=tools)
    conversation = _Conversation(request, terminal, engine, chat, tools)
    interrupts.on_request(conversation.stop)
    try:
        return await conversation.run()
    finally:
        await tools.close()
        await engine.close()


def _server_client() -> EngineClient:
    """Return a client for the server of --engine. What the user set for it in the window counts here too."""
    from qwendesk.remote.client import RemoteClient

    servers = RemoteService(SettingsService().state)
    return RemoteClient(servers.find_server, lambda address: os.environ.get(KEY_VARIABLE) or load_token(address))


class _Conversation:
    def __init__(
        self,
        request: AskRequest,
        terminal: Terminal,
        engine: EngineService,
        chat: ChatService,
        tools: CommandLineTools,
    ) -> None:
        self._request = request
        self._terminal = terminal
        self._engine = engine
        self._chat = chat
        self._tools = tools
        self._has_crashed = self._is_stopped = False
        self._stopping: list[asyncio.Future[None]] = []
        self._last_kind = ""
        self._n_calls_shown = 0

    async def run(self) -> int:
        request = self._request
        if request.load.model == str(demo_model()):
            self._terminal.note(tr(_DEMO_NOTE))
        served = served_model(request.load.model)
        if served is not None and (warning := address_warning(served.address)):
            self._terminal.note(warning)
        loaded = await self._engine.load(request.load)
        if isinstance(loaded, LoadFailure):
            return await self._report_failure(loaded)
        self._engine.observed.subscribe(self._on_state)
        self._chat.set_thinking(request.thinking)
        self._chat.set_overrides(request.overrides)
        self._chat.set_system_prompt(request.system)
        self._chat.change_settings(request.tools.applied(self._chat.settings))
        if loaded.template.notice:
            self._terminal.note(loaded.template.notice)
        if request.tools.names and not loaded.template.call_dialect:
            self._terminal.note(tr("This model's chat template has no tool calls, so --tools has no effect."))
        if not request.as_json:
            self._chat.subscribe(self._show)
        await self._tools.prepare()
        turns = await self._ask_all()
        if request.as_json:
            self._terminal.write_json(result_of(request, loaded, turns))
        if self._has_crashed:
            return EXIT_ENGINE_CRASHED
        return EXIT_NO_ANSWER if any(turn.answer.error for turn in turns) else EXIT_ANSWERED

    def stop(self) -> None:
        """Stop the current answer and send no further prompt."""
        self._is_stopped = True
        self._tools.stop()
        self._stopping = [asyncio.ensure_future(end) for end in (self._chat.stop(), self._engine.cancel_load())]

    async def _ask_all(self) -> list[Turn]:
        turns: list[Turn] = []
        pictures: list[Path | ImagePart] = [*self._request.images, *await asyncio.to_thread(self._frames)]
        for number, prompt in enumerate(self._request.prompts):
            if self._is_stopped:
                break
            if not self._request.as_json and len(self._request.prompts) > 1:
                self._terminal.write(f"> {prompt}\n\n", dimmed=True)
            self._last_kind, self._n_calls_shown = "", 0
            turn = await self._chat.send(prompt, pictures if number == 0 else ())
            turns.append(turn)
            if self._last_kind:
                self._terminal.write("\n\n" if number + 1 < len(self._request.prompts) else "\n")
            if turn.answer.error:
                self._terminal.note(turn.answer.error)
                break
            if turn.answer.stop_reason == "repetition":
                self._terminal.note(tr("The answer repeated itself, so QwenDesk stopped it."))
        return turns

    def _frames(self) -> list[ImagePart]:
        """Return the frames of the clips, which together take at most a quarter of the context. Blocks."""
        videos, report = self._request.videos, self._engine.state.report
        if not videos or report is None:
            return []
        from qwendesk.chat.clip_parts import clip_parts
        from qwendesk.core.clip_sampling import CONTEXT_SHARE, plan_frames
        from qwendesk.decoding.clips import clip_facts
        from qwendesk.decoding.ffmpeg import find_ffmpeg

        ffmpeg, budget = find_ffmpeg(self._chat.ffmpeg_folder), int(CONTEXT_SHARE * report.n_ctx) // len(videos)
        parts: list[ImagePart] = []
        for video in videos:
            facts = clip_facts(video, ffmpeg)
            plan = plan_frames(facts.part(), budget, in_pairs=report.pairs_frames)
            parts += clip_parts(video, facts.duration_s, plan, ffmpeg, None, lambda: self._is_stopped)
        return parts

    def _show(self, event: ChatEvent) -> None:
        if isinstance(event, CallsChanged):
            self._show_calls()
        if not isinstance(event, TextAdded):
            return
        if self._last_kind == "reasoning" and event.kind == "answer":
            self._terminal.write("\n\n")
        self._last_kind = event.kind
        self._terminal.write(event.text, dimmed=event.kind == "reasoning")
        if self._terminal.is_closed and not self._is_stopped:
            self.stop()

    def _show_calls(self) -> None:
        """Print the calls that are done since the last time."""
        steps = self._chat.conversation.turns[-1].answer.steps
        done = [record for step in steps for record in step.calls if record.is_done]
        for record in done[self._n_calls_shown :]:
            outcome = record.error or record.result
            line = f"[{record.call.name} {record.call.arguments_json}: {shortened(outcome)}]"
            self._terminal.write(f"{'' if not self._last_kind else chr(10)}{line}\n", dimmed=True)
            self._last_kind = "call"
        self._n_calls_shown = len(done)

    async def _report_failure(self, failure: LoadFailure) -> int:
        self._terminal.note(f"{failure.title}. {failure.sentence}")
        retry = await self._engine.wait_for_retry()
        if retry is not None:
            self._terminal.note(tr("You can also try --set {0} ({1}). {2}", retry.assignment, retry.label, retry.cost))
        if self._request.as_json:
            error = msgspec.to_builtins(failure)
            self._terminal.write_json({"model": self._request.load.model, "load": None, "turns": [], "error": error})
        else:
            for line in failure.engine_lines[-10:]:
                self._terminal.note(f"  {line}")
        return EXIT_CANNOT_LOAD

    def _on_state(self, state: EngineState) -> None:
        self._has_crashed = self._has_crashed or state.engine_exit is not None


def result_of(request: AskRequest, loaded: LoadReport, turns: list[Turn]) -> dict[str, Any]:
    """Return the object that --json prints."""
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
        "reused_tokens": stats.reused_tokens if stats.is_reuse_known else None,
        "reread_tokens": stats.reread_tokens if stats.is_reuse_known else None,
        "image_tokens": stats.image_tokens,
        "reasoning_tokens": stats.reasoning_tokens,
        "answer_tokens": stats.answer_tokens,
        "reasoning_looped": stats.reasoning_looped,
        "drafted_tokens": stats.drafted_tokens,
        "accepted_tokens": stats.accepted_tokens,
        "n_threads": stats.n_threads,
        "most_threads": stats.most_threads,
        "ttft_s": stats.ttft_s,
        "prefill_s": stats.prefill_s,
        "decode_tok_s": stats.decode_tok_s,
        "cache_note": stats.cache_note,
        "tool_calls": [_call_result(record) for step in answer.steps for record in step.calls],
    }
    return result | ({"error": answer.error} if answer.error else {})


def _call_result(record: CallRecord) -> dict[str, Any]:
    try:
        arguments = decode_json(record.call.arguments_json)
    except msgspec.DecodeError:  # damaged, or with a number that JSON has not, such as NaN
        arguments = record.call.arguments_json
    return {"name": record.call.name, "arguments": arguments, "result": record.result, "error": record.error}


def shortened(text: str, most: int = 200) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}…"
