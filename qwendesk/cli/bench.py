"""`qwendesk bench`: measures the speed of a model in the words and with the options of llama-bench."""

import argparse
import asyncio
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, get_args

import msgspec

from qwendesk.bench.bench_engine import BenchEngine, BenchFailure
from qwendesk.bench.output import (
    Output,
    OutputFormat,
    score_cells,
    score_fields,
    speed_cells,
    speed_fields,
)
from qwendesk.bench.quality_service import SCORING_BYTES, measure_quality
from qwendesk.bench.records import estimate_bytes, make_record
from qwendesk.bench.share import measured_hash, row_text
from qwendesk.bench.speeds import SpeedMeasurement, SpeedPlan, SpeedProgress
from qwendesk.bench.table import BenchRow
from qwendesk.cli.terminal import Interrupts, Terminal, check_text
from qwendesk.core.benchmarks import TextTest
from qwendesk.core.errors import BadOption
from qwendesk.core.failures import LoadFailure
from qwendesk.core.option_rules import parse_load_options
from qwendesk.core.options import LoadOptions
from qwendesk.core.paths import demo_mmproj, demo_model
from qwendesk.core.translation import tr
from qwendesk.engine.contract import BenchClient
from qwendesk.engines.load_decision import Decide
from qwendesk.hub.catalog_updates import CatalogStore
from qwendesk.hub.companion_pairing import find_mmproj
from qwendesk.hub.gguf import first_shard
from qwendesk.hub.header_cache import HeaderCache
from qwendesk.models.file_checker import FileChecker

if TYPE_CHECKING:
    from qwendesk.engines.load_planner import LoadPlanner

EXIT_MEASURED, EXIT_CANNOT_LOAD, EXIT_ENGINE_FAILED = 0, 3, 4
_PROMPT, _GEN, _REPEATS, _CHUNK = 512, 128, 5, 512
_ROUND_CONTEXT, _SHORTEST_CHUNK = 256, 16

# llama-bench's options that take lists: by load option, what stands for a value, the flags, and the help.
_SWEPT: Mapping[str, tuple[str, tuple[str, ...], str]] = MappingProxyType(
    {
        "n_batch": ("N", ("-b", "--batch-size"), "batch size"),
        "n_ubatch": ("N", ("-ub", "--ubatch-size"), "evaluation batch size"),
        "type_k": ("T", ("-ctk", "--cache-type-k"), "type of the K cache"),
        "type_v": ("T", ("-ctv", "--cache-type-v"), "type of the V cache"),
        "n_threads": ("N", ("-t", "--threads"), "CPU threads"),
        "n_gpu_layers": ("N", ("-ngl", "--n-gpu-layers"), "layers on the GPU"),
        "n_cpu_moe": ("N", ("-ncmoe", "--n-cpu-moe"), "layers whose experts stay in RAM"),
        "split_mode": ("M", ("-sm", "--split-mode"), "layer, row, tensor or none"),
        "main_gpu": ("N", ("-mg", "--main-gpu"), "GPU of a model that isn't split"),
        "tensor_split": ("A/B", ("-ts", "--tensor-split"), "share of each GPU"),
        "devices": ("D1/D2", ("-dev", "--device"), "devices to use"),
        "override_tensor": ("P=D", ("-ot", "--override-tensor"), "tensor placement, several with ;"),
        "flash_attn": ("on|off|auto", ("-fa", "--flash-attn"), "flash attention; 1 and 0 are on and off"),
        "offload_kqv": ("0|1", ("-nkvo", "--no-kv-offload"), "1 keeps the KV cache in RAM"),
    }
)


class BenchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The checked arguments of `bench`."""

    loads: tuple[LoadOptions, ...]
    """One for each combination of the options that take lists."""
    swept: tuple[str, ...]
    """The options that were given on the command line."""
    plan: SpeedPlan
    text: TextTest | None
    """A text to score; None to measure speeds."""
    output: OutputFormat
    shows_progress: bool


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a measured model, which `start_of` reads."""
    add = parser.add_argument
    add("model", metavar="MODEL", nargs="?", type=Path, help="a GGUF file (default: the built-in demo model)")
    add("-m", "--model", dest="model_option", metavar="MODEL", type=Path, help="the same, as in llama-bench")
    add("--mmproj", metavar="F", help="its vision file (default: a matching one in its folder; empty: none)")
    add("--set", metavar="KEY=VALUE", dest="assignments", action="append", default=[], help="set any load option")


