"""Which user reports of speed are shown on which PC, by the catalog that ships."""

import msgspec
import pytest

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.plan import DriveKind
from qwendesk.core.translation import unbroken
from qwendesk.core.units import GIB
from qwendesk.hardware.gpu_cards import find_card
from qwendesk.hub.catalog import Catalog, load_catalog
from qwendesk.models.expected_speed import ExpectedSpeed
from qwendesk.models.fit import Pc
from qwendesk.models.offers import make_offers
from qwendesk.models.ranking import Offer
from qwendesk.models.view.speed_texts import expected_text, speed_cell, speed_sources


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def card(name: str, gib: float, backend: str = "CUDA") -> DeviceInfo:
    return DeviceInfo(f"{backend}0", name, "gpu", backend, int(gib * GIB), None)


RTX_3090, RTX_5090 = card("NVIDIA GeForce RTX 3090", 23.7), card("NVIDIA GeForce RTX 5090", 31.8)
TWO_3090 = RTX_3090, msgspec.structs.replace(RTX_3090, name="CUDA1")
P40, V100 = card("Tesla P40", 23.9), card("Tesla V100-SXM2-32GB", 31.7)


def offer_on(catalog: Catalog, pc: Pc, model: str = "Qwen3.5-35B-A3B") -> Offer:
    """Return the offer of `model` without pictures. Only that model is planned."""
    only = tuple(each for each in catalog.models if each.id == model)
    contents = msgspec.structs.replace(catalog.contents, models=only)
    (offer,) = make_offers(Catalog(contents), pc, with_pictures=False)
    return offer


@pytest.mark.parametrize(("drive", "n_reports"), [("ssd", 1), ("", 1), ("hdd", 0)])
def test_no_report_holds_for_a_table_on_a_hard_disk(catalog: Catalog, drive: DriveKind, n_reports: int) -> None:
    """A user measured 22 tok/s with an RTX 4090 and 110 GB of DDR4, which the line of the report names."""
    pc = Pc(gpus=(card("NVIDIA GeForce RTX 4090", 24),), ram_bytes=128 * GIB, drive=drive)
    quant = next(each for each in offer_on(catalog, pc, "Qwen3.8-Flash-Next").quants if each.quant == "UD-Q4_K_XL")

    assert len(quant.reports) == n_reports
    assert ("110 GB DDR4" in "\n".join(speed_sources(quant, None))) is bool(n_reports)
    assert quant.expected is not None
    assert (quant.likely_tok_s < 10) is (drive == "hdd")


def expected_on(catalog: Catalog, gpus: tuple[DeviceInfo, ...], quant: str) -> ExpectedSpeed:
    offer = offer_on(catalog, Pc(gpus=gpus, ram_bytes=64 * GIB))
    expected = next(each for each in offer.quants if each.quant == quant).expected
    assert expected is not None
    return expected


@pytest.mark.parametrize(
    ("gpus", "reported", "chip"),
    [
        ((RTX_3090,), (111, 111), "RTX 3090"),
        ((card("NVIDIA GeForce RTX 3090 Ti", 23.9),), (111, 111), "RTX 3090"),
        ((card("NVIDIA GeForce RTX 4090", 23.9),), (116, 122), "RTX 4090"),
        ((P40,), (37, 37), "Tesla P40"),
        ((V100,), (38.4, 38.4), "Tesla V100 32GB"),
        (
            (card("AMD Radeon AI PRO R9700 (RADV GFX1201)", 31.9, "Vulkan"),),
            (104.5, 127.4),
            "Radeon AI PRO R9700",
        ),
        ((card("AMD Radeon RX 7800 XT (RADV NAVI32)", 16, "Vulkan"),), None, ""),
        ((card("AMD Radeon RX 7900 XT", 20, "Vulkan"),), None, ""),
        ((card("AMD Radeon RX 7900 XTX", 24, "Vulkan"),), None, ""),
        ((card("NVIDIA GeForce RTX 3090", 23.7, "Vulkan"),), None, ""),
        ((card("NVIDIA GeForce RTX 5070 Ti", 15.9), card("NVIDIA GeForce RTX 5060 Ti", 15.9)), None, ""),
        ((card("NVIDIA GeForce RTX 4060 Ti", 15.9),), None, ""),
        ((card("Apple M4 Max", 48, "MTL"),), None, ""),
        ((card("Apple M4 Pro", 36, "MTL"),), None, ""),
        (TWO_3090, None, ""),
    ],
)
def test_a_report_holds_only_for_the_same_cards_and_engine(
    catalog: Catalog, gpus: tuple[DeviceInfo, ...], reported: tuple[float, float] | None, chip: str
) -> None:
    """A P40 was promised the speed of a 3090, a V100 and a Mac that of a 5090, a 4060 Ti that of a 5080."""
    quants = {P40: "Q4_K_M", V100: "UD-Q5_K_XL"}
    speed = expected_on(catalog, gpus, quants.get(gpus[0], "UD-Q4_K_L"))

    assert (speed.source == "reported") == (reported is not None)
    if reported is not None:
        assert speed.start == reported
        assert {report.gpus for report in speed.reports} == {(chip,)}


