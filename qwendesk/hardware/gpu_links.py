"""What the link of a graphics card is good for: loading, prompts with experts in RAM, and splits over several cards.

A link is judged by its lanes now and by the generation that it reaches at work, because drivers lower the generation of
a GPU that has nothing to do. Where only the generation now is known, the link counts as unknown. Numbers: PCI-SIG's
rates (gpu_cards.py).

What crosses a link: the weights while a model loads; with experts in RAM, those experts for long prompts; with a split
by layers one row of values per token, a few kilobytes; with a split by rows or tensors, rows twice in every layer, and
each time all cards wait.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from qwendesk.core.devices import DeviceInfo, GpuLink, number_equal_names
from qwendesk.core.plan import FAST_LINK_BYTES_S
from qwendesk.core.units import GIB
from qwendesk.hardware.engine_gpus import match_gpus
from qwendesk.hardware.gpu_cards import pcie_bandwidth, pcie_rate
from qwendesk.hardware.snapshot import GpuReading

LinkSpeed = Literal["fast", "enough", "slow"]
# PCIe 3.0 x4 carries 3.9 GB/s: about what a drive delivers, so loading hardly waits for the link.
_ENOUGH_BYTES_S = 3e9
_SMALLEST_CARD_BYTES = 2 * GIB


class LinkReport(msgspec.Struct, frozen=True, kw_only=True):
    """The link of one graphics card, judged."""

    name: str
    """As on the Engine page, numbered if there are equal ones."""
    key: str
    """The key of its reading."""
    generation: int | None = None
    """At work."""
    generation_now: int | None = None
    width: int | None = None
    bytes_s: float | None = None
    """Bandwidth of the link one way; None if it isn't known."""
    copy_bytes_s: float = 0.0
    """Bandwidth that copies reach in practice."""
    speed: LinkSpeed | None = None
    nvlinks: tuple[tuple[str, int], ...] = ()
    """Names of the cards that NVLink joins it with, each with the number of links."""
    n_cards: int = 1
    """Cards of the same maker in this PC: engines split layers, rows and tensors over these."""
    slowest: LinkSpeed | None = None
    """The slowest link of these cards; None if one isn't known."""

    @property
    def is_idle(self) -> bool:
        """True if the link is slower now than at work."""
        return bool(self.generation and self.generation_now and self.generation_now < self.generation)


def link_reports(gpus: Sequence[GpuReading]) -> tuple[LinkReport, ...]:
    """Return a report for each graphics card whose link is known. GPUs that use the RAM have none."""
    names = number_equal_names([gpu.name or gpu.key for gpu in gpus])
    cards = [(name, gpu) for name, gpu in zip(names, gpus, strict=True) if _is_card(gpu)]
    speeds = [_speed(_bytes_s(gpu)) for _, gpu in cards]
    reports = []
    for (name, gpu), speed in zip(cards, speeds, strict=True):
        nvlinks = tuple(
            (other_name, n_links)
            for other_name, other in cards
            if other is not gpu and (n_links := _n_nvlinks(gpu, other))
        )
        if speed is None and not nvlinks:
            continue
        same_maker = [speed for speed, (_, other) in zip(speeds, cards, strict=True) if _may_share_maker(gpu, other)]
        generation = gpu.pcie_max_generation
        reports.append(
            LinkReport(
                name=name,
                key=gpu.key,
                generation=generation,
                generation_now=gpu.pcie_generation,
                width=gpu.pcie_width,
                bytes_s=_bytes_s(gpu),
                copy_bytes_s=pcie_bandwidth(generation, gpu.pcie_width),
                speed=speed,
                nvlinks=nvlinks,
                n_cards=len(same_maker),
                slowest=_slowest(same_maker),
            )
        )
    return tuple(reports)


def gpu_links(devices: Sequence[DeviceInfo], gpus: Sequence[GpuReading]) -> tuple[GpuLink, ...]:
    """Return the links of the engine's graphics cards, by the names of its devices."""
    found = {name: gpu for name, gpu in match_gpus(devices, gpus).items() if _is_card(gpu)}
    return tuple(
        GpuLink(
            name,
            _bytes_s(gpu),
            tuple(other for other, reading in found.items() if other != name and _n_nvlinks(gpu, reading)),
        )
        for name, gpu in found.items()
    )


_SLOWEST_FIRST: tuple[LinkSpeed, ...] = ("slow", "enough", "fast")


def _is_card(gpu: GpuReading) -> bool:
    return not gpu.unified and (gpu.total_bytes is None or gpu.total_bytes >= _SMALLEST_CARD_BYTES)


def _may_share_maker(gpu: GpuReading, other: GpuReading) -> bool:
    return gpu.vendor == other.vendor or gpu.vendor is None or other.vendor is None


def _slowest(speeds: Sequence[LinkSpeed | None]) -> LinkSpeed | None:
    """Return the slowest of the speeds; None if one isn't known."""
    return None if None in speeds else next(speed for speed in _SLOWEST_FIRST if speed in speeds)


def _bytes_s(gpu: GpuReading) -> float | None:
    generation, width = gpu.pcie_max_generation, gpu.pcie_width
    return pcie_rate(generation, width) if generation and width else None


def _speed(bytes_s: float | None) -> LinkSpeed | None:
    if bytes_s is None:
        return None
    return "fast" if bytes_s >= FAST_LINK_BYTES_S else "enough" if bytes_s >= _ENOUGH_BYTES_S else "slow"


def _n_nvlinks(gpu: GpuReading, other: GpuReading) -> int:
    """Return the active NVLink links between two GPUs, directly or through switches."""
    links = gpu.nvlinks or ()
    direct = sum(link.n_links for link in links if link.pci is not None and link.pci == other.pci)
    to_switch, other_to_switch = (
        sum(link.n_links for link in each if link.pci is None) for each in (links, other.nvlinks or ())
    )
    return direct + min(to_switch, other_to_switch)