def add_bench_options(parser: argparse.ArgumentParser) -> None:
    add_model_options(parser)
    add = parser.add_argument
    numbers, list_of = "N,...", " (comma-separated list)"
    add("-p", "--n-prompt", metavar=numbers, help=f"prompt lengths to process{list_of} (default: {_PROMPT})")
    add("-n", "--n-gen", metavar=numbers, help=f"tokens to generate{list_of} (default: {_GEN})")
    add("-pg", metavar="PP,TG", action="append", default=[], help="a prompt with an answer; repeatable")
    add(
        "-d",
        "--n-depth",
        metavar=numbers,
        help=f"tokens in memory before{list_of} (default: 0, 2K, ... as far as they fit)",
    )
    add("-r", "--repetitions", metavar="N", type=int, default=_REPEATS, help=f"repetitions (default: {_REPEATS})")
    for key, (metavar, flags, text) in _SWEPT.items():
        add(*flags, dest=key, metavar=f"{metavar},...", help=f"{text}{list_of}")
    add(
        "--drafts", action=argparse.BooleanOptionalAction, default=None,
        help="measure answers to texts without drafts and with (default: unless -p, -n, -pg or -d is given)",
    )  # fmt: skip
    add(
        "--turns", action=argparse.BooleanOptionalAction, default=None,
        help="measure second questions about a text and a picture (default: as for --drafts)",
    )  # fmt: skip
    add("--perplexity", metavar="FILE", type=Path, help="score this text instead, as llama-perplexity does")
    add("-c", "--ctx-size", metavar="N", type=int, default=_CHUNK, help=f"tokens in a chunk of it (default: {_CHUNK})")
    add("--chunks", metavar="N", type=int, default=0, help="the most chunks to score (default: all)")
    base = parser.add_mutually_exclusive_group()
    base.add_argument(
        "--save-kld-base", metavar="BASE", type=Path, help="save the distributions, to compare others with them"
    )
    base.add_argument("--kld-base", metavar="BASE", type=Path, help="compare the distributions with saved ones (KLD)")
    add(
        "-o", "--output", choices=get_args(OutputFormat), default="md",
        help="output format (default: md, the table of llama-bench; row: one line to share)",
    )  # fmt: skip
    add("--progress", action="store_true", help="say which test runs")
    add("--tune", action="store_true", help="find faster load options instead, in three minutes at most")
    add("--tune-cache", action="store_true", help="with --tune: also try a smaller KV cache, which changes answers")
    add("--save-profile", action="store_true", help="with --tune: load the model with what was found from now on")


def request_of(options: argparse.Namespace) -> BenchRequest:
    """Check the parsed arguments. Raises QwenDeskError for invalid ones."""
    given = {key: _values(key, text) for key in _SWEPT if (text := getattr(options, key)) is not None}
    plan = _plan(options)
    start = _with_context(start_of(options), options, plan)
    loads = tuple(parse_load_options(start, dict(zip(given, chosen, strict=True))) for chosen in _products(given))
    return BenchRequest(
        loads=loads, swept=tuple(given), plan=plan, text=_text(options), output=options.output,
        shows_progress=options.progress,
    )  # fmt: skip


async def bench(options: argparse.Namespace, terminal: Terminal, interrupts: Interrupts) -> int:
    """Measure, print each row when it is known, and return the exit status. Raises QwenDeskError for bad options."""
    if options.tune:
        from qwendesk.cli.tune import tune

        return await tune(options, start_of(options), terminal, interrupts)
    request = request_of(options)
    task = asyncio.current_task()
    if task is not None:
        interrupts.on_request(task.cancel)
    make_client, decide = await engine_of_this_pc(SCORING_BYTES if request.text is not None else 0)
    output = Output(request.output, terminal.write)
    status = EXIT_MEASURED
    async with BenchEngine(make_client, decide) as engine:
        try:
            for load in request.loads:
                run = _measure if request.text is None else _score
                status = max(status, await run(engine, load, request, output, terminal))
        finally:
            output.end()
    return status


