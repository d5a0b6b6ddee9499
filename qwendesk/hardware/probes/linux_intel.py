"""Intel GPUs on Linux through sysfs, with the driver xe or i915."""

from pathlib import Path

from qwendesk.hardware.probes.base import Ask, Found, number_in, read_text
from qwendesk.hardware.probes.linux_cards import DRM, cards_of, driver_of, hwmon_of, link_generation, pci_of, sensor
from qwendesk.hardware.snapshot import GpuReading

_VENDOR = "0x8086"
_MEMORY_FILES = ("device/tile0/physical_vram_size_bytes", "lmem_total_bytes")
"""Dedicated memory as xe and as i915 tell it; an integrated GPU has neither file."""
_CLOCK_FILES = ("device/tile0/gt0/freq0/act_freq", "gt_act_freq_mhz")


class LinuxIntelProbe:
    """Power comes from an energy counter, so it is known from the second look on."""

    def __init__(self, root: Path = DRM) -> None:
        self._root = root
        self._energy: dict[str, tuple[float, float]] = {}

    def read(self, ask: Ask) -> Found:
        return Found(gpus=tuple(self._reading(card, ask.now_s) for card in cards_of(_VENDOR, self._root)))

    def close(self) -> None:
        """Nothing stays open."""

    def _reading(self, card: Path, now_s: float) -> GpuReading:
        device, driver = card / "device", driver_of(card)
        sensors = hwmon_of(device)
        total = _first_number(card, _MEMORY_FILES)
        return GpuReading(
            pci=pci_of(card),
            vendor="intel",
            driver=driver,
            unified=total is None if driver in ("xe", "i915") else None,
            total_bytes=total,
            power_w=self._power(card.name, sensor(sensors, "energy1_input", per_unit=1e6), now_s),
            power_limit_w=sensor(sensors, "power1_max", per_unit=1e6),
            temperature_c=sensor(sensors, "temp1_input", "temp2_input", per_unit=1e3),
            core_mhz=_first_number(card, _CLOCK_FILES),
            pcie_generation=link_generation(read_text(device / "current_link_speed")),
            pcie_width=number_in(read_text(device / "current_link_width")) or None,
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
