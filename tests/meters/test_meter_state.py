import asyncio
import logging
from pathlib import PurePath

import msgspec
import pytest

from qwendesk.core.devices import DeviceInfo, Segment
from qwendesk.core.plan import SpeedEstimate
from qwendesk.core.units import GIB, MIB
from qwendesk.engine.protocol import Allocation
from qwendesk.engines.measurements import MeasuredSpeeds, key_of
from qwendesk.hardware.engine_gpus import match_gpus
from qwendesk.hardware.snapshot import GpuReading, ProcessMemory, Snapshot, SystemReading
from qwendesk.meters.meter_state import gpu_bar, new_consumer, new_consumers, shared_memory, used_devices
from qwendesk.meters.view.meter_text import segments_text
from tests.fakes.gaming_pc import OPTIONS, REPORT


def device(name: str, description: str, kind="gpu") -> DeviceInfo:
    return DeviceInfo(name, description, kind, "Vulkan")


def test_devices_are_matched_to_gpus_by_name_or_order():
    big = GpuReading(pci="0000:01:00.0", name="NVIDIA GeForce RTX 4090")
    small = GpuReading(pci="0000:00:02.0", name="Intel(R) UHD Graphics 770", unified=True)
    found = match_gpus(
        [device("Vulkan0", "Intel UHD Graphics 770", "igpu"), device("Vulkan1", "NVIDIA GeForce RTX 4090")],
        [big, small],
    )
    assert (found["Vulkan0"], found["Vulkan1"]) == (small, big)
    amd = GpuReading(pci="0000:03:00.0", name=None)
    assert match_gpus([device("ROCm0", "AMD Radeon RX 7900 XTX")], [small, amd]) == {"ROCm0": amd}
    assert match_gpus([device("CPU", "Ryzen", "cpu")], [big]) == {}


def test_two_cards_of_one_kind_keep_their_order():
    first, second = (GpuReading(pci=f"0000:0{slot}:00.0", name="NVIDIA GeForce RTX 3090") for slot in (1, 2))
    found = match_gpus([device("CUDA0", first.name), device("CUDA1", first.name)], [first, second])
    assert (found["CUDA0"], found["CUDA1"]) == (first, second)


def test_only_copied_weights_are_host_buffers():
    assert REPORT.host_bytes == 300 * MIB
    copied = msgspec.structs.replace(REPORT, options=msgspec.structs.replace(OPTIONS, load_mode="none"))
    assert copied.host_bytes == 800 * MIB
    assert msgspec.structs.replace(REPORT, allocations=()).host_bytes is None


def test_devices_of_a_load_are_found():
    cuda, spare = device("CUDA0", "a"), device("CUDA1", "b")
    assert used_devices(REPORT, [cuda, spare, device("CPU", "c", "cpu")]) == (cuda,)
    silent = msgspec.structs.replace(REPORT, allocations=())
    assert used_devices(silent, [cuda, spare]) == (cuda, spare)
    on_cpu = msgspec.structs.replace(OPTIONS, devices=("none",))
    assert used_devices(msgspec.structs.replace(silent, options=on_cpu), [cuda]) == ()


@pytest.mark.parametrize("dedicated", [None, 10 * GIB, 22 * GIB, 23 * GIB])
def test_the_segments_always_add_up(dedicated):
    gpu = GpuReading(
        pci="0000:01:00.0",
        total_bytes=24 * GIB,
        used_bytes=23 * GIB,
        processes=(ProcessMemory(pid=7, dedicated_bytes=dedicated),),
    )
    bar = gpu_bar(gpu, Allocation("CUDA0", 18 * GIB, 2 * GIB, 0, GIB, GIB), 7)
    assert sum(each.n_bytes for each in bar.segments) == 24 * GIB
    assert all(each.n_bytes >= 0 for each in bar.segments)
    ours = sum(each.n_bytes for each in bar.segments if each.kind not in ("other", "free"))
    assert ours <= (dedicated or 22 * GIB)


def test_no_bar_where_memory_is_unknown_or_the_ram():
    assert gpu_bar(GpuReading(total_bytes=GIB), None, None) is None
    assert gpu_bar(GpuReading(total_bytes=GIB, used_bytes=1, unified=True), None, None) is None


