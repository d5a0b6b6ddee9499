"""The first choices on PCs of every kind."""

import pytest

from qwendesk.models.purposes import PURPOSES
from tests.models.advice_by_pc import ROWS, Row, is_expected, pc_of
from tests.models.test_purposes import choices_on

# Rows that the rules don't meet yet, with the purposes.
FAILS: dict[str, str] = {
    "--gpu 'GTX 1050 Ti:4' --ram 16": "fast deep long quality",
    "--gpu 'GTX 1650:4' --ram 16": "fast deep long quality",
    "--gpu 'RTX 4060 Ti:16' --ram 32": "quality",
    "--gpu 'RTX 5060 Ti:16' --ram 32": "quality",
    "--gpu 'RTX 5060 Ti:16' --ram 16": "quality",
    "--gpu 'RTX 5080:16' --ram 128": "quality",
    "--gpu 'RX 9060 XT:16' --backend vulkan --ram 32": "quality",
    "--gpu 'RX 7800 XT:16' --backend vulkan --ram 32": "quality",
    "--gpu 'Arc A770:16' --backend vulkan --ram 32": "quality",
    "--gpu 'RTX 3080 Ti Laptop:16' --ram 32": "quality",
    "--gpu 'RX 7900 XT:20' --backend vulkan --ram 32": "quality",
    "--gpu 'RX 7900 XTX:24' --backend vulkan --ram 32": "quality",
    "--gpu 'RTX 3090:24' --ram 32": "quality",
    "--gpu 'RTX 3090:24' --ram 64": "quality",
    "--gpu 'RTX 4090:24' --ram 128": "quality",
    "--gpu 'Tesla P40:24' --ram 64": "quality",
    "--gpu 'RTX 5090:32' --ram 64": "quality",
    "--gpu 'Tesla V100 32GB:32' --ram 64": "quality",
    "--gpu 'Radeon AI PRO R9700:32' --backend vulkan --ram 64": "quality",
    "--gpu 'Arc Pro B70:32' --backend vulkan --ram 64": "quality",
    "--gpu 'RTX 3060:12' --gpu 'RTX 3060:12' --ram 32": "quality",
    "--gpu 'RTX 5060 Ti:16' --gpu 'RTX 5060 Ti:16' --ram 64": "quality",
    "--gpu 'RTX 5070 Ti:16' --gpu 'RTX 5060 Ti:16' --backend vulkan --ram 64": "quality",
    "--gpu 'RTX 3090:24' --gpu 'RTX 3060:12' --ram 64": "quality",
    "--unified M1:8 --backend metal": "long quality",
    "--unified M4:24 --backend metal": "deep",
    "--unified 'M1 Max:32' --backend metal": "quality",
    "--unified 'M3 Pro:36' --backend metal": "quality",
    "--unified 'M4 Pro:48' --backend metal": "fast",
    "--unified 'M4 Max:64' --backend metal": "fast",
    "--unified 'M3 Max:128' --backend metal": "fast",
    "--unified 'Radeon 780M:24' --backend vulkan": "deep",
    "--unified 'Radeon 8060S:64' --backend vulkan": "fast",
    "--unified 'Radeon 8060S:128' --backend vulkan": "fast",
    "--unified 'NVIDIA GB10:128' --backend cuda": "fast",
    "--vram 0 --ram 8": "long",
    "--vram 0 --ram 64": "quality",
    "--vram 0 --ram 96": "quality",
    "--vram 0 --ram 128": "quality",
}


def test_the_table_is_of_every_kind_of_pc_and_cites_reports() -> None:
    assert len(ROWS) >= 40
    assert len({row.pc for row in ROWS}) == len(ROWS)
    assert sum(bool(row.report) for row in ROWS) >= 25


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.pc)
def test_the_first_choices_are_right(row: Row) -> None:
    wrong = {}
    for purpose in PURPOSES:
        first = choices_on(pc_of(row), purpose)[0]
        if not is_expected(first, row.expects(purpose)):
            wrong[purpose] = f"{first.offer.id} {first.quant.quant} instead of {row.expects(purpose)}"
    known = set(FAILS.get(row.pc, "").split())
    assert set(wrong) == known, wrong
