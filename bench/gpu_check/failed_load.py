"""Memory that another program takes between the plan and the load: what the app says, and whether its retries work."""

import contextlib

from bench.gpu_check.held_memory import free_memory
from bench.gpu_check.models import Models, running_engine
from bench.gpu_check.steps import Found, Part, Step
from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import Devices
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.load_decision import decide

_FREE_GIB = 12
_MOST_RETRIES = 4


async def _lose_memory(models: Models) -> Found:
    """It is wrong if no try ends in a loaded model."""
    model = models.random()
    rows: list[tuple[str, ...]] = []
    with contextlib.ExitStack() as other_program:

        def decide_then_lose_memory(options: LoadOptions, devices: Devices) -> DecidedOptions | LoadFailure:
            decided = decide(options, devices)
            # The first time only: the other program then keeps what it has.
            if not lost:
                lost.append(_FREE_GIB)
                other_program.enter_context(free_memory(_FREE_GIB * GIB))
            return decided

        lost: list[int] = []
        async with running_engine() as engine:
            service = EngineService(engine.client, decide=decide_then_lose_memory)
            result = await service.load(LoadOptions(model=str(model)))
            while isinstance(result, LoadFailure) and len(rows) < _MOST_RETRIES:
                step = await service.wait_for_retry()
                rows.append((f"{result.title}. {result.sentence}", step.label if step is not None else "nothing"))
                if step is None:
                    break
                result = await service.load(step.options)
            await service.close()
    if isinstance(result, LoadFailure):
        return Found(tuple(rows), is_right=False)
    options = result.options
    loaded = f"{options.n_ctx} tokens of context, experts of {options.n_cpu_moe} layers in RAM, cache {options.type_k}"
    return Found((*rows, ("loaded", loaded)))


FAILURE = Part(
    "failure",
    ("what was said", "what was offered"),
    (Step(f"another program leaves {_FREE_GIB} GiB between plan and load", 60, _lose_memory),),
)
