"""What loads took on this PC, and how it corrects the plans that follow."""

from pathlib import Path

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import MachineMemory, Plan
from qwendesk.core.units import GIB, MIB
from qwendesk.engine.protocol import Allocation, LoadReport, TemplateAbilities
from qwendesk.engines.measurements import MeasuredLoads
from qwendesk.hardware.planner import best_plan
from tests.gguf_files import moe_35b

CARD = DeviceInfo("CUDA0", "Card", "gpu", "CUDA", 12 * GIB, 12 * GIB)
PC = MachineMemory(devices=(CARD,), ram_total_bytes=64 * GIB, ram_available_bytes=60 * GIB)
OPTIONS = LoadOptions(model="m.gguf")


def plan(drift: tuple[tuple[str, int], ...] = ()) -> Plan:
    return best_plan(moe_35b(), None, msgspec.structs.replace(PC, drift=drift), OPTIONS)


def report(made: Plan) -> LoadReport:
    """A load that allocated exactly what was planned."""
    card = made.memory.gpus[0]
    row = Allocation("CUDA0", card.weights_bytes, card.kv_bytes, card.recurrent_bytes, card.compute_bytes)
    return LoadReport(
        options=made.options, name="Model", architecture="qwen35moe", n_params=1, weights_bytes=card.weights_bytes,
        n_ctx=made.options.n_ctx, n_ctx_train=262_144, n_layers=40, n_vocab=248_320, is_hybrid=True, can_think=True,
        can_see=False, template=TemplateAbilities("model", enable_thinking=True, preserve_thinking=False, tools=True),
        allocations=(row,), load_s=1.0,
    )  # fmt: skip


def test_a_measured_load_corrects_the_next_plan(tmp_path: Path) -> None:
    file = tmp_path / "measured.json"
    first = plan()
    card = first.memory.gpus[0]
    held = card.total_bytes - card.other_bytes + 900 * MIB

    (compared,) = MeasuredLoads(file).take(first, report(first), {"CUDA0": held})

    assert compared.predicted_bytes == card.total_bytes
    assert compared.real_bytes == held
    drift = MeasuredLoads(file).drift
    assert drift == (("CUDA0", 900 * MIB),)
    second = plan(drift).memory.gpus[0]
    assert second.other_bytes == 900 * MIB
    assert second.total_bytes <= (second.budget_bytes or 0)


def test_without_a_probe_allocations_are_compared_but_not_recorded(tmp_path: Path) -> None:
    file = tmp_path / "measured.json"
    made = plan()

    (compared,) = MeasuredLoads(file).take(made, report(made), {})

    assert compared.predicted_bytes == compared.real_bytes
    assert not file.exists()


def test_single_unusual_load_does_not_change_plans(tmp_path: Path) -> None:
    loads, made = MeasuredLoads(tmp_path / "measured.json"), plan()
    known = made.memory.gpus[0].total_bytes - made.memory.gpus[0].other_bytes

    for extra in (500, 520, 4000):
        loads.take(made, report(made), {"CUDA0": known + extra * MIB})

    assert loads.drift == (("CUDA0", 520 * MIB),)
