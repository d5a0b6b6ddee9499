"""The engine's wheel: built once for each backend and release, kept in .engine, and used again."""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.setup.backends import Backend, cmake_flags, compiler_environment, cuda_toolkit_release, prebuilt_folders
from tools.setup.pip import run_pip
from tools.setup.progress import BuildProgress, ProgressLine
from tools.setup.project import ENGINE_PACKAGE, ENGINES, PREBUILT_INDEX, WORK, SetupError

_ALONE = ("--no-cache-dir", "--no-deps")
"""The package without others, and never a wheel that was built for another backend."""


def kept_wheel(backend: Backend, version: str) -> Path | None:
    """The wheel that an earlier run left, or None."""
    wheels = sorted((ENGINES / f"{backend}-{version}").glob(f"llama_cpp_python-{version}*.whl"))
    return wheels[-1] if wheels else None


def build(backend: Backend, version: str, python: Path) -> Path:
    """Compiles the engine; minutes on a CPU, up to half an hour with CUDA. Returns the wheel.

    pip gets the package's own build tools (CMake, ninja) where the system has none or too old ones. Its cache is left
    out, because it does not tell one backend's wheel from another's. Raises SetupError with the build's last lines.
    """
    flags = [*cmake_flags(backend), *os.environ.get("CMAKE_ARGS", "").split()]
    extra = {"CMAKE_ARGS": " ".join(flags), **compiler_environment(backend)}
    arguments = ["wheel", "--verbose", "--no-binary", ENGINE_PACKAGE, f"{ENGINE_PACKAGE}=={version}"]
    line, progress = _progress()
    with _new_folder(backend, version) as folder:
        arguments += ["--wheel-dir", str(folder), *_ALONE]
        trouble = run_pip(python, arguments, WORK / f"engine-{backend}.log", progress.feed, extra)
        line.finish("the build failed" if trouble else "built")
        if trouble:
            raise SetupError(f"The engine did not build. {trouble}")
    return _kept(backend, version)


def fetch_prebuilt(backend: Backend, version: str, python: Path) -> Path:
    """Downloads a ready wheel from the engine package's own index. Returns it; raises SetupError if there is none."""
    folders = prebuilt_folders(backend, cuda_toolkit_release() if backend == "cuda" else None)
    line, progress = _progress()
    for name in folders:
        line.show(f"looking for a ready-made one for {name}")
        arguments = ["download", "--only-binary", ":all:", "--progress-bar", "off"]
        arguments += ["--index-url", f"{PREBUILT_INDEX}/{name}", f"{ENGINE_PACKAGE}=={version}"]
        with _new_folder(backend, version) as folder:
            arguments += ["--dest", str(folder), *_ALONE]
            if run_pip(python, arguments, WORK / f"engine-{name}.log", progress.feed) is None:
                break
    else:
        line.finish("none found")
        raise SetupError(
            f"There is no ready-made {backend} engine {version} for this machine, or the connection failed "
            f"({WORK / 'engine-*.log'} has the details). Try again, set ENGINE=cpu, or build an engine with a C++ "
            "compiler: python -m tools.setup"
        )
    line.finish("downloaded")
    return _kept(backend, version)


def _progress() -> tuple[ProgressLine, BuildProgress]:
    terminal = sys.stdout.isatty()
    line = ProgressLine("engine", sys.stdout, terminal=terminal)
    return line, BuildProgress(line, terminal=terminal)


@contextlib.contextmanager
def _new_folder(backend: Backend, version: str) -> Iterator[Path]:
    """A folder that becomes the backend's own if a wheel lies in it at the end, so that no half-made one is kept."""
    final = ENGINES / f"{backend}-{version}"
    folder = ENGINES / f"{final.name}.unfinished"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
        if any(folder.glob("*.whl")):
            shutil.rmtree(final, ignore_errors=True)
            folder.rename(final)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _kept(backend: Backend, version: str) -> Path:
    wheel = kept_wheel(backend, version)
    if wheel is None:
        raise SetupError(f"pip made no wheel of {ENGINE_PACKAGE} {version}.")
    return wheel
