"""Loads as on smaller cards: another process holds the card but for 8 to 32 GB."""

from functools import partial

from bench.gpu_check.held_memory import free_memory
from bench.gpu_check.models import Models, long_question, running_engine
from bench.gpu_check.steps import Found, Part, Step
from qwendesk.bench.memory_watch import used_on_cards
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB, MIB

_FREE_GIB = (8, 12, 24, 16, 32)
_N_TOKENS = 96


async def _load(free_gib: int, models: Models) -> Found:
    """A plan that should fit and doesn't load is a failure."""
    with free_memory(free_gib * GIB):
        async with running_engine() as engine:
            before = sum(used_on_cards())
            plan = await engine.plan(LoadOptions(model=str(models.random())))
            await engine.load(plan.options)
            _, stats = await engine.answer([long_question(1_000)], _N_TOKENS)
            used = sum(used_on_cards()) - before
    speed = plan.speed.start if plan.speed is not None else (0.0, 0.0)
    planned = sum(gpu.total_bytes for gpu in plan.memory.gpus)
    options = plan.options
    row = (
        str(free_gib),
        plan.kind,
        str(options.n_ctx),
        options.type_k,
        str(plan.memory.cpu_expert_layers),
        f"{planned / GIB:.2f}",
        f"{used / GIB:.2f}",
        f"{(free_gib * GIB - used) / MIB:.0f}",
        f"{speed[0]:.0f}-{speed[1]:.0f}",
        f"{stats.decode_tok_s:.1f}",
    )
    return Found((row,))


SIZES = Part(
    "sizes",
    (
        "free GiB",
        "plan",
        "context",
        "cache",
        "layers with experts in RAM",
        "planned GiB",
        "used GiB",
        "left MiB",
        "estimate",
        "tok/s",
    ),
    tuple(Step(f"a card with {free} GiB free", 45, partial(_load, free)) for free in _FREE_GIB),
)
