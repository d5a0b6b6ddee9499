"""The Debian folder and Wine in it. The host's own Wine does not matter: Debian 12's (8.0) crashes at each exit."""

import shutil
from collections.abc import Callable
from pathlib import Path

from tools.setup import system_packages
from tools.setup.system_packages import Need
from tools.windows import chroot
from tools.windows.folders import DEBIAN, LOGS, PREFIX, SHARED

SUITE = "trixie"
"""Debian 13: Wine 10 and GCC 14 for Windows with its C runtime UCRT. Debian 12 has neither."""
PACKAGES = (
    "wine", "wine64",
    "xvfb", "xdotool", "fonts-dejavu-core", "imagemagick", "openbox",
    "g++-mingw-w64-ucrt64", "cmake", "ninja-build", "ccache",
    "g++", "python3", "python3-venv", "python3-dev",
    "glslc", "libvulkan-dev", "spirv-headers", "mesa-vulkan-drivers",
    "libegl1", "libgl1", "libglib2.0-0t64", "libdbus-1-3", "libfontconfig1", "libxkbcommon-x11-0", "libxcb-cursor0",
    "libxcb-icccm4", "libxcb-keysyms1", "libxcb-shape0", "libgomp1", "git", "ca-certificates",
)  # fmt: skip
"""Wine and a screen; compilers for Windows and for Debian; a software driver for Vulkan; what the app needs to run as a
Linux program here."""


def make(mirror: str, say: Callable[[str], None]) -> None:
    """Make the Debian folder and install PACKAGES there. Raises SetupError."""
    system_packages.provide([Need("program", "debootstrap", "debootstrap")], say=say)
    if DEBIAN.exists():
        refuse_mounts(DEBIAN)
        shutil.rmtree(DEBIAN)
    DEBIAN.mkdir(parents=True)
    SHARED.mkdir(exist_ok=True)
    # debootstrap mounts /proc in the new folder, so it too runs with mounts of its own.
    private = ["unshare", "--mount", "--propagation", "private"]
    line = [*private, "debootstrap", "--variant=minbase", "--include=ca-certificates", SUITE, str(DEBIAN), mirror]
    chroot.run_logged("Making the Debian folder", line, LOGS / "debootstrap.log")
    shutil.copy("/etc/resolv.conf", DEBIAN / "etc" / "resolv.conf")
    packages = " ".join(PACKAGES)
    script = f"apt-get install --yes --no-install-recommends {packages}\napt-get clean"
    chroot.run("Installing Wine and the compiler", script, "debian-packages")


def make_prefix() -> None:
    """Make Wine's drive C: and registry anew. Raises SetupError."""
    shutil.rmtree(PREFIX, ignore_errors=True)
    PREFIX.mkdir(parents=True)
    chroot.run("Starting Wine", chroot.SCREEN + "wine wineboot --init\nwineserver --wait", "wine")


def refuse_mounts(folder: Path) -> None:
    """Raise RuntimeError if something is mounted below `folder`: deleting it would delete what is mounted there."""
    for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        place = Path(line.split()[1].replace("\\040", " "))
        if place.is_relative_to(folder):
            raise RuntimeError(f"{place} is a mount point. Unmount it before {folder} is deleted.")
