"""Generation with more and more experts in RAM, against the estimate and against llama-bench on the same file."""

import json
import os
import statistics
from functools import partial
from pathlib import Path

import msgspec
import psutil

from bench.gpu_check.models import CheckFailed, Models, long_question, run_program, running_engine
from bench.gpu_check.steps import Found, Part, Step
from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.hardware.speed_estimate import speed_at
from qwendesk.hub.gguf import read_facts

_CASES = ((20, 2_048, 75.0), (10, 2_048, 60.0), (0, 2_048, 45.0), (40, 2_048, 90.0), (0, 32_768, 75.0))
"""Layers with experts in RAM, tokens in memory, and the step's limit in seconds."""
_N_TOKENS = 128
_ANSWERS = 3


class _Speed(msgspec.Struct, frozen=True):
    """Tokens per second, and with which options."""

    options: DecidedOptions
    estimate: tuple[float, float]
    decode: float
    prompt: float


async def _speeds(layers: int, depth: int, models: Models) -> Found:
    model = models.random()
    ours = await _ours(model, layers, depth)
    theirs = await _llama_bench(models.llama_bench, model, ours.options, layers, depth)
    low, high = ours.estimate
    others = (f"{theirs:.1f}", f"{ours.decode / theirs:.3f}") if theirs else ("-", "-")
    row = (str(layers), str(depth), f"{low:.0f}-{high:.0f}", f"{ours.decode:.1f}", *others, f"{ours.prompt:.0f}")
    return Found((row,))


async def _ours(model: Path, layers: int, depth: int) -> _Speed:
    async with running_engine() as engine:
        threads = psutil.cpu_count(logical=False) or 1
        wanted = LoadOptions(model=str(model), n_ctx=40_960, n_cpu_moe=layers, n_threads=threads, n_gpu_layers="all")
        plan = await engine.plan(wanted)
        machine = await engine.machine()
        await engine.load(plan.options)
        await engine.answer([long_question(64)], 16)  # the first use of each kernel takes longer
        # Another first word each time, so that the prompt cache has nothing of it.
        answers = [await engine.answer([long_question(depth, str(number))], _N_TOKENS) for number in range(_ANSWERS)]
    return _Speed(
        plan.options,
        speed_at(read_facts(model), plan.options, plan.memory, machine, depth),
        statistics.median(stats.decode_tok_s for _, stats in answers),
        statistics.median(stats.reread_tokens / stats.prefill_s for _, stats in answers),
    )


async def _llama_bench(
    program: Path | None, model: Path, options: DecidedOptions, layers: int, depth: int
) -> float | None:
    """Return llama-bench's tokens per second of generation at that depth, with the batches of `options`."""
    if program is None:
        return None
    command = [str(program), "-m", str(model), "-ngl", "99", "-ncmoe", str(layers), "-t", str(options.n_threads)]
    command += ["-b", str(options.n_batch), "-ub", str(options.n_ubatch), "-fa", "on", "-r", "2", "-p", "0"]
    done = await run_program([*command, "-n", str(_N_TOKENS), "-d", str(depth), "-o", "json"], os.environ)
    if done.code:
        raise CheckFailed(f"llama-bench failed: {done.errors[-400:]}")
    (row,) = json.loads(done.output)
    return float(row["avg_ts"])


SPEEDS = Part(
    "speeds",
    ("layers with experts in RAM", "after", "estimate, tok/s", "worker", "llama-bench", "ratio", "worker's prompt"),
    tuple(
        Step(f"experts of {layers} layers in RAM, after {depth} tokens", limit_s, partial(_speeds, layers, depth))
        for layers, depth, limit_s in _CASES
    ),
)
