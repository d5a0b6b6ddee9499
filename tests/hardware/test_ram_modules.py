"""The bandwidth of RAM by the modules that the firmware lists."""

import ctypes
import struct
from typing import Any

import pytest

from qwendesk.hardware.gpu_cards import ram_bandwidth
from qwendesk.hardware.ram_modules import RamModule, bandwidth_of, smbios_modules, udev_modules, windows_table


def modules(kind: str, transfers: int, places: list[str], bits: int = 64) -> list[RamModule]:
    return [RamModule(kind, transfers, bits, place) for place in places]


@pytest.mark.parametrize(
    ("found", "gb_s"),
    [
        (modules("DDR5", 6000, ["P0 CHANNEL A DIMM 1", "P0 CHANNEL B DIMM 1"]), 96.0),
        (modules("DDR5", 5600, ["Controller0-ChannelA-DIMM0", "Controller1-ChannelA-DIMM0"]), 89.6),
        (modules("DDR4", 3200, ["DIMM_A1", "DIMM_A2", "DIMM_B1", "DIMM_B2"]), 51.2),
        (modules("DDR4", 3200, ["BANK 0 DIMM 0", "BANK 1 DIMM 1"]), 51.2),
        (modules("DDR4", 2400, ["ChannelA-DIMM0"]), 19.2),
        (modules("DDR4", 3600, [f"BANK {n} Channel{c}-DIMM{n % 2}" for n, c in enumerate("AABB")]), 57.6),
        (modules("DDR4", 3600, [f"BANK {n} Channel{c}-DIMM{n % 2}" for n, c in enumerate("AA")]), 28.8),
        (modules("DDR5", 5200, ["BANK 0 Controller0-DIMMA1", "BANK 0 Controller1-DIMMB1"]), 83.2),
        (modules("DDR4", 2933, [f"P{p}_Node0_Channel{c}_Dimm0" for p in (0, 1) for c in range(6)]), 281.568),
        (modules("DDR4", 3200, [f"P0 CHANNEL {each} DIMM 0" for each in "ABCDEFGH"]), 204.8),
        (modules("LPDDR5", 8000, [f"Motherboard {number}" for number in range(8)], bits=32), 256.0),
        (modules("LPDDR5", 7500, [""] * 4, bits=32), 120.0),
        (modules("DDR4", 0, ["A", "B"]), 0.0),
        ([], 0.0),
    ],
)
def test_bandwidth_follows_kind_speed_and_channels(found: list[RamModule], gb_s: float) -> None:
    assert bandwidth_of(found) / 1e9 == pytest.approx(gb_s)


def test_modules_that_udev_knows() -> None:
    text = """I:9100
E:MEMORY_ARRAY_NUM_DEVICES=3
E:MEMORY_DEVICE_0_TYPE=DDR5
E:MEMORY_DEVICE_0_CONFIGURED_SPEED_MTS=4800
E:MEMORY_DEVICE_0_DATA_WIDTH=64
E:MEMORY_DEVICE_0_LOCATOR=DIMM 1
E:MEMORY_DEVICE_0_BANK_LOCATOR=P0 CHANNEL A
E:MEMORY_DEVICE_1_TYPE=Unknown
E:MEMORY_DEVICE_2_TYPE=DDR5
E:MEMORY_DEVICE_2_PRESENT=0
"""

    assert list(udev_modules(text)) == [RamModule("DDR5", 4800, 64, "P0 CHANNEL A DIMM 1")]
    assert list(udev_modules("")) == []


def memory_device(size: int, kind: int, transfers: int, place: bytes, bank: bytes) -> bytes:
    body = bytearray(0x28)
    body[0], body[1] = 17, len(body)
    struct.pack_into("<HHH", body, 0x08, 64, 64, size)
    body[0x10], body[0x11], body[0x12] = 1, 2, kind
    struct.pack_into("<H", body, 0x20, transfers)
    return bytes(body) + place + b"\0" + bank + b"\0\0"


def test_modules_in_the_firmware_table() -> None:
    other = bytes([4, 4, 0, 0]) + b"\0\0"
    empty = memory_device(0, 2, 0, b"DIMM_A1", b"BANK 0")
    table = (
        other + memory_device(0x4000, 34, 6000, b"DIMM_A2", b"P0 CHANNEL A") + empty + bytes([127, 4, 0, 0]) + b"\0\0"
    )

    assert list(smbios_modules(table)) == [RamModule("DDR5", 6000, 64, "P0 CHANNEL A DIMM_A2")]


def test_windows_gives_the_table_after_a_header() -> None:
    def read(provider: int, _table: int, buffer: Any, n_bytes: int) -> int:
        assert provider == 0x52534D42, "RSMB"
        if buffer is not None:
            ctypes.memmove(buffer, b"12345678table", n_bytes)
        return 13

    assert windows_table(read) == b"table"
    with pytest.raises(OSError, match="no SMBIOS"):
        windows_table(lambda *_arguments: 0)


@pytest.mark.parametrize("table", [b"", b"\x11", b"\x11\x02\0\0\0\0", b"\x11\x30" + bytes(20), bytes(64)])
def test_a_damaged_table_has_no_modules(table: bytes) -> None:
    assert list(smbios_modules(table)) == []


@pytest.mark.parametrize(
    ("kind", "channels", "gb_s"),
    [("DDR5-6000", 2, (96.0, 96.0)), ("DDR4", 2, (34.1, 57.6)), ("DDR4-3200", 8, (204.8, 204.8))],
)
def test_bandwidth_of_a_reported_kind(kind: str, channels: int, gb_s: tuple[float, float]) -> None:
    found = ram_bandwidth(kind, channels)

    assert found is not None
    assert [each / 1e9 for each in found] == pytest.approx(gb_s, abs=0.1)


def test_an_unknown_kind_has_no_bandwidth() -> None:
    assert ram_bandwidth("", 2) is None
