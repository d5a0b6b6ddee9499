"""What the engine page says of different PCs."""

from pathlib import Path

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Comparison, MachineMemory
from qwendesk.core.settings import table
from qwendesk.core.translation import unbroken
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import Allocation, Welcome
from qwendesk.engine.state import EngineState, Phase
from qwendesk.engines.engine_choice import EngineChoice
from qwendesk.engines.pending_load import OptionLimits, PendingLoad
from qwendesk.engines.self_test import Check, Diagnosis
from qwendesk.engines.trial import EngineTrial
from qwendesk.engines.view.engine_report import Known, diagnostics, sections, sysmem_fallback
from qwendesk.engines.view.engine_report import test_lines as lines_of
from qwendesk.engines.view.load_options import load_text
from qwendesk.hardware.expert_layers import with_cpu_expert_layers
from qwendesk.hardware.planner import best_plan
from qwendesk.hardware.snapshot import GpuReading, Snapshot, SystemReading
from tests.fakes.engine import DEMO_REPORT
from tests.gguf_files import moe_35b

RTX = GpuReading(
    name="NVIDIA GeForce RTX 4090", vendor="nvidia", driver="575.64", total_bytes=24 * GIB, used_bytes=2 * GIB,
    pcie_generation=4, pcie_max_generation=4, pcie_width=16,
)  # fmt: skip
IRIS = GpuReading(name="Intel(R) Iris(R) Xe", vendor="intel", unified=True)


def rows(known: Known, platform: str = "linux") -> dict[str, str]:
    return {label: value for part in sections(known, platform=platform) for label, value in part.rows}


def test_page_without_an_engine_says_how_to_start_one() -> None:
    found = rows(Known())
    assert found["State"] == "Not running. It starts when a model is loaded."
    assert "test the engine" in found["Devices"]
    assert found["GPUs"] == "Not checked yet"


def test_pc_without_a_gpu_is_described() -> None:
    found = rows(Known(snapshot=Snapshot(at_s=0, system=SystemReading(cpu_cores=8))))
    assert "on the CPU" in found["GPUs"]
    assert found["Cores"] == "8"


def test_a_hybrid_laptop_has_both_gpus() -> None:
    known = Known(snapshot=Snapshot(at_s=0, gpus=(IRIS, RTX), notes=("A note.",)))
    found = rows(known, "win32")
    assert found["Intel(R) Iris(R) Xe"] == "uses the RAM"
    assert found["NVIDIA GeForce RTX 4090"] == "22.0 GB of 24.0 GB free, driver 575.64, PCIe 4.0 ×16"
    assert found["PCIe link"] == "PCIe 4.0 ×16 carries 31.5 GB/s each way. That is enough for everything."
    assert found["Note"] == "A note."


def test_two_equal_cards_are_told_apart() -> None:
    cards = tuple(DeviceInfo(f"CUDA{number}", "RTX 3090", "gpu", "CUDA", 24 * GIB, 23 * GIB) for number in range(2))
    machine = MachineMemory(devices=cards, ram_total_bytes=64 * GIB, ram_available_bytes=60 * GIB)
    plan = best_plan(moe_35b(), None, machine, LoadOptions(model="m.gguf"))
    state = EngineState(
        phase=Phase.READY, report=msgspec.structs.replace(DEMO_REPORT, options=plan.options, allocations=())
    )
    gpus = tuple(msgspec.structs.replace(RTX, pci=f"0000:0{number}:00.0") for number in (1, 2))

    found = rows(Known(state=state, plan=plan, snapshot=Snapshot(at_s=0, gpus=gpus)))

    assert {"RTX 3090 #1", "RTX 3090 #2", "NVIDIA GeForce RTX 4090 #1", "NVIDIA GeForce RTX 4090 #2"} <= found.keys()
    assert list(load_text.device_names(plan).values()) == ["RTX 3090 #1", "RTX 3090 #2", "RAM"]


def test_auto_counts_the_layers_that_patterns_keep_in_ram() -> None:
    """Two cards give up layers 30 to 32 of the second one: "0 of 40" left those out."""
    options = with_cpu_expert_layers(LoadOptions(model="m.gguf", n_cpu_moe=0, n_gpu_layers="all"), (0, 1, 30, 31, 32))
    machine = MachineMemory(devices=(), ram_total_bytes=64 * GIB, ram_available_bytes=60 * GIB)
    plan = msgspec.structs.replace(best_plan(moe_35b(), None, machine, LoadOptions(model="m.gguf")), options=options)
    limits = OptionLimits(n_ctx=4096, longest_ctx=4096, n_layers=40, has_experts=True)

    text = load_text.auto_text(table(LoadOptions)["n_cpu_moe"], PendingLoad(plan=plan, limits=limits))

    assert text == "5 of 40"


