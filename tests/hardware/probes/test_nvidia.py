from types import SimpleNamespace

from qwendesk.hardware.probes.base import ProbeRequest
from qwendesk.hardware.probes.nvidia import NvidiaProbe, process_rows, throttle_reasons
from qwendesk.hardware.snapshot import NvLink
from tests.hardware.nvml import (
    FakeNvml,
    NVMLErrorGpuIsLost,
    NVMLErrorLibraryNotFound,
    NVMLErrorNoPermission,
    NVMLErrorNotSupported,
    rtx_3090,
)

ENGINE = 4711


def look(library: FakeNvml, now_s: float = 0.0):
    probe = NvidiaProbe(library)
    found = probe.read(ProbeRequest(ENGINE, now_s))
    probe.close()
    return found


def test_a_card_under_load_is_read_completely():
    (gpu,) = look(FakeNvml(rtx_3090())).gpus
    assert gpu.pci == "0000:01:00.0"
    assert gpu.name == "NVIDIA GeForce RTX 3090"
    assert gpu.total_bytes == 24 * 1024**3
    assert gpu.used_bytes == 24 * 1024**3 - 2_367_150_592, "the driver's own part cannot be had either"
    assert (gpu.busy_percent, gpu.power_w, gpu.power_limit_w, gpu.temperature_c) == (97.0, 312.4, 350.0, 71)
    assert gpu.throttle == ("power cap",)
    assert (gpu.pcie_generation, gpu.pcie_width) == (4, 16)
    assert gpu.pcie_sent_bytes_s == 2_048 * 1024
    assert (gpu.driver, gpu.compute_capability) == ("575.64", (8, 6))
    assert gpu.unified is None
    assert gpu.process(ENGINE).dedicated_bytes == 22_000_000_000
    assert gpu.process(900).dedicated_bytes == 500_000_000


def test_two_gpus_are_two_readings():
    other = rtx_3090(nvmlDeviceGetPciInfo=SimpleNamespace(busId="00000000:41:00.0"))
    assert [gpu.pci for gpu in look(FakeNvml(rtx_3090(), other)).gpus] == ["0000:01:00.0", "0000:41:00.0"]


def test_unsupported_or_denied_values_are_unknown():
    gpu = rtx_3090(
        nvmlDeviceGetPowerUsage=NVMLErrorNotSupported("Not Supported"),
        nvmlDeviceGetComputeRunningProcesses=NVMLErrorNoPermission("Insufficient Permissions"),
        nvmlDeviceGetGraphicsRunningProcesses=NVMLErrorNoPermission("Insufficient Permissions"),
        nvmlDeviceGetPcieThroughput=NVMLErrorNotSupported("Not Supported"),
    )
    (read,) = look(FakeNvml(gpu)).gpus
    assert read.power_w is None
    assert read.processes is None
    assert read.pcie_sent_bytes_s is None
    assert read.temperature_c == 71


def test_a_gpu_without_memory_of_its_own_shares_the_ram():
    (gpu,) = look(FakeNvml(rtx_3090(nvmlDeviceGetMemoryInfo=NVMLErrorNotSupported("Not Supported")))).gpus
    assert gpu.unified is True
    assert gpu.total_bytes is None


def test_removed_gpu_disappears_and_the_other_stays():
    library = FakeNvml(rtx_3090(), rtx_3090(nvmlDeviceGetPciInfo=SimpleNamespace(busId="00000000:41:00.0")))
    probe = NvidiaProbe(library)
    assert len(probe.read(ProbeRequest(ENGINE, 0)).gpus) == 2
    library.gpus[0]["lost"] = NVMLErrorGpuIsLost("GPU is lost")
    assert [gpu.pci for gpu in probe.read(ProbeRequest(ENGINE, 1)).gpus] == ["0000:41:00.0"]


