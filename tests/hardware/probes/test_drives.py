"""SSD, hard disk or unknown: from what Linux, Windows and macOS say of a drive."""

import plistlib
import sys
from pathlib import Path, PurePosixPath

import pytest

from qwendesk.core.plan import DriveKind
from qwendesk.hardware import drives
from qwendesk.hardware.drives import drive_of
from tests.hardware.sysfs import write_files
from tests.links import skip_without_links


def a_disk(root: Path, name: str, rotational: str, **device: str) -> Path:
    """Write the folder of a disk below /sys/devices/.../block."""
    details = {f"{name}/device/{key}": text for key, text in device.items()}
    write_files(root, {f"{name}/queue/rotational": rotational, **details})
    return root / name


@pytest.mark.parametrize(
    ("name", "rotational", "device", "kind"),
    [
        ("nvme0n1", "0", {"model": "Samsung SSD 990 PRO 2TB"}, "ssd"),
        ("sda", "1", {"vendor": "ATA", "model": "WDC WD40EFRX-68N"}, "hdd"),
        ("vda", "1", {}, ""),
        ("sda", "1", {"vendor": "QEMU", "model": "QEMU HARDDISK"}, ""),
        ("sda", "1", {"vendor": "Msft", "model": "Virtual Disk"}, ""),
        ("loop0", "0", {}, ""),
        ("sdb", "", {}, ""),
    ],
)
def test_linux_says_whether_a_disk_rotates(
    tmp_path: Path, name: str, rotational: str, device: dict[str, str], kind: DriveKind
) -> None:
    """The kernels of virtual machines don't know what the real disk is."""
    assert drives.disk_kind(a_disk(tmp_path, name, rotational, **device)) == kind


def test_a_partition_is_on_its_disk(tmp_path: Path) -> None:
    disk = a_disk(tmp_path, "nvme0n1", "0")
    write_files(disk, {"nvme0n1p2/partition": "2"})

    assert drives.disk_kind(disk / "nvme0n1p2") == "ssd"


def test_a_disk_behind_a_usb_adapter_is_only_an_ssd_if_it_says_so(tmp_path: Path) -> None:
    """Most adapters don't pass on whether the disk rotates, and the kernel then says that it does."""
    usb = tmp_path / "pci0000:00" / "usb2" / "2-1" if sys.platform != "win32" else tmp_path / "usb2" / "2-1"

    assert drives.disk_kind(a_disk(usb, "sdb", "1")) == ""
    assert drives.disk_kind(a_disk(usb, "sdc", "0")) == "ssd"


@pytest.mark.parametrize(
    ("rotational", "kind"), [(("0", "0"), "ssd"), (("0", "1"), "hdd"), (("0", ""), ""), (("", "1"), "hdd")]
)
def test_a_mapping_is_as_slow_as_its_slowest_disk(tmp_path: Path, rotational: tuple[str, str], kind: DriveKind) -> None:
    """LUKS, LVM and RAID: `slaves` has what is below. The mapping's own number is not asked."""
    mapped = a_disk(tmp_path, "dm-0", "0")
    for name, text in zip(("sda", "sdb"), rotational, strict=True):
        a_disk(mapped / "slaves", name, text)

    assert drives.disk_kind(mapped) == kind


def test_the_folder_of_a_device_is_found_by_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without_links(tmp_path)
    number = tmp_path.stat().st_dev
    monkeypatch.setattr(drives.os, "major", lambda _device: 8, raising=False)
    monkeypatch.setattr(drives.os, "minor", lambda device: 1 if device == number else 0, raising=False)
    disk = a_disk(tmp_path / "devices/block", "sda", "1")
    write_files(disk, {"sda1/partition": "1"})
    (tmp_path / "dev/block").mkdir(parents=True)
    (tmp_path / "dev/block/8:1").symlink_to(disk / "sda1")

    assert drives.linux_drive(tmp_path, tmp_path) == "hdd"


