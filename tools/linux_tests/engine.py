"""The engines for Linux, compiled from the release that pyproject.toml pins: one for the CPU, one for Vulkan."""

import shutil
import sys
import tarfile
from pathlib import Path

from tools.linux_tests.place import Place
from tools.setup.backends import Backend, cmake_flags
from tools.setup.progress import BuildProgress, ProgressLine
from tools.setup.project import ENGINE_PACKAGE, engine_version
from tools.windows.engine import release_of, source_hash
from tools.windows.folders import SHARED
from tools.windows.python import download

SOURCE = SHARED / "llama-cpp-python"
"""The unpacked source archive. Windows has its own copy, so that no build changes the other's files."""
GLSLC = SHARED / "glslc"
_GLSLC_SCRIPT = Path(__file__).with_name("glslc_without_matrices.sh")
OPERATOR_TESTS = SHARED / "build-vulkan-avx2" / "bin" / "test-backend-ops"
"""llama.cpp's program that compares each operator of a backend with the CPU's."""
# The plain "cpu" and "vulkan" would be for this very processor, AMX included: these two run on more.
CPU: Backend = "cpu-avx2"
VULKAN: Backend = "vulkan-avx2"
_TARGETS = "llama mtmd llama-common"
"""The last one has the report that the dry run reads."""


def libraries(backend: Backend) -> Path:
    """Return the folder of a backend's libraries."""
    return SHARED / f"engine-{backend}"


def unpack() -> None:
    """Unpack the source archive, unless that was done. Raises SetupError."""
    version = engine_version()
    archive = download(f"{ENGINE_PACKAGE}=={version}", source_hash())
    if release_of(SOURCE) == version:
        return
    unpacked = SHARED / "unpacked"
    for folder in (SOURCE, unpacked):
        shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(archive) as tar:
        tar.extractall(unpacked)
    next(unpacked.iterdir()).rename(SOURCE)
    unpacked.rmdir()


def glslc_script() -> str:
    """Return the text of the script that stands in for glslc."""
    return _GLSLC_SCRIPT.read_text(encoding="utf-8")


def build(place: Place, backend: Backend) -> None:
    """Compile an engine. What a build that broke off has compiled is used again. Raises SetupError."""
    shutil.copy(_GLSLC_SCRIPT, GLSLC)
    GLSLC.chmod(0o755)
    _compile(place, f"the engine {backend}", build_script(place, backend), f"engine-{backend}")


def build_operator_tests(place: Place) -> None:
    """Compile llama.cpp's tests of operators, after the engine for Vulkan. Raises SetupError."""
    folder = place.path(OPERATOR_TESTS.parents[1])
    _compile(place, "the tests of operators", f"ninja -C {folder} -j $(nproc) {OPERATOR_TESTS.name}", "operators")


def _compile(place: Place, what: str, script: str, log_name: str) -> None:
    line = ProgressLine("engine", sys.stdout, terminal=sys.stdout.isatty())
    place.run(f"Compiling {what}", script, log_name, SHARED, BuildProgress(line, terminal=sys.stdout.isatty()).feed)
    line.finish("built")


def build_script(place: Place, backend: Backend) -> str:
    """Return the bash script that compiles an engine and gathers its libraries."""
    source, folder = place.path(SOURCE / "vendor" / "llama.cpp"), place.path(SHARED / f"build-{backend}")
    flags = [
        *cmake_flags(backend),
        "-DCMAKE_BUILD_TYPE=Release",
        "-DBUILD_SHARED_LIBS=ON",
        "-DLLAMA_BUILD_TOOLS=ON",  # libmtmd is one of them
        "-DLLAMA_BUILD_TESTS=ON",
        "-DLLAMA_BUILD_EXAMPLES=OFF",
        "-DLLAMA_BUILD_SERVER=OFF",
        "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON",
        "'-DCMAKE_INSTALL_RPATH=$ORIGIN'",
        f"-DVulkan_GLSLC_EXECUTABLE={place.path(GLSLC)}",
    ]
    result = place.path(libraries(backend))
    return "\n".join(
        [
            f"cmake -G Ninja -S {source} -B {folder} {' '.join(flags)}",
            f"ninja -C {folder} -j $(nproc) {_TARGETS}",
            f"rm -rf {result}",
            f"mkdir {result}",
            f"cp -a {folder}/bin/lib*.so* {result}/",
            f"strip {result}/*.so",
        ]
    )
