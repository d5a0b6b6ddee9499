"""The picture of the RAM: its parts add up to the RAM, whatever the system counts the model's file as."""

import msgspec
import pytest

from qwendesk.core.options import DecidedOptions
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import Allocation
from qwendesk.hardware.snapshot import Snapshot, SystemReading
from qwendesk.meters.meter_state import ram_memory
from tests.fakes.engine import DEMO_REPORT

MODEL = Allocation("CPU", weights_bytes=8 * GIB, kv_bytes=2 * GIB, compute_bytes=GIB)


def snapshot(used: int) -> Snapshot:
    return Snapshot(at_s=0, system=SystemReading(ram_total_bytes=32 * GIB, ram_available_bytes=(32 - used) * GIB))


def parts(used: int, load_mode: str, *, counts_files: bool = False) -> dict[str, int]:
    options = msgspec.structs.replace(DecidedOptions(model="m.gguf"), load_mode=load_mode)
    report = msgspec.structs.replace(DEMO_REPORT, options=options, allocations=(MODEL,))
    segments = ram_memory(snapshot(used), report, counts_files=counts_files)
    assert sum(each.n_bytes for each in segments) == 32 * GIB
    return {each.kind: each.n_bytes // GIB for each in segments}


def test_a_mapped_file_that_the_system_counts_as_free_is_the_model_s() -> None:
    assert parts(7, "mmap") == {"weights": 8, "context": 2, "buffers": 1, "other": 4, "free": 17}


def test_a_copied_file_is_counted_once() -> None:
    assert parts(15, "none") == {"weights": 8, "context": 2, "buffers": 1, "other": 4, "free": 17}


@pytest.mark.parametrize("used", [1, 29, 32])
def test_the_parts_add_up_also_where_the_memory_is_nearly_full(used: int) -> None:
    assert parts(used, "mmap")["free"] >= 0


def test_a_mapped_file_that_the_system_counts_as_used_is_counted_once() -> None:
    assert parts(15, "mmap", counts_files=True) == {"weights": 8, "context": 2, "buffers": 1, "other": 4, "free": 17}


def test_without_a_model_there_are_others_and_the_rest() -> None:
    segments = ram_memory(snapshot(7), None)

    assert [(each.kind, each.n_bytes // GIB) for each in segments] == [("other", 7), ("free", 25)]
    assert ram_memory(Snapshot(at_s=0), None) == ()