@pytest.mark.parametrize(
    ("gpus", "like"),
    [
        ((P40,), (17, 50)),
        ((card("AMD Radeon RX 7800 XT", 16, "Vulkan"),), (25, 110)),
        ((card("Apple M4 Max", 48, "MTL"),), (30, 90)),
        ((card("Apple M4 Pro", 36, "MTL"),), (20, 60)),
    ],
)
def test_the_estimate_of_slow_starters_is_far_below_a_3090(
    catalog: Catalog, gpus: tuple[DeviceInfo, ...], like: tuple[float, float]
) -> None:
    offer = offer_on(catalog, Pc(gpus=gpus, ram_bytes=64 * GIB))
    assert offer.recommended is not None
    assert offer.recommended.speed is not None

    slow, fast = offer.recommended.speed.start

    assert like[0] <= slow < fast <= like[1]


def test_a_report_is_of_a_quant_of_like_size_and_says_which(catalog: Catalog) -> None:
    offer = offer_on(catalog, Pc(gpus=(RTX_5090,), ram_bytes=64 * GIB))
    by_quant = {quant.quant: quant for quant in offer.quants}

    assert not by_quant["Q6_K"].reports, "28.9 GB isn't like the 22.2 GB of the report"
    assert by_quant["UD-Q4_K_XL"].reports
    assert speed_cell(by_quant["UD-Q4_K_XL"], None) == unbroken("160–185 tok/s\nreported")
    assert speed_cell(by_quant["UD-Q4_K_XL"], 171.4) == unbroken("171 tok/s\nmeasured here")
    assert any("RTX 5090, CUDA" in line and "r/LocalLLaMA" in line for line in speed_sources(by_quant["Q4_K_M"], None))


def test_a_report_of_long_chats_is_not_the_speed_of_new_ones(catalog: Catalog) -> None:
    """A 3090 was promised 94 tok/s for UD-Q3_K_XL, which is at 120K: it has 119 at 10K."""
    offer = offer_on(catalog, Pc(gpus=(RTX_3090,), ram_bytes=64 * GIB))
    quant = next(each for each in offer.quants if each.quant == "UD-Q3_K_XL")

    assert "tok/s at 10K, 94 at 120K" in expected_text(offer, quant).replace("\u2060", "")
    assert speed_cell(quant, None) == unbroken("119 tok/s\nreported at 10K")
    assert quant.likely_tok_s == pytest.approx(119)


def test_where_only_long_chats_are_reported_new_ones_are_estimated(catalog: Catalog) -> None:
    """A 5060 Ti was promised 44 tok/s, and slower in long chats: about 44."""
    offer = offer_on(catalog, Pc(gpus=(card("NVIDIA GeForce RTX 5060 Ti", 15.9),), ram_bytes=64 * GIB))
    quant = next(each for each in offer.quants if each.quant == "UD-Q4_K_L")
    assert quant.speed is not None
    assert quant.expected is not None

    assert [(each.depth, each.source) for each in quant.expected.speeds] == [(0, "estimated"), (102_400, "reported")]
    assert quant.expected.start == quant.speed.start
    assert speed_cell(quant, None).endswith("estimated")
    assert "Estimated" in expected_text(offer, quant)
    assert "44 tok/s at 100K" in expected_text(offer, quant).replace("\u2060", "").replace("\xa0", " ")


