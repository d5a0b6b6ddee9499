"""AMD and Intel on Linux: recorded sysfs and fdinfo of discrete and integrated GPUs, new kernels and old ones."""

import sys

import pytest

from qwendesk.core.units import GIB, KIB, MIB
from qwendesk.hardware.probes.base import ProbeRequest, number_in, pci_address, read_text
from qwendesk.hardware.probes.linux_fdinfo import LinuxFdinfoProbe, parse_client, sum_by_gpu
from qwendesk.hardware.probes.linux_sysfs import LinuxAmdProbe, LinuxIntelProbe
from tests.hardware.sysfs import write_files, write_process

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links as /proc has them need rights on Windows")
NOW = ProbeRequest(4711, 0.0)

RX_7900 = {
    "card1/device/vendor": "0x1002",
    "card1/device/uevent": "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_SLOT_NAME=0000:03:00.0",
    "card1/device/mem_info_vram_total": "25753026560",
    "card1/device/mem_info_vram_used": "24000000000",
    "card1/device/mem_info_gtt_total": "33554432000",
    "card1/device/mem_info_gtt_used": "1500000000",
    "card1/device/gpu_busy_percent": "98",
    "card1/device/current_link_speed": "2.5 GT/s PCIe",
    "card1/device/max_link_speed": "16.0 GT/s PCIe",
    "card1/device/current_link_width": "16",
    "card1/device/hwmon/hwmon4/power1_average": "287000000",
    "card1/device/hwmon/hwmon4/power1_cap": "339000000",
    "card1/device/hwmon/hwmon4/temp1_input": "63000",
    "card1/device/hwmon/hwmon4/freq1_input": "2482000000",
    "card1/device/hwmon/hwmon4/freq2_input": "1249000000",
    "card1-DP-1/status": "connected",
}
APU = {
    "card0/device/vendor": "0x1002",
    "card0/device/uevent": "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:c5:00.0",
    "card0/device/mem_info_vram_total": "536870912",
    "card0/device/mem_info_vram_used": "400000000",
    "card0/device/hwmon/hwmon2/power1_input": "15000000",
    "card0/device/hwmon/hwmon2/freq1_input": "800000000",
}
ARC = {
    "card1/device/vendor": "0x8086",
    "card1/device/uevent": "DRIVER=xe\nPCI_SLOT_NAME=0000:04:00.0",
    "card1/device/tile0/physical_vram_size_bytes": "0x3fa000000",
    "card1/device/tile0/gt0/freq0/act_freq": "2400",
    "card1/device/hwmon/hwmon3/energy1_input": "1000000000",
    "card1/device/hwmon/hwmon3/temp2_input": "58000",
}
IRIS = {
    "card0/device/vendor": "0x8086",
    "card0/device/uevent": "DRIVER=i915\nPCI_SLOT_NAME=0000:00:02.0",
    "card0/gt_act_freq_mhz": "1300",
}


def test_discrete_amd_card_is_read(tmp_path):
    (gpu,) = LinuxAmdProbe(write_files(tmp_path, RX_7900)).read(NOW).gpus
    assert (gpu.pci, gpu.vendor, gpu.driver, gpu.unified) == ("0000:03:00.0", "amd", "amdgpu", False)
    assert (gpu.total_bytes, gpu.used_bytes, gpu.shared_used_bytes) == (25753026560, 24000000000, 1500000000)
    assert (gpu.busy_percent, gpu.power_w, gpu.power_limit_w, gpu.temperature_c) == (98.0, 287.0, 339.0, 63.0)
    assert (gpu.core_mhz, gpu.memory_mhz, gpu.pcie_generation, gpu.pcie_width) == (2482, 1249, 1, 16)
    assert gpu.pcie_max_generation is None, "what the slot can do isn't known"


def test_an_idle_card_has_the_speed_that_it_and_its_slot_reach(tmp_path):
    """A card for PCIe 4.0 in a slot with 3.0, whose root port is of the maker of the CPU."""
    device = write_files(
        tmp_path / "pci0000:00" / "0000:00:01.0" / "0000:03:00.0",
        {name.removeprefix("card1/device/"): text for name, text in RX_7900.items() if "device/" in name},
    )
    write_files(device.parent, {"vendor": "0x1022", "max_link_speed": "8.0 GT/s PCIe"})
    root = write_files(tmp_path / "drm", {"card1/dev": "226:1"})
    (root / "card1" / "device").symlink_to(device)
    (gpu,) = LinuxAmdProbe(root).read(NOW).gpus
    assert (gpu.pcie_generation, gpu.pcie_max_generation, gpu.pcie_width) == (1, 3, 16)


