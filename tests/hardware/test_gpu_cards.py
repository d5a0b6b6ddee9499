"""Cards by the names that drivers and people give them, with their bandwidths."""

import csv
from collections import Counter

import pytest

from qwendesk.core.paths import resources_folder
from qwendesk.core.units import GIB
from qwendesk.hardware.gpu_cards import _words, find_card, gpu_bandwidth

# Name, GiB and GB/s. Drivers report less memory than the box says, above all with ECC.
NVIDIA = [
    ("NVIDIA GeForce GTX 750 Ti", 2, 86),
    ("NVIDIA GeForce GTX 960", 4, 112),
    ("NVIDIA GeForce GTX 970", 4, 224),
    ("GeForce GTX 1050 Ti", 4, 112),
    ("NVIDIA GeForce GTX 1060 3GB", 3, 192),
    ("NVIDIA GeForce GTX 1060 5GB", 5, 160),
    ("NVIDIA GeForce GTX 1070 Ti", 8, 256),
    ("NVIDIA GeForce GTX 1070 with Max-Q Design", 8, 256),
    ("NVIDIA GeForce GTX 1080 Ti", 11, 484),
    ("NVIDIA GeForce GTX 1630", 4, 96),
    ("NVIDIA GeForce GTX 1650 SUPER", 4, 192),
    ("NVIDIA GeForce GTX 1650 Ti with Max-Q Design", 4, 160),
    ("NVIDIA GeForce GTX 1660", 6, 192),
    ("NVIDIA GeForce GTX 1660 SUPER", 6, 336),
    ("NVIDIA GeForce GTX 1660 Ti Laptop GPU", 6, 288),
    ("NVIDIA GeForce RTX 2050", 4, 112),
    ("NVIDIA GeForce RTX 2060", 6, 336),
    ("NVIDIA GeForce RTX 2060 SUPER", 8, 448),
    ("NVIDIA GeForce RTX 2070 Super with Max-Q Design", 8, 352),
    ("NVIDIA GeForce RTX 2080 with Max-Q Design", 8, 384),
    ("NVIDIA GeForce RTX 2080 SUPER", 8, 496),
    ("NVIDIA GeForce RTX 2080 Ti", 22, 616),
    ("NVIDIA GeForce RTX 3050", 8, 224),
    ("NVIDIA GeForce RTX 3050", 6, 168),
    ("NVIDIA GeForce RTX 3050 6GB Laptop GPU", 6, 168),
    ("NVIDIA GeForce RTX 3050 Ti Laptop GPU", 4, 192),
    ("NVIDIA GeForce RTX 3060", 12, 360),
    ("NVIDIA GeForce RTX 3060", 8, 240),
    ("NVIDIA GeForce RTX 3060 Laptop GPU", 6, 336),
    ("NVIDIA GeForce RTX 3060 Ti", 8, 448),
    ("NVIDIA GeForce RTX 3070 Ti", 8, 608),
    ("NVIDIA GeForce RTX 3080", 10, 760),
    ("NVIDIA GeForce RTX 3080", 12, 912),
    ("NVIDIA GeForce RTX 3080", 20, 760),
    ("NVIDIA GeForce RTX 3080 Ti Laptop GPU", 16, 512),
    ("NVIDIA GeForce RTX 3090 Ti", 24, 1008),
    ("NVIDIA GeForce RTX 4050 Laptop GPU", 6, 192),
    ("NVIDIA GeForce RTX 4060 Ti", 8, 288),
    ("NVIDIA GeForce RTX 4070 Laptop GPU", 8, 256),
    ("NVIDIA GeForce RTX 4070 Max-Q / Mobile", 8, 256),
    ("NVIDIA GeForce RTX 4070 SUPER", 12, 504),
    ("NVIDIA GeForce RTX 4070 Ti SUPER", 16, 672),
    ("NVIDIA GeForce RTX 4080 SUPER", 16, 736),
    ("NVIDIA GeForce RTX 4090", 48, 1008),
    ("NVIDIA GeForce RTX 4090 D", 24, 1008),
    ("NVIDIA GeForce RTX 5050 Laptop GPU", 8, 384),
    ("NVIDIA GeForce RTX 5060 Ti", 16, 448),
    ("NVIDIA GeForce RTX 5070 Ti Laptop GPU", 12, 672),
    ("NVIDIA GeForce RTX 5070 Ti", 16, 896),
    ("NVIDIA GeForce RTX 5080", 16, 960),
    ("NVIDIA GeForce RTX 5090 D v2", 24, 1344),
    ("NVIDIA TITAN X (Pascal)", 12, 480),
    ("NVIDIA GeForce GTX TITAN X", 12, 336),
    ("NVIDIA TITAN Xp", 12, 548),
    ("NVIDIA TITAN V", 12, 653),
    ("NVIDIA TITAN RTX", 24, 672),
    ("Quadro P2000", 5, 140),
    ("Quadro P4000", 8, 243),
    ("Quadro P6000", 24, 432),
    ("Quadro RTX 4000", 8, 416),
    ("Quadro RTX 5000 with Max-Q Design", 16, 384),
    ("Quadro RTX 8000", 48, 672),
    ("Quadro GV100", 32, 868),
    ("NVIDIA T1000 8GB", 8, 160),
    ("NVIDIA T600 Laptop GPU", 4, 192),
    ("NVIDIA RTX A2000 12GB", 12, 288),
    ("NVIDIA RTX A2000 8GB Laptop GPU", 8, 224),
    ("NVIDIA RTX A4000", 16, 448),
    ("NVIDIA RTX A5000 Laptop GPU", 16, 448),
    ("NVIDIA RTX 2000 Ada Generation", 16, 224),
    ("NVIDIA RTX 4000 Ada Generation", 20, 360),
    ("NVIDIA RTX 4000 SFF Ada Generation", 20, 280),
    ("NVIDIA RTX 4500 Ada Generation", 24, 432),
    ("NVIDIA RTX 5000 Ada Generation", 32, 576),
    ("NVIDIA RTX 5000 Ada Generation Laptop GPU", 16, 576),
    ("NVIDIA RTX 3500 Ada Generation Laptop GPU", 12, 432),
    ("NVIDIA RTX 6000 Ada Generation", 48, 960),
    ("NVIDIA RTX PRO 4000 Blackwell", 24, 672),
    ("NVIDIA RTX PRO 4000 Blackwell SFF Edition", 24, 432),
    ("NVIDIA RTX PRO 5000 Blackwell Generation Laptop GPU", 24, 896),
    ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 96, 1792),
    ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 96, 1792),
    ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 96, 1597),
    ("Tesla K80", 11.2, 240),
    ("Tesla M40 24GB", 22.4, 288),
    ("Tesla P4", 7.4, 192),
    ("Tesla P40", 22.4, 346),
    ("Tesla P100-PCIE-12GB", 12, 549),
    ("Tesla P100-SXM2-16GB", 16, 732),
    ("Tesla V100S-PCIE-32GB", 32, 1134),
    ("Tesla T4", 14.6, 320),
    ("NVIDIA A2", 15, 200),
    ("NVIDIA A10", 22.5, 600),
    ("NVIDIA A10G", 22.5, 600),
    ("NVIDIA A16", 15, 200),
    ("NVIDIA A30", 24, 933),
    ("NVIDIA A40", 45, 696),
    ("NVIDIA A100-SXM4-40GB", 39.4, 1555),
    ("NVIDIA A100-SXM4-80GB", 79.3, 2039),
    ("NVIDIA A100 80GB PCIe", 79.3, 1935),
    ("NVIDIA L4", 22.5, 300),
    ("NVIDIA L40S", 45, 864),
    ("NVIDIA H100 80GB HBM3", 79.6, 3350),
    ("NVIDIA H100 PCIe", 79.6, 2039),
    ("NVIDIA H100 NVL", 93.6, 3938),
    ("NVIDIA H200", 140.4, 4800),
    ("NVIDIA GH200 480GB", 95.6, 4000),
    ("NVIDIA B200", 178.4, 8000),
    ("NVIDIA GB10", 119.7, 273),
]
OTHERS = [
    ("Radeon RX 470 Series", 8, 211),
    ("AMD Radeon (TM) RX 480", 8, 256),
    ("AMD Radeon RX 480 Graphics (RADV POLARIS10)", 4, 224),
    ("Radeon RX 570 Series", 4, 224),
    ("AMD Radeon RX 580 2048SP", 8, 224),
    ("Radeon RX 580 Series (RADV POLARIS10)", 8, 256),
    ("Radeon RX 590 Series", 8, 256),
    ("AMD Radeon RX Vega 56", 8, 410),
    ("Radeon RX Vega 64", 8, 484),
    ("Radeon Vega Frontier Edition", 16, 484),
    ("AMD Radeon VII", 16, 1024),
    ("AMD Radeon RX 5500 XT", 8, 224),
    ("AMD Radeon RX 5700 XT 50th Anniversary", 8, 448),
    ("AMD Radeon RX 6300", 2, 64),
    ("AMD Radeon RX 6400", 4, 128),
    ("AMD Radeon RX 6500 XT", 4, 144),
    ("AMD Radeon RX 6600", 8, 224),
    ("AMD Radeon RX 6650 XT (RADV NAVI23)", 8, 280),
    ("AMD Radeon RX 6700S", 8, 224),
    ("AMD Radeon RX 6700 XT", 12, 384),
    ("AMD Radeon RX 6750 GRE", 12, 432),
    ("AMD Radeon RX 6800M", 12, 384),
    ("AMD Radeon RX 6950 XT", 16, 576),
    ("AMD Radeon RX 7600M XT", 8, 288),
    ("AMD Radeon RX 7600 XT (RADV NAVI33)", 16, 288),
    ("AMD Radeon RX 7700 XT", 12, 432),
    ("AMD Radeon RX 7900 XT", 20, 800),
    ("AMD Radeon(TM) RX 7900M", 16, 576),
    ("AMD Radeon RX 9060 XT", 8, 320),
    ("AMD Radeon RX 9070 GRE", 12, 432),
    ("AMD Radeon RX 9070 XT (RADV GFX1201)", 16, 640),
    ("AMD Radeon Pro WX 7100 Graphics", 8, 224),
    ("AMD Radeon PRO W6400", 4, 128),
    ("AMD Radeon PRO W6800", 32, 512),
    ("AMD Radeon PRO W7800", 48, 864),
    ("AMD Radeon PRO W7900 Dual Slot", 48, 864),
    ("AMD Radeon AI PRO R9700", 32, 640),
    ("AMD Instinct MI50/MI60", 32, 1024),
    ("AMD Instinct MI100", 32, 1229),
    ("AMD Instinct MI210", 64, 1638),
    ("AMD Instinct MI250X / MI250", 64, 1638),
    ("AMD Instinct MI300X", 192, 5300),
    ("AMD Instinct MI325X", 256, 6000),
    ("AMD Radeon Graphics (RADV NAVI31)", 24, 960),
    ("AMD Radeon Graphics (RADV VEGA20)", 32, 1024),
    ("AMD Unknown (RADV GFX1200)", 16, 320),
    ("Radeon 8060S Graphics (RADV GFX1151)", 96, 256),
    ("AMD Ryzen AI Max+ 395 w/ Radeon 8060S", 64, 256),
    ("Intel(R) Arc(TM) A310 Graphics", 4, 124),
    ("Intel(R) Arc(TM) A380 Graphics", 6, 186),
    ("Intel(R) Arc(TM) A750 Graphics", 8, 512),
    ("Intel(R) Arc(TM) A770 Graphics", 8, 512),
    ("Intel(R) Arc(tm) A770M Graphics (DG2)", 16, 512),
    ("Intel(R) Arc(TM) Pro A40/A50 Graphics", 6, 192),
    ("Intel(R) Arc(TM) Pro A60 Graphics", 12, 384),
    ("Intel(R) Arc(TM) B570 Graphics", 10, 380),
    ("Intel(R) Arc(TM) Pro B50 Graphics", 16, 224),
    ("Intel(R) Arc(TM) Pro B60 Graphics", 24, 456),
    ("Intel(R) Arc(TM) Pro B70 Graphics", 32, 608),
    ("Intel(R) Graphics (BMG G21)", 12, 456),
    ("Intel(R) Data Center GPU Flex 170", 16, 512),
    ("Intel(R) Data Center GPU Max 1100", 48, 1229),
    ("Apple M3 Ultra", 96, 819),
    ("Apple M5 Pro", 48, 307),
]
BY_PEOPLE = [
    ("RTX4090", 24, 1008),
    ("4070Ti super", 16, 672),
    ("3060 12GB", None, 360),
    ("3060 8 GB", None, 240),
    ("1080 ti", 11, 484),
    ("RX7900XTX", 24, 960),
    ("6700 XT", 12, 384),
    ("Arc B580", 12, 456),
    ("B70", 32, 608),
    ("MI50 32GB", None, 1024),
    ("M4 Pro", 48, 273),
]


