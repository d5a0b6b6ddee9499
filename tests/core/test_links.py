"""Links and what only looks like one."""

import os
import sys
from pathlib import Path

import pytest

from qwendesk.core.links import is_link, names_another_place, real_path
from tests.links import skip_without_links


@pytest.mark.parametrize(
    ("name", "tag", "leads_elsewhere"),
    # IO_REPARSE_TAG_* of winnt.h (mingw-w64 12.0)
    [
        ("SYMLINK", 0xA000000C, True),
        ("MOUNT_POINT", 0xA0000003, True),
        ("CLOUD", 0x9000001A, False),
        ("CLOUD_1", 0x9000101A, False),
        ("ONEDRIVE", 0x80000021, False),
        ("WOF", 0x80000017, False),
        ("DEDUP", 0x80000013, False),
    ],
)
def test_only_some_reparse_points_are_links(name: str, tag: int, leads_elsewhere: bool) -> None:
    """A chat's folder in OneDrive was taken for a link, so nothing in it could be deleted."""
    assert names_another_place(tag) == leads_elsewhere


@pytest.mark.skipif(sys.platform != "win32", reason="junctions are Windows'")
def test_a_junction_is_a_link(tmp_path: Path) -> None:
    import _winapi

    (tmp_path / "target").mkdir()
    try:
        _winapi.CreateJunction(str(tmp_path / "target"), str(tmp_path / "junction"))
    except OSError:
        pytest.skip("no junctions here: Wine 10 makes none")
    assert is_link(tmp_path / "junction")
    assert not is_link(tmp_path / "target")
    assert real_path(tmp_path / "junction") == real_path(tmp_path / "target")


def test_a_link_is_resolved(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    skip_without_links(tmp_path)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target", target_is_directory=True)
    assert real_path(link / "file") == real_path(tmp_path / "target") / "file"


def test_a_path_that_the_system_cannot_resolve_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object) -> str:
        raise OSError(1231, "The network location cannot be reached")

    monkeypatch.setattr(os.path, "realpath", refuse)
    monkeypatch.chdir(tmp_path)
    assert real_path(Path("models")) == tmp_path / "models"
