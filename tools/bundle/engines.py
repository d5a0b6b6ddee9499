"""Engine folders for the bundle: the libraries out of a wheel of llama-cpp-python, with their manifest."""

import hashlib
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import msgspec

from qwendesk.core.engines import MANIFEST_NAME, Backend, EngineFile, EngineManifest

NEEDS = {"cpu-avx2": ("sse4_2", "avx", "avx2", "fma", "f16c", "bmi2"), "cpu-sse42": ("sse4_2",)}
"""Processor features that each engine uses without asking, as it is built (tools/setup/backends.py)."""

_LOADED_BY_NAME = ("libllama.so", "libmtmd.so")
"""llama-cpp-python opens these two; they find the others by their versioned name."""


def make_engine_folder(wheel: Path, folder: Path, backend: Backend, package_version: str) -> EngineManifest:
    """Unpacks the wheel's libraries into `folder` (made new), each once, and writes the manifest."""
    folder.mkdir(parents=True)
    files = []
    with zipfile.ZipFile(wheel) as archive:
        for name in _libraries(archive):
            content = archive.read(name)
            short = PurePosixPath(name).name
            (folder / short).write_bytes(content)
            files.append(EngineFile(short, len(content), hashlib.sha256(content).hexdigest()))
    manifest = EngineManifest(
        name=folder.name,
        package_version=package_version,
        backend=backend,
        cpu_needs=NEEDS.get(folder.name, ()),
        files=tuple(sorted(files, key=lambda file: file.name)),
    )
    (folder / MANIFEST_NAME).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1))
    return manifest


def _libraries(archive: zipfile.ZipFile) -> Iterator[str]:
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