def test_shared_memory_shows_the_engines_numbers_of_gpu_and_cpu() -> None:
    """The system counts buffers of the GPU as used by nobody. A carve-out is memory beside the RAM."""
    halo = GpuReading(name="AMD Strix Halo", vendor="amd", unified=True, total_bytes=32 * GIB, used_bytes=30 * GIB)
    system = SystemReading(ram_total_bytes=96 * GIB, ram_available_bytes=76 * GIB, engine_ram_bytes=GIB)
    rows = (Allocation("Vulkan0", weights_bytes=40 * GIB, kv_bytes=5 * GIB), Allocation("CPU", compute_bytes=GIB))
    loaded = msgspec.structs.replace(REPORT, allocations=rows)
    bar = {each.kind: each.n_bytes for each in shared_memory(Snapshot(at_s=1.0, gpus=(halo,), system=system), loaded)}

    assert bar == {
        "weights": 40 * GIB, "context": 5 * GIB, "buffers": GIB, "other": 4 * GIB, "free": 78 * GIB,
    }  # fmt: skip
    assert segments_text([Segment(kind, n_bytes) for kind, n_bytes in bar.items()]) == "50.0 / 128 GB"
    assert shared_memory(Snapshot(at_s=1.0), loaded) == ()


def test_vram_consumers_are_found():
    before = GpuReading(used_bytes=4 * GIB, processes=(ProcessMemory(pid=1, name="dwm", dedicated_bytes=GIB),))
    game = ProcessMemory(pid=2, name="game", dedicated_bytes=2 * GIB)
    browser = ProcessMemory(pid=1, name="dwm", dedicated_bytes=GIB + 50 * MIB)
    after = GpuReading(used_bytes=7 * GIB, processes=(browser, game))
    assert new_consumer(before, after, None).name == "game"
    assert new_consumer(before, before, None) is None
    busy = ProcessMemory(pid=3, name="render", dedicated_bytes=GIB)
    more = GpuReading(used_bytes=8 * GIB, processes=(browser, game, busy))
    assert [each.name for each in new_consumers(before, more, 3)] == ["game"], "the engine is process 3"
    assert [each.name for each in new_consumers(before, more, None)] == ["game", "render"]
    silent = GpuReading(used_bytes=4 * GIB, processes=(ProcessMemory(pid=9),))
    grown = GpuReading(used_bytes=6 * GIB, processes=(ProcessMemory(pid=9),))
    assert (new_consumer(silent, grown, None).name, new_consumer(silent, grown, None).n_bytes) == ("", 2 * GIB)


def test_speeds_are_compared_at_equal_length_and_placement():
    moved = msgspec.structs.replace(OPTIONS, n_cpu_moe=20)
    assert key_of(OPTIONS, 100) == key_of(OPTIONS, 8_000)
    assert len({key_of(OPTIONS, 100), key_of(OPTIONS, 20_000), key_of(OPTIONS, 200_000), key_of(moved, 100)}) == 4


def test_best_speed_is_kept_and_last_one_replaced(tmp_path):
    book = MeasuredSpeeds(tmp_path / "speeds.json")
    assert book.speed(OPTIONS, 0) is None
    for tok_s in (90.0, 112.0, 15.0):
        book.note(OPTIONS, 0, tok_s)
    kept = book.speed(OPTIONS, 0)
    assert (kept.best, kept.last) == (112.0, 15.0)
    asyncio.run(book.save())
    assert MeasuredSpeeds(tmp_path / "speeds.json").speed(OPTIONS, 0) == kept


def test_speed_of_a_file_is_the_last_one_in_short_chats(tmp_path):
    book = MeasuredSpeeds(tmp_path / "speeds.json")
    moved = msgspec.structs.replace(OPTIONS, n_cpu_moe=20)
    name = PurePath(OPTIONS.model).name
    for options, context, tok_s in (
        (OPTIONS, 200_000, 9.0),
        (OPTIONS, 100, 30.0),
        (moved, 100, 20.0),
        (moved, 9_000, 8.0),
    ):
        book.note(options, context, tok_s)
    assert book.by_file.value == {name: 20.0}
    asyncio.run(book.save())
    assert MeasuredSpeeds(tmp_path / "speeds.json").by_file.value == {name: 20.0}