def test_no_file_gets_the_speed_of_a_smaller_one_or_of_an_overclocked_card(catalog: Catalog) -> None:
    """Each 27B file up to 20.2 GB was promised the 44 tok/s of 17.6 GB on an overclocked RTX 3090."""
    offer = offer_on(catalog, Pc(gpus=(RTX_3090,), ram_bytes=64 * GIB), "Qwen3.8-27B")
    for quant in offer.quants:
        assert all(quant.n_bytes <= 1.06 * report.n_bytes for report in quant.reports)
        assert quant.n_bytes < 16.7e9 or not quant.reports
    large = next(each for each in offer.quants if each.quant == "UD-Q4_K_XL")
    assert any("overclocked" in line for line in speed_sources(large, None))


def test_every_report_names_its_cards_and_what_was_assumed_is_shown(catalog: Catalog) -> None:
    for report in catalog.contents.speeds:
        assert all(find_card(name) is not None for name in report.gpus), report
    offer = offer_on(catalog, Pc(gpus=(RTX_3090,), ram_bytes=64 * GIB))
    quant = next(each for each in offer.quants if each.quant == "UD-Q4_K_L")
    assert any("the source names no quant" in line for line in speed_sources(quant, None))


def test_reports_of_a_later_version_with_the_same_layers_name_it(catalog: Catalog) -> None:
    offer = offer_on(catalog, Pc(gpus=(RTX_3090,), ram_bytes=64 * GIB), "Qwen3.6-27B")
    chosen = next(quant for quant in offer.quants if {report.quant for report in quant.reports} == {"Q4"})

    text = expected_text(offer, chosen)

    assert "RTX 3090, CUDA, Qwen3.8-27B Q4" in text.replace("\xa0", " ")


def test_expert_layers_on_the_cpu_must_be_about_as_many_as_in_the_report(catalog: Catalog) -> None:
    offer = offer_on(catalog, Pc(gpus=(card("NVIDIA GeForce RTX 5080", 15.9),), ram_bytes=128 * GIB))
    quant = next(each for each in offer.quants if each.quant == "Q4_K_M")

    assert quant.fit.kind == "experts"
    assert all(report.on_cpu is None or abs(report.on_cpu - quant.fit.on_cpu) <= 6 for report in quant.reports)


@pytest.mark.parametrize(("gb_s", "expected"), [(None, set()), (96.0, {5.0, 18.4}), (51.2, set()), (204.8, set())])
def test_a_report_of_the_cpu_is_of_about_as_fast_ram(
    catalog: Catalog, gb_s: float | None, expected: set[float]
) -> None:
    """Files of its size are reported with 5 and with 18 tokens per second, both with two channels of DDR5.

    Where the RAM isn't known, nothing is promised."""
    bandwidth = None if gb_s is None else (gb_s * 1e9, gb_s * 1e9)
    offer = offer_on(catalog, Pc(ram_bytes=64 * GIB, ram_bandwidth=bandwidth))
    quant = next(each for each in offer.quants if each.quant == "Q4_K_M")

    assert {report.tok_s for report in quant.reports} == expected


@pytest.mark.parametrize(
    ("gpu", "report", "why"),
    [
        (card("AMD Radeon RX 7800 XT (RADV NAVI32)", 16, "Vulkan"), "RX 7800 XT", "old engine"),
        (card("AMD Radeon RX 7900 XT", 20, "Vulkan"), "RX 7900 XT", "old engine"),
        (card("Apple M4 Max", 48, "MTL"), "Apple M4 Max", "isn't named"),
        (card("Apple M4 Pro", 36, "MTL"), "Apple M4 Pro", "isn't named"),
    ],
)
def test_reports_of_an_old_or_unnamed_engine_are_told_beside_the_estimate(
    catalog: Catalog, gpu: DeviceInfo, report: str, why: str
) -> None:
    offer = offer_on(catalog, Pc(gpus=(gpu,), ram_bytes=64 * GIB))
    quant = next(each for each in offer.quants if each.quant == "Q4_K_M")

    first, *others = speed_sources(quant, None)

    assert "estimated" in first
    assert [line for line in others if report in line and why in line and "r/LocalLLaMA" in line]
    assert speed_cell(quant, None).endswith("estimated")


def test_doubtful_reports_are_shown_to_no_other_card(catalog: Catalog) -> None:
    offer = offer_on(catalog, Pc(gpus=(card("AMD Radeon RX 7900 XTX", 24, "Vulkan"),), ram_bytes=64 * GIB))

    assert not any(quant.doubtful for quant in offer.quants)
