"""Generation with more and more experts in RAM, against the estimate and against llama-bench on the same file."""

import json
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec
import psutil

from bench.gpu_check.models import CheckFailed, Models, long_question, running_engine
from qwendesk.core.options import LoadOptions
from qwendesk.hardware.speed_estimate import speed_at
from qwendesk.hub.gguf import read_facts

_EXPERTS_IN_RAM = (0, 10, 20, 30, 40)
_DEPTHS = (2_048, 32_768)
_WITH_LONG_CHATS = (0,)
_N_TOKENS = 128
_ROUNDS = 3


async def check_speeds(models: Models) -> int:
    """Print the table. Returns 0."""
    model = models.random()
    threads = psutil.cpu_count(logical=False) or 1
    print("| experts in RAM | depth | estimate, tok/s | worker | llama-bench | ratio | prompt: worker | llama-bench |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|", flush=True)
    for layers in _EXPERTS_IN_RAM:
        depths = _DEPTHS if layers in _WITH_LONG_CHATS else _DEPTHS[:1]
        ours = await _ours(model, layers, threads, depths)
        theirs = _llama_bench(models.llama_bench, model, layers, threads, depths)
        for depth in depths:
            mine, peer = ours[depth], theirs.get(depth)
            low, high = mine.estimate
            others = (f"{peer[1]:.1f}", f"{mine.decode / peer[1]:.3f}", f"{peer[0]:.0f}") if peer else ("-", "-", "-")
            print(
                f"| {layers} | {depth} | {low:.0f}-{high:.0f} | {mine.decode:.1f} | {others[0]} | {others[1]} | "
                f"{mine.prompt:.0f} | {others[2]} |",
                flush=True,
            )
    return 0


class _Speed(msgspec.Struct, frozen=True):
    """Tokens per second."""

    estimate: tuple[float, float]
    decode: float
    prompt: float


async def _ours(model: Path, layers: int, threads: int, depths: Sequence[int]) -> dict[int, _Speed]:
    found = {}
    async with running_engine() as engine:
        wanted = LoadOptions(model=str(model), n_ctx=40_960, n_cpu_moe=layers, n_threads=threads, n_gpu_layers="all")
        plan = await engine.plan(wanted)
        machine = await engine.machine()
        await engine.load(plan.options)
        await engine.answer([long_question(64)], 16)  # the first use of each kernel takes longer
        for depth in depths:
            estimate = speed_at(read_facts(model), plan.options, plan.memory, machine, depth)
            # Another first word each time, so that the prompt cache has nothing of it.
            answers = [await engine.answer([long_question(depth, str(number))], _N_TOKENS) for number in range(_ROUNDS)]
            found[depth] = _Speed(
                estimate,
                statistics.median(stats.decode_tok_s for _, stats in answers),
                statistics.median(stats.reread_tokens / stats.prefill_s for _, stats in answers),
            )
    return found


def _llama_bench(
    program: Path | None, model: Path, layers: int, threads: int, depths: Sequence[int]
) -> dict[int, tuple[float, float]]:
    """Return for each depth llama-bench's tokens per second of a prompt after it and of generation after it."""
    if program is None:
        return {}
    command = [str(program), "-m", str(model), "-ngl", "99", "-ncmoe", str(layers), "-t", str(threads), "-fa", "on"]
    command += ["-r", str(_ROUNDS), "-p", str(_DEPTHS[0]), "-n", str(_N_TOKENS), "-d", ",".join(map(str, depths))]
    done = subprocess.run([*command, "-o", "json"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CheckFailed(f"llama-bench failed: {done.stderr[-400:]}")
    rows = json.loads(done.stdout)
    speeds = {(row["n_depth"], bool(row["n_gen"])): float(row["avg_ts"]) for row in rows}
    return {depth: (speeds[depth, False], speeds[depth, True]) for depth in depths}
