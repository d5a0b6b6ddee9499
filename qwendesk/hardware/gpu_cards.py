"""Graphics cards by the name that drivers report: their chip and the bandwidth of their memory.

Sources: the data sheets of NVIDIA, AMD, Intel and Apple (memory clock x bus width).

Sources: gpu_cards.py for cards; JEDEC for RAM; PCI-SIG for the bus.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from qwendesk.core.devices import DeviceInfo

Backend = Literal["cuda", "vulkan", "metal", "rocm", "other"]

# Bandwidth in GB/s (10^9 bytes) by chip and part of the card's name. The longest part in a name decides.
#
# Two numbers are those of the slower and the faster model that share a name.
_CHIPS: Mapping[str, Mapping[str, int | tuple[int, int]]] = MappingProxyType(
    {
        # NVIDIA Blackwell. Laptop GPUs have narrower buses than desktop cards of the same name.
        "GB202": {"rtx 5090": 1792, "rtx 5090 d": 1792, "rtx pro 6000": 1792, "rtx pro 5000": 1344},
        "GB203": {"rtx 5080": 960, "rtx 5070 ti": 896, "5090 laptop": 896, "5080 laptop": 896, "rtx pro 4000": 672},
        "GB205": {"rtx 5070": 672, "5070 ti laptop": 672},
        "GB206": {"rtx 5060 ti": 448, "rtx 5060": 448, "5070 laptop": 384, "5060 laptop": 384},
        "GB207": {"rtx 5050": 320, "5050 laptop": 384},
        "GB10": {"gb10": 273, "dgx spark": 273},
        # NVIDIA Ada and Hopper
        "AD102": {"rtx 4090": 1008, "rtx 4090 d": 1008, "rtx 6000 ada": 960, "l40": 864, "l40s": 864},
        "AD103": {
            "rtx 4080 super": 736, "rtx 4080": 717, "rtx 4070 ti super": 672, "4090 laptop": 576, "rtx 4000 ada": 360,
        },
        "AD104": {
            "rtx 4070 ti": 504, "rtx 4070 super": 504, "rtx 4070": 504, "4080 laptop": 432, "l4": 300,
        },
        "AD106": {"rtx 4060 ti": 288, "4070 laptop": 256},
        "AD107": {"rtx 4060": 272, "4060 laptop": 256, "4050 laptop": 192},
        "GH100": {"h100": 3350, "h200": 4800, "h100 pcie": 2039, "gh200": 4000},
        # NVIDIA Ampere
        "GA100": {"a100": 1555, "a100 sxm4 80gb": 2039, "a100 80gb pcie": 1935, "a30": 933},
        "GA102": {
            "rtx 3090 ti": 1008, "rtx 3090": 936, "rtx 3080 ti": 912, "rtx 3080": 760, "rtx a6000": 768,
            "rtx a5000": 768, "rtx a4500": 640, "a40": 696, "a10": 600,
        },
        "GA103": {"3080 ti laptop": 512},
        "GA104": {
            "rtx 3070 ti": 608, "rtx 3070": 448, "rtx 3060 ti": 448, "rtx a4000": 448, "3080 laptop": 448,
            "3070 ti laptop": 448, "3070 laptop": 448,
        },
        "GA106": {"rtx 3060": 360, "rtx 3050": 224, "rtx a2000": 288, "3060 laptop": 336},
        "GA107": {"3050 laptop": 192, "3050 ti laptop": 192},
        # NVIDIA before Ampere
        "TU102": {"rtx 2080 ti": 616, "titan rtx": 672, "rtx 6000": 672, "rtx 8000": 672},
        "TU104": {"rtx 2080 super": 496, "rtx 2080": 448, "rtx 2070 super": 448, "t4": 320},
        "TU106": {"rtx 2070": 448, "rtx 2060": 336, "rtx 2060 super": 448},
        "TU116": {"gtx 1660": 192, "gtx 1660 super": 336, "gtx 1660 ti": 288},
        "GV100": {"v100": 900, "titan v": 653},
        "GP100": {"p100": 732, "p100 pcie 12gb": 549},
        "GP102": {"p40": 346, "gtx 1080 ti": 484, "titan xp": 548},
        "GP104": {"gtx 1080": 320, "gtx 1070 ti": 256, "gtx 1070": 256, "p4": 192},
        "GP106": {"gtx 1060": 192},
        "GM200": {"m40": 288},
        # AMD
        "Navi 48": {
            "9070 xt": 640, "9070": 640, "9070 gre": 432, "r9700": 640, "gfx1201": 640,
        },
        "Navi 44": {"9060 xt": 320, "9060": 288, "gfx1200": 320},
        "Navi 31": {"7900 xtx": 960, "7900 xt": 800, "7900 gre": 576, "w7900": 864, "w7800": 576, "7900m": 576},
        "Navi 32": {"7800 xt": 624, "7700 xt": 432, "w7700": 576},
        "Navi 33": {"7600": 288, "7600 xt": 288, "7600m xt": 288, "7700s": 288},
        "Navi 21": {"6950 xt": 576, "6900 xt": 512, "6800 xt": 512, "6800": 512},
        "Navi 22": {"6750 xt": 432, "6700 xt": 384, "6700": 320},
        "Navi 23": {"6650 xt": 280, "6600 xt": 256, "6600": 224},
        "Vega 20": {"instinct mi50": 1024, "instinct mi60": 1024, "radeon vii": 1024},
        "Arcturus": {"instinct mi100": 1229},
        "Strix Halo": {
            "8060s": 256, "8050s": 256, "strix halo": 256, "strix_halo": 256, "gfx1151": 256, "ryzen ai max": 256,
        },
        # Intel
        "BMG-G31": {"b70": 608},
        "BMG-G21": {"b580": 456, "b570": 380, "b60": 456, "b50": 224},
        "ACM-G10": {"a770": 560, "a750": 512, "a580": 512},
        "ACM-G11": {"a380": 186},
        # Apple, where GPU and CPU share the memory
        "M5 Max": {"apple m5 max": (460, 614)}, "M5 Pro": {"apple m5 pro": 307}, "M5": {"apple m5": 153},
        "M4 Max": {"apple m4 max": (410, 546)}, "M4 Pro": {"apple m4 pro": 273}, "M4": {"apple m4": 120},
        "M3 Ultra": {"apple m3 ultra": 819}, "M3 Max": {"apple m3 max": (300, 400)}, "M3 Pro": {"apple m3 pro": 150},
        "M3": {"apple m3": 100},
        "M2 Ultra": {"apple m2 ultra": 800}, "M2 Max": {"apple m2 max": 400}, "M2 Pro": {"apple m2 pro": 200},
        "M2": {"apple m2": 100},
        "M1 Ultra": {"apple m1 ultra": 800}, "M1 Max": {"apple m1 max": 400}, "M1 Pro": {"apple m1 pro": 200},
        "M1": {"apple m1": 68},
    }
)  # fmt: skip

_BEFORE_AMPERE = frozenset(
    {"TU102", "TU104", "TU106", "TU116", "GV100", "GP100", "GP102", "GP104", "GP106", "GM200"}
)  # fmt: skip


class KnownCard(msgspec.Struct, frozen=True):
    """What is known of a graphics card by its name."""

    name: str
    """In lower case and without its maker: "rtx 3090"."""
    chip: str
    gb_s: tuple[int, int]
    """Memory bandwidth in 10^9 bytes per second: of the slowest and of the fastest model of this name."""

    @property
    def is_before_ampere(self) -> bool:
        """Return whether it is an NVIDIA card older than the RTX 30 series."""
        return self.chip in _BEFORE_AMPERE

    @property
    def is_apple(self) -> bool:
        return self.name.startswith("apple ")

    @property
    def shares_ram(self) -> bool:
        """Return whether it is a part of a chip whose CPU uses the same, fast memory."""
        return self.is_apple or self.chip in ("Strix Halo", "GB10")

    def is_like(self, other: "KnownCard") -> bool:
        """Return whether both generate text at about the same speed: the same chip with memory of the same speed."""
        slow, fast = sorted((self.gb_s[1], other.gb_s[1]))
        return self.chip == other.chip and fast <= 1.1 * slow


_CARDS: Mapping[str, KnownCard] = MappingProxyType(
    {
        name: KnownCard(name, chip, gb_s if isinstance(gb_s, tuple) else (gb_s, gb_s))
        for chip, names in _CHIPS.items()
        for name, gb_s in names.items()
    }
)


def find_card(name: str) -> KnownCard | None:
    """Return the card with the name that a driver reports; None if it isn't in the table."""
    lower = f" {_plain(name)} "
    known = [card for part, card in _CARDS.items() if f" {part} " in lower]
    return max(known, key=lambda card: len(card.name)) if known else None


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


