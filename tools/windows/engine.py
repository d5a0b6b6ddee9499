"""The engine for Windows, compiled in the Debian folder from the release that pyproject.toml pins."""

import shutil
import sys
import tarfile
from pathlib import Path

from tools.setup.backends import Backend, cmake_flags
from tools.setup.progress import BuildProgress, ProgressLine
from tools.setup.project import ENGINE_PACKAGE, engine_version
from tools.windows import chroot
from tools.windows.folders import ENGINE, SITE_PACKAGES, inside
from tools.windows.python import download

SHA256 = {"0.3.36": "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"}
"""Of the source archive, by release."""
BACKEND: Backend = "cpu-avx2"
CMAKE_FILES = tuple(Path(__file__).with_name(name) for name in ("mingw.cmake", "dll_names.cmake"))
_ALIGNMENT = "-Wa,-muse-unaligned-vector-move"
"""GCC keeps AVX values on a stack that Windows aligns to 16 bytes only, so aligned moves would crash."""
FLAGS = (
    *cmake_flags(BACKEND),
    "-DGGML_OPENMP=OFF",
    *(f"-DLLAMA_BUILD_{part}=OFF" for part in ("TESTS", "EXAMPLES", "SERVER", "TOOLS")),
    "-DCMAKE_BUILD_TYPE=Release",
    f"-DCMAKE_C_FLAGS={_ALIGNMENT}",
    f"-DCMAKE_CXX_FLAGS={_ALIGNMENT}",
)
_TARGETS = "llama mtmd llama-common"
_RUNTIME = (
    "/usr/lib/gcc/x86_64-w64-mingw32ucrt/*/libstdc++-6.dll",
    "/usr/lib/gcc/x86_64-w64-mingw32ucrt/*/libgcc_s_seh-1.dll",
    "/usr/x86_64-w64-mingw32ucrt/lib/libwinpthread-1.dll",
)
"""GCC's own libraries, which the engine needs beside it."""


def source_hash() -> str:
    """Return the hash of the source archive. Raises KeyError for a release without one: add it to SHA256."""
    return SHA256[engine_version()]


def build() -> None:
    """Compile the engine. What an earlier build that broke off has compiled is used again. Raises SetupError."""
    version = engine_version()
    archive = download(f"{ENGINE_PACKAGE}=={version}", source_hash())
    source, files = ENGINE / "source", ENGINE / "cmake"
    if release_of(source) != version:
        for folder in (source, ENGINE / "build", ENGINE / "unpacked"):
            shutil.rmtree(folder, ignore_errors=True)
        with tarfile.open(archive) as tar:
            tar.extractall(ENGINE / "unpacked")
        next((ENGINE / "unpacked").iterdir()).rename(source)
        (ENGINE / "unpacked").rmdir()
    files.mkdir(exist_ok=True)
    for file in CMAKE_FILES:
        shutil.copy(file, files)
    line = ProgressLine("engine", sys.stdout, terminal=sys.stdout.isatty())
    chroot.run(
        "Compiling the engine",
        build_script(),
        "engine",
        folder=inside(ENGINE),
        take=BuildProgress(line, terminal=sys.stdout.isatty()).feed,
    )
    line.finish("built")


def release_of(source: Path) -> str:
    """Return the release of an unpacked source archive; empty if there is none."""
    try:
        lines = (source / "PKG-INFO").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.removeprefix("Version: ") for line in lines if line.startswith("Version: ")), "")


def build_script() -> str:
    """Return the bash script that compiles the engine in ENGINE and gathers its libraries in the folder lib."""
    toolchain, names = (inside(ENGINE / "cmake" / file.name) for file in CMAKE_FILES)
    flags = [
        *FLAGS,
        f"-DCMAKE_TOOLCHAIN_FILE={toolchain}",
        f"-DCMAKE_PROJECT_llama_cpp_INCLUDE={names}",
        f"-DSKBUILD_PLATLIB_DIR={inside(ENGINE / 'installed')}",
    ]
    return "\n".join(
        [
            f"cmake -G Ninja -S source -B build {' '.join(flags)}",
            f"ninja -C build -j $(nproc) {_TARGETS}",
            "rm -rf lib",
            "mkdir lib",
            "find build -name '*.dll' -exec cp {} lib/ ';'",
            f"cp {' '.join(_RUNTIME)} lib/",
            "x86_64-w64-mingw32ucrt-strip lib/*.dll",
        ]
    )


def install() -> None:
    """Put the engine into the Windows Python, as its wheel would."""
    version = engine_version()
    source = ENGINE / "source"
    package = SITE_PACKAGES / "llama_cpp"
    record = SITE_PACKAGES / f"llama_cpp_python-{version}.dist-info"
    for folder in (package, record):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source / "llama_cpp", package)
    shutil.copytree(ENGINE / "lib", package / "lib", dirs_exist_ok=True)
    record.mkdir()
    shutil.copy(source / "PKG-INFO", record / "METADATA")
    (record / "RECORD").touch()
