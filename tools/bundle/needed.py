"""Which libraries other libraries ask for when they are loaded, and which of those nobody would have."""

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.bundle.windows import RUNTIME_NAMES
from tools.setup.project import SetupError

C_LIBRARY = ("libc.so.", "libm.so.", "libpthread.so.", "libdl.so.", "librt.so.", "ld-linux", "linux-vdso")
FROM_THE_SYSTEM = ("libstdc++.so.6", "libgcc_s.so.1", "libvulkan.so.1", "libcuda.so.1")
"""What an engine may ask for beside the C library: every desktop has the first two, a graphics driver brings the rest.
"""
_FROM_THE_BUNDLE = ("libgomp.so.1", *RUNTIME_NAMES)
"""What lies in the app's own folder, for every engine."""
_FROM_WINDOWS = (
    "vulkan-1.dll", "nvcuda.dll", "api-ms-win-", "ext-ms-win-", "kernel32.dll", "ntdll.dll", "advapi32.dll",
    "user32.dll", "gdi32.dll", "shell32.dll", "shlwapi.dll", "ole32.dll", "oleaut32.dll", "ws2_32.dll", "bcrypt.dll",
    "crypt32.dll", "dbghelp.dll", "psapi.dll", "setupapi.dll", "cfgmgr32.dll", "version.dll", "winmm.dll",
    "rpcrt4.dll", "userenv.dll", "iphlpapi.dll", "powrprof.dll",
)  # fmt: skip
_NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")
_OWN_NAME = re.compile(r"\(SONAME\).*\[(.+)\]")
_DLL = re.compile(r"^\s+(\S+\.dll)\s*$", re.IGNORECASE | re.MULTILINE)


def unmet(libraries: Sequence[Path]) -> dict[str, list[str]]:
    """By the name of a library, what it asks for that is not among `libraries` and that no PC is sure to have.

    Raises SetupError where the system's program that reads libraries is missing.
    """
    said = {library.name: headers_of(library) for library in libraries}
    own = {name.lower() for name in said} | {name.lower() for text in said.values() for name in _OWN_NAME.findall(text)}
    there = (*C_LIBRARY, *FROM_THE_SYSTEM, *_FROM_THE_BUNDLE, *_FROM_WINDOWS)
    found = {
        name: sorted(each for each in _asked(text) if each.lower() not in own and not each.lower().startswith(there))
        for name, text in said.items()
    }
    return {name: lacks for name, lacks in found.items() if lacks}


def refuse_unmet(libraries: Sequence[Path]) -> None:
    """Raises SetupError that names what would be missing."""
    lacks = [f"{name} asks for {', '.join(lacking)}" for name, lacking in unmet(libraries).items()]
    if lacks:
        raise SetupError(f"This engine would not start everywhere: {'; '.join(lacks)}.")


def headers_of(library: Path) -> str:
    """What `readelf` or, in the environment of Visual Studio's compiler, `dumpbin` says of a library."""
    command = ["dumpbin", "/nologo", "/dependents"] if sys.platform == "win32" else ["readelf", "--dynamic", "--wide"]
    if shutil.which(command[0]) is None:
        where = "Run this from Visual Studio's developer prompt." if sys.platform == "win32" else "Install binutils."
        raise SetupError(f"{command[0]} is missing, which says what a library asks for. {where}")
    done = subprocess.run([*command, str(library)], capture_output=True, text=True, errors="replace", check=False)
    return done.stdout


def _asked(headers: str) -> set[str]:
    return {*_NEEDED.findall(headers), *_DLL.findall(headers)}