def test_a_card_with_a_switch_has_the_link_of_the_switch_to_the_slot(tmp_path):
    """An Intel Arc on an Intel CPU: the GPU's link to the switch on its card shows 2.5 GT/s and one lane."""
    slow = {"vendor": "0x8086", "current_link_speed": "2.5 GT/s PCIe", "max_link_speed": "2.5 GT/s PCIe"}
    port = write_files(
        tmp_path / "pci0000:00" / "0000:00:01.0", {"vendor": "0x8086", "max_link_speed": "32.0 GT/s PCIe"}
    )
    switch = write_files(port / "0000:01:00.0", slow | {"max_link_speed": "16.0 GT/s PCIe", "current_link_width": "8"})
    arc = {name.removeprefix("card1/device/"): text for name, text in ARC.items()}
    device = write_files(switch / "0000:02:01.0" / "0000:04:00.0", arc | slow | {"current_link_width": "1"})
    write_files(device.parent, slow)
    root = write_files(tmp_path / "drm", {"card1/dev": "226:1"})
    (root / "card1" / "device").symlink_to(device)
    (gpu,) = LinuxIntelProbe(root).read(NOW).gpus
    assert (gpu.pcie_generation, gpu.pcie_max_generation, gpu.pcie_width) == (1, 4, 8)


def test_a_strix_halo_is_known_by_its_id_even_if_much_memory_is_set_aside_for_it(tmp_path):
    files = APU | {"card0/device/device": "0x1586", "card0/device/mem_info_vram_total": str(96 * GIB)}
    (gpu,) = LinuxAmdProbe(write_files(tmp_path, files)).read(NOW).gpus
    assert (gpu.name, gpu.unified, gpu.total_bytes) == ("AMD Strix Halo", True, 96 * GIB)


def test_amd_apu_and_discrete_card_are_read(tmp_path):
    write_files(tmp_path, RX_7900)
    apu, card = LinuxAmdProbe(write_files(tmp_path, APU)).read(NOW).gpus
    assert (apu.unified, apu.power_w, apu.busy_percent) == (True, 15.0, None)
    assert (card.unified, card.pci) == (False, "0000:03:00.0")


def test_unplugged_and_unreadable_cards_are_unknown(tmp_path):
    probe = LinuxAmdProbe(write_files(tmp_path, {"card1/device/vendor": "0x1002"}))
    (gpu,) = probe.read(NOW).gpus
    assert (gpu.pci, gpu.total_bytes, gpu.unified, gpu.power_w) == (None, None, None, None)
    (tmp_path / "card1" / "device" / "vendor").unlink()
    assert probe.read(NOW).gpus == ()
    assert LinuxAmdProbe(tmp_path / "nowhere").read(NOW).gpus == ()


def test_discrete_and_integrated_intel_gpus_are_read(tmp_path):
    write_files(tmp_path, ARC)
    probe = LinuxIntelProbe(write_files(tmp_path, IRIS))
    small, big = probe.read(ProbeRequest(None, 10.0)).gpus
    assert (small.unified, small.total_bytes, small.core_mhz) == (True, None, 1300)
    assert (big.unified, big.total_bytes, big.power_w, big.temperature_c) == (False, 0x3FA000000, None, 58.0)
    write_files(tmp_path, {"card1/device/hwmon/hwmon3/energy1_input": "1300000000"})
    assert probe.read(ProbeRequest(None, 12.0)).gpus[1].power_w == 150.0


AMD_OLD = """pos:	0
flags:	02100002
drm-driver:	amdgpu
drm-client-id:	42
drm-pdev:	0000:03:00.0
drm-memory-vram:	20971520 KiB
drm-memory-gtt: 	1331200 KiB
amd-evicted-vram:	262144 KiB"""
AMD_NEW = """drm-driver:	amdgpu
drm-client-id:	42
drm-pdev:	0000:03:00.0
drm-total-vram:	21000000 KiB
drm-shared-vram:	0
drm-resident-vram:	20971520 KiB
drm-memory-vram:	20971520 KiB
drm-resident-gtt:	1331200 KiB
drm-memory-gtt:	1331200 KiB"""
XE = """drm-driver:	xe
drm-client-id:	7
drm-pdev:	0000:04:00.0
drm-total-system:	0
drm-resident-system:	100 MiB
drm-resident-gtt:	2048 KiB
drm-resident-vram0:	9 GiB"""
I915 = """drm-driver: i915
drm-pdev:   0000:00:02.0
drm-client-id:  3
drm-resident-system0:   51200 KiB"""


