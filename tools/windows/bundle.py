"""The portable zip and the installer for Windows, made on Linux by the Windows Python and Inno Setup under Wine.

It is the way of the release workflow (.github/workflows/release.yml), with engines that were compiled here.
"""

import shutil
import time
from collections.abc import Callable, Mapping
from functools import partial

from qwendesk import __version__
from tools.setup.backends import Backend
from tools.setup.progress import elapsed
from tools.setup.project import ROOT
from tools.windows import chroot, engine, innosetup, tree, wine32
from tools.windows.folders import BUNDLE, DEBIAN, ENGINES, for_windows, inside
from tools.windows.machine import Machine
from tools.windows.stages import Stage

COMPILED: Mapping[str, Backend] = {"cpu-avx2": "cpu-avx2", "cpu-sse42": "cpu-sse42", "vulkan": "vulkan-avx2"}
"""How each engine of the bundle is compiled, by its name there."""
DIST = BUNDLE / "dist"
PRODUCTS = (f"QwenDesk-{__version__}-windows-x64-portable.zip", innosetup.installer_name(__version__))
_GCC = "gcc-mingw-w64-base"
RUNTIME = {"libstdc++-6": _GCC, "libgcc_s_seh-1": _GCC, "libwinpthread-1": "mingw-w64-common"}
"""The libraries of the compiler that an engine asks for, with the Debian package that has their licence."""


def stages(machine: Machine, say: Callable[[str], None]) -> list[Stage]:
    """Return what the bundle needs beside what the tests need. They run after those of the tests."""
    made_from = (engine.source_hash(), *(file.read_text(encoding="utf-8") for file in engine.CMAKE_FILES))
    return [
        *(
            Stage(
                f"engine-{name}",
                f"Engine {name} for Windows, compiled here",
                (*made_from, engine.build_script(backend)),
                partial(engine.build, backend),
                ("debian",),
            )
            for name, backend in COMPILED.items()
            if backend != engine.BACKEND
        ),
        Stage(
            "wine32",
            "Wine for 32-bit programs",
            wine32.SUITES,
            partial(wine32.make, machine.mirror, say),
            ("debian",),
        ),
        Stage("innosetup", "Inno Setup", (innosetup.INTEGRITY,), partial(innosetup.make, say)),
    ]


def make(say: Callable[[str], None]) -> None:
    """Make the zip and the installer, and put both into dist. Raises SetupError."""
    tree.update(ROOT, BUNDLE)
    gather_engines()
    _by_python("Drawing the icon", "icon", "tools.bundle.ico", say=say)
    _by_python("Making the bundle", "bundle", "tools.bundle", "--engines", for_windows(ENGINES), say=say)
    _by_python("Packing the zip", "portable", "tools.bundle.portable", say=say)
    start = time.monotonic()
    innosetup.compile_installer(BUNDLE / innosetup.SCRIPT, DIST, __version__)
    say(f"Made the installer ({elapsed(time.monotonic() - start)})")
    (ROOT / "dist").mkdir(exist_ok=True)
    for name in PRODUCTS:
        shutil.copy(DIST / name, ROOT / "dist")
        say(f"dist/{name}: {(DIST / name).stat().st_size / 2**20:.1f} MiB")
    say("Try the installer: make windows-bundle-test")


def gather_engines() -> None:
    """Put the compiled engines, and once the libraries of the compiler with their licences, where the bundle looks."""
    shutil.rmtree(ENGINES, ignore_errors=True)
    for name, backend in COMPILED.items():
        (ENGINES / name).mkdir(parents=True)
        for library in engine.libraries(backend).glob("*.dll"):
            if library.stem not in RUNTIME:
                shutil.copy(library, ENGINES / name)
    (ENGINES / "runtime").mkdir()
    for stem, package in RUNTIME.items():
        shutil.copy(engine.libraries() / f"{stem}.dll", ENGINES / "runtime")
        licence = DEBIAN / "usr" / "share" / "doc" / package / "copyright"
        shutil.copy(licence, ENGINES / "runtime" / f"{stem}.txt")


def _by_python(what: str, log_name: str, *arguments: str, say: Callable[[str], None]) -> None:
    start = time.monotonic()
    chroot.run(
        what,
        chroot.by_windows_python(["-m", *arguments]),
        log_name,
        folder=inside(BUNDLE),
        take=lambda line: say(f"  {line.rstrip()}"),
        environment=["PYTHONUTF8=1"],
    )
    say(f"{what}: done ({elapsed(time.monotonic() - start)})")
