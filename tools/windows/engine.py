"""Engines for Windows, compiled in the Debian folder from the release that pyproject.toml pins.

The tests use one of them. The bundle has more (bundle.py), which share most of what ccache keeps.
"""

import shutil
import sys
import tarfile
from pathlib import Path

from tools.setup.backends import Backend, cmake_flags
from tools.setup.progress import BuildProgress, ProgressLine
from tools.setup.project import ENGINE_PACKAGE, engine_version
from tools.windows import chroot, vulkan
from tools.windows.folders import ENGINE, SITE_PACKAGES, inside
from tools.windows.python import download

SHA256 = {"0.3.36": "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"}
"""Of the source archive, by release."""
BACKEND: Backend = "cpu-avx2"
"""The engine that the tests use."""
CMAKE_FILES = tuple(Path(__file__).with_name(name) for name in ("mingw.cmake", "dll_names.cmake"))
_ALIGNMENT = "-Wa,-muse-unaligned-vector-move"
"""GCC keeps AVX values on a stack that Windows aligns to 16 bytes only, so aligned moves would crash."""
_FLAGS = (
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


def build(backend: Backend = BACKEND) -> None:
    """Compile an engine. What an earlier build that broke off has compiled is used again. Raises SetupError."""
    version = engine_version()
    archive = download(f"{ENGINE_PACKAGE}=={version}", source_hash())
    source, files = ENGINE / "source", ENGINE / "cmake"
    if release_of(source) != version:
        for folder in (source, *ENGINE.glob("build*"), ENGINE / "unpacked"):
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
        build_script(backend),
        _named("engine", backend),
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


def libraries(backend: Backend = BACKEND) -> Path:
    """Return the folder where an engine's libraries are gathered, with those of GCC."""
    return ENGINE / _named("lib", backend)


def _named(stem: str, backend: Backend) -> str:
    return stem if backend == BACKEND else f"{stem}-{backend}"


def build_script(backend: Backend = BACKEND) -> str:
    """Return the bash script that compiles an engine in ENGINE and gathers its libraries."""
    toolchain, names = (inside(ENGINE / "cmake" / file.name) for file in CMAKE_FILES)
    folder, lib = _named("build", backend), _named("lib", backend)
    graphics = backend.startswith("vulkan")
    flags = [
        *cmake_flags(backend),
        *_FLAGS,
        *(vulkan.FLAGS if graphics else ()),
        f"-DCMAKE_TOOLCHAIN_FILE={toolchain}",
        f"-DCMAKE_PROJECT_llama_cpp_INCLUDE={names}",
        f"-DSKBUILD_PLATLIB_DIR={inside(ENGINE / 'installed')}",
    ]
    return "\n".join(
        [
            *([vulkan.PREPARE] if graphics else []),
            f"cmake -G Ninja -S source -B {folder} {' '.join(flags)}",
            f"ninja -C {folder} -j $(nproc) {_TARGETS}",
            f"rm -rf {lib}",
            f"mkdir {lib}",
            f"find {folder} -name '*.dll' -exec cp {{}} {lib}/ ';'",
            f"cp {' '.join(_RUNTIME)} {lib}/",
            f"x86_64-w64-mingw32ucrt-strip {lib}/*.dll",
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
    shutil.copytree(libraries(), package / "lib", dirs_exist_ok=True)
    record.mkdir()
    shutil.copy(source / "PKG-INFO", record / "METADATA")
    (record / "RECORD").touch()