def test_fdinfo_of_every_driver_is_parsed():
    old, new, xe, i915 = (parse_client(text) for text in (AMD_OLD, AMD_NEW, XE, I915))
    assert (old.vram_bytes, old.shared_bytes, old.evicted_bytes) == (20 * GIB, 1300 * MIB, 256 * MIB)
    assert (new.vram_bytes, new.shared_bytes, new.evicted_bytes) == (20 * GIB, 1300 * MIB, None)
    assert (xe.vram_bytes, xe.shared_bytes) == (9 * GIB, 100 * MIB + 2048 * KIB)
    assert (i915.vram_bytes, i915.shared_bytes) == (None, 50 * MIB)
    assert parse_client("pos:\t0\nflags:\t02") is None
    assert parse_client("drm-driver:\tvgem\ndrm-client-id:\t1") is None


def test_a_client_behind_two_descriptors_counts_once_and_two_clients_add_up():
    second = AMD_OLD.replace("42", "43")
    memory = sum_by_gpu([parse_client(text) for text in (AMD_OLD, AMD_OLD, second)], 4711)
    assert memory["0000:03:00.0"].dedicated_bytes == 40 * GIB


def test_processes_by_gpu_with_their_names(tmp_path):
    write_process(tmp_path, 4711, "qwendesk-engine", AMD_OLD, AMD_OLD)
    write_process(tmp_path, 900, "game.exe", AMD_OLD.replace("42", "5").replace("20971520", "1048576"))
    write_process(tmp_path, 901, "bash")
    (tmp_path / "self").mkdir()
    (gpu,) = LinuxFdinfoProbe(tmp_path).read(NOW).gpus
    assert gpu.process(4711).dedicated_bytes == 20 * GIB
    assert (gpu.process(900).name, gpu.process(900).dedicated_bytes) == ("game.exe", GIB)
    assert gpu.process(901) is None


def test_exited_engine_causes_no_error(tmp_path):
    write_process(tmp_path, 900, "game.exe", AMD_OLD)
    (gpu,) = LinuxFdinfoProbe(tmp_path).read(NOW).gpus
    assert gpu.process(4711) is None


def test_other_processes_are_read_at_long_intervals(tmp_path):
    write_process(tmp_path, 4711, "qwendesk-engine", AMD_OLD)
    probe = LinuxFdinfoProbe(tmp_path)
    probe.read(ProbeRequest(4711, 0.0))
    write_process(tmp_path, 900, "game.exe", AMD_OLD.replace("42", "5"))
    assert probe.read(ProbeRequest(4711, 1.0)).gpus[0].process(900) is None
    assert probe.read(ProbeRequest(4711, 11.0)).gpus[0].process(900) is not None


def test_gpu_load_of_the_engine_on_intel(tmp_path):
    i915 = I915 + "\ndrm-engine-render:\t{0} ns\ndrm-engine-video:\t7 ns\ndrm-engine-capacity-video:\t2"
    folder = write_process(tmp_path, 4711, "qwendesk-engine", i915.format(1_000_000_000))
    probe = LinuxFdinfoProbe(tmp_path)
    assert probe.read(ProbeRequest(4711, 10.0)).gpus[0].busy_percent is None, "one look tells no speed"
    write_files(folder, {"fdinfo/3": i915.format(2_500_000_000)})
    assert probe.read(ProbeRequest(4711, 12.0)).gpus[0].busy_percent == 75.0
    write_files(folder, {"fdinfo/3": i915.format(0)})
    assert probe.read(ProbeRequest(4711, 13.0)).gpus[0].busy_percent == 0.0, "the video engine's count is still told"


def test_gpu_load_from_cycles_of_xe(tmp_path):
    xe = XE + "\ndrm-cycles-ccs:\t{0}\ndrm-total-cycles-ccs:\t{1}\ndrm-cycles-rcs:\t5\ndrm-total-cycles-rcs:\t0"
    folder = write_process(tmp_path, 4711, "qwendesk-engine", xe.format(100, 1000))
    probe = LinuxFdinfoProbe(tmp_path)
    probe.read(ProbeRequest(4711, 10.0))
    write_files(folder, {"fdinfo/3": xe.format(500, 1500)})
    assert probe.read(ProbeRequest(4711, 11.0)).gpus[0].busy_percent == 80.0


def test_numbers_and_addresses_are_parsed(tmp_path):
    assert pci_address("00000000:0A:00.0") == "0000:0a:00.0"
    assert pci_address("usb-1") is None
    assert number_in("0x10") == 16
    assert number_in("12 W") == 12
    assert number_in("02100002") == 2100002
    assert number_in(None) is number_in("none") is None
    assert read_text(tmp_path) is None, "a folder is no text"
