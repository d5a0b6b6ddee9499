import logging
import os

from qwendesk.core.units import GIB, MIB
from qwendesk.hardware.probes.base import ProbeResult
from qwendesk.hardware.probes.nvidia import NvidiaProbe
from qwendesk.hardware.probes.windows_d3dkmt import WindowsD3dkmtProbe
from qwendesk.hardware.probes.windows_pdh import WindowsPdhProbe
from qwendesk.hardware.snapshot import GpuReading, ProcessMemory, SystemReading
from qwendesk.hardware.snapshot_reader import SnapshotReader, join_gpus, program_name, system_probes
from tests.hardware.dlls import FakeGdi, FakeKernel, FakePdh
from tests.hardware.nvml import FakeNvml, rtx_3090

LUID = "0x00000000_0x0000d3f2"


class Says:
    def __init__(self, found: ProbeResult | Exception) -> None:
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


def test_windows_readings_are_joined_by_pci_address_and_luid():
    row = f"pid_4711_luid_{LUID}_phys_0"
    adapter = {"low": 0xD3F2, "flags": 1, "bus": (1, 0, 0), "name": "NVIDIA", "dedicated": 24 * GIB, "shared": 32 * GIB}
    other = {"low": 0xC1A0, "flags": 0b100001, "bus": (0, 2, 0), "name": "Intel(R) UHD", "dedicated": 128 * MIB}
    windows_rows = [rtx_3090(nvmlDeviceGetComputeRunningProcesses=[], nvmlDeviceGetGraphicsRunningProcesses=[])]
    reader = SnapshotReader(
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
    snapshot = reader.read(4711, 5.0)
    reader.close()
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


def test_third_reading_joins_two_without_a_common_key():
    readings = [
        GpuReading(pci="0000:01:00.0", name="by address"),
        GpuReading(luid=LUID, used_bytes=5),
        GpuReading(pci="0000:01:00.0", luid=LUID),
    ]
    (gpu,) = join_gpus(readings)
    assert (gpu.name, gpu.used_bytes) == ("by address", 5)


def test_failing_probe_is_skipped_and_logged_once(caplog):
    broken, fine = Says(ZeroDivisionError("oops")), Says(ProbeResult(system=SystemReading(ram_total_bytes=5)))
    reader = SnapshotReader((broken, fine))
    with caplog.at_level(logging.ERROR):
        for now_s in range(3):
            assert reader.read(None, now_s).system.ram_total_bytes == 5
    assert (broken.asked, fine.asked) == (1, 3)
    assert caplog.text.count("Says failed") == 1
    reader.close()
    assert broken.closed


def test_name_of_a_large_process_is_looked_up_once():
    asked = []

    def name_of(pid: int) -> str:
        asked.append(pid)
        return f"program {pid}"

    def rows(*sizes: int) -> ProbeResult:
        processes = tuple(ProcessMemory(pid=pid, dedicated_bytes=size) for pid, size in enumerate(sizes, 1))
        return ProbeResult(gpus=(GpuReading(pci="0000:01:00.0", processes=processes),))

    probe = Says(rows(GIB, MIB))
    reader = SnapshotReader((probe,), name_of)
    for now_s in range(3):
        (gpu,) = reader.read(None, now_s).gpus
        assert [row.name for row in gpu.processes] == ["program 1", ""]
    assert asked == [1]
    probe.found = rows(0)
    reader.read(None, 3)
    probe.found = rows(GIB)
    reader.read(None, 4)
    assert asked == [1, 1], "the number may belong to another program by now"


def test_exited_process_has_no_name():
    assert program_name(os.getpid())
    assert program_name(2**22 + 1) == ""


def test_system_readings_complete_each_other():
    first = Says(ProbeResult(system=SystemReading(swap_used_bytes=3), notes=("a note",)))
    second = Says(ProbeResult(system=SystemReading(swap_used_bytes=9, ram_total_bytes=8, ram_available_bytes=2)))
    snapshot = SnapshotReader((first, second)).read(None, 0)
    assert (snapshot.system.swap_used_bytes, snapshot.system.ram_used_bytes) == (3, 6)
    assert snapshot.notes == ("a note",)


def test_probes_of_every_system_can_be_read():
    for platform in ("win32", "darwin", "linux"):
        reader = SnapshotReader(system_probes(platform))
        assert reader.read(None, 0.0).system.ram_total_bytes
        assert reader._broken == set()
        reader.close()
