"""Finds how to load a model with all its experts on the CPU."""

import asyncio
from collections.abc import Callable

import psutil

from qwendesk.core.failures import LoadFailure
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import LoadReport
from qwendesk.hardware.ladder import ModelShape, step_levels

_RAM_LEFT_BYTES = 2 * GIB
"""RAM that stays free for the game."""

ReadHeaders = Callable[[LoadOptions], tuple[ModelFacts, ModelFacts | None] | LoadFailure]


def _available_ram() -> int:
    return int(psutil.virtual_memory().available)


async def experts_on_cpu(
    report: LoadReport, read_headers: ReadHeaders, available_ram: Callable[[], int] = _available_ram
) -> LoadOptions | None:
    """Return how to load this model with all its experts on the CPU, and everything else as it is.

    None if it has no experts on a GPU, or if RAM would be short. `read_headers` blocks.
    """
    on_gpu = sum(row.weights_bytes for row in report.allocations if row.device != "CPU")
    if not on_gpu or available_ram() - on_gpu < _RAM_LEFT_BYTES:
        return None
    headers = await asyncio.to_thread(read_headers, report.options)
    if isinstance(headers, LoadFailure) or not headers[0].expert_count:
        return None
    shape = ModelShape(report.n_layers, report.n_layers, has_vision=bool(report.options.mmproj))
    levels = tuple(step_levels("experts", report.options, shape))
    return levels[-1] if levels else None
