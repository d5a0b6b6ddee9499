"""Memory that another program takes between the plan and the load: what the app says, and whether its retries work."""

import contextlib

from bench.gpu_check.held_memory import free_memory
from bench.gpu_check.models import Models, running_engine
from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import Devices
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.load_decision import decide

_FREE_GIB = 12
_MOST_RETRIES = 4


async def check_failed_load(models: Models) -> int:
    """Print each try. Returns 1 if none ends in a loaded model."""
    model = models.random()
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
            for number in range(_MOST_RETRIES):
                if not isinstance(result, LoadFailure):
                    break
                print(f"try {number + 1}: {result.kind}: {result.title}. {result.sentence}")
                print("\n".join(f"    {line}" for line in result.engine_lines[-4:]))
                step = await service.wait_for_retry()
                print(f"    offered: {step.label if step is not None else 'nothing'}", flush=True)
                if step is None:
                    break
                result = await service.load(step.options)
            await service.close()
    if isinstance(result, LoadFailure):
        return 1
    options = result.options
    print(
        f"loaded: n_ctx {options.n_ctx}, cache {options.type_k}, n_cpu_moe {options.n_cpu_moe}, "
        f"n_gpu_layers {options.n_gpu_layers}"
    )
    return 0
