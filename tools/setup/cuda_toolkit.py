"""The CUDA toolkit: the one whose nvcc is on PATH, or NVIDIA's compiler from Python packages, kept in .engine."""

import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tools.setup.pip import run_pip
from tools.setup.progress import LibraryProgress, ProgressLine
from tools.setup.project import ENGINES, WORK, SetupError

WHEELS_FILE = Path(__file__).with_name("cuda_wheels.txt")
"""NVIDIA's packages, each with its version and SHA-256, as pip reads them."""
DOWNLOAD_GB = 0.63
"""What the wheels take together."""
_FREE_GB = 4
"""For the wheels (0.63 GB), what is in them (1.3 GB), and the compiled engine."""
_LINKED = ("cudart", "cublas", "cublasLt")
"""Libraries that the linker asks for as libx.so; the packages have only libx.so.13."""


@dataclass(frozen=True)
class CudaToolkit:
    """A compiler for CUDA with its libraries."""

    root: Path
    release: tuple[int, int]
    is_fetched: bool = False
    """It came from NVIDIA's Python packages, and lies in .engine."""

    @property
    def nvcc(self) -> Path:
        return self.root / "bin" / ("nvcc.exe" if sys.platform == "win32" else "nvcc")

    @property
    def major(self) -> int:
        return self.release[0]


@dataclass(frozen=True)
class PinnedWheel:
    """A line of WHEELS_FILE."""

    name: str
    version: str
    sha256: str


def pinned_wheels() -> tuple[PinnedWheel, ...]:
    """Return NVIDIA's packages that make up the fetched toolkit."""
    lines = re.findall(r"^(\S+)==(\S+) --hash=sha256:(\S+)$", WHEELS_FILE.read_text(encoding="utf-8"), re.MULTILINE)
    return tuple(PinnedWheel(*values) for values in lines)


def installed_toolkit() -> CudaToolkit | None:
    """Return the toolkit that the nvcc on PATH belongs to; None without one."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        return None
    text = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=False).stdout
    release = re.search(r"release (\d+)\.(\d+)", text)
    return CudaToolkit(Path(nvcc).resolve().parents[1], (int(release[1]), int(release[2]))) if release else None


def can_fetch() -> bool:
    """Return whether NVIDIA's packages of WHEELS_FILE run on this PC."""
    return platform.system() == "Linux" and platform.machine().lower() in ("x86_64", "amd64")


def wheels_release() -> tuple[int, int]:
    """Return the release of CUDA that WHEELS_FILE pins, such as (13, 5)."""
    major, minor = _compiler_version().split(".")[:2]
    return int(major), int(minor)


def fetched_toolkit() -> CudaToolkit | None:
    """Return the toolkit that an earlier run fetched; None if there is none of the pinned release."""
    root = _root()
    return CudaToolkit(root, wheels_release(), is_fetched=True) if root.is_dir() else None


def fetch_toolkit(python: Path) -> CudaToolkit:
    """Return the toolkit from NVIDIA's Python packages, downloaded once and checked by SHA-256.

    Nothing of it is installed into an environment. Raises SetupError if this PC is of another kind, if there is too
    little room, or with pip's last lines.
    """
    if not can_fetch():
        raise SetupError(
            "Without the CUDA toolkit, a CUDA engine can be built on Linux with an x86-64 processor only. Install the "
            "toolkit so that `nvcc --version` works, or take ENGINE=vulkan."
        )
    kept = fetched_toolkit()
    if kept is not None:
        return kept
    folder = ENGINES / f"cuda-toolkit-{_compiler_version()}"
    unfinished = ENGINES / f"{folder.name}.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        _refuse_small_disk(unfinished)
        _install_wheels(python, unfinished)
        _make_links(unfinished / _root().relative_to(folder))
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return CudaToolkit(_root(), wheels_release(), is_fetched=True)


def _install_wheels(python: Path, folder: Path) -> None:
    terminal = sys.stdout.isatty()
    line = ProgressLine("CUDA compiler", sys.stdout, terminal=terminal)
    progress = LibraryProgress(line, len(pinned_wheels()), terminal=terminal)
    arguments = ["install", "--no-deps", "--no-compile", "--no-cache-dir", "--progress-bar", "off"]
    arguments += ["--only-binary", ":all:", "--require-hashes", "--requirement", str(WHEELS_FILE)]
    # pip unpacks into the folder for temporary files first, and that may be too small.
    temporary = folder / "temporary"
    temporary.mkdir()
    arguments += ["--target", str(folder)]
    trouble = run_pip(python, arguments, WORK / "cuda-toolkit.log", progress.feed, {"TMPDIR": str(temporary)})
    line.finish("the download failed" if trouble else "downloaded")
    if trouble:
        raise SetupError(f"NVIDIA's compiler could not be downloaded. Are you online? {trouble}")
    shutil.rmtree(temporary)


def _make_links(root: Path) -> None:
    """Give libraries the names that compilers ask for."""
    (root / "lib64").symlink_to("lib")
    for name in _LINKED:
        library = next((root / "lib").glob(f"lib{name}.so.*"))
        (root / "lib" / f"lib{name}.so").symlink_to(library.name)


def _refuse_small_disk(folder: Path) -> None:
    free_gb = shutil.disk_usage(folder).free / 1e9
    if free_gb < _FREE_GB:
        raise SetupError(
            f"A CUDA engine needs {_FREE_GB} GB of room in {ENGINES}, and {free_gb:.1f} GB are free. Free some space "
            "there, or take ENGINE=vulkan."
        )


def _compiler_version() -> str:
    return next(wheel.version for wheel in pinned_wheels() if wheel.name == "nvidia-cuda-nvcc")


def _root() -> Path:
    version = _compiler_version()
    return ENGINES / f"cuda-toolkit-{version}" / "nvidia" / f"cu{version.split('.')[0]}"
