"""Generation with threads that spin for a shorter or longer time before they sleep (docs/adr/006-short-spin.md).

With experts in RAM, the CPU's threads wait while the GPU computes. Those that sleep by then have to be woken.
"""

import statistics

from bench.gpu_check.models import Models, long_question, running_engine
from qwendesk.core.options import LoadOptions
from qwendesk.engine.process import CARD_SPIN, SHORT_SPIN, SPIN_VARIABLE

_COUNTS = (SHORT_SPIN, "3000", CARD_SPIN, "100000")
_EXPERTS_IN_RAM = (0, 20)
_ROUNDS = 3


async def check_spin(models: Models) -> int:
    """Print the table. Returns 0."""
    model = models.random()
    print(f"| {SPIN_VARIABLE} | experts in RAM | generation, tok/s |\n|--:|--:|--:|", flush=True)
    for layers in _EXPERTS_IN_RAM:
        for count in _COUNTS:
            async with running_engine({SPIN_VARIABLE: count}) as engine:
                wanted = LoadOptions(model=str(model), n_ctx=8_192, n_cpu_moe=layers, n_gpu_layers="all")
                plan = await engine.plan(wanted)
                await engine.load(plan.options)
                await engine.answer([long_question(64)], 16)
                answers = [await engine.answer([long_question(500, str(number))], 128) for number in range(_ROUNDS)]
            decode = statistics.median(stats.decode_tok_s for _, stats in answers)
            print(f"| {count} | {layers} | {decode:.1f} |", flush=True)
    return 0
