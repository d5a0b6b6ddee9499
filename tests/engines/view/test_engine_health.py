"""The first sentence of the Engine page: whether everything works, and where the model is."""

import msgspec
import pytest

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import DecidedOptions
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import Allocation
from qwendesk.engine.state import EngineState, Phase
from qwendesk.engines.self_test import Check, Diagnosis
from qwendesk.engines.view.engine_report import Known, facts, health
from qwendesk.hardware.snapshot import GpuReading, Snapshot, SystemReading
from tests.fakes.engine import DEMO_REPORT

CARD = DeviceInfo("CUDA0", "NVIDIA GeForce RTX 4070", "gpu", "CUDA", 12 * GIB, 11 * GIB)
CPU = DeviceInfo("CPU", "AMD Ryzen 5 7600", "cpu", "CPU")
IN_VRAM = Allocation("CUDA0", weights_bytes=5 * GIB)
IN_RAM = Allocation("CPU", weights_bytes=2 * GIB)


def loaded(*allocations: Allocation, devices: tuple[DeviceInfo, ...] = (CARD, CPU)) -> Known:
    report = msgspec.structs.replace(
        DEMO_REPORT, options=DecidedOptions(model="m.gguf", n_threads=6), allocations=allocations
    )
    return Known(
        state=EngineState(phase=Phase.READY, report=report, devices=devices),
        snapshot=Snapshot(at_s=0, system=SystemReading(cpu_cores=6)),
    )


def checked(*, passed: bool) -> Diagnosis:
    return Diagnosis(
        versions={}, system_info="", backends=(), devices=(), cpu_features=(), folders={},
        self_test=(Check("load", passed, 0.5),), failure=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("known", "sentence"),
    [
        (loaded(IN_VRAM, IN_RAM), "The model runs on the graphics card and in RAM."),
        (loaded(IN_RAM), "The model runs on the CPU, from RAM."),
        (Known(diagnosis=checked(passed=True)), "No model is loaded."),
    ],
)
def test_everything_works(known: Known, sentence: str) -> None:
    found = health(known)

    assert (found.tone, found.title, found.sentence) == ("good", "Everything works.", sentence)


def test_what_does_not_work_is_said_first() -> None:
    failure = LoadFailure("out_of_ram", "Not enough memory", "Close other programs.")
    spills = msgspec.structs.replace(loaded(IN_VRAM), spills=True)

    assert health(Known()).title == "Ready."
    assert health(Known(state=EngineState(failure=failure))).title == "Not enough memory."
    assert health(Known(diagnosis=checked(passed=False))).tone == "bad"
    assert (health(spills).tone, health(spills).title) == ("warn", "The model spills.")


def test_the_rows_say_which_card_is_used() -> None:
    assert dict(facts(loaded(IN_VRAM))) == {
        "Graphics card": "RTX 4070 · 12.0 GB · is used",
        "CPU": "AMD Ryzen 5 7600 · 6 cores · 6 threads used",
    }
    assert dict(facts(loaded(IN_RAM)))["Graphics card"].endswith("isn't used")
    without = msgspec.structs.replace(
        loaded(IN_RAM, devices=(CPU,)), snapshot=Snapshot(at_s=0, gpus=(GpuReading(name="NVIDIA GeForce RTX 4070"),))
    )
    assert dict(facts(without))["Graphics card"] == "RTX 4070 · this engine can't use it"
