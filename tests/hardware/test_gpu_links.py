"""Links of graphics cards: what they carry, how they are judged, and what the window and the commands say of them."""

import msgspec
import pytest

from qwendesk.commands.gpu_split import best_split
from qwendesk.commands.serving import cards_of
from qwendesk.core.devices import DeviceInfo, GpuLink
from qwendesk.core.units import GIB
from qwendesk.engines.link_text import link_sentences, link_text
from qwendesk.hardware.gpu_links import LinkSpeed, gpu_links, link_reports
from qwendesk.hardware.snapshot import GpuReading, NvLink


def card(number: int = 1, generation: int = 4, width: int = 16, **changes: object) -> GpuReading:
    reading = GpuReading(
        pci=f"0000:0{number}:00.0", name="NVIDIA GeForce RTX 3090", vendor="nvidia", total_bytes=24 * GIB,
        pcie_generation=generation, pcie_max_generation=generation, pcie_width=width,
    )  # fmt: skip
    return msgspec.structs.replace(reading, **changes)


def bridged(number: int, other: int) -> GpuReading:
    return card(number, 3, 4, nvlinks=(NvLink(4, f"0000:0{other}:00.0"),))


@pytest.mark.parametrize(
    ("generation", "width", "gb_s", "speed"),
    [
        (5, 16, 63.0, "fast"), (4, 16, 31.5, "fast"), (4, 8, 15.8, "fast"), (3, 16, 15.8, "fast"),
        (3, 8, 7.9, "enough"), (4, 4, 7.9, "enough"), (3, 4, 3.9, "enough"), (3, 1, 1.0, "slow"), (2, 4, 2.0, "slow"),
    ],
)  # fmt: skip
def test_generation_and_width_are_judged(generation: int, width: int, gb_s: float, speed: LinkSpeed) -> None:
    (report,) = link_reports((card(1, generation, width),))
    assert report.bytes_s == pytest.approx(gb_s * 1e9, rel=0.02)
    assert report.speed == speed


def test_an_idle_card_is_judged_by_what_it_does_at_work() -> None:
    idle = card(pcie_generation=1, pcie_max_generation=4)
    (report,) = link_reports((idle,))
    assert (report.speed, report.is_idle) == ("fast", True)
    assert link_text(report).startswith("At work, PCIe 4.0 ×16 carries 31.5 GB/s each way. It shows 1.0 now")
    assert "now" not in link_sentences((card(),))["0000:01:00.0"]


def test_the_speed_at_idle_says_nothing_of_the_link_at_work() -> None:
    idle = tuple(
        card(number, name="Radeon RX 7900 XTX", vendor="amd", pcie_generation=1, pcie_max_generation=None)
        for number in (1, 2)
    )
    assert link_reports(idle) == ()
    devices = tuple(DeviceInfo(f"ROCm{n}", "Radeon RX 7900 XTX", "gpu", "ROCm", 24 * GIB, 23 * GIB) for n in range(2))
    split = best_split(cards_of(devices, None, gpu_links(devices, idle)))
    assert "doesn't know how the cards are linked" in split.reason


def test_cards_of_two_makers_are_not_split_together() -> None:
    other = card(2, name="Radeon RX 7900 XTX", vendor="amd")
    assert all("split mode" not in text for text in link_sentences((card(1), other)).values())
    said = link_sentences((card(1), other, card(3)))
    assert "tensor can pay off too" in said["0000:01:00.0"]
    assert "tensor" not in said["0000:02:00.0"]
    slow = msgspec.structs.replace(other, pcie_width=1)
    assert "tensor can pay off too" in link_sentences((card(1), slow, card(3)))["0000:03:00.0"]


def test_one_card_in_a_full_slot_needs_no_advice() -> None:
    assert link_sentences((card(),)) == {
        "0000:01:00.0": "PCIe 4.0 ×16 carries 31.5 GB/s each way. That is enough for everything."
    }


def test_a_riser_with_one_lane_is_told_how_long_loading_takes() -> None:
    """10 GiB over 0.985 GB/s, of which copies reach 80 %, are 13.6 s."""
    (report,) = link_reports((card(1, 3, 1),))
    assert "Loading 10.0 GB over it takes at least 14 s." in link_text(report)
    assert "Loading 20.0 GB over it takes at least 27 s." in link_text(report, 20 * GIB)
    assert "long prompts take longer" in link_text(report)
    assert "Loading" not in link_sentences((card(1, 3, 4),))["0000:01:00.0"], "about as fast as a drive"


def test_one_narrow_link_speaks_against_tensor_on_every_card() -> None:
    said = link_sentences((card(1), card(2, 3, 4)))
    assert set(said) == {"0000:01:00.0", "0000:02:00.0"}
    assert all("Row and tensor would wait for the slowest link" in text for text in said.values())
    assert "3.9 GB/s" in said["0000:02:00.0"]
    assert all("tensor can pay off too" in text for text in link_sentences((card(1), card(2, 4, 8))).values())


def test_nvlink_between_all_cards_speaks_for_tensor_whatever_the_slots() -> None:
    said = link_sentences((bridged(1, 2), bridged(2, 1)))
    assert (
        "NVLink joins it with NVIDIA GeForce RTX 3090 #2 (4 links). The split mode tensor can pay off."
        in (said["0000:01:00.0"])
    )
    pair_of_three = link_sentences((bridged(1, 2), bridged(2, 1), card(3)))
    assert "between these cards, if only they are used" in pair_of_three["0000:01:00.0"]
    assert "NVLink" not in pair_of_three["0000:03:00.0"]


def test_nvlink_to_switches_joins_all_cards_that_have_it() -> None:
    first, second = (card(number, nvlinks=(NvLink(18),)) for number in (1, 2))
    assert "(18 links)" in link_sentences((first, second))["0000:01:00.0"]


def test_gpus_without_a_link_of_their_own_are_left_out() -> None:
    integrated = GpuReading(name="Intel Iris Xe", unified=True, pcie_generation=1, pcie_width=1)
    unknown = GpuReading(pci="0000:05:00.0", name="A card", total_bytes=8 * GIB)
    assert link_reports((integrated,)) == ()
    reports = link_reports((integrated, card(), unknown))
    assert [(report.name, report.n_cards, report.slowest) for report in reports] == [
        ("NVIDIA GeForce RTX 3090", 2, None)
    ]
    assert "tensor" not in link_text(reports[0])


def test_commands_get_the_links_of_the_engines_devices() -> None:
    devices = (
        DeviceInfo("CUDA0", "NVIDIA GeForce RTX 3090", "gpu", "CUDA", 24 * GIB, 23 * GIB),
        DeviceInfo("CUDA1", "NVIDIA GeForce RTX 3090", "gpu", "CUDA", 24 * GIB, 23 * GIB),
        DeviceInfo("CPU", "A CPU", "cpu", "CPU", 64 * GIB, 60 * GIB),
    )
    links = gpu_links(devices, (bridged(1, 2), bridged(2, 1)))
    assert [(link.device, link.nvlinks) for link in links] == [("CUDA0", ("CUDA1",)), ("CUDA1", ("CUDA0",))]
    assert links[0].pcie_bytes_s == pytest.approx(3.94e9)
    assert [(each.nvlinks, each.maker) for each in cards_of(devices, None, links)] == [
        ((1,), "nvidia"),
        ((0,), "nvidia"),
    ]
    assert cards_of(devices, None, (GpuLink("CUDA1", 1e9),))[0].link_bytes_s is None
