"""Where Linux lists its graphics cards, shared by the probes of AMD and Intel."""

import re
from collections.abc import Iterator
from pathlib import Path

from qwendesk.hardware.probes.base import list_folder, number_in, pci_address, read_text

DRM = Path("/sys/class/drm")
_CARD = re.compile(r"^card\d+$")
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
"""Gigatransfers a second of each PCIe generation, as `current_link_speed` writes them."""


def cards_of(vendor_id: str, root: Path = DRM) -> Iterator[Path]:
    """The card folders ("card0") whose device has this PCI vendor id ("0x1002")."""
    for name in list_folder(root):
        if _CARD.match(name) and read_text(root / name / "device" / "vendor") == vendor_id:
            yield root / name


def uevent(text: str | None) -> dict[str, str]:
    """The KEY=VALUE lines of a uevent file."""
    return dict(line.split("=", 1) for line in (text or "").splitlines() if "=" in line)


def pci_of(card: Path) -> str | None:
    return pci_address(uevent(read_text(card / "device" / "uevent")).get("PCI_SLOT_NAME", ""))


def driver_of(card: Path) -> str | None:
    return uevent(read_text(card / "device" / "uevent")).get("DRIVER")


def link_generation(text: str | None) -> int | None:
    """ "16.0 GT/s PCIe" is generation 4."""
    return _GENERATIONS.get((text or "").split(" ")[0])


def hwmon_of(device: Path) -> Path | None:
    """The first folder of sensors a device has."""
    names = list_folder(device / "hwmon")
    return device / "hwmon" / names[0] if names else None


def sensor(folder: Path | None, *names: str, per_unit: float) -> float | None:
    """The first of these sensor files that has a number, divided by `per_unit`."""
    if folder is None:
        return None
    for name in names:
        found = number_in(read_text(folder / name))
        if found is not None:
            return found / per_unit
    return None
