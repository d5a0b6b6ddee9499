"""The PCs that the options of `qwendesk plan` describe."""

import argparse

import pytest

from qwendesk.cli.made_up_pc import (
    SYSTEM_RAM_BYTES,
    add_link_options,
    add_made_up_pc_options,
    made_up_links,
    made_up_machine,
    with_links,
)
from qwendesk.commands.gpu_split import Split, best_split
from qwendesk.commands.serving import cards_of
from qwendesk.core.errors import BadOption
from qwendesk.core.plan import MachineMemory
from qwendesk.core.units import GIB


def machine(*arguments: str) -> MachineMemory:
    parser = argparse.ArgumentParser()
    add_made_up_pc_options(parser)
    return made_up_machine(parser.parse_args(arguments), GIB)


@pytest.mark.parametrize(
    ("cards", "names"),
    [
        (("RTX 3090:24",), ["CUDA0"]),
        (("RX 7900 XTX:24",), ["Vulkan0"]),
        (("Arc B580:12",), ["Vulkan0"]),
        (("A card of tomorrow:24",), ["CUDA0"]),
        (("RTX 3090:24", "RX 7900 XTX:24"), ["Vulkan0", "Vulkan1"]),
        (("RX 7900 XTX:24", "--backend", "rocm"), ["ROCm0"]),
    ],
)
def test_cards_come_with_the_engine_that_suits_them(cards: tuple[str, ...], names: list[str]) -> None:
    arguments = [
        each for card in cards for each in ((card,) if card.startswith("--") or ":" not in card else ("--gpu", card))
    ]

    assert [gpu.name for gpu in machine(*arguments).devices] == names


@pytest.mark.parametrize(
    ("kind", "gb_s"),
    [
        ("DDR5-6000", (96.0, 96.0)),
        ("ddr4-3200X8", (204.8, 204.8)),
        ("DDR4", (34.128, 57.6)),
        ("LPDDR5X-8533", (136.5, 136.5)),
    ],
)
def test_the_kind_of_ram_gives_its_bandwidth(kind: str, gb_s: tuple[float, float]) -> None:
    found = machine("--vram", "0", "--ram-kind", kind).ram_bandwidth

    assert found is not None
    assert [each / 1e9 for each in found] == pytest.approx(gb_s, rel=1e-3)


@pytest.mark.parametrize("kind", ["fast", "DDR9", "DDR5-", "DDR5-0", "DDR5-fast", "x4", "DDR4x0"])
def test_an_unknown_kind_of_ram_is_refused(kind: str) -> None:
    with pytest.raises(BadOption, match="ram-kind"):
        machine("--vram", "0", "--ram-kind", kind)


@pytest.mark.parametrize(
    ("arguments", "name", "description", "limit"),
    [
        (("Strix Halo:128",), "Vulkan0", "Strix Halo", 128),
        (("Strix Halo:128:62.5",), "Vulkan0", "Strix Halo", 62.5),
        (("DGX Spark:119",), "CUDA0", "DGX Spark", 119),
        (("M4 Pro:48",), "MTL0", "Apple M4 Pro", 36),
        (("Apple M4:24",), "MTL0", "Apple M4", 16),
        (("M4 Pro:48:40",), "MTL0", "Apple M4 Pro", 40),
        (("64", "--backend", "metal"), "MTL0", "Apple GPU", 48),
        (("128:96", "--backend", "rocm"), "ROCm0", "GPU with 128.0 GB of shared memory", 96),
    ],
)
def test_unified_memory_with_a_name_and_a_limit(
    arguments: tuple[str, ...], name: str, description: str, limit: float
) -> None:
    made = machine("--unified", *arguments)

    (gpu,) = made.devices
    assert (gpu.name, gpu.description, gpu.total_bytes) == (name, description, limit * GIB)
    assert made.is_unified
    assert made.ram_available_bytes == made.ram_total_bytes - SYSTEM_RAM_BYTES


@pytest.mark.parametrize("text", ["Strix Halo", "Strix Halo:much", "128:64:32", "A:B:1:2"])
def test_a_size_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(BadOption):
        machine("--unified", text)


def test_the_threads_of_this_pc_are_not_those_of_another() -> None:
    """`qwendesk plan --command` wrote --threads 2 for any PC, because this one has two cores."""
    assert not machine("--gpu", "RTX 3090:24", "--ram", "64").physical_cores


TWO = ("--gpu", "RTX 3090:24", "--gpu", "RTX 3090:24")


def split(*arguments: str) -> Split:
    parser = argparse.ArgumentParser()
    add_made_up_pc_options(parser)
    add_link_options(parser)
    options = parser.parse_args(arguments)
    devices = with_links(made_up_machine(options, GIB), options).devices
    return best_split(cards_of(devices, None, made_up_links(options, devices)), 16, 2)


@pytest.mark.parametrize(
    ("links", "tensor", "pipeline"),
    [
        (("--link", "4x16"), 2, 1),
        (("--link", "4x16", "--link", "3x4"), 1, 2),
        (("--link", "3x4", "--nvlink", "0-1"), 2, 1),
    ],
)
def test_described_links_decide_how_cards_share_a_model(links: tuple[str, ...], tensor: int, pipeline: int) -> None:
    found = split(*TWO, *links)
    assert (found.tensor, found.pipeline) == (tensor, pipeline)
    assert "doesn't know" not in found.reason
    assert "doesn't know" in split(*TWO).reason


@pytest.mark.parametrize(
    "links", [("--link", "9x16"), ("--link", "fast"), ("--nvlink", "0-2"), ("--nvlink", "1-1"), ("--link", "4x16") * 3]
)
def test_links_that_cannot_be_are_refused(links: tuple[str, ...]) -> None:
    with pytest.raises(BadOption, match="--"):
        split(*TWO, *links)