async def engine_of_this_pc(extra_bytes: int) -> tuple[Callable[[], BenchClient], Decide]:
    """Return what makes clients of this PC's preferred engine, and the planner, which leaves `extra_bytes` free too."""
    make_client, planner = await planner_of_this_pc()
    return make_client, partial(planner.check, leave_bytes=extra_bytes)


async def planner_of_this_pc() -> tuple[Callable[[], BenchClient], "LoadPlanner"]:
    """Return what makes clients of this PC's preferred engine, and its planner."""
    from qwendesk.engines.engine_choice import preferred_engine
    from qwendesk.engines.load_planner import LoadPlanner
    from qwendesk.engines.measurements import Measurements
    from qwendesk.settings.service import SettingsService

    engines = await preferred_engine()
    return engines.client, LoadPlanner(SettingsService().state, Measurements(engines=engines), engines.dry_run)


async def _measure(
    engine: BenchEngine, load: LoadOptions, request: BenchRequest, output: Output, terminal: Terminal
) -> int:
    shown = ""
    rows: list[BenchRow] = []

    def add_row(row: BenchRow) -> None:
        rows.append(row)
        assert engine.report is not None, "rows come after the load"
        record = make_record(engine.report, engine.devices, engine.version, (row,))
        output.add(speed_cells(record, row, request.swept), speed_fields(record, row))

    def show(progress: SpeedProgress) -> None:
        nonlocal shown
        if request.shows_progress and progress.test != shown:
            shown = progress.test
            terminal.note(shown)

    measurement = SpeedMeasurement(engine, request.plan, add_row=add_row, add_note=terminal.note, show=show)
    try:
        result = await measurement.run(load)
    finally:
        if rows and request.output == "row" and engine.report is not None:
            planned = await asyncio.to_thread(estimate_bytes, engine.report.options, engine.devices)
            record = make_record(engine.report, engine.devices, engine.version, rows, planned_bytes=planned)
            checker = FileChecker(HeaderCache(), CatalogStore())
            sha256 = await asyncio.to_thread(measured_hash, record, Path(load.model), checker.sha256_of)
            terminal.write(row_text(record, sha256))
    return _failed(result, terminal) if isinstance(result, LoadFailure | BenchFailure) else EXIT_MEASURED


async def _score(
    engine: BenchEngine, load: LoadOptions, request: BenchRequest, output: Output, terminal: Terminal
) -> int:
    assert request.text is not None
    shown = -1

    def show(fraction: float) -> None:
        nonlocal shown
        if request.shows_progress and int(100 * fraction) != shown:
            shown = int(100 * fraction)
            terminal.note(f"{shown}%")

    result = await measure_quality(engine, load, request.text, None, show)
    if isinstance(result, LoadFailure | BenchFailure):
        return _failed(result, terminal)
    record, n_ctx = make_record(result.report, engine.devices, engine.version, ()), request.text.n_ctx
    output.add(score_cells(record, result.score, n_ctx, request.swept), score_fields(record, result.score, n_ctx))
    return EXIT_MEASURED


def _failed(failure: LoadFailure | BenchFailure, terminal: Terminal) -> int:
    terminal.note(f"{failure.title}. {failure.sentence}")
    return EXIT_CANNOT_LOAD if isinstance(failure, LoadFailure) else EXIT_ENGINE_FAILED


