"""The engine's wheel: built once for each backend and release, kept in .engine, and used again."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tools.setup.backends import Backend, cmake_flags, compiler_environment, cuda_toolkit_release, prebuilt_folders
from tools.setup.progress import BuildProgress
from tools.setup.project import ENGINE_PACKAGE, ENGINES, PREBUILT_INDEX, WORK, SetupError

_LAST_LINES = 25


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
    progress = BuildProgress(sys.stdout, terminal=sys.stdout.isatty())
    with _new_folder(backend, version) as folder:
        log, last = WORK / f"engine-{backend}.log", deque[str](maxlen=_LAST_LINES)
        log.parent.mkdir(exist_ok=True)
        with log.open("w", encoding="utf-8") as file:

            def take(line: str) -> None:
                file.write(line)
                last.append(line)
                progress.feed(line)

            code = _pip(python, [*arguments, "--wheel-dir", str(folder)], take, extra)
        progress.finish("built" if code == 0 else "the build failed")
        if code:
            raise SetupError(f"The engine did not build. The end of {log}:\n{''.join(last)}")
    return _kept(backend, version)


def fetch_prebuilt(backend: Backend, version: str, python: Path, say: Callable[[str], None]) -> Path:
    """Downloads a ready wheel from the engine package's own index. Returns it; raises SetupError if there is none."""
    folders = prebuilt_folders(backend, cuda_toolkit_release() if backend == "cuda" else None)
    for name in folders:
        index = f"{PREBUILT_INDEX}/{name}"
        say(f"Looking for a ready engine in {index}")
        arguments = ["download", "--only-binary", ":all:", "--index-url", index, f"{ENGINE_PACKAGE}=={version}"]
        with _new_folder(backend, version) as folder:
            if _pip(python, [*arguments, "--dest", str(folder)], lambda line: None, {}) == 0:
                break
    else:
        raise SetupError(
            f"There is no ready {backend} engine {version} for this machine in {', '.join(folders) or PREBUILT_INDEX}. "
            "Set ENGINE=cpu, or build one with a C++ compiler: python -m tools.setup"
        )
    return _kept(backend, version)


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


def _pip(python: Path, arguments: Sequence[str], take: Callable[[str], None], extra: dict[str, str]) -> int:
    """Runs pip and hands over each line of what it prints. Returns its exit code."""
    command = [str(python), "-m", "pip", "--no-input", "--disable-pip-version-check", *arguments]
    command += ["--no-cache-dir", "--no-deps"]
    with subprocess.Popen(
        command,
        env={**os.environ, **extra},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
    ) as process:
        for line in process.stdout or ():
            take(line)
    return process.returncode
