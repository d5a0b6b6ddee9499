import logging
import os

from qwendesk.core.units import GIB, MIB
from qwendesk.hardware.looking import Looking, join_gpus, probes_here, program_name
from qwendesk.hardware.probes.base import Found
from qwendesk.hardware.probes.nvidia import NvidiaProbe
from qwendesk.hardware.probes.windows_d3dkmt import WindowsD3dkmtProbe
from qwendesk.hardware.probes.windows_pdh import WindowsPdhProbe
from qwendesk.hardware.snapshot import GpuReading, ProcessMemory, SystemReading
from tests.hardware.dlls import FakeGdi, FakeKernel, FakePdh
from tests.hardware.nvml import FakeNvml, rtx_3090

LUID = "0x00000000_0x0000d3f2"


class Says:
    def __init__(self, found: Found | Exception) -> None:
        self.found = found
        self.asked = 0
        self.closed = False

    def read(self, _ask):
        self.asked += 1
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    def close(self):
        self.closed = True


def test_windows_joins_three_sources_by_pci_address_and_luid():
    row = f"pid_4711_luid_{LUID}_phys_0"
    adapter = {"low": 0xD3F2, "flags": 1, "bus": (1, 0, 0), "name": "NVIDIA", "dedicated": 24 * GIB, "shared": 32 * GIB}
    other = {"low": 0xC1A0, "flags": 0b100001, "bus": (0, 2, 0), "name": "Intel(R) UHD", "dedicated": 128 * MIB}
    windows_rows = [rtx_3090(nvmlDeviceGetComputeRunningProcesses=[], nvmlDeviceGetGraphicsRunningProcesses=[])]
    looking = Looking(
        (
            NvidiaProbe(FakeNvml(*windows_rows)),
            WindowsD3dkmtProbe(FakeGdi(adapter, other), FakeKernel()),
            WindowsPdhProbe(
                FakePdh(
                    {
                        "process_dedicated": [(row, 22 * GIB)],
                        "process_shared": [(row, 1300 * MIB)],
                        "adapter_dedicated": [(f"luid_{LUID}_phys_0", 23 * GIB), ("luid_0x0_0x99_phys_0", 0)],
                    }
                )
            ),
        )
    )
    snapshot = looking.look(4711, 5.0)
    looking.close()
    small, big = snapshot.gpus
    assert small.name == "Intel(R) UHD"
    assert (big.pci, big.luid, big.name) == ("0000:01:00.0", LUID, "NVIDIA GeForce RTX 3090")
    assert big.process(4711).shared_bytes == 1300 * MIB
    assert big.power_w == 312.4
    assert big.shared_total_bytes == 32 * GIB
    assert snapshot.at_s == 5.0


def test_processes_are_joined_row_by_row():
    nvml = GpuReading(pci="0000:01:00.0", processes=(ProcessMemory(pid=1), ProcessMemory(pid=2, dedicated_bytes=7)))
    other = GpuReading(pci="0000:01:00.0", processes=(ProcessMemory(pid=1, dedicated_bytes=5, name="game"),))
    (gpu,) = join_gpus([nvml, other])
    assert gpu.process(1) == ProcessMemory(pid=1, dedicated_bytes=5, name="game")
    assert gpu.process(2).dedicated_bytes == 7


def test_a_third_reading_joins_two_that_share_nothing():
    readings = [
        GpuReading(pci="0000:01:00.0", name="by address"),
        GpuReading(luid=LUID, used_bytes=5),
        GpuReading(pci="0000:01:00.0", luid=LUID),
    ]
    (gpu,) = join_gpus(readings)
    assert (gpu.name, gpu.used_bytes) == ("by address", 5)


def test_a_probe_that_breaks_is_left_out_and_logged_once(caplog):
    broken, fine = Says(ZeroDivisionError("oops")), Says(Found(system=SystemReading(ram_total_bytes=5)))
    looking = Looking((broken, fine))
    with caplog.at_level(logging.ERROR):
        for now_s in range(3):
            assert looking.look(None, now_s).system.ram_total_bytes == 5
    assert (broken.asked, fine.asked) == (1, 3)
    assert caplog.text.count("Says failed") == 1
    looking.close()
    assert broken.closed


def test_a_large_process_without_a_name_is_asked_for_once_while_it_is_there():
    asked = []

    def name_of(pid: int) -> str:
        asked.append(pid)
        return f"program {pid}"

    def rows(*sizes: int) -> Found:
        processes = tuple(ProcessMemory(pid=pid, dedicated_bytes=size) for pid, size in enumerate(sizes, 1))
        return Found(gpus=(GpuReading(pci="0000:01:00.0", processes=processes),))

    probe = Says(rows(GIB, MIB))
    looking = Looking((probe,), name_of)
    for now_s in range(3):
        (gpu,) = looking.look(None, now_s).gpus
        assert [row.name for row in gpu.processes] == ["program 1", ""]
    assert asked == [1]
    probe.found = rows(0)
    looking.look(None, 3)
    probe.found = rows(GIB)
    looking.look(None, 4)
    assert asked == [1, 1], "the number may belong to another program by now"


def test_a_program_that_ended_has_no_name():
    assert program_name(os.getpid())
    assert program_name(2**22 + 1) == ""


def test_what_one_system_probe_does_not_know_another_fills_in():
    first = Says(Found(system=SystemReading(swap_used_bytes=3), notes=("a note",)))
    second = Says(Found(system=SystemReading(swap_used_bytes=9, ram_total_bytes=8, ram_available_bytes=2)))
    snapshot = Looking((first, second)).look(None, 0)
    assert (snapshot.system.swap_used_bytes, snapshot.system.ram_used_bytes) == (3, 6)
    assert snapshot.notes == ("a note",)


def test_every_system_has_its_probes_and_none_of_them_fails_here():
    for platform in ("win32", "darwin", "linux"):
        looking = Looking(probes_here(platform))
        assert looking.look(None, 0.0).system.ram_total_bytes
        assert looking._broken == set()
        looking.close()
