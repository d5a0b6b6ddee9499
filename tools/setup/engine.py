"""The engine's wheel: built once for each backend and release, kept in .engine, and used again."""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.setup.backends import Backend, cmake_flags, compiler_environment, prebuilt_folder
from tools.setup.cuda_build import CudaBuild, keep_source
from tools.setup.pip import run_pip
from tools.setup.progress import BuildProgress, ProgressLine
from tools.setup.project import ENGINE_PACKAGE, ENGINES, PREBUILT_INDEX, WORK, SetupError

_ALONE = ("--no-cache-dir", "--no-deps")
"""The package without others, and never a wheel that was built for another backend."""


def kept_wheel(backend: Backend, version: str, variant: str = "") -> Path | None:
    """The wheel that an earlier run left, or None. `variant` tells builds of one backend apart."""
    wheels = sorted((ENGINES / _name(backend, version, variant)).glob(f"llama_cpp_python-{version}*.whl"))
    return wheels[-1] if wheels else None


def build(backend: Backend, version: str, python: Path, cuda: CudaBuild | None = None, variant: str = "") -> Path:
    """Compiles the engine; minutes on a CPU, an hour and more with CUDA. Returns the wheel.

    pip gets the package's own build tools (CMake, ninja) where the system has none or too old ones. Its cache is left
    out, because it does not tell one backend's wheel from another's. A build with `cuda` keeps its source and objects
    in .engine until it is done, so that it goes on where it was interrupted; not on Windows, where paths would become
    too long for the compiler. Raises SetupError with the build's last lines.
    """
    name = _name(backend, version, variant)
    flags = [*cmake_flags(backend), *(cuda.flags() if cuda is not None else []), os.environ.get("CMAKE_ARGS", "")]
    extra = {"CMAKE_ARGS": " ".join(flags).strip(), **compiler_environment(backend)}
    line, progress = _progress()
    source = ["--no-binary", ENGINE_PACKAGE, f"{ENGINE_PACKAGE}=={version}"]
    kept = ENGINES / f"{name}.build"
    if cuda is not None:
        extra |= cuda.environment()
        if os.name != "nt":
            source = [str(keep_source(kept, version, python, progress.feed))]
            extra["SKBUILD_BUILD_DIR"] = str(kept / "objects")
    with _new_folder(name) as folder:
        arguments = ["wheel", "--verbose", *source, "--wheel-dir", str(folder), *_ALONE]
        trouble = run_pip(python, arguments, WORK / f"engine-{backend}.log", progress.feed, extra)
        line.finish("the build failed" if trouble else "built")
        if trouble:
            raise SetupError(f"The engine did not build. {trouble}")
    shutil.rmtree(kept, ignore_errors=True)
    return _kept(backend, version, variant)


def fetch_prebuilt(backend: Backend, version: str, python: Path) -> Path:
    """Downloads a ready wheel from the engine package's own index. Returns it; raises SetupError if there is none."""
    folder_name = prebuilt_folder(backend)
    line, progress = _progress()
    line.show(f"looking for a ready-made one for {folder_name}")
    arguments = ["download", "--only-binary", ":all:", "--progress-bar", "off"]
    arguments += ["--index-url", f"{PREBUILT_INDEX}/{folder_name}", f"{ENGINE_PACKAGE}=={version}"]
    log = WORK / f"engine-{folder_name}.log"
    with _new_folder(_name(backend, version)) as folder:
        trouble = run_pip(python, [*arguments, "--dest", str(folder), *_ALONE], log, progress.feed)
    if trouble is not None:
        line.finish("none found")
        raise SetupError(
            f"There is no ready-made {backend} engine {version} for this machine, or the connection failed ({log} has "
            "the details). Try again, set ENGINE=cpu, or build an engine with a C++ compiler: python -m tools.setup"
        )
    line.finish("downloaded")
    return _kept(backend, version)


def _progress() -> tuple[ProgressLine, BuildProgress]:
    terminal = sys.stdout.isatty()
    line = ProgressLine("engine", sys.stdout, terminal=terminal)
    return line, BuildProgress(line, terminal=terminal)


@contextlib.contextmanager
def _new_folder(name: str) -> Iterator[Path]:
    """A folder that gets this name in .engine if a wheel lies in it at the end, so that no half-made one is kept."""
    final, folder = ENGINES / name, ENGINES / f"{name}.unfinished"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
        if any(folder.glob("*.whl")):
            shutil.rmtree(final, ignore_errors=True)
            folder.rename(final)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _name(backend: Backend, version: str, variant: str = "") -> str:
    return "-".join(part for part in (backend, variant, version) if part)


def _kept(backend: Backend, version: str, variant: str = "") -> Path:
    wheel = kept_wheel(backend, version, variant)
    if wheel is None:
        raise SetupError(f"pip made no wheel of {ENGINE_PACKAGE} {version}.")
    return wheel
