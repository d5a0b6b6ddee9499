"""Which libraries other libraries ask for when they are loaded, and which of those nobody would have."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pefile

from tools.bundle.windows import RUNTIME_NAMES
from tools.setup.project import SetupError

C_LIBRARY = ("libc.so.", "libm.so.", "libpthread.so.", "libdl.so.", "librt.so.", "ld-linux", "linux-vdso")
FROM_THE_SYSTEM = ("libstdc++.so.6", "libgcc_s.so.1", "libvulkan.so.1", "libcuda.so.1")
"""What an engine may ask for beside the C library: every desktop has the first two, a graphics driver brings the rest.
"""
_FROM_THE_BUNDLE = ("libgomp.so.1",)
"""What lies in the app's own folder, for every engine. On Windows that is the runtime of the engines' compiler."""
_FROM_WINDOWS = (
    "vulkan-1.dll", "nvcuda.dll", "api-ms-win-", "ext-ms-win-", "kernel32.dll", "ntdll.dll", "advapi32.dll",
    "user32.dll", "gdi32.dll", "shell32.dll", "shlwapi.dll", "ole32.dll", "oleaut32.dll", "ws2_32.dll", "bcrypt.dll",
    "crypt32.dll", "dbghelp.dll", "psapi.dll", "setupapi.dll", "cfgmgr32.dll", "version.dll", "winmm.dll",
    "rpcrt4.dll", "userenv.dll", "iphlpapi.dll", "powrprof.dll", "ucrtbase.dll", "msvcrt.dll",
)  # fmt: skip
_NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")
_OWN_NAME = re.compile(r"\(SONAME\).*\[(.+)\]")
_IMPORTS = ("IMAGE_DIRECTORY_ENTRY_IMPORT", "IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT")


@dataclass(frozen=True)
class Links:
    """Names that the system's loader goes by."""

    asked_for: frozenset[str]
    own_name: str = ""
    """What others call this library, if not by its file's name."""


def unmet(libraries: Sequence[Path], runtime: Sequence[str] = RUNTIME_NAMES) -> dict[str, list[str]]:
    """Return, by the name of a library, what it asks for that is not among `libraries` and that no PC is sure to have.

    `runtime` has the names of the compiler's libraries that the bundle for Windows has. Raises SetupError where the
    system's program that reads libraries is missing.
    """
    links = {library.name: links_of(library) for library in libraries}
    own = {name.lower() for name in links} | {each.own_name.lower() for each in links.values()}
    there = (*C_LIBRARY, *FROM_THE_SYSTEM, *_FROM_THE_BUNDLE, *_FROM_WINDOWS, *(name.lower() for name in runtime))
    found = {
        name: sorted(each for each in said.asked_for if each.lower() not in own and not each.lower().startswith(there))
        for name, said in links.items()
    }
    return {name: lacks for name, lacks in found.items() if lacks}


def refuse_unmet(libraries: Sequence[Path], runtime: Sequence[str] = RUNTIME_NAMES) -> None:
    """Raises SetupError that names what would be missing."""
    lacks = [f"{name} asks for {', '.join(lacking)}" for name, lacking in unmet(libraries, runtime).items()]
    if lacks:
        raise SetupError(f"This engine would not start everywhere: {'; '.join(lacks)}.")


def links_of(library: Path) -> Links:
    """Return the names in a library's headers: a DLL's on any system, others where binutils are installed."""
    if library.suffix.lower() != ".dll":
        headers = headers_of(library)
        return Links(frozenset(_NEEDED.findall(headers)), next(iter(_OWN_NAME.findall(headers)), ""))
    with pefile.PE(str(library), fast_load=True) as read:
        read.parse_data_directories([pefile.DIRECTORY_ENTRY[name] for name in _IMPORTS])
        tables = [getattr(read, name.replace("IMAGE_", ""), []) for name in _IMPORTS]
        return Links(frozenset(entry.dll.decode() for table in tables for entry in table))


def headers_of(library: Path) -> str:
    """Return what `readelf` says of a library for Linux. Raises SetupError without binutils."""
    if shutil.which("readelf") is None:
        raise SetupError("readelf is missing, which says what a library asks for. Install binutils.")
    command = ["readelf", "--dynamic", "--wide", str(library)]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False).stdout
