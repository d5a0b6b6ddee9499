"""Memory bandwidth of graphics cards, RAM and the bus between them, in bytes per second.

Sources: the data sheets of NVIDIA, AMD, Intel and Apple (memory clock x bus width); JEDEC for RAM; PCI-SIG for the bus.
"""

from collections.abc import Mapping
from types import MappingProxyType

_GB_S = 10**9

_CARDS: Mapping[str, int] = MappingProxyType(
    {
        # NVIDIA laptop GPUs, which have narrower buses than desktop cards of the same name
        "5090 laptop": 896, "5080 laptop": 896, "5070 ti laptop": 672, "5070 laptop": 384, "5060 laptop": 384,
        "4090 laptop": 576, "4080 laptop": 432, "4070 laptop": 256, "4060 laptop": 256, "4050 laptop": 192,
        "3080 ti laptop": 512, "3080 laptop": 448, "3070 ti laptop": 448, "3070 laptop": 448, "3060 laptop": 336,
        "3050 laptop": 192,
        # NVIDIA
        "rtx 5090": 1792, "rtx 5080": 960, "rtx 5070 ti": 896, "rtx 5070": 672, "rtx 5060": 448, "rtx 5050": 320,
        "rtx 4090": 1008, "rtx 4080 super": 736, "rtx 4080": 717, "rtx 4070 ti super": 672, "rtx 4070": 504,
        "rtx 4060 ti": 288, "rtx 4060": 272,
        "rtx 3090 ti": 1008, "rtx 3090": 936, "rtx 3080 ti": 912, "rtx 3080": 760, "rtx 3070 ti": 608,
        "rtx 3070": 448, "rtx 3060 ti": 448, "rtx 3060": 360, "rtx 3050": 224,
        "rtx 2080 ti": 616, "rtx 2080 super": 496, "rtx 2080": 448, "rtx 2070": 448, "rtx 2060": 336,
        "gtx 1660": 192, "gtx 1080 ti": 484, "gtx 1080": 320, "gtx 1070": 256, "gtx 1060": 192,
        "rtx pro 6000": 1792, "rtx 6000 ada": 960, "rtx a6000": 768, "rtx a5000": 768, "rtx a4000": 448,
        "h200": 4800, "h100": 3350, "a100": 1555, "l40": 864, "l4": 300, "v100": 900, "p100": 732, "p40": 346,
        "t4": 320,
        # AMD
        "9070": 640, "9060 xt": 320, "7900 xtx": 960, "7900 xt": 800, "7900 gre": 576, "7800 xt": 624, "7700 xt": 432,
        "7600": 288, "6950 xt": 576, "6900 xt": 512, "6800": 512, "6750 xt": 432, "6700 xt": 384, "6650 xt": 280,
        "6600": 224, "instinct mi50": 1024, "instinct mi100": 1229,
        # Intel
        "b580": 456, "b570": 380, "a770": 560, "a750": 512, "a580": 512, "a380": 186,
        # Apple, where GPU and CPU share the memory
        "apple m4 max": 546, "apple m3 max": 400, "apple m2 max": 400, "apple m1 max": 400,
        "apple m3 ultra": 819, "apple m2 ultra": 800, "apple m1 ultra": 800,
        "apple m4 pro": 273, "apple m3 pro": 150, "apple m2 pro": 200, "apple m1 pro": 200,
        "apple m4": 120, "apple m3": 100, "apple m2": 100, "apple m1": 68,
    }
)  # fmt: skip
"""Bandwidth in GB/s by a part of the device's name in lower case. The longest part that matches decides."""
_BY_SIZE = ((6, 192, 336), (9, 256, 448), (13, 360, 672), (17, 288, 960), (25, 800, 1008), (33, 900, 1792))
"""For unknown cards: GiB up to this size, with the range of GB/s of gaming cards of that size."""
_LARGE = (768, 3350)
RAM_BANDWIDTH = (40 * _GB_S, 85 * _GB_S)
"""Range in practice for two channels of DDR4-2933 to DDR5-6000 (47 to 96 GB/s in theory)."""
PCIE_BANDWIDTH = 12 * _GB_S
"""PCIe 3.0 x16 in practice. Newer versions are faster, but generation transfers little data."""


def gpu_bandwidth(name: str, total_bytes: int | None) -> tuple[float, float]:
    """Return the lowest and highest likely bandwidth in bytes/s.

    Both are the same for a known card. For others they depend on the size of the memory.
    """
    lower = " ".join(name.lower().replace("(tm)", "").replace("geforce ", "").replace(" gpu", "").split())
    known = [part for part in _CARDS if part in lower]
    if known:
        exact = _CARDS[max(known, key=len)] * _GB_S
        return exact, exact
    gib = (total_bytes or 0) / 2**30
    for most, low, high in _BY_SIZE:
        if gib <= most:
            return low * _GB_S, high * _GB_S
    return _LARGE[0] * _GB_S, _LARGE[1] * _GB_S
