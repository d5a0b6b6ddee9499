"""`qwendesk why`: has a model answer, and says where the time of a token went and what to change."""

import argparse
import asyncio
from contextlib import AsyncExitStack
from typing import Any

import msgspec

from qwendesk.cli.bench import EXIT_CANNOT_LOAD, EXIT_ENGINE_FAILED, add_model_options, planner_of_this_pc, start_of
from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.core.errors import BadOption
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import Message, text_message
from qwendesk.core.stats import AnswerStats
from qwendesk.core.translation import tr
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.protocol import Devices, Finished, Generate, LoadReport, RequestFailed
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.load_decision import machine_now
from qwendesk.meters.why import FEWEST_TOKENS, Why, explain
from qwendesk.meters.why_service import circumstances, measure
from qwendesk.meters.why_text import why_rows, why_sentence

EXIT_EXPLAINED = 0
_QUESTION = "Explain in a few paragraphs how a bicycle stays upright while it is ridden."
_TOKENS = 128


def add_why_options(parser: argparse.ArgumentParser) -> None:
    add_model_options(parser)
    add = parser.add_argument
    add("--question", metavar="TEXT", default=_QUESTION, help="what to ask (default: something about bicycles)")
    add("-n", "--n-gen", metavar="N", type=int, default=_TOKENS, help=f"tokens of the answer (default: {_TOKENS})")
    add("--json", action="store_true", help="print one JSON object instead")


async def why(options: argparse.Namespace, terminal: Terminal, interrupts: Interrupts) -> int:
    """Explain one answer, print that and return the exit status. Raises QwenDeskError for bad options."""
    load = start_of(options)
    if options.n_gen <= FEWEST_TOKENS:
        raise BadOption(tr("Bad option"), tr("-n takes a number from {0}.", FEWEST_TOKENS + 1))
    task = asyncio.current_task()
    if task is not None:
        interrupts.on_request(task.cancel)
    make_client, planner = await planner_of_this_pc()
    client = make_client()
    async with AsyncExitStack() as closing:
        engine = EngineService(client, decide=planner.decide, check=planner.check)
        closing.push_async_callback(engine.close)
        report = await engine.load(load)
        if isinstance(report, LoadFailure):
            terminal.note(f"{report.title}. {report.sentence}")
            return EXIT_CANNOT_LOAD
        question = text_message("user", options.question)
        found = await explained(engine, client, report, (question,), options.n_gen)
    if isinstance(found, str):
        terminal.note(found)
        return EXIT_ENGINE_FAILED
    if options.json:
        terminal.write_json(as_json(found))
    else:
        terminal.write(_table(found))
    return EXIT_EXPLAINED


async def explained(
    engine: EngineService, client: EngineClient, report: LoadReport, messages: tuple[Message, ...], n_tokens: int
) -> Why | str:
    """Ask the loaded model and return why its answer was as fast as it was, or a sentence why that isn't known."""
    stats = await answer(client, report, messages, n_tokens)
    if isinstance(stats, str):
        return stats
    state = engine.state
    files = await asyncio.to_thread(engine.read_files, report.options)
    if isinstance(files, LoadFailure):
        return f"{files.title}. {files.sentence}"
    machine = machine_now(Devices(id=0, devices=state.devices, cpu_features=()))
    found = await asyncio.to_thread(circumstances, stats, state, report, files[0], machine)
    measured = await measure(client, found)
    if isinstance(measured, str):
        return measured
    return explain(measured) or tr("The answer was too short to say anything about its speed.")


async def answer(
    client: EngineClient, report: LoadReport, messages: tuple[Message, ...], n_tokens: int
) -> AnswerStats | str:
    """Return the statistics of an answer that doesn't end before `n_tokens`, with the usual sampling."""
    ends = tuple(f"{token}=-inf" for token in report.end_tokens)
    options = GenerationOptions(enable_thinking=False, max_tokens=n_tokens, logit_bias=ends, break_loops=False)
    async for item in client.generate(Generate(messages=messages, options=options)):
        match item:
            case Finished():
                return item.stats
            case RequestFailed() | EngineExit():
                return item.sentence
    return tr("The answer didn't end.")


def as_json(why: Why) -> dict[str, Any]:
    """Return the explanation as JSON values; times are in milliseconds."""
    time, found, stream = why.time, why.circumstances, why.circumstances.stream
    n_tokens = found.stats.reasoning_tokens + found.stats.answer_tokens
    parts = {
        "weights_on_gpu": time.gpu_s,
        "weights_in_ram": time.ram_s,
        "kv_cache_in_ram": time.cache_s,
        "waits": time.waits_s,
        "sampling": time.sampling_s,
        "own_work": time.own_s,
    }
    return {
        "model": found.options.model,
        "tokens": n_tokens,
        "tok_s": round(1 / time.total_s, 2),
        "token_ms": _ms(time.total_s),
        "limit_ms": _ms(time.limit_s),
        "parts_ms": {name: _ms(seconds) for name, seconds in parts.items()},
        "ram_gb_s": round(stream.ram_bytes_s / 1e9, 2) if stream is not None else None,
        "weights_in_ram_bytes": found.reads.ram_bytes,
        "weights_on_gpu_bytes": found.reads.gpu_bytes,
        "causes": [{"cause": each.cause, "lost_ms": _ms(each.lost_s / max(n_tokens, 1))} for each in why.findings],
        "sentence": why_sentence(why),
        "timing": msgspec.to_builtins(found.stats.timing),
    }


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 3)


def _table(why: Why) -> str:
    rows = why_rows(why)
    width, digits = max(len(row.name) for row in rows), max(len(row.ms) for row in rows)
    lines = [f"{row.name:<{width}}  {row.ms:>{digits}} ms  {row.note}".rstrip() for row in rows]
    return "\n".join((*lines, "", why_sentence(why), ""))