def test_plan_shows_the_source_of_its_numbers_and_the_difference() -> None:
    card = DeviceInfo("CUDA0", "A card", "gpu", "CUDA", 24 * GIB, 24 * GIB)
    machine = MachineMemory(devices=(card,), ram_total_bytes=64 * GIB, ram_available_bytes=60 * GIB)
    plan = best_plan(moe_35b(), None, machine, LoadOptions(model="m.gguf"))
    report = msgspec.structs.replace(DEMO_REPORT, options=plan.options, allocations=())
    state = EngineState(phase=Phase.READY, report=report)
    compared = (Comparison("CUDA0", 21 * GIB, 21 * GIB + GIB // 2),)

    found = rows(Known(state=state, plan=plan, compared=compared))
    assert found["Numbers"] == "Estimated."
    assert "weights" in found["A card"]
    assert plan.why[0] in found["Why"]
    assert "tok/s at the start" in found["Expected speed"]
    assert found["This model, CUDA0"] == "estimated 21.0 GB, actual 21.5 GB"
    assert "With the difference" in found["Later plans"]

    loaded = msgspec.structs.replace(report, allocations=(Allocation("CUDA0", weights_bytes=20 * GIB),))
    ran = rows(Known(state=state, plan=plan, measured_tok_s=71.2))
    assert ran["Speed"] == "Measured here: 71 tok/s"
    assert "Expected speed" not in ran
    measured = PendingLoad(plan=plan, measured_tok_s=71.2)
    assert load_text.speed_text(measured) == unbroken("Measured here: 71 tok/s")

    exact = rows(Known(state=EngineState(phase=Phase.READY, report=loaded), plan=plan))
    assert exact["Numbers"].startswith("All numbers are the engine's own")
    assert "weights 20.0 GB" in exact["A card"]
    other = msgspec.structs.replace(report, options=LoadOptions(model="other.gguf"))
    assert rows(Known(state=EngineState(report=other), plan=plan))["Plan"] == "Made when a model is loaded"


def test_behaviour_without_free_memory_is_described_for_each_driver() -> None:
    assert "Prefer No Sysmem Fallback" in sysmem_fallback(RTX, "win32")
    assert sysmem_fallback(RTX, "linux").startswith("An error")
    assert "GTT" in sysmem_fallback(GpuReading(vendor="amd"), "linux")
    assert "swap" in sysmem_fallback(IRIS, "win32")
    assert "Windows moves" in sysmem_fallback(GpuReading(vendor="amd"), "win32")
    assert sysmem_fallback(GpuReading(vendor="intel"), "linux") == "Not known for this driver"


def test_diagnostics_list_engines_and_why_one_is_not_used() -> None:
    trials = (
        EngineTrial(
            name="cuda-12", backend="cuda", reason="The graphics driver is too old for it: install the newest one."
        ),
        EngineTrial(name="vulkan", backend="vulkan", usable=True),
        EngineTrial(name="cpu-avx2", backend="cpu", usable=True),
    )
    engines = EngineChoice(trials=trials, chosen="vulkan", note="You asked for cuda-12.")
    text = diagnostics(Known(engines=engines), {}, platform="linux")
    assert "Engine “cuda-12”: The graphics driver is too old" in text
    assert "Engine “vulkan”: in use" in text
    assert "Engine “cpu-avx2”: usable, not chosen" in text
    assert "Note: You asked for cuda-12." in text


def test_untried_engines_are_marked() -> None:
    trials = (EngineTrial(name="cpu-avx2", backend="cpu", usable=True), EngineTrial(name="cpu-sse42", backend="cpu"))
    text = diagnostics(Known(engines=EngineChoice(trials=trials, chosen="cpu-avx2")), {}, platform="linux")
    assert "Engine “cpu-sse42”: not tried, because a better one runs" in text


def test_running_engine_is_shown_with_its_devices() -> None:
    welcome = Welcome(id=0, version=1, package_version="0.3.36", system_info="", backends=("CUDA", "CPU"))
    devices = (DeviceInfo("CUDA0", "RTX 4090 ", "gpu", "CUDA", 24 * GIB, 23 * GIB), DeviceInfo("CPU", "", "cpu", "CPU"))
    state = EngineState(phase=Phase.READY, welcome=welcome, devices=devices, cpu_features=("AVX2",))
    found = rows(Known(state=state))
    assert found["Backends"] == "CUDA, CPU"
    assert found["CUDA0"] == "RTX 4090 (GPU): 23.0 GB of 24.0 GB free"
    assert found["CPU"] == "CPU (CPU)"
    assert found["Features the engine uses"] == "AVX2"


def a_test(*checks: Check, failure: LoadFailure | None = None) -> Diagnosis:
    return Diagnosis(
        versions={}, system_info="", backends=("CPU",), devices=(), cpu_features=("AVX2",), folders={},
        self_test=checks, failure=failure,
    )  # fmt: skip


def test_failed_test_shows_what_was_wrong() -> None:
    assert lines_of(None, running=False) == ""
    assert "three questions" in lines_of(None, running=True)
    lines = lines_of(a_test(Check("load", True, 0.5), Check("picture", False, 1.0, "got a star")), running=False)
    assert "✓ load, 0.50 s" in lines
    assert "✗ picture, 1.00 s: got a star" in lines
    assert lines.endswith("A test failed. See above.")


def test_diagnostics_contain_failures_with_log_lines() -> None:
    failure = LoadFailure("other", "It failed", "For a reason.", ("last line",))
    engine_exit = EngineExit(-9, "The engine was ended.", ("dying words",))
    known = Known(
        state=EngineState(failure=failure, engine_exit=engine_exit), diagnosis=a_test(Check("load", True, 0.5))
    )
    text = diagnostics(known, {"qwendesk": "0.1.0"}, "linux")
    for words in ("qwendesk: 0.1.0", "It failed. For a reason.", "last line", "dying words", "✓ load"):
        assert words in text


def test_diagnostics_contain_neither_user_name_nor_folders() -> None:
    home = str(Path.home())
    failure = LoadFailure("other", "No file", f"There is no file {home}/models/x.gguf.", (f"at {home}/a.cpp",))
    engine_exit = EngineExit(-9, f"It ended at {home}/b.", ("/run/media/anna/c",))
    text = diagnostics(
        Known(state=EngineState(failure=failure, engine_exit=engine_exit)), {"python": f"{home}/bin"}, "linux"
    )
    assert home not in text
    for words in ("There is no file x.gguf.", "at ~/a.cpp", "ended at ~/b.", "/run/media/USER/c", "python: ~/bin"):
        assert words in text