@pytest.mark.parametrize(("name", "gib", "gb_s"), [*NVIDIA, *OTHERS, *BY_PEOPLE])
def test_a_card_has_its_own_bandwidth(name: str, gib: float | None, gb_s: int) -> None:
    card = find_card(name, None if gib is None else round(gib * GIB))

    assert card is not None
    assert card.gb_s == (gb_s, gb_s)


@pytest.mark.parametrize(
    ("name", "gib", "gb_s"),
    [
        ("NVIDIA GeForce GTX 1650", 4, (128, 192)),
        ("NVIDIA GeForce GTX 1650 with Max-Q Design", 4, (112, 160)),
        ("AMD Radeon RX 5600 XT", 6, (288, 336)),
        ("Apple M4 Max", 64, (410, 546)),
        ("NVIDIA GeForce RTX 3080", None, (760, 912)),
    ],
)
def test_one_name_with_two_memories_is_a_range(name: str, gib: int | None, gb_s: tuple[int, int]) -> None:
    assert gpu_bandwidth(name, None if gib is None else gib * GIB) == (gb_s[0] * 1e9, gb_s[1] * 1e9)


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA GeForce RTX 5080 SUPER",
        "NVIDIA GeForce RTX 5070 Ti SUPER",
        "NVIDIA GeForce RTX 5060 Ti Laptop GPU",
        "NVIDIA GeForce RTX 6090",
        "AMD Radeon RX 9070 XTX",
        "AMD Radeon RX 9080",
        "Apple M5 Ultra",
        "AMD Radeon Graphics (RADV RENOIR)",
        "AMD Radeon 780M Graphics",
        "AMD Radeon RX Vega 11 Graphics",
        "Intel(R) UHD Graphics 770",
        "Intel(R) Arc(TM) Graphics",
        "Intel(R) Arc(TM) 140V GPU (16GB)",
        "llvmpipe (LLVM 15.0.7, 256 bits)",
        "",
    ],
)
def test_another_model_is_no_card_of_the_table(name: str) -> None:
    """A new card, such as a Super, isn't the one whose name its own begins with."""
    assert find_card(name) is None


def test_the_table_is_written_as_names_are_read() -> None:
    with (resources_folder() / "gpu_cards.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    assert len(rows) > 500
    assert [row["name"] for row in rows if " ".join(_words(row["name"])[0]) != row["name"]] == []
    assert [row for row, times in Counter(tuple(row.values()) for row in rows).items() if times > 1] == []
    assert all(find_card(row["name"]) is not None for row in rows)
