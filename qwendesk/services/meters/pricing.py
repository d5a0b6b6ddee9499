"""The planner as relief needs it: what the model that is loaded would take under other options, and how fast it is."""

import re
from collections.abc import Callable

from qwendesk.core.failures import LoadFailure
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Machine
from qwendesk.engine.state import EngineState
from qwendesk.hardware.pricing import price
from qwendesk.hardware.speed import estimate_speed
from qwendesk.services.engine.deciding import facts_for
from qwendesk.services.meters.relief import Price, PriceOf

Files = tuple[ModelFacts, ModelFacts | None]


def prices_of(state: Callable[[], EngineState], context_tokens: Callable[[], int]) -> PriceOf:
    """A PriceOf for the devices of `state` and a chat of `context_tokens`.

    The headers of the last model are kept, so that only the first question reads files.
    """
    kept: dict[tuple[str, str], Files | LoadFailure] = {}

    def files_of(options: LoadOptions) -> Files | LoadFailure:
        key = (options.model, options.mmproj)
        if key not in kept:
            kept.clear()
            kept[key] = facts_for(options)
        return kept[key]

    def price_of(options: LoadOptions) -> Price | None:
        files = files_of(options)
        if isinstance(files, LoadFailure):
            return None
        machine = Machine(devices=state().devices, ram_total_bytes=0, ram_available_bytes=0)
        try:
            return _priced(files, options, machine, context_tokens())
        except re.error:  # a tensor placement that the engine understood and we do not
            return None

    return price_of


def _priced(files: Files, options: LoadOptions, machine: Machine, context_tokens: int) -> Price:
    model, mmproj = files
    found = price(model, options, machine, mmproj)
    speed = estimate_speed(model, options, found, machine)
    expected = None
    if speed is not None:
        expected = speed.long if context_tokens > speed.long_tokens // 4 else speed.start
    return Price({plan.name: plan.total_bytes for plan in found.gpus}, found.ram.total_bytes, expected)
