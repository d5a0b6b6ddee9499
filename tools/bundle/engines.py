"""Engine folders for the bundle: the libraries of a wheel of llama-cpp-python or of a folder, with their manifest."""

import hashlib
import re
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import msgspec

from qwendesk.core.engine_manifest import MANIFEST_NAME, Backend, EngineFile, EngineManifest
from tools.setup import backends

AVX2 = ("sse4_2", "avx", "avx2", "fma", "f16c", "bmi2")
_LOADED_BY_NAME = ("libllama.so", "libmtmd.so")
"""llama-cpp-python opens these two; they find the others by their versioned name."""


@dataclass(frozen=True)
class BundledEngine:
    """One engine folder: what it is called, how it is built, and what its code uses without asking."""

    name: str
    build: backends.Backend
    backend: Backend
    cpu_needs: tuple[str, ...]
    purposes: tuple[str, ...] = ("build",)
    """What building it needs, as tools/setup/system_packages.py calls it."""
    minutes: int = 9
    """About how long building it takes on two slow cores."""


CPU_ENGINES = (
    BundledEngine("cpu-avx2", "cpu-avx2", "cpu", AVX2),
    BundledEngine("cpu-sse42", "cpu-sse42", "cpu", ("sse4_2",)),
)
VULKAN = BundledEngine("vulkan", "vulkan-avx2", "vulkan", AVX2, ("build", "vulkan"), minutes=30)
METAL = BundledEngine("metal", "metal", "metal", ())
"""The only engine of a Mac with Apple's processor; it computes on the processor too. Never built: docs/release.md."""
_MATRIX_SHADERS = b"SPV_KHR_cooperative_matrix"
"""What a compiled shader for matrix cores asks for by name; an old glslc cannot compile such shaders."""


def make_engine_folder(source: Path, folder: Path, engine: BundledEngine, package_version: str) -> EngineManifest:
    """Put the libraries of `source` into `folder` (made new), each once, and write the manifest.

    `source` is a wheel, or a folder of DLLs.
    """
    folder.mkdir(parents=True)
    files = []
    for name, content in _libraries(source):
        (folder / name).write_bytes(content)
        files.append(EngineFile(name, len(content), hashlib.sha256(content).hexdigest()))
    manifest = EngineManifest(
        name=engine.name,
        package_version=package_version,
        backend=engine.backend,
        cpu_needs=engine.cpu_needs,
        files=tuple(sorted(files, key=lambda file: file.name)),
    )
    (folder / MANIFEST_NAME).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1))
    return manifest


def _libraries(source: Path) -> Iterator[tuple[str, bytes]]:
    if source.is_dir():
        yield from ((path.name, path.read_bytes()) for path in sorted(source.glob("*.dll")))
        return
    with zipfile.ZipFile(source) as archive:
        yield from ((PurePosixPath(name).name, archive.read(name)) for name in library_names(archive))


def same_files(manifest: EngineManifest, others: EngineManifest) -> tuple[EngineFile, ...]:
    """The files of one engine that another has byte for byte."""
    known = {file.sha256 for file in others.files}
    return tuple(file for file in manifest.files if file.sha256 in known)


def lacks_matrix_shaders(folder: Path) -> bool:
    """Whether a Vulkan engine was compiled without the shaders for the matrix cores of today's cards."""
    libraries = [path for path in folder.iterdir() if "ggml-vulkan" in path.name]
    return not any(_MATRIX_SHADERS in library.read_bytes() for library in libraries)


def library_names(archive: zipfile.ZipFile) -> Iterator[str]:
    """The wheel holds each Linux library three times (libx.so, libx.so.0, libx.so.0.1.2): those that are asked for."""
    for name in archive.namelist():
        path = PurePosixPath(name)
        if path.parent.as_posix() != "llama_cpp/lib" or path.suffix in {".py", ".lib", ".a"}:
            continue
        if sys.platform.startswith("linux"):
            has_major_only = re.fullmatch(r"lib[\w-]+\.so\.\d+", path.name) is not None
            is_opened = path.name in _LOADED_BY_NAME
            if not is_opened and (not has_major_only or _is_opened_otherwise(path.name)):
                continue
        yield name


def _is_opened_otherwise(name: str) -> bool:
    """libllama.so.0 and libmtmd.so.0: loaded already when another library asks for them by this name."""
    return any(name.startswith(f"{opened}.") for opened in _LOADED_BY_NAME)
