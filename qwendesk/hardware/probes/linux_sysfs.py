"""Reads AMD and Intel GPUs on Linux through sysfs, with the drivers amdgpu, xe and i915."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from qwendesk.hardware.probes.base import ProbeRequest, ProbeResult, list_folder, number_in, pci_address, read_text
from qwendesk.hardware.snapshot import GpuReading

DRM = Path("/sys/class/drm")
_CARD = re.compile(r"^card\d+$")
# PCIe generation by gigatransfers per second, as written in `current_link_speed`.
_GENERATIONS = {
    "2.5": 1,
    "5.0": 2,
    "5": 2,
    "8.0": 3,
    "8": 3,
    "16.0": 4,
    "16": 4,
    "32.0": 5,
    "32": 5,
    "64.0": 6,
    "64": 6,
}
_AMD_VENDOR = "0x1002"
# APUs reserve at most about this much RAM as video memory, unless the BIOS is set to more.
_MAX_APU_BYTES = 1024**3
# Names of APUs with fast memory by PCI device ID. The driver has no product name for them.
_FAST_APUS = {"0x1586": "AMD Strix Halo"}
_INTEL_VENDOR = "0x8086"
# Files with the size of dedicated memory, for xe and for i915. Integrated GPUs have neither.
_INTEL_MEMORY_FILES = ("device/tile0/physical_vram_size_bytes", "lmem_total_bytes")
_INTEL_CLOCK_FILES = ("device/tile0/gt0/freq0/act_freq", "gt_act_freq_mhz")


class PcieLink(msgspec.Struct, frozen=True):
    """The link between a graphics card and its slot; None stands for what isn't known."""

    generation: int | None
    """Now: drivers lower it while the GPU is idle."""
    max_generation: int | None
    """The lower of the abilities of the card and its slot."""
    width: int | None
    """Lanes in use."""


class LinuxAmdProbe:
    """Reads the cards with the vendor ID of AMD."""

    def __init__(self, root: Path = DRM) -> None:
        self._root = root

    def read(self, _request: ProbeRequest) -> ProbeResult:
        return ProbeResult(gpus=tuple(_amd_reading(card) for card in cards_of(_AMD_VENDOR, self._root)))

    def close(self) -> None:
        """Do nothing: no resource stays open."""


def _amd_reading(card: Path) -> GpuReading:
    """Return the reading of one card. Values whose files are missing or can't be read are unknown."""
    device = card / "device"
    sensors, link = hwmon_of(device), pcie_link(device)
    total = number_in(read_text(device / "mem_info_vram_total"))
    core = sensor(sensors, "freq1_input", per_unit=1e6)
    memory = sensor(sensors, "freq2_input", per_unit=1e6)
    fast_apu = _FAST_APUS.get(read_text(device / "device") or "")
    return GpuReading(
        pci=pci_of(card),
        name=read_text(device / "product_name") or fast_apu,
        vendor="amd",
        driver=driver_of(card),
        unified=fast_apu is not None or is_apu(total, has_memory_clock=memory is not None),
        total_bytes=total,
        used_bytes=number_in(read_text(device / "mem_info_vram_used")),
        shared_total_bytes=number_in(read_text(device / "mem_info_gtt_total")),
        shared_used_bytes=number_in(read_text(device / "mem_info_gtt_used")),
        busy_percent=_float(number_in(read_text(device / "gpu_busy_percent"))),
        power_w=sensor(sensors, "power1_average", "power1_input", per_unit=1e6),
        power_limit_w=sensor(sensors, "power1_cap", per_unit=1e6),
        temperature_c=sensor(sensors, "temp1_input", per_unit=1e3),
        core_mhz=None if core is None else round(core),
        memory_mhz=None if memory is None else round(memory),
        pcie_generation=link.generation,
        pcie_max_generation=link.max_generation,
        pcie_width=link.width,
    )


def is_apu(total_bytes: int | None, *, has_memory_clock: bool) -> bool | None:
    """Return whether a GPU is an APU: little reserved memory, and no sensor of a memory clock; None if unknown."""
    if total_bytes is None:
        return None
    return total_bytes <= _MAX_APU_BYTES and not has_memory_clock


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)


