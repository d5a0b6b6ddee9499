"""Engine folders and engine packs. An engine is a build of llama.cpp's libraries for one kind of hardware."""

from typing import Literal

import msgspec

Backend = Literal["cpu", "cuda", "vulkan", "rocm", "metal"]
# Order of preference among working engines: those made for one GPU vendor come before Vulkan.
BEST_FIRST: tuple[Backend, ...] = ("cuda", "rocm", "metal", "vulkan", "cpu")

MANIFEST_NAME = "engine.json"
# Table of struct layouts (core/engine_abi.py) beside the libraries of another release than llama-cpp-python's.
ABI_TABLE_NAME = "abi.json"
# Increased whenever older versions of the app can't use a folder with the new manifest.
MANIFEST_FORMAT = 1


class EngineFile(msgspec.Struct, frozen=True):
    """One file of an engine folder, with the lower-case hex SHA-256 of its content."""

    name: str
    n_bytes: int
    sha256: str


class EngineManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The file `engine.json` of an engine folder."""

    format: int = MANIFEST_FORMAT
    name: str
    """Name of the folder, such as "cpu-avx2" or "cuda-12"."""
    package_version: str
    """Version of llama-cpp-python. Libraries of another version have other struct layouts and must not be loaded.

    "" if `release` isn't: such libraries have a table of layouts.
    """
    release: str = ""
    """Of llama.cpp, such as "b11861", if the libraries are from that project's own archives."""
    replaces: str = ""
    """Name of the engine that was in use when such a release was added."""
    architectures: tuple[str, ...] = ()
    """What models such a release can load: `general.architecture` of their headers."""
    n_types: int = 0
    """Number of tensor types that such a release has; 0 if unknown."""
    llama_cpp_commit: str = ""
    """From the release notes; "" if unknown."""
    backend: Backend
    cpu_needs: tuple[str, ...] = ()
    """CPU features that the engine's code requires, as named in hardware/cpu_features.py."""
    gpu_architectures: tuple[str, ...] = ()
    """Supported CUDA compute capabilities, "75" to "120"."""
    minimum_driver: str = ""
    """The oldest driver version that the engine works with; "" if unknown."""
    files: tuple[EngineFile, ...]
    unlisted: tuple[str, ...] = ()
    """Archives of it whose publisher lists no SHA-256, so that the one of the first download counts."""

    @property
    def shown_release(self) -> str:
        """The release that the user sees: llama.cpp's, or that of llama-cpp-python."""
        return self.release or self.package_version


class EngineFolder(msgspec.Struct, frozen=True):
    """An engine folder with a valid manifest, in which all files exist and have the right size."""

    path: str
    manifest: EngineManifest

    @property
    def name(self) -> str:
        return self.manifest.name


class BrokenEngine(msgspec.Struct, frozen=True):
    """An engine folder that can't be used, with the reason as a sentence."""

    path: str
    name: str
    sentence: str


class PackArchive(msgspec.Struct, frozen=True):
    """An archive of a pack (a wheel or zip file) and which of its libraries are unpacked."""

    url: str
    """Its last part may be an fnmatch pattern if `listing` tells the file's whole name."""
    n_bytes: int
    """An estimate if `sha256` is ""."""
    sha256: str
    """"" if nobody knew it when the app was made. `listing` may tell it then."""
    licence: str
    """SPDX identifier of the content's licence, or the vendor's name for the licence."""
    keep: tuple[str, ...]
    """fnmatch patterns for the names, with folders, of the members to unpack."""
    listing: str = ""
    """Address of GitHub's description of the release: JSON with names, sizes and SHA-256."""


class EnginePack(msgspec.Struct, frozen=True, kw_only=True):
    """An engine that the app can download."""

    name: str
    title: str
    """Display name, such as "NVIDIA (CUDA 12.9)"."""
    platform: str
    """Such as "linux-x64" or "windows-x64"."""
    package_version: str
    llama_cpp_commit: str = ""
    backend: Backend
    cpu_needs: tuple[str, ...] = ()
    gpu_architectures: tuple[str, ...] = ()
    compiled_by_driver: tuple[str, ...] = ()
    """Newer compute capabilities, for which the driver compiles the engine's code at the first load."""
    minimum_driver: str = ""
    minimum_glibc: str = ""
    """Linux: the oldest version of the C library that the engine works with; "" if unknown."""
    archives: tuple[PackArchive, ...] = ()

    @property
    def n_bytes(self) -> int:
        """Download size in bytes. An estimate unless `is_pinned`."""
        return sum(archive.n_bytes for archive in self.archives)

    @property
    def is_pinned(self) -> bool:
        """Whether the SHA-256 of every archive is known."""
        return all(archive.sha256 for archive in self.archives)

    def manifest(self, files: tuple[EngineFile, ...]) -> EngineManifest:
        """Return the manifest of this pack's engine with these files."""
        return EngineManifest(
            name=self.name,
            package_version=self.package_version,
            llama_cpp_commit=self.llama_cpp_commit,
            backend=self.backend,
            cpu_needs=self.cpu_needs,
            gpu_architectures=self.gpu_architectures,
            minimum_driver=self.minimum_driver,
            files=files,
        )
