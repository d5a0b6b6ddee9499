"""Memory in use of the card before a load, while the model is loaded, and after its worker ended or was killed."""

import os
import signal

from bench.gpu_check.models import Models, long_question, running_engine
from qwendesk.bench.memory_watch import used_on_cards
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import MIB

_MOST_LEFT_BYTES = 16 * MIB


async def check_unloading(models: Models) -> int:
    """Print the table. Returns 1 if more than 16 MiB stay in use."""
    model = models.random()
    print("| how it ended | before, MiB | loaded | after an answer | afterwards |\n|---|--:|--:|--:|--:|", flush=True)
    is_freed = True
    for ending in ("unloaded", "killed"):
        async with running_engine() as engine:
            before = sum(used_on_cards())
            plan = await engine.plan(LoadOptions(model=str(model), n_ctx=32_768))
            await engine.load(plan.options)
            loaded = sum(used_on_cards())
            await engine.answer([long_question(4_000)], 32)
            answered = sum(used_on_cards())
            pid = engine.client.worker_pid
            if ending == "killed" and pid is not None:
                os.kill(pid, signal.SIGKILL)
            # Waits until the worker has exited, also after the signal.
            await engine.client.unload()
            after = sum(used_on_cards())
        numbers = " | ".join(f"{each / MIB:.0f}" for each in (before, loaded, answered, after))
        print(f"| {ending} | {numbers} |", flush=True)
        is_freed = is_freed and after - before <= _MOST_LEFT_BYTES
    return 0 if is_freed else 1
