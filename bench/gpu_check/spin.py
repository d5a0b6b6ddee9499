"""Generation with threads that spin for a shorter or longer time before they sleep (docs/adr/006-short-spin.md).

With experts in RAM, the CPU's threads wait while the GPU computes. Those that sleep by then have to be woken.
"""

import statistics
from functools import partial

from bench.gpu_check.models import Models, long_question, running_engine
from bench.gpu_check.steps import Found, Part, Step
from qwendesk.core.options import LoadOptions
from qwendesk.engine.process import CARD_SPIN, SHORT_SPIN, SPIN_VARIABLE

_CASES = ((20, SHORT_SPIN), (20, CARD_SPIN), (20, "100000"), (0, SHORT_SPIN), (0, CARD_SPIN))
"""Layers with experts in RAM, and rounds."""
_ANSWERS = 3


async def _generation(layers: int, count: str, models: Models) -> Found:
    async with running_engine({SPIN_VARIABLE: count}) as engine:
        wanted = LoadOptions(model=str(models.random()), n_ctx=8_192, n_cpu_moe=layers, n_gpu_layers="all")
        plan = await engine.plan(wanted)
        await engine.load(plan.options)
        await engine.answer([long_question(64)], 16)
        answers = [await engine.answer([long_question(500, str(number))], 128) for number in range(_ANSWERS)]
    decode = statistics.median(stats.decode_tok_s for _, stats in answers)
    return Found(((count, str(layers), f"{decode:.1f}"),))


SPIN = Part(
    "spin",
    (SPIN_VARIABLE, "layers with experts in RAM", "generation, tok/s"),
    tuple(
        Step(f"{count} rounds, experts of {layers} layers in RAM", 40, partial(_generation, layers, count))
        for layers, count in _CASES
    ),
)
