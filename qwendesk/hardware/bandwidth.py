"""Memory bandwidth of graphics cards, RAM and the bus between them, in bytes per second.

Sources: gpu_cards.py for cards; JEDEC for RAM; PCI-SIG for the bus.
"""

from qwendesk.hardware.gpu_cards import find_card

_GB_S = 10**9

_BY_SIZE = ((6, 192, 336), (9, 256, 448), (13, 360, 672), (17, 288, 960), (25, 800, 1008), (33, 900, 1792))
"""For unknown cards: GiB up to this size, with the range of GB/s of gaming cards of that size."""
_LARGE = (768, 3350)
_APPLE = (100, 819)
"""For unknown chips of Apple: the range of those since 2022."""
RAM_BANDWIDTH = (40 * _GB_S, 85 * _GB_S)
"""Range in practice for two channels of DDR4-2933 to DDR5-6000 (47 to 96 GB/s in theory)."""
_LANE_GB_S = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
"""GB/s of one PCIe lane by generation, one way, after encoding (PCI-SIG)."""
_PCIE_SHARE = 0.8
"""Share of it that copies reach in practice: packets carry headers, too."""
_USUAL_LINK = (3, 16)
"""Generation and width of a link of which nothing is known."""


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