def _text(options: argparse.Namespace) -> TextTest | None:
    base, save = options.kld_base, options.save_kld_base
    if options.perplexity is None:
        if base or save:
            raise BadOption(tr("Bad option"), tr("--kld-base and --save-kld-base need --perplexity FILE."))
        return None
    if options.ctx_size < _SHORTEST_CHUNK or options.chunks < 0:
        raise BadOption(tr("Bad option"), tr("-c takes a number from {0}, --chunks one from 0.", _SHORTEST_CHUNK))
    return TextTest(
        path=str(options.perplexity.absolute()), n_ctx=options.ctx_size, most_chunks=options.chunks,
        base=str(base.absolute()) if base else "", save_base=str(save.absolute()) if save else "",
    )  # fmt: skip


def _plan(options: argparse.Namespace) -> SpeedPlan:
    chosen = [options.n_prompt, options.n_gen, options.n_depth]
    is_whole = not options.pg and all(each is None for each in chosen)
    if options.repetitions < 1:
        raise BadOption(tr("Bad option"), tr("-r takes a number from 1."))
    plan = SpeedPlan(
        n_prompts=_numbers("-p", options.n_prompt, (_PROMPT,)),
        n_gens=_numbers("-n", options.n_gen, (_GEN,)),
        pairs=tuple(_pair(text) for text in options.pg),
        repeats=options.repetitions,
        with_drafts=is_whole if options.drafts is None else options.drafts,
        with_follow_ups=is_whole if options.turns is None else options.turns,
    )
    if is_whole:
        return plan
    # What was asked for by hand is measured, however long it takes.
    return msgspec.structs.replace(plan, depths=_numbers("-d", options.n_depth, (0,)), longest_fill_s=float("inf"))


def start_of(options: argparse.Namespace) -> LoadOptions:
    """Return the load options of a command line with `add_model_options`. Raises QwenDeskError for bad ones."""
    chosen: Path | None = options.model or options.model_option
    model = first_shard(chosen.absolute()) if chosen else demo_model()
    if options.mmproj is not None:
        mmproj = Path(options.mmproj).absolute() if options.mmproj else None
    else:
        mmproj = find_mmproj(model) if chosen else demo_mmproj()
    for path in (str(model), str(mmproj or "")):
        check_text(path, tr("A file's path"))
    assignments = {}
    for text in options.assignments:
        key, equals, value = text.partition("=")
        if not equals:
            raise BadOption(tr("Bad option"), tr('--set takes KEY=VALUE, not "{0}".', text))
        assignments[key.strip()] = value
    return parse_load_options(LoadOptions(model=str(model), mmproj=str(mmproj or "")), assignments)


def _with_context(start: LoadOptions, options: argparse.Namespace, plan: SpeedPlan) -> LoadOptions:
    """Return the options with a context for the depths of the command line, unless it is set."""
    if options.n_depth is None or start.n_ctx:
        return start
    n_ctx = plan.context_for(max(plan.depths))
    return msgspec.structs.replace(start, n_ctx=-(-n_ctx // _ROUND_CONTEXT) * _ROUND_CONTEXT)


def _products(given: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, ...]]:
    return itertools.product(*given.values())


def _values(key: str, text: str) -> list[str]:
    """Return the values of a list, as `--set` takes them."""
    values = [each.strip() for each in text.split(",")]
    match key:
        case "tensor_split":
            return [each.replace("/", ",") for each in values]
        case "devices":
            return [each.replace("/", ";") for each in values]
        case "flash_attn":
            return [{"0": "off", "1": "on"}.get(each, each) for each in values]
        case "offload_kqv":
            return [{"0": "on", "1": "off"}.get(each, each) for each in values]
        case _:
            return values


def _numbers(flag: str, text: str | None, default: tuple[int, ...]) -> tuple[int, ...]:
    if text is None:
        return default
    try:
        numbers = tuple(int(each) for each in text.split(","))
    except ValueError:
        numbers = (-1,)
    if min(numbers) < 0:
        raise BadOption(tr("Bad option"), tr('{0} takes numbers with commas between them, not "{1}".', flag, text))
    return numbers


def _pair(text: str) -> tuple[int, int]:
    numbers = _numbers("-pg", text, ())
    if len(numbers) != 2:
        raise BadOption(tr("Bad option"), tr('-pg takes two numbers, such as 512,128, not "{0}".', text))
    return numbers[0], numbers[1]
