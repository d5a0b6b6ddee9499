"""What drafts gained is remembered by model, placement, context, engine and GPUs."""

from pathlib import Path

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.options import DecidedOptions
from qwendesk.engines.measurements import DraftSpeedups, MeasuredOn
from qwendesk.hardware.snapshot import GpuReading

OPTIONS = DecidedOptions(model="/models/a.gguf", speculative="mtp", n_ctx=8192)
HERE = MeasuredOn()


def test_a_speedup_is_remembered_for_these_options_only(tmp_path: Path) -> None:
    file = tmp_path / "speedups.json"
    assert DraftSpeedups(file).speedup(OPTIONS, HERE) is None
    DraftSpeedups(file).note(OPTIONS, 1.5, HERE)
    again = DraftSpeedups(file)
    assert again.speedup(OPTIONS, HERE) == 1.5
    assert again.speedup(msgspec.structs.replace(OPTIONS, check_tensors=True), HERE) == 1.5
    for change in (
        {"n_ctx": 4096},
        {"n_cpu_moe": 5},
        {"model": "/models/b.gguf"},
        {"draft_n_max": 5},
        {"n_threads": 6},
        {"draft_model": "/models/mtp-a.gguf"},
        {"type_k": "q8_0"},
    ):
        assert again.speedup(msgspec.structs.replace(OPTIONS, **change), HERE) is None, change


def test_only_a_difference_that_matters_is_written(tmp_path: Path) -> None:
    file = tmp_path / "speedups.json"
    speedups = DraftSpeedups(file)
    speedups.note(OPTIONS, 1.5, HERE)
    before = file.stat().st_mtime_ns
    speedups.note(OPTIONS, 1.51, HERE)
    assert file.stat().st_mtime_ns == before
    speedups.note(OPTIONS, 0.8, HERE)
    assert speedups.speedup(OPTIONS, HERE) == 0.8


def test_a_folder_that_cannot_be_written_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    DraftSpeedups(tmp_path / "file" / "speedups.json").note(OPTIONS, 1.5, HERE)


def test_after_a_month_it_is_tried_again(tmp_path: Path) -> None:
    day_s = 24 * 3600.0
    now = 1_000_000_000.0
    speedups = DraftSpeedups(tmp_path / "speedups.json", lambda: now)
    speedups.note(OPTIONS, 0.8, HERE)
    now += 29 * day_s
    assert speedups.speedup(OPTIONS, HERE) == 0.8
    now += 2 * day_s
    assert speedups.speedup(OPTIONS, HERE) is None


CARD = DeviceInfo("CUDA0", "NVIDIA GeForce RTX 3060", "gpu", "CUDA")
CPU = DeviceInfo("CPU", "A processor", "cpu", "CPU")


def on(engine: str = "cuda-12 0.3.36", card: DeviceInfo = CARD, driver: str | None = "575.64") -> MeasuredOn:
    return MeasuredOn.of(engine, (card, CPU), (GpuReading(driver=driver),))


def test_another_engine_gpu_or_driver_was_not_measured(tmp_path: Path) -> None:
    here = on()
    speedups = DraftSpeedups(tmp_path / "speedups.json")
    speedups.note(OPTIONS, 0.8, here)
    assert speedups.speedup(OPTIONS, here) == 0.8
    another = msgspec.structs.replace(CARD, description="NVIDIA GeForce RTX 5090")
    for here in (on("cuda-12 0.3.37"), on("vulkan 0.3.36"), on(card=another), on(driver="580.10"), MeasuredOn()):
        assert speedups.speedup(OPTIONS, here) is None, here


def test_before_a_probe_has_read_the_driver_the_speedup_counts(tmp_path: Path) -> None:
    here = on()
    speedups = DraftSpeedups(tmp_path / "speedups.json")
    speedups.note(OPTIONS, 0.8, here)
    here = on(driver=None)
    assert speedups.speedup(OPTIONS, here) == 0.8


def test_a_driver_of_a_gpu_that_is_not_used_does_not_matter(tmp_path: Path) -> None:
    here = MeasuredOn.of("cpu 0.3.36", (CPU,), (GpuReading(driver="1"),))
    speedups = DraftSpeedups(tmp_path / "speedups.json")
    speedups.note(OPTIONS, 0.8, here)
    here = MeasuredOn.of("cpu 0.3.36", (CPU,), (GpuReading(driver="2"),))
    assert speedups.speedup(OPTIONS, here) == 0.8
