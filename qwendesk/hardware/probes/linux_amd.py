"""AMD GPUs on Linux through sysfs, as the amdgpu driver fills it."""

from pathlib import Path

from qwendesk.hardware.probes.base import Ask, Found, number_in, read_text
from qwendesk.hardware.probes.linux_cards import DRM, cards_of, driver_of, hwmon_of, link_generation, pci_of, sensor
from qwendesk.hardware.snapshot import GpuReading

_VENDOR = "0x1002"
_CARVED_BYTES = 1024**3
"""APUs call at most about this much RAM their video memory unless told otherwise in the BIOS."""


class LinuxAmdProbe:
    def __init__(self, root: Path = DRM) -> None:
        self._root = root

    def read(self, _ask: Ask) -> Found:
        return Found(gpus=tuple(card_reading(card) for card in cards_of(_VENDOR, self._root)))

    def close(self) -> None:
        """Nothing stays open."""


def card_reading(card: Path) -> GpuReading:
    """One card's files as a reading; each that is missing or not for us leaves its value unknown."""
    device = card / "device"
    sensors = hwmon_of(device)
    total = number_in(read_text(device / "mem_info_vram_total"))
    core = sensor(sensors, "freq1_input", per_unit=1e6)
    memory = sensor(sensors, "freq2_input", per_unit=1e6)
    return GpuReading(
        pci=pci_of(card),
        name=read_text(device / "product_name") or None,
        vendor="amd",
        driver=driver_of(card),
        unified=is_apu(total, has_memory_clock=memory is not None),
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
        pcie_generation=link_generation(read_text(device / "current_link_speed")),
        pcie_width=number_in(read_text(device / "current_link_width")),
    )


def is_apu(total_bytes: int | None, *, has_memory_clock: bool) -> bool | None:
    """An APU has a small carved-out memory and no memory clock of its own among its sensors."""
    if total_bytes is None:
        return None
    return total_bytes <= _CARVED_BYTES and not has_memory_clock


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)