def _plain(name: str) -> str:
    """Return a name as it is written in the table: "rtx 4090 laptop" for "NVIDIA GeForce RTX 4090 Laptop GPU"."""
    text = re.sub(r"\((?:tm|r)\)", " ", name.lower())
    return " ".join(re.sub(r"[^a-z0-9_]+", " ", text).split())


_GB_S = 10**9

# For unknown cards: GiB up to this size, with the range of GB/s of gaming cards of that size.
_BY_SIZE = ((6, 192, 336), (9, 256, 448), (13, 360, 672), (17, 288, 960), (25, 800, 1008), (33, 900, 1792))
_LARGE = (768, 3350)
# For unknown chips of Apple: the range of those since 2022.
_APPLE = (100, 819)
# Range in practice for two channels of DDR4-2933 to DDR5-6000 (47 to 96 GB/s in theory).
RAM_BANDWIDTH = (40 * _GB_S, 85 * _GB_S)
# GB/s of one PCIe lane by generation, one way, after encoding (PCI-SIG).
_LANE_GB_S = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
# Share of it that copies reach in practice: packets carry headers, too.
_PCIE_SHARE = 0.8
# Generation and width of a link of which nothing is known.
_USUAL_LINK = (3, 16)


def gpu_bandwidth(name: str, total_bytes: int | None, *, shares_ram: bool = False) -> tuple[float, float]:
    """Return the lowest and highest likely bandwidth in bytes/s.

    Both are the same for a known card. For others they depend on the size of the memory, or are those of the RAM.
    """
    card = find_card(name)
    if card is not None:
        return card.gb_s[0] * _GB_S, card.gb_s[1] * _GB_S
    if name.lower().startswith("apple"):
        return _APPLE[0] * _GB_S, _APPLE[1] * _GB_S
    if shares_ram:
        return RAM_BANDWIDTH
    gib = (total_bytes or 0) / 2**30
    for most, low, high in _BY_SIZE:
        if gib <= most:
            return low * _GB_S, high * _GB_S
    return _LARGE[0] * _GB_S, _LARGE[1] * _GB_S


def pcie_rate(generation: int, width: int) -> float | None:
    """Return the bytes/s that a PCIe link carries one way, as its makers state it; None for an unknown generation."""
    lane = _LANE_GB_S.get(generation)
    return None if lane is None else lane * width * _GB_S


def pcie_bandwidth(generation: int | None, width: int | None) -> float:
    """Return the bytes/s of copies over a PCIe link. None stands for what the probes couldn't tell."""
    lane = _LANE_GB_S.get(generation or 0, _LANE_GB_S[_USUAL_LINK[0]])
    return lane * (width or _USUAL_LINK[1]) * _PCIE_SHARE * _GB_S
