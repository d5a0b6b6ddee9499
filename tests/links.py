"""Symbolic links in tests."""

from pathlib import Path

import pytest


def can_link(folder: Path) -> bool:
    """Return whether symbolic links can be made in `folder`: Windows asks for a right, and Wine 10 makes none."""
    probe = folder / "probe of links"
    try:
        probe.symlink_to(folder, target_is_directory=True)
    except OSError:
        return False
    if not probe.is_symlink():
        return False
    probe.unlink()
    return True


def skip_without_links(folder: Path) -> None:
    if not can_link(folder):
        pytest.skip("no symbolic links here: Windows asks for a right to make one, and Wine 10 makes none")
