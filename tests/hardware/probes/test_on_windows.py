"""The probes with Windows' own libraries. Wine has them too, with one adapter and without counters for GPUs."""

import ctypes
import os
import sys

import pytest

from qwendesk.hardware.probes.base import ProbeRequest
from qwendesk.hardware.probes.windows_d3dkmt import WindowsD3dkmtProbe
from qwendesk.hardware.probes.windows_pdh import CounterValue, WindowsPdhProbe
from qwendesk.hardware.snapshot_reader import SnapshotReader

pytestmark = pytest.mark.skipif(sys.platform != "win32", reason="calls Windows' own libraries")


def test_every_adapter_has_a_luid_and_the_second_reading_has_the_same():
    probe = WindowsD3dkmtProbe()
    first, second = (probe.read(ProbeRequest(os.getpid(), now_s)).gpus for now_s in (0.0, 60.0))
    probe.close()
    assert all(gpu.luid for gpu in first)
    assert [gpu.luid for gpu in first] == [gpu.luid for gpu in second]
    assert all(gpu.budget_bytes is None or gpu.budget_bytes > 0 for gpu in first)


def test_counters_for_gpus_are_read_or_a_note_says_that_they_are_missing():
    probe = WindowsPdhProbe()
    found = probe.read(ProbeRequest(os.getpid(), 0.0))
    opened = probe._query.value is not None
    probe.close()
    assert opened != bool(found.notes)
    assert probe._query.value is None


def test_a_counter_that_every_windows_has_is_read_through_the_same_structure():
    library = ctypes.WinDLL("pdh.dll")
    query, counter, value = ctypes.c_void_p(), ctypes.c_void_p(), CounterValue()
    assert library.PdhOpenQueryW(None, 0, ctypes.byref(query)) == 0
    path = r"\System\System Up Time"
    assert library.PdhAddEnglishCounterW(query, path, 0, ctypes.byref(counter)) == 0
    assert library.PdhCollectQueryData(query) == 0
    assert library.PdhGetFormattedCounterValue(counter, 0x400, None, ctypes.byref(value)) == 0
    library.PdhCloseQuery(query)
    assert value.status in {0, 1}
    assert value.large > 0


def test_a_whole_snapshot_has_memory_and_breaks_no_probe(caplog):
    reader = SnapshotReader()
    snapshot = reader.read(os.getpid(), 0.0)
    reader.close()
    assert snapshot.system.ram_total_bytes > 0
    assert snapshot.system.engine_ram_bytes > 0
    assert not caplog.records
