"""Loads as on smaller cards: another process holds the card but for 8 to 32 GB."""

from bench.gpu_check.held_memory import free_memory
from bench.gpu_check.models import CheckFailed, Models, long_question, running_engine
from qwendesk.bench.memory_watch import used_on_cards
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB, MIB

_FREE_GIB = (8, 12, 16, 24, 32)
_N_TOKENS = 96


async def check_card_sizes(models: Models) -> int:
    """Print what was planned and what was used for each size. Returns 1 if a plan that should fit did not load."""
    model = models.random()
    print(
        "| free GiB | plan | context | cache | experts in RAM | planned GiB | used GiB | left MiB | estimate | tok/s |"
    )
    print("|--:|---|--:|---|--:|--:|--:|--:|--:|--:|", flush=True)
    is_right = True
    for free in _FREE_GIB:
        with free_memory(free * GIB):
            async with running_engine() as engine:
                before = sum(used_on_cards())
                plan = await engine.plan(LoadOptions(model=str(model)))
                try:
                    await engine.load(plan.options)
                    _, stats = await engine.answer([long_question(1_000)], _N_TOKENS)
                except CheckFailed as error:
                    print(f"| {free} | {plan.kind} | failed: {error} |", flush=True)
                    is_right = False
                    continue
                used = sum(used_on_cards()) - before
        speed = plan.speed.start if plan.speed is not None else (0.0, 0.0)
        planned = sum(gpu.total_bytes for gpu in plan.memory.gpus)
        options = plan.options
        print(
            f"| {free} | {plan.kind} | {options.n_ctx} | {options.type_k} | {plan.memory.cpu_expert_layers} | "
            f"{planned / GIB:.2f} | {used / GIB:.2f} | {(free * GIB - used) / MIB:.0f} | "
            f"{speed[0]:.0f}-{speed[1]:.0f} | {stats.decode_tok_s:.1f} |",
            flush=True,
        )
    return 0 if is_right else 1