def test_all_disks_of_a_btrfs_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without_links(tmp_path)
    monkeypatch.setattr(drives.os, "major", lambda _device: 8, raising=False)
    monkeypatch.setattr(drives.os, "minor", lambda _device: 0, raising=False)
    ssd, hdd = (a_disk(tmp_path / "devices/block", name, text) for name, text in (("sda", "0"), ("sdb", "1")))
    for folder, name in (("dev/block", "8:0"), ("fs/btrfs/some-uuid/devices", "sda")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / name).symlink_to(ssd)

    assert drives.linux_drive(tmp_path, tmp_path) == "ssd"

    (tmp_path / "fs/btrfs/some-uuid/devices/sdb").symlink_to(hdd)
    assert drives.linux_drive(tmp_path, tmp_path) == "hdd"


MOUNTINFO = """\
25 1 0:24 /@ / rw,relatime shared:1 - btrfs /dev/nvme0n1p2 rw,ssd,space_cache=v2
60 25 0:24 /@srv /srv rw,relatime shared:30 - btrfs /dev/nvme0n1p2 rw,ssd
88 25 0:51 / /srv/nas rw,relatime shared:60 - nfs4 server:/models rw,vers=4.2
90 25 0:52 / /mnt/my\\040disk rw,relatime - btrfs /dev/mapper/big\\040one rw
91 25 0:53 / /mnt/my\\040disk rw,relatime - btrfs /dev/sdb rw
a line that is none
"""


@pytest.mark.parametrize(
    ("folder", "source"),
    [
        ("/srv/models", "/dev/nvme0n1p2"),
        ("/srv/nas/models", "server:/models"),
        ("/mnt/my disk/models", "/dev/sdb"),
        ("/mnt/my", "/dev/nvme0n1p2"),
    ],
)
def test_the_last_mount_above_a_folder_counts(folder: str, source: str) -> None:
    assert drives.mount_source(MOUNTINFO, PurePosixPath(folder)) == source


def test_windows_is_asked_as_its_headers_say() -> None:
    """Sizes, offsets and numbers were compared with winioctl.h of mingw-w64 12.0 by static assertions of gcc 14.2."""
    assert drives.seek_penalty_query() == bytes.fromhex("07000000 00000000 00000000")
    assert drives.QUERY_PROPERTY == 0x2D << 16 | 0x500 << 2


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("0c000000 0c000000 00 000000", "ssd"),
        ("0c000000 0c000000 01 000000", "hdd"),
        ("0c000000 0c000000 01", "hdd"),
        ("00000000 00000000 00 000000", ""),
        ("0c000000 0c000000", ""),
        ("", ""),
    ],
)
def test_the_answer_of_windows_tells_whether_seeking_costs_time(answer: str, kind: DriveKind) -> None:
    assert drives.seek_penalty_kind(bytes.fromhex(answer)) == kind


DISKUTIL = """\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>BusProtocol</key>
	<string>Apple Fabric</string>
	<key>DeviceNode</key>
	<string>/dev/disk3s5</string>
	<key>FilesystemType</key>
	<string>apfs</string>
	<key>SolidState</key>
	<true/>
</dict>
</plist>
"""


def test_diskutil_says_whether_a_drive_is_solid() -> None:
    assert drives.drive_of_plist(DISKUTIL.encode()) == "ssd"
    assert drives.drive_of_plist(DISKUTIL.replace("<true/>", "<false/>").encode()) == "hdd"


@pytest.mark.parametrize(
    "plist", [b"", b"Could not find disk", b"<plist", *map(plistlib.dumps, ({}, [], {"SolidState": "?"}))]
)
def test_an_answer_without_that_is_unknown(plist: bytes) -> None:
    assert drives.drive_of_plist(plist) == ""


@pytest.mark.parametrize(
    ("device", "found"),
    [("/dev/disk3s5", "/dev/disk3s5"), ("//ada@nas/models", ""), ("map auto_home", "")],
)
def test_df_names_the_device_of_a_folder(device: str, found: str) -> None:
    df = f"Filesystem 512-blocks Used Available Capacity Mounted on\n{device} 1942700360 999 555 40% /System/Volumes\n"
    assert drives.volume_device(df) == found
    assert drives.volume_device("") == ""


def test_any_path_has_an_answer(tmp_path: Path) -> None:
    """A folder that isn't there yet will be on the drive of the nearest one above it."""
    here = drive_of(tmp_path)
    assert here in ("ssd", "hdd", "")
    assert drive_of(tmp_path / "models" / "a.gguf") == here
    assert drive_of(Path("nowhere", "at all")) in ("ssd", "hdd", "")
