"""What an engine folder says of itself: one build of llama.cpp's libraries for one kind of hardware."""

from typing import Literal

import msgspec

Backend = Literal["cpu", "cuda", "vulkan", "rocm", "metal"]
BEST_FIRST: tuple[Backend, ...] = ("cuda", "rocm", "metal", "vulkan", "cpu")
"""Which kind of engine is taken where several run: a card's own before the one for any card."""

MANIFEST_NAME = "engine.json"
MANIFEST_FORMAT = 1
"""Grows when an older app could not use a folder with this manifest."""


class EngineFile(msgspec.Struct, frozen=True):
    """One file of the folder: its name there, its size in bytes and the lower-case hex SHA-256 of its content."""

    name: str
    n_bytes: int
    sha256: str


class EngineManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The file `engine.json` of an engine folder."""

    format: int = MANIFEST_FORMAT
    name: str
    """Of the folder: "cpu-avx2", "cuda-12"."""
    package_version: str
    """llama-cpp-python's version. Another version's libraries have other struct layouts and must not be loaded."""
    llama_cpp_commit: str = ""
    """As the release says; "" where it does not."""
    backend: Backend
    cpu_needs: tuple[str, ...] = ()
    """Processor features that its code uses without asking, as hardware/cpu_features.py names them."""
    gpu_architectures: tuple[str, ...] = ()
    """CUDA: the compute capabilities it has code for, "75" to "120"."""
    minimum_driver: str = ""
    """The oldest driver it runs with, as the maker numbers it; "" if that is not known."""
    files: tuple[EngineFile, ...]


class EngineFolder(msgspec.Struct, frozen=True):
    """An engine folder whose manifest is sound and whose files are all there in the right size."""

    path: str
    manifest: EngineManifest

    @property
    def name(self) -> str:
        return self.manifest.name


class BrokenEngine(msgspec.Struct, frozen=True):
    """A folder that cannot be used, and why, in a sentence."""

    path: str
    name: str
    sentence: str


class PackArchive(msgspec.Struct, frozen=True):
    """One file that a pack is made of: a wheel or a zip, with the libraries that are taken out of it."""

    url: str
    n_bytes: int
    sha256: str
    licence: str
    """SPDX name, or the maker's own, of what is inside."""
    keep: tuple[str, ...]
    """Patterns as fnmatch has them, of members to unpack; folders in the archive are dropped."""


class EnginePack(msgspec.Struct, frozen=True, kw_only=True):
    """An engine that the app can fetch."""

    name: str
    title: str
    """For people: "NVIDIA (CUDA 12.9)"."""
    platform: str
    """"linux-x64", "windows-x64"."""
    package_version: str
    llama_cpp_commit: str = ""
    backend: Backend
    cpu_needs: tuple[str, ...] = ()
    gpu_architectures: tuple[str, ...] = ()
    minimum_driver: str = ""
    archives: tuple[PackArchive, ...]

    @property
    def n_bytes(self) -> int:
        """What is downloaded."""
        return sum(archive.n_bytes for archive in self.archives)
