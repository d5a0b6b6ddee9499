"""What a bundle for Windows needs beside the engines: the runtime libraries of the compiler that made them.

On Windows that is Visual Studio. Engines that GCC made on Linux bring GCC's own libraries (tools/windows).
"""

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from tools.setup.project import SetupError

RUNTIME = {"CRT": ("msvcp140.dll", "vcruntime140.dll", "vcruntime140_1.dll"), "OpenMP": ("vcomp140.dll",)}
"""By the folder of Visual Studio that has them: Microsoft.VC143.CRT, Microsoft.VC143.OpenMP."""
RUNTIME_NAMES = tuple(name for names in RUNTIME.values() for name in names)


def runtime_libraries(releases: Iterable[Path]) -> tuple[Path, ...]:
    """The four libraries from the newest folder of VC\\Redist\\MSVC that has them all.

    All four from one release: a newer msvcp140 with an older vcruntime140 crashes. Raises SetupError when none has all.
    """
    for release in sorted(releases, key=_number, reverse=True):
        found = tuple(_found(release))
        if len(found) == len(RUNTIME_NAMES):
            return found
    raise SetupError(
        f"Microsoft's runtime libraries ({', '.join(RUNTIME_NAMES)}) were not found. Install Visual Studio 2022 or its "
        "Build Tools with the C++ compiler, or set the variable VCToolsRedistDir."
    )


def installed_runtime() -> tuple[Path, ...]:
    """Return Microsoft's libraries from this PC's Visual Studio. Raises SetupError without one."""
    return runtime_libraries(redistributables())


def runtime_of(folder: Path) -> tuple[Path, ...]:
    """Return the libraries of a folder, each of which has its licence beside it as a text with the same name.

    Raises SetupError where there is none.
    """
    found = tuple(sorted(folder.glob("*.dll")))
    if not found:
        raise SetupError(f"{folder} has no libraries of the compiler.")
    return found


def redistributables(environment: Mapping[str, str] = os.environ) -> list[Path]:
    """The folders of releases below VC\\Redist\\MSVC: the one that the compiler's own variables name, else all."""
    if named := environment.get("VCToolsRedistDir"):
        return [Path(named)]
    vswhere = Path(environment.get("ProgramFiles(x86)", ""), "Microsoft Visual Studio", "Installer", "vswhere.exe")
    if not vswhere.is_file():
        return []
    command = [str(vswhere), "-products", "*", "-utf8", "-property", "installationPath"]
    listed = subprocess.run(command, capture_output=True, encoding="utf-8", check=False).stdout
    return [each for place in listed.splitlines() for each in Path(place, "VC", "Redist", "MSVC").glob("*")]


def build_path(python: Path, environment: Mapping[str, str] = os.environ) -> str:
    """A PATH of this Python and the system alone.

    PyInstaller takes a library that it misses from PATH, where a runner has those of a dozen other programs.
    """
    system = Path(environment.get("SYSTEMROOT", r"C:\Windows"), "System32")
    return os.pathsep.join(map(str, (python, system)))


def _found(release: Path) -> Iterable[Path]:
    for part, names in RUNTIME.items():
        for folder in sorted(release.glob(f"x64/Microsoft.VC*.{part}"), reverse=True)[:1]:
            yield from (folder / name for name in names if (folder / name).is_file())


def _number(release: Path) -> tuple[int, ...]:
    """14.44.35112 as numbers; what else lies there (v143, with installers) comes last."""
    parts = release.name.split(".")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()
