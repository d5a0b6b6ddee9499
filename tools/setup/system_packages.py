"""What must come from the operating system: libraries that Qt opens, an X server for the tests, a compiler."""

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tools.setup import vulkan_headers
from tools.setup.pip import without_addresses
from tools.setup.project import SetupError

Kind = Literal["library", "program", "font", "module", "header"]


@dataclass(frozen=True)
class Need:
    """One thing the system must have. `name` is a library's file, a program, a Python module or a C header."""

    kind: Kind
    name: str
    debian_package: str
    word: str = ""
    """What a header that is new enough has in it."""


_RUN = (
    Need("library", "libEGL.so.1", "libegl1"),
    Need("library", "libGL.so.1", "libgl1"),
    Need("library", "libglib-2.0.so.0", "libglib2.0-0"),
    Need("library", "libdbus-1.so.3", "libdbus-1-3"),
    Need("library", "libfontconfig.so.1", "libfontconfig1"),
    Need("library", "libxkbcommon-x11.so.0", "libxkbcommon-x11-0"),
    Need("library", "libxcb-cursor.so.0", "libxcb-cursor0"),
    Need("library", "libxcb-icccm.so.4", "libxcb-icccm4"),
    Need("library", "libxcb-keysyms.so.1", "libxcb-keysyms1"),
    Need("library", "libxcb-shape.so.0", "libxcb-shape0"),
    Need("library", "libgomp.so.1", "libgomp1"),
    Need("font", "any font", "fonts-dejavu-core"),
    # Debian leaves this part of Python out of its python3 package.
    Need("module", "ensurepip", f"python3.{sys.version_info.minor}-venv"),
)
_TEST = (
    Need("program", "Xvfb", "xvfb"),
    Need("program", "xdotool", "xdotool"),
    # Both of its programs. The app comes without it, and its users install it for video.
    Need("program", "ffprobe", "ffmpeg"),
)
_BUILD = (Need("program", "c++", "g++"),)
_VULKAN = (
    Need("program", "glslc", "glslc"),
    # Newer than Debian 12's: release 1.3.275 of January 2024 is new enough. See vulkan_headers.py.
    Need("header", "vulkan/vulkan_core.h", "libvulkan-dev", "VK_EXT_layer_settings"),
    Need("header", "spirv/unified1/spirv.hpp", "spirv-headers"),
)
"""What the Vulkan backend is compiled with. Where it comes in one piece, as the Vulkan SDK, the first tells of it."""
_SDK = "the Vulkan SDK (https://vulkan.lunarg.com)"
_HEADER_FOLDERS = ("/usr/include", "/usr/local/include", "/opt/homebrew/include")
_LAST_LINES = 25
_LOCK_LIMIT_S = 300
"""How long apt-get waits for another that installs something, such as the system's own updates."""
_FONT_FOLDERS = ("/usr/share/fonts", "/usr/local/share/fonts", "~/.local/share/fonts", "~/.fonts")


def needs(purposes: Sequence[str], system: str) -> list[Need]:
    """What these purposes ("run", "test", "build", "vulkan") need on this system ("Linux", "Darwin", "Windows")."""
    if system == "Linux":
        table = {"run": _RUN, "test": _TEST, "build": _BUILD, "vulkan": _VULKAN}
    else:
        table = {"build": _BUILD if system == "Darwin" else (), "vulkan": _VULKAN[:1]}
    return [need for purpose in purposes for need in table.get(purpose, ())]


def missing(wanted: Sequence[Need]) -> list[Need]:
    """Those of `wanted` that are not here."""
    return [need for need in wanted if not _present(need)]