def test_failed_save_of_speeds_is_logged(tmp_path, caplog):
    (tmp_path / "file").write_text("", encoding="utf-8")
    book = MeasuredSpeeds(tmp_path / "file" / "speeds.json")
    book.note(OPTIONS, 0, 5.0)
    with caplog.at_level(logging.WARNING):
        asyncio.run(book.save())
    assert "could not be written" in caplog.text


def test_speeds_file_has_a_maximum_size(tmp_path):
    book = MeasuredSpeeds(tmp_path / "speeds.json")
    for number in range(300):
        book.note(msgspec.structs.replace(OPTIONS, model=f"/models/{number}.gguf"), 0, 1.0)
    assert book.speed(msgspec.structs.replace(OPTIONS, model="/models/0.gguf"), 0) is None
    assert book.speed(msgspec.structs.replace(OPTIONS, model="/models/299.gguf"), 0) is not None


def test_speeds_that_were_measured_correct_the_estimate_of_gpus(tmp_path):
    book = MeasuredSpeeds(tmp_path / "speeds.json")
    assert book.gpu_factor == 1.0
    book.note(OPTIONS, 0, 50.0, 100.0)
    assert book.gpu_factor == 0.5
    on_cpu = msgspec.structs.replace(OPTIONS, n_gpu_layers=0)
    book.note(on_cpu, 0, 30.0, 10.0)
    assert book.gpu_factor == 0.5, "a CPU says nothing about a GPU"
    book.note(OPTIONS, 0, 40.0)
    assert book.gpu_factor == 0.5, "the best speed counts, and the estimate is kept"
    asyncio.run(book.save())
    assert MeasuredSpeeds(tmp_path / "speeds.json").gpu_factor == 0.5
    book.note(msgspec.structs.replace(OPTIONS, n_cpu_moe=30), 0, 900.0, 10.0)
    book.note(msgspec.structs.replace(OPTIONS, n_cpu_moe=31), 0, 900.0, 10.0)
    assert book.gpu_factor == 2.5


def test_speed_of_the_same_placement_in_the_shortest_chats(tmp_path):
    book = MeasuredSpeeds(tmp_path / "speeds.json")
    assert book.in_short_chats(OPTIONS) is None
    book.note(OPTIONS, 100_000, 60.0)
    assert book.in_short_chats(OPTIONS) == 60.0
    book.note(OPTIONS, 500, 71.0)
    assert book.in_short_chats(OPTIONS) == 71.0
    for other in ({"n_cpu_moe": 20}, {"type_k": "q4_0"}, {"n_threads": 3}, {"n_ctx": 999_936}):
        assert book.in_short_chats(msgspec.structs.replace(OPTIONS, **other)) is None, "that was never measured"
    assert book.in_short_chats(msgspec.structs.replace(OPTIONS, check_tensors=True)) == 71.0


def test_a_measurement_with_other_options_corrects_the_estimate(tmp_path):
    """It said "about 130-960 tok/s" beside 21 that were measured, once the context was changed."""
    book = MeasuredSpeeds(tmp_path / "speeds.json")
    estimate = SpeedEstimate(start=(125.0, 980.0), long=(100.0, 784.0), long_tokens=32_768)
    assert book.with_other_options(OPTIONS, estimate) is None
    book.note(OPTIONS, 500, 21.0)
    for other in ({"n_ctx": 999_936}, {"type_k": "q4_0", "type_v": "q4_0"}):
        found = book.with_other_options(msgspec.structs.replace(OPTIONS, **other), estimate)
        assert found is not None
        assert found.start == pytest.approx((21.0, 21.0))
        assert found.long == pytest.approx((16.8, 16.8)), "a long chat is as much slower as estimated"
    threads = book.with_other_options(msgspec.structs.replace(OPTIONS, n_threads=3), estimate)
    assert threads is not None
    assert threads.start == pytest.approx((7.5, 58.8)), "a range as wide as before, around what was measured"
    moved = msgspec.structs.replace(OPTIONS, n_cpu_moe=20)
    assert book.with_other_options(moved, estimate) is None, "another placement has another speed"
