"""Memory in use of the card before a load, while the model is loaded, and after its worker ended or was killed."""

import os
import signal
from functools import partial

from bench.gpu_check.models import Models, long_question, running_engine
from bench.gpu_check.steps import Found, Part, Step
from qwendesk.bench.memory_watch import used_on_cards
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import MIB

_MOST_LEFT_BYTES = 16 * MIB
_ENDINGS = ("unloaded", "killed")


async def _unload(ending: str, models: Models) -> Found:
    """More than 16 MiB that stay in use are wrong."""
    async with running_engine() as engine:
        before = sum(used_on_cards())
        plan = await engine.plan(LoadOptions(model=str(models.random()), n_ctx=32_768))
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
    row = (ending, *(f"{each / MIB:.0f}" for each in (before, loaded, answered, after)))
    return Found((row,), is_right=after - before <= _MOST_LEFT_BYTES)


UNLOADING = Part(
    "unload",
    ("how it ended", "before, MiB", "loaded", "after an answer", "afterwards"),
    tuple(Step(ending, 40, partial(_unload, ending)) for ending in _ENDINGS),
)