def test_restarted_driver_is_found_again():
    library = FakeNvml(rtx_3090())
    probe = NvidiaProbe(library)
    assert probe.read(ProbeRequest(None, 0)).gpus
    library.fault = NVMLErrorGpuIsLost("uninitialised")
    assert probe.read(ProbeRequest(None, 1)).gpus == ()
    assert probe.read(ProbeRequest(None, 2)).gpus == ()
    library.fault = None
    assert probe.read(ProbeRequest(None, 3)).gpus == (), "not asked again at once"
    assert len(probe.read(ProbeRequest(None, 90)).gpus) == 1


def test_broken_driver_is_logged_but_a_missing_one_is_not():
    assert look(FakeNvml(fault=NVMLErrorLibraryNotFound("NVML Shared Library Not Found"))).notes == ()
    broken = look(FakeNvml(fault=NVMLErrorNoPermission("Driver/library version mismatch")))
    assert broken.gpus == ()
    assert "version mismatch" in broken.notes[0]


def test_pcie_is_read_every_five_seconds_at_most():
    library = FakeNvml(rtx_3090())
    probe = NvidiaProbe(library)
    for now_s in (0.0, 1.0, 2.0, 4.9, 5.0, 6.0):
        assert probe.read(ProbeRequest(None, now_s)).gpus[0].pcie_received_bytes_s == 2_048 * 1024
    assert library.calls.count("nvmlDeviceGetPcieThroughput") == 4, "two directions, at 0 and 5 s"


def bridged(own: str, other: str, states: tuple[int, ...] = (1, 1, 1, 1)):
    """An RTX 3090 with a bridge to another one, whose PCI address NVML writes with a long domain."""
    return rtx_3090(
        nvmlDeviceGetPciInfo=SimpleNamespace(busId=f"00000000:{own}:00.0"),
        nvmlDeviceGetNvLinkState=states,
        nvmlDeviceGetNvLinkRemoteDeviceType=(0,) * len(states),
        nvmlDeviceGetNvLinkRemotePciInfo=tuple(
            SimpleNamespace(busId=f"00000000:{other}:00.0".encode()) for _ in states
        ),
    )


def test_nvlink_is_read_with_the_card_at_its_other_end():
    first, second = look(FakeNvml(bridged("01", "41"), bridged("41", "01", (1, 1, 0, 1)))).gpus
    assert first.nvlinks == (NvLink(4, "0000:41:00.0"),)
    assert second.nvlinks == (NvLink(3, "0000:01:00.0"),), "a link that is down doesn't count"


def test_a_slot_for_a_bridge_without_one_is_no_link():
    (gpu,) = look(FakeNvml(bridged("01", "41", (0, 0, 0, 0)))).gpus
    assert gpu.nvlinks == ()


def test_nvlink_to_a_switch_names_no_card():
    gpu = rtx_3090(nvmlDeviceGetNvLinkState=(1, 1), nvmlDeviceGetNvLinkRemoteDeviceType=(2, 2))
    assert look(FakeNvml(gpu)).gpus[0].nvlinks == (NvLink(2),)


def test_a_card_without_nvlink_is_asked_for_one_link_once_a_minute():
    library = FakeNvml(rtx_3090())
    probe = NvidiaProbe(library)
    for now_s in (0.0, 1.0, 59.0, 60.0):
        assert probe.read(ProbeRequest(None, now_s)).gpus[0].nvlinks is None
    assert library.calls.count("nvmlDeviceGetNvLinkState") == 2


def test_windows_lists_processes_without_their_bytes():
    rows = process_rows([SimpleNamespace(pid=7, usedGpuMemory=None), SimpleNamespace(pid=7, usedGpuMemory=None)])
    assert [(row.pid, row.dedicated_bytes) for row in rows] == [(7, None)]


def test_throttle_bits_are_named():
    assert throttle_reasons(0) == ()
    assert throttle_reasons(0x1) == ("idle",)
    assert throttle_reasons(0x4 | 0x20) == ("power cap", "thermal")
    assert throttle_reasons(0x8 | 0x40 | 0x80) == ("hardware", "thermal")