def provide(wanted: Sequence[Need], *, say: Callable[[str], None]) -> None:
    """Installs what is missing where that is ours to do: on Debian and its children, as root.

    Raises SetupError with the exact line to run, or with the names to look for, everywhere else.
    """
    _replace_old_headers(missing(wanted), say)
    absent = missing(wanted)
    if not absent:
        return
    packages = " ".join(sorted({need.debian_package for need in absent}))
    if not sys.platform.startswith("linux") and any(need in _VULKAN for need in absent):
        names = ", ".join(need.name for need in absent)
        raise SetupError(f"Missing to build a Vulkan engine: {names}. Install {_SDK}.")
    if sys.platform == "darwin":
        raise SetupError("The C++ compiler is missing. Run: xcode-select --install")
    if shutil.which("apt-get") is None:
        names = ", ".join(need.name for need in absent)
        raise SetupError(f"Missing on this system: {names}. Install them with its package manager, then try again.")
    if not _is_root():
        raise SetupError(f"Missing on this system. Run: sudo apt-get install {packages}")
    say(f"Installing from the system's packages (about a minute): {packages}")
    _apt("update")
    _apt("install", "--yes", "--no-install-recommends", *packages.split())
    _replace_old_headers(missing(absent), say)
    still = missing(absent)
    if still:
        names = ", ".join(need.name for need in still)
        raise SetupError(f"Still missing after installing {packages}: {names}.")


def is_outdated(need: Need) -> bool:
    """Whether this header is here, but in a release that is too old, and no newer one was fetched."""
    return need.kind == "header" and _header(need.name) is not None and not _present(need)


def _replace_old_headers(wanted: Sequence[Need], say: Callable[[str], None]) -> None:
    """Fetch newer Vulkan headers if the system's are too old. Raises SetupError if that cannot be done."""
    old = [need.name for need in wanted if is_outdated(need)]
    if old and not _sdk() and vulkan_headers.can_fetch():
        vulkan_headers.fetch(say)
        old = [need.name for need in wanted if is_outdated(need)]
    if old:
        raise SetupError(
            f"This system's {', '.join(old)} is too old for this engine. Install {_SDK}, "
            "and set the variable VULKAN_SDK to its folder."
        )


def vulkan_environment() -> dict[str, str]:
    """Variables with which a build takes the fetched Vulkan headers, where the system's own are too old."""
    if _sdk() or not vulkan_headers.FOLDER.is_dir() or all(_is_new_enough(need) for need in _VULKAN):
        return {}
    return {"VULKAN_SDK": str(vulkan_headers.FOLDER)}


def _sdk() -> str:
    return os.environ.get("VULKAN_SDK", "")


def _is_new_enough(need: Need) -> bool:
    """Whether the compiler would take a header that is new enough; True for what is no header."""
    header = _header(need.name) if need.kind == "header" else None
    return header is None or need.word in header.read_text(encoding="utf-8", errors="replace")


def _header(name: str) -> Path | None:
    """The file a compiler would take: of the Vulkan SDK that VULKAN_SDK names, else of the system."""
    sdk = _sdk()
    folders = [*([Path(sdk, "include")] if sdk else []), *map(Path, _HEADER_FOLDERS)]
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def _is_root() -> bool:
    return sys.platform != "win32" and os.geteuid() == 0


def _apt(*arguments: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "--quiet", "-o", f"DPkg::Lock::Timeout={_LOCK_LIMIT_S}", *arguments]
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode:
        last = "\n".join(done.stdout.splitlines()[-_LAST_LINES:])
        raise SetupError(f"`{' '.join(command)}` failed:\n{without_addresses(last)}")


def _present(need: Need) -> bool:
    match need.kind:
        case "library":
            return _opens(need.name)
        case "program":
            return shutil.which(need.name) is not None
        case "module":
            return _imports(need.name)
        case "header":
            # Fetched headers stand in for old ones only: their package also brings the library that is linked.
            fetched = not _sdk() and (vulkan_headers.FOLDER / "include" / need.name).is_file()
            return _header(need.name) is not None and (fetched or _is_new_enough(need))
        case "font":
            folders = (Path(folder).expanduser() for folder in _FONT_FOLDERS)
            return any(next(folder.rglob("*.[ot]tf"), None) for folder in folders if folder.is_dir())


def _opens(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _imports(module: str) -> bool:
    # In a new interpreter, because what was just installed is not seen by one that looked before.
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0
