"""How a CUDA engine is compiled: with which toolkit, for which cards, and where a build that takes hours is kept."""

import shutil
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.setup import nvidia
from tools.setup.cuda_toolkit import CudaToolkit
from tools.setup.nvidia import NvidiaCard
from tools.setup.pip import run_pip
from tools.setup.project import ENGINE_PACKAGE, ENGINES, WORK, SetupError

_SITE_PACKAGES_TO_ROOT = "../../../../../.."
"""From .venv/lib/python3.x/site-packages/llama_cpp/lib to the folder that has .venv and .engine."""


@dataclass(frozen=True)
class CudaBuild:
    """What a build of the CUDA engine depends on, beside the backend's own flags."""

    toolkit: CudaToolkit
    architectures: tuple[str, ...] = ()
    """As CMake names them, such as "86-real"; empty for what the backend's flags or llama.cpp choose."""
    is_for_this_pc: bool = False
    """The engine finds the fetched toolkit's libraries in .engine; otherwise they must lie beside it."""

    def flags(self) -> list[str]:
        """Return CMake's arguments."""
        flags = []
        if self.architectures:
            flags.append(f"-DCMAKE_CUDA_ARCHITECTURES={';'.join(self.architectures)}")
        if self.toolkit.is_fetched:
            # The packages have no library to link the driver's functions for virtual memory with.
            flags.append("-DGGML_CUDA_NO_VMM=ON")
            if self.is_for_this_pc:
                libraries = (self.toolkit.root / "lib").relative_to(ENGINES.parent).as_posix()
                # In single quotes for the shell that runs the linker, in double quotes for whoever splits CMAKE_ARGS.
                rpath = f"-Wl,-rpath,'$ORIGIN/{_SITE_PACKAGES_TO_ROOT}/{libraries}'"
                flags.append(f'"-DCMAKE_SHARED_LINKER_FLAGS={rpath}"')
        return flags

    def environment(self) -> dict[str, str]:
        """Return variables that lead CMake to the toolkit; none for the one on PATH, which it finds."""
        if not self.toolkit.is_fetched:
            return {}
        return {"CUDACXX": str(self.toolkit.nvcc), "CUDAToolkit_ROOT": str(self.toolkit.root)}


def architectures_here(cards: Sequence[NvidiaCard], cuda_major: int, cmake_arguments: str) -> tuple[str, ...]:
    """Return the architectures of this PC's cards; none if the user's own `cmake_arguments` choose some.

    Raises SetupError, before a long download and build, if no card here could use the engine.
    """
    if "CMAKE_CUDA_ARCHITECTURES" in cmake_arguments:
        return ()
    if not cards:
        raise SetupError(
            "No NVIDIA card with a driver was found: `nvidia-smi` must list it. To build a CUDA engine for other PCs: "
            "python -m tools.bundle.pack"
        )
    refusal = nvidia.obstacle(cards, cuda_major)
    if refusal:
        raise SetupError(f"A CUDA engine would not run here: {refusal}. Take ENGINE=vulkan.")
    return nvidia.architectures(nvidia.usable(cards, cuda_major))


def keep_source(folder: Path, version: str, python: Path, take: Callable[[str], None]) -> Path:
    """Return the engine package's source in `folder`, downloaded and unpacked unless an earlier run did that.

    A build in a folder that stays goes on after an interruption: ninja compiles only what is missing. Raises SetupError
    with pip's last lines.
    """
    source = folder / "source"
    if source.is_dir():
        return source
    unfinished = folder / "source.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    arguments = ["download", "--no-deps", "--no-cache-dir", "--no-binary", ENGINE_PACKAGE, "--progress-bar", "off"]
    arguments += ["--dest", str(unfinished), f"{ENGINE_PACKAGE}=={version}"]
    trouble = run_pip(python, arguments, WORK / "engine-source.log", take)
    archive = next(unfinished.glob("*.tar.gz"), None)
    if trouble or archive is None:
        raise SetupError(f"The engine's source could not be downloaded. Are you online? {trouble or ''}")
    with tarfile.open(archive) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", None)
        packed.extractall(unfinished)
    unpacked = next(path for path in unfinished.iterdir() if path.is_dir())
    unpacked.rename(source)
    shutil.rmtree(unfinished)
    return source