class LinuxIntelProbe:
    """Reads the cards with the vendor ID of Intel.

    Power is calculated from an energy counter, so it is known from the second reading on.
    """

    def __init__(self, root: Path = DRM) -> None:
        self._root = root
        self._energy: dict[str, tuple[float, float]] = {}

    def read(self, request: ProbeRequest) -> ProbeResult:
        return ProbeResult(
            gpus=tuple(self._reading(card, request.now_s) for card in cards_of(_INTEL_VENDOR, self._root))
        )

    def close(self) -> None:
        """Do nothing: no resource stays open."""

    def _reading(self, card: Path, now_s: float) -> GpuReading:
        device, driver = card / "device", driver_of(card)
        sensors, link = hwmon_of(device), pcie_link(device)
        total = _first_number(card, _INTEL_MEMORY_FILES)
        return GpuReading(
            pci=pci_of(card),
            vendor="intel",
            driver=driver,
            unified=total is None if driver in ("xe", "i915") else None,
            total_bytes=total,
            power_w=self._power(card.name, sensor(sensors, "energy1_input", per_unit=1e6), now_s),
            power_limit_w=sensor(sensors, "power1_max", per_unit=1e6),
            temperature_c=sensor(sensors, "temp1_input", "temp2_input", per_unit=1e3),
            core_mhz=_first_number(card, _INTEL_CLOCK_FILES),
            pcie_generation=link.generation,
            pcie_max_generation=link.max_generation,
            pcie_width=link.width,
        )

    def _power(self, card: str, joules: float | None, now_s: float) -> float | None:
        last = self._energy.get(card)
        if joules is None:
            return None
        self._energy[card] = (now_s, joules)
        if last is None or now_s <= last[0] or joules < last[1]:
            return None
        return (joules - last[1]) / (now_s - last[0])


def _first_number(card: Path, names: tuple[str, ...]) -> int | None:
    numbers = (number_in(read_text(card / name)) for name in names)
    return next((each for each in numbers if each is not None), None)


def cards_of(vendor_id: str, root: Path = DRM) -> Iterator[Path]:
    """Yield the folders of cards (such as "card0") whose device has this PCI vendor ID (such as "0x1002")."""
    for name in list_folder(root):
        if _CARD.match(name) and read_text(root / name / "device" / "vendor") == vendor_id:
            yield root / name


def uevent(text: str | None) -> dict[str, str]:
    """Return the KEY=VALUE lines of a uevent file as a dictionary."""
    return dict(line.split("=", 1) for line in (text or "").splitlines() if "=" in line)


def pci_of(card: Path) -> str | None:
    return pci_address(uevent(read_text(card / "device" / "uevent")).get("PCI_SLOT_NAME", ""))


def driver_of(card: Path) -> str | None:
    return uevent(read_text(card / "device" / "uevent")).get("DRIVER")


def link_generation(text: str | None) -> int | None:
    """Return the PCIe generation of a link speed: 4 for "16.0 GT/s PCIe"; None if unknown."""
    return _GENERATIONS.get((text or "").split(" ")[0])


def pcie_link(device: Path) -> PcieLink:
    """Return the link of the card that the GPU in folder `device` is on."""
    card, slot = _ends_of_link(device)
    now, *most = (
        link_generation(read_text(path))
        for path in (card / "current_link_speed", card / "max_link_speed", slot / "max_link_speed")
    )
    known = [each for each in most if each is not None]
    width = number_in(read_text(card / "current_link_width")) or None
    return PcieLink(now, min(known) if len(known) == len(most) else None, width)


def _ends_of_link(device: Path) -> tuple[Path, Path]:
    """Return the folders of the card's end and of the slot's end of the link.

    Many cards of AMD and Intel have a PCIe switch. The GPU's own link then ends at that switch and says nothing of the
    slot: an Intel Arc shows 2.5 GT/s and one lane there. The outermost bridge of the GPU's maker has the link to the
    slot, whose end is a root port or belongs to another maker.
    """
    # The folders of sysfs are nested as the devices are.
    card = Path(os.path.realpath(device))
    maker = read_text(card / "vendor")
    while _is_below_root_port(card.parent) and read_text(card.parent / "vendor") == maker:
        card = card.parent
    return card, card.parent


def _is_below_root_port(device: Path) -> bool:
    return pci_address(device.name) is not None and pci_address(device.parent.name) is not None


def hwmon_of(device: Path) -> Path | None:
    """Return the first sensor folder of a device; None if it has none."""
    names = list_folder(device / "hwmon")
    return device / "hwmon" / names[0] if names else None


def sensor(folder: Path | None, *names: str, per_unit: float) -> float | None:
    """Return the number in the first of these sensor files that has one, divided by `per_unit`; None if none has."""
    if folder is None:
        return None
    for name in names:
        found = number_in(read_text(folder / name))
        if found is not None:
            return found / per_unit
    return None
