import os
import struct

import psutil
import pytest

from qwendesk.core.units import GIB, MIB
from qwendesk.hardware.probes.base import ProbeRequest
from qwendesk.hardware.probes.macos import MacosProbe, swap_used, working_set
from qwendesk.hardware.probes.system import SystemProbe

SWAP = struct.pack("=QQQII", 4 * GIB, 3 * GIB, 1 * GIB, 16384, 1)


def mac(brand: str = "Apple M4 Max", wired: int = 0):
    values = {
        "machdep.cpu.brand_string": brand.encode() + b"\0",
        "hw.memsize": (64 * GIB).to_bytes(8, "little"),
        "iogpu.wired_limit_mb": wired.to_bytes(4, "little"),
        "vm.swapusage": SWAP,
    }
    return values.get


def test_an_apple_chip_has_unified_memory_with_a_budget():
    found = MacosProbe(mac(), lambda: 48 * GIB).read(ProbeRequest(None, 0))
    (gpu,) = found.gpus
    assert (gpu.name, gpu.vendor, gpu.unified) == ("Apple M4 Max", "apple", True)
    assert (gpu.total_bytes, gpu.budget_bytes) == (64 * GIB, 48 * GIB)
    assert found.system.swap_used_bytes == GIB


def test_intel_mac_has_no_gpu_reading():
    assert MacosProbe(mac("Intel(R) Core(TM) i9"), lambda: None).read(ProbeRequest(None, 0)).gpus == ()
    nothing = MacosProbe(lambda _name: None, lambda: None).read(ProbeRequest(None, 0))
    assert nothing.gpus == ()
    assert nothing.system.swap_used_bytes is None


def test_working_set_is_read():
    assert working_set(64 * GIB, 57_344, 48 * GIB) == 56 * GIB, "a limit set by hand wins"
    assert working_set(64 * GIB, 0, 48 * GIB) == 48 * GIB
    assert working_set(48 * GIB, None, None) == 32 * GIB
    assert working_set(None, None, None) is None
    assert swap_used(b"short") is None
    assert swap_used(struct.pack("=QQQII", 0, 0, 5 * MIB, 0, 0)) == 5 * MIB


def test_ram_of_this_pc_and_process_is_read():
    system = SystemProbe().read(ProbeRequest(os.getpid(), 0)).system
    assert system is not None
    assert 0 < system.ram_used_bytes < system.ram_total_bytes
    assert MIB < system.engine_ram_bytes < system.ram_total_bytes


@pytest.mark.parametrize("pid", [None, 2**22 + 1])
def test_engine_that_is_not_running_has_no_ram(pid):
    assert SystemProbe().read(ProbeRequest(pid, 0)).system.engine_ram_bytes is None


def test_ram_is_read_where_the_cpu_load_is_not_reported(monkeypatch):
    def refuse(interval):
        raise OSError(22, "Invalid function")

    monkeypatch.setattr(psutil, "cpu_percent", refuse)
    system = SystemProbe().read(ProbeRequest(None, 0)).system
    assert system.ram_total_bytes
    assert system.cpu_percent is None
