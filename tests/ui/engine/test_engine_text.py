"""What the engine page says of different PCs."""

from pathlib import Path

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.failures import EngineDeath, LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Machine
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import Welcome
from qwendesk.engine.state import EngineState, Phase
from qwendesk.hardware.planner import solve
from qwendesk.hardware.snapshot import GpuReading, Snapshot, SystemReading
from qwendesk.services.engine.engines import Engines
from qwendesk.services.engine.measured import Comparison
from qwendesk.services.engine.testing import Check, Diagnosis
from qwendesk.services.engine.trial import Trial
from qwendesk.ui.engine.engine_text import Known, diagnostics, sections, sysmem_fallback
from qwendesk.ui.engine.engine_text import test_lines as lines_of
from tests.fakes.engine import DEMO_REPORT
from tests.gguf_files import moe_35b

RTX = GpuReading(
    name="NVIDIA GeForce RTX 4090", vendor="nvidia", driver="575.64", total_bytes=24 * GIB, used_bytes=2 * GIB,
    pcie_generation=4, pcie_width=16,
)  # fmt: skip
IRIS = GpuReading(name="Intel(R) Iris(R) Xe", vendor="intel", unified=True)


def rows(known: Known, platform: str = "linux") -> dict[str, str]:
    return {label: value for part in sections(known, platform=platform) for label, value in part.rows}


def test_before_anything_runs_it_says_how_to_learn_more() -> None:
    found = rows(Known())
    assert found["State"] == "Not running; it starts with a model"
    assert "test the engine" in found["Devices"]
    assert found["GPUs"] == "Not looked at yet"


def test_a_pc_without_a_gpu_is_told_so() -> None:
    found = rows(Known(snapshot=Snapshot(at_s=0, system=SystemReading(cpu_cores=8))))
    assert "on the processor" in found["GPUs"]
    assert found["Cores"] == "8"


def test_a_hybrid_laptop_has_both_gpus() -> None:
    known = Known(snapshot=Snapshot(at_s=0, gpus=(IRIS, RTX), notes=("A note.",)))
    found = rows(known, "win32")
    assert found["Intel(R) Iris(R) Xe"] == "uses the RAM"
    assert found["NVIDIA GeForce RTX 4090"] == "22.0 GB of 24.0 GB free, driver 575.64, PCIe 4.0 ×16"
    assert found["Note"] == "A note."


