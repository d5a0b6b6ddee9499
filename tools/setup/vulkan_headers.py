"""Newer Vulkan headers for a Debian whose own are too old to compile the engine: those of Debian 13, kept in .engine.

They come from the mirror that the system already uses, and are the right ones by their hash. Debian keeps the packages
of a release until the release is archived; DEBIAN_MIRROR can name another mirror then.
"""

import hashlib
import http.client
import shutil
import subprocess
import urllib.request
from collections.abc import Callable

from tools.setup.debian_mirror import MIRROR_VARIABLE, find_mirror
from tools.setup.project import ENGINES, SetupError

RELEASE = "1.4.309"
_PACKAGE = "pool/main/v/vulkan-loader/libvulkan-dev_1.4.309.0-1_amd64.deb"
"""Its headers are the same for every processor."""
_SHA256 = "8d329d465e16168afff58b1bd0dd6db46aac2cc3f56054a481b25a04e90b345a"
"""As Debian's signed index of release 13 has it."""
FOLDER = ENGINES / f"vulkan-headers-{RELEASE}"
"""What VULKAN_SDK names while the engine is compiled. It has a folder "include"."""
_TIMEOUT_S = 60


def can_fetch() -> bool:
    """Return whether this is a system whose mirror and tools `fetch` can use."""
    return shutil.which("dpkg-deb") is not None and bool(find_mirror())


def fetch(say: Callable[[str], None]) -> None:
    """Download the headers and unpack them into FOLDER, unless they are there. Raises SetupError."""
    if FOLDER.is_dir():
        return
    say(f"Fetching the Vulkan headers {RELEASE} of Debian 13: this system's own are too old.")
    content = _download(f"{find_mirror()}/{_PACKAGE}")
    if hashlib.sha256(content).hexdigest() != _SHA256:
        raise SetupError("The Vulkan headers from the Debian mirror are not the expected file. Try another mirror.")
    unpacked = FOLDER.with_name(f"{FOLDER.name}.unfinished")
    shutil.rmtree(unpacked, ignore_errors=True)
    unpacked.mkdir(parents=True)
    archive = unpacked / "package.deb"
    archive.write_bytes(content)
    line = ["dpkg-deb", "--extract", str(archive), str(unpacked / "package")]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetupError(f"The Vulkan headers could not be unpacked: {done.stderr.strip()}")
    (unpacked / "package" / "usr" / "include").rename(unpacked / "include")
    shutil.rmtree(unpacked / "package")
    archive.unlink()
    unpacked.rename(FOLDER)


def _download(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as answer:
            content: bytes = answer.read()
            return content
    except (OSError, http.client.HTTPException) as error:
        raise SetupError(
            f"The Vulkan headers could not be fetched from the Debian mirror ({type(error).__name__}). Are you online? "
            f"{MIRROR_VARIABLE} can name another mirror."
        ) from error
