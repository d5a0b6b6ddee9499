"""How long the planner computes: `python -m bench.planner [ROUNDS]`.

Prints the median of ROUNDS plans (9) for each made-up PC, in CPU time. The window plans again while a slider moves, so
the goal is a median under 50 ms.
"""

import statistics
import sys
import time

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import MachineMemory
from qwendesk.core.units import GIB
from qwendesk.hardware.planner import best_plan
from qwendesk.hub.catalog import load_catalog
from qwendesk.models.fit import estimate_model

_GOAL_MS = 50.0
_ROWS = (
    ("Qwen3.5-35B-A3B", 37, (24,)),
    ("Qwen3.5-35B-A3B", 37, (24, 12)),
    ("Qwen3.5-122B-A10B", 76, (24, 24, 24)),
    ("Qwen3.5-397B-A17B", 244, (24, 24, 24, 24)),
    ("Qwen3.5-27B", 17, (6, 4, 4, 4)),
)
"""Model, size of its file in GB, sizes of the cards in GiB. The last has 64 layers, of which some go to the CPU."""


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    is_met = True
    for model, size_gb, cards in _ROWS:
        median = statistics.median(_plan_ms(_facts(model, size_gb), cards) for _ in range(rounds))
        is_met &= median < _GOAL_MS
        print(f"{model}, {size_gb} GB, {' + '.join(map(str, cards))} GiB: median {median:.1f} ms")
    return 0 if is_met else 1


def _facts(model_id: str, size_gb: int) -> ModelFacts:
    model = next(each for each in load_catalog().models if each.id == model_id)
    return estimate_model(model, size_gb * 10**9)


def _plan_ms(facts: ModelFacts, cards: tuple[int, ...]) -> float:
    devices = tuple(
        DeviceInfo(f"CUDA{number}", "Card", "gpu", "CUDA", gib * GIB, gib * GIB) for number, gib in enumerate(cards)
    )
    machine = MachineMemory(devices=devices, ram_total_bytes=512 * GIB, ram_available_bytes=512 * GIB)
    began = time.process_time()
    plan = best_plan(facts, None, machine, LoadOptions(model="m.gguf"))
    took = 1000 * (time.process_time() - began)
    assert plan.fits
    return took


if __name__ == "__main__":
    sys.exit(main())