def test_the_plan_of_the_loaded_model_says_whose_its_numbers_are_and_how_right_it_was() -> None:
    card = DeviceInfo("CUDA0", "A card", "gpu", "CUDA", 24 * GIB, 24 * GIB)
    machine = Machine(devices=(card,), ram_total_bytes=64 * GIB, ram_available_bytes=60 * GIB)
    plan = solve(moe_35b(), None, machine, LoadOptions(model="m.gguf"))
    report = msgspec.structs.replace(DEMO_REPORT, options=plan.options)
    state = EngineState(phase=Phase.READY, report=report)
    compared = (Comparison("CUDA0", 21 * GIB, 21 * GIB + GIB // 2),)

    found = rows(Known(state=state, plan=plan, compared=compared))
    assert found["Numbers"] == "Estimates"
    assert "weights" in found["A card"]
    assert plan.why[0] in found["Why"]
    assert "tok/s at the start" in found["Expected speed"]
    assert found["CUDA0, this load"] == "predicted 21.0 GB, real 21.5 GB"
    assert "count the difference in" in found["Later plans"]

    asked = rows(Known(state=state, plan=msgspec.structs.replace(plan, source="engine")))
    assert "engine's own" in asked["Numbers"]
    other = msgspec.structs.replace(report, options=LoadOptions(model="other.gguf"))
    assert rows(Known(state=EngineState(report=other), plan=plan))["Plan"] == "Made when a model is loaded"


def test_what_happens_when_memory_runs_out() -> None:
    assert "Prefer No Sysmem Fallback" in sysmem_fallback(RTX, "win32")
    assert sysmem_fallback(RTX, "linux").startswith("An error")
    assert "GTT" in sysmem_fallback(GpuReading(vendor="amd"), "linux")
    assert "swap" in sysmem_fallback(IRIS, "win32")
    assert "Windows moves" in sysmem_fallback(GpuReading(vendor="amd"), "win32")
    assert sysmem_fallback(GpuReading(vendor="intel"), "linux") == "Not known for this driver"


def test_the_engines_of_this_pc_and_why_one_is_not_used() -> None:
    trials = (
        Trial(name="cuda-12", backend="cuda", reason="The graphics driver is too old for it: install the newest one."),
        Trial(name="vulkan", backend="vulkan", usable=True),
        Trial(name="cpu-avx2", backend="cpu", usable=True),
    )
    engines = Engines(trials=trials, chosen="vulkan", note="You asked for cuda-12.")
    text = diagnostics(Known(engines=engines), {}, platform="linux")
    assert "Engine “cuda-12”: The graphics driver is too old" in text
    assert "Engine “vulkan”: in use" in text
    assert "Engine “cpu-avx2”: usable, not chosen" in text
    assert "Note: You asked for cuda-12." in text


def test_engines_that_were_not_tried_say_so() -> None:
    trials = (Trial(name="cpu-avx2", backend="cpu", usable=True), Trial(name="cpu-sse42", backend="cpu"))
    text = diagnostics(Known(engines=Engines(trials=trials, chosen="cpu-avx2")), {}, platform="linux")
    assert "Engine “cpu-sse42”: not tried, because a better one runs" in text


def test_a_running_engine_with_its_devices() -> None:
    welcome = Welcome(id=0, version=1, package_version="0.3.36", system_info="", backends=("CUDA", "CPU"))
    devices = (DeviceInfo("CUDA0", "RTX 4090 ", "gpu", "CUDA", 24 * GIB, 23 * GIB), DeviceInfo("CPU", "", "cpu", "CPU"))
    state = EngineState(phase=Phase.READY, welcome=welcome, devices=devices, cpu_features=("AVX2",))
    found = rows(Known(state=state))
    assert found["Backends"] == "CUDA, CPU"
    assert found["CUDA0"] == "RTX 4090 (GPU): 23.0 GB of 24.0 GB free"
    assert found["CPU"] == "CPU (processor)"
    assert found["Features the engine uses"] == "AVX2"


def a_test(*checks: Check, failure: LoadFailure | None = None) -> Diagnosis:
    return Diagnosis(
        versions={}, system_info="", backends=("CPU",), devices=(), cpu_features=("AVX2",), folders={},
        self_test=checks, failure=failure,
    )  # fmt: skip


def test_the_test_says_what_was_wrong() -> None:
    assert "Not tested yet" in lines_of(None, running=False)
    assert "three questions" in lines_of(None, running=True)
    lines = lines_of(a_test(Check("load", True, 0.5), Check("picture", False, 1.0, "got a star")), running=False)
    assert "✓ load, 0.50 s" in lines
    assert "✗ picture, 1.00 s: got a star" in lines
    assert lines.endswith("Something is wrong, see above.")


def test_diagnostics_hold_failures_with_the_engine_s_words() -> None:
    failure = LoadFailure("other", "It failed", "For a reason.", ("last line",))
    death = EngineDeath(-9, "The engine was ended.", ("dying words",))
    known = Known(state=EngineState(failure=failure, death=death), diagnosis=a_test(Check("load", True, 0.5)))
    text = diagnostics(known, {"qwendesk": "0.1.0"}, "linux")
    for words in ("qwendesk: 0.1.0", "It failed. For a reason.", "last line", "dying words", "✓ load"):
        assert words in text


def test_diagnostics_name_neither_the_person_nor_their_folders() -> None:
    home = str(Path.home())
    failure = LoadFailure("other", "No file", f"There is no file {home}/models/x.gguf.", (f"at {home}/a.cpp",))
    death = EngineDeath(-9, f"It ended at {home}/b.", ("/run/media/anna/c",))
    text = diagnostics(Known(state=EngineState(failure=failure, death=death)), {"python": f"{home}/bin"}, "linux")
    assert home not in text
    for words in ("There is no file x.gguf.", "at ~/a.cpp", "ended at ~/b.", "/run/media/USER/c", "python: ~/bin"):
        assert words in text
