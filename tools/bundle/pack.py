"""`python -m tools.bundle.pack`: the CUDA engine as an archive that the app can fetch, and its entry for its list.

Needs a C++ compiler, no graphics card, and the CUDA toolkit, 12.8 or later; on Linux without one, NVIDIA's compiler
is fetched from its Python packages. Takes hours on a few cores, and goes on where it was interrupted.
"""

import argparse
import hashlib
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from qwendesk.core.engine_manifest import MANIFEST_NAME, EngineFile, EnginePack, PackArchive
from qwendesk.engines.packs import this_platform
from tools.bundle import needed
from tools.bundle.engines import AVX2, library_names
from tools.setup import engine
from tools.setup.backends import CUDA_ARCHITECTURES
from tools.setup.cuda_build import CudaBuild
from tools.setup.cuda_toolkit import CudaToolkit, fetch_toolkit, installed_toolkit, pinned_wheels
from tools.setup.project import ROOT, SetupError, engine_version

_OLDEST_TOOLKIT = (12, 8)
"""The first that compiles for the GeForce RTX 50."""
_OLDEST_DRIVER = {("linux-x64", 12): "525.60.13", ("windows-x64", 12): "528.33", ("linux-x64", 13): "580.65.06"}
"""As NVIDIA's release notes say for a major release of CUDA: any minor one runs, as the code is compiled beforehand."""
_PARTS = ("cudart", "cublas", "cublasLt")
_NVIDIA_LICENCE = "NVIDIA CUDA Toolkit EULA"
_LICENCE = f"MIT (llama.cpp) and {_NVIDIA_LICENCE} (cudart, cublas)"
_KEPT_OF_WHEEL = {
    "nvidia-cuda-runtime": "nvidia/*/lib/libcudart.so.*",
    "nvidia-cublas": "nvidia/*/lib/libcublas*.so.*",
    "nvidia-cuda-nvrtc": "nvidia/*/lib/libnvrtc*.so.*",
}
"""NVIDIA's packages with the libraries that the engine asks for while it runs, and which of their files those are."""


def make_pack(
    wheel: Path,
    build: CudaBuild,
    address: str,
    target: Path,
    nvidia_addresses: Sequence[str] = (),
) -> tuple[Path, Path]:
    """Writes the archive and its entry for resources/engine_packs.json into `target`; returns both.

    With `nvidia_addresses`, where NVIDIA's own wheels lie on the web, the archive has the engine alone, and the entry
    names the wheels by their pinned SHA-256, so that the app fetches them from there. Such an archive can't be added
    from a file. Raises SetupError when the toolkit is too old, something of it is missing, or a library would find no
    neighbour.
    """
    toolkit = build.toolkit
    if toolkit.release < _OLDEST_TOOLKIT:
        major, minor = toolkit.release
        raise SetupError(f"The CUDA toolkit {major}.{minor} is too old: 12.8 is the first for every card.")
    where, version = this_platform(), engine_version()
    wheels = _nvidia_archives(nvidia_addresses, toolkit)
    name = f"cuda-{toolkit.major}"
    target.mkdir(parents=True, exist_ok=True)
    label = "-".join(part for part in (name, variant(build.architectures), version, where) if part)
    archive = target / f"qwendesk-engine-{label}.zip"
    pack = EnginePack(
        name=name,
        title=f"NVIDIA (CUDA {toolkit.major})",
        platform=where,
        package_version=version,
        backend="cuda",
        cpu_needs=AVX2,
        gpu_architectures=tuple(each.split("-")[0].rstrip("a") for each in build.architectures or CUDA_ARCHITECTURES),
        minimum_driver=_OLDEST_DRIVER.get((where, toolkit.major), ""),
    )
    with tempfile.TemporaryDirectory() as folder:
        own = list(_unpacked(wheel, Path(folder)))
        nvidias = list(runtime_libraries(toolkit, where))
        needed.refuse_unmet([*own, *nvidias])
        licences = {"llama.cpp.txt": ROOT / "packaging/licences/llama.cpp.txt"}
        if not wheels:
            licences["NVIDIA-EULA.txt"] = _eula(toolkit)
        write_archive(archive, own if wheels else [*own, *nvidias], pack, licences)
    digest = sha256_of(archive)
    licence = "MIT" if wheels else _LICENCE
    download = PackArchive(f"{address}/{archive.name}", archive.stat().st_size, digest, licence, ("engine/*",))
    pack = msgspec.structs.replace(pack, archives=(download, *wheels))
    entry = archive.with_suffix(".json")
    entry.write_bytes(msgspec.json.format(msgspec.json.encode(pack), indent=1))
    return archive, entry


def _nvidia_archives(addresses: Sequence[str], toolkit: CudaToolkit) -> tuple[PackArchive, ...]:
    """NVIDIA's wheels as further archives of a pack. Raises SetupError unless all that are needed are named.

    Their sizes are filled in by tools.engine_packs, which fetches them.
    """
    if not addresses:
        return ()
    if not toolkit.is_fetched:
        raise SetupError("NVIDIA's wheels fit an engine that was built with their own compiler: hide nvcc from PATH.")
    found = {}
    for wheel in pinned_wheels():
        if wheel.name not in _KEPT_OF_WHEEL:
            continue
        start = f"{wheel.name.replace('-', '_')}-{wheel.version}-"
        address = next((each for each in addresses if PurePosixPath(each).name.startswith(start)), None)
        if address is None:
            raise SetupError(f"No address names {start}*.whl, which the engine needs too.")
        keep = (_KEPT_OF_WHEEL[wheel.name],)
        found[address] = PackArchive(address, 0, wheel.sha256, _NVIDIA_LICENCE, keep)
    strange = [address for address in addresses if address not in found]
    if strange:
        raise SetupError(f"{strange[0]} is none of the wheels in tools/setup/cuda_wheels.txt that the engine needs.")
    return tuple(found.values())


def variant(architectures: Sequence[str]) -> str:
    """What tells a build for a few kinds of cards from the one for all; "" for that."""
    return "_".join(architectures)


def write_archive(archive: Path, libraries: Sequence[Path], pack: EnginePack, licences: Mapping[str, Path]) -> None:
    """Writes a pack: libraries, licences, and the manifest with which `qwendesk engines add` takes the archive."""
    files = tuple(EngineFile(each.name, each.stat().st_size, sha256_of(each)) for each in libraries)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(MANIFEST_NAME, msgspec.json.format(msgspec.json.encode(pack.manifest(files)), indent=1))
        for library in libraries:
            packed.write(library, f"engine/{library.name}")
        for name, licence in licences.items():
            packed.write(licence, f"licences/{name}")


def sha256_of(path: Path) -> str:
    """The file's SHA-256, in lower-case hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def runtime_libraries(toolkit: CudaToolkit, where: str) -> Iterator[Path]:
    """NVIDIA's libraries that the engine asks for. Raises SetupError when one is missing or would find no neighbour."""
    major = toolkit.major
    for part in _PARTS:
        if where.startswith("windows"):
            names = [f"bin/x64/{part}64_{major}.dll", f"bin/{part}64_{major}.dll"]
        else:
            names = [f"lib64/lib{part}.so.{major}", f"targets/x86_64-linux/lib/lib{part}.so.{major}"]
        found = next((toolkit.root / name for name in names if (toolkit.root / name).is_file()), None)
        if found is None:
            raise SetupError(f"The CUDA toolkit in {toolkit.root} has none of {', '.join(names)}.")
        if part == "cublas" and not where.startswith("windows") and "$ORIGIN" not in needed.headers_of(found):
            raise SetupError(f"{found} does not look beside itself for cublasLt; the engine would not start.")
        yield found
    if toolkit.is_fetched:
        # cublasLt of CUDA 13 opens this one by name, and NVIDIA's package for it asks for it.
        yield from sorted((toolkit.root / "lib").glob("libnvrtc*.so.*"))


def _unpacked(wheel: Path, folder: Path) -> Iterator[Path]:
    with zipfile.ZipFile(wheel) as archive:
        for member in library_names(archive):
            library = folder / PurePosixPath(member).name
            library.write_bytes(archive.read(member))
            yield library


def _eula(toolkit: CudaToolkit) -> Path:
    places: list[Path] = [
        toolkit.root / "EULA.txt",
        toolkit.root / "doc" / "EULA.txt",
        *(toolkit.root.parents[1].glob("nvidia_cublas-*.dist-info/licenses/*.txt") if toolkit.is_fetched else ()),
        *Path("/usr/share/doc").glob("cuda-cudart-*/copyright"),
    ]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise SetupError(f"The CUDA toolkit in {toolkit.root} has no licence text, and its libraries need it.")
    return found


def main(arguments: Sequence[str]) -> int:
    """Returns 0, or 1 with a sentence of what is missing."""
    parser = argparse.ArgumentParser(prog="python -m tools.bundle.pack", description="Makes the CUDA pack in dist/.")
    parser.add_argument("--address", required=True, help="the folder on the web where the archive will lie")
    parser.add_argument(
        "--architectures",
        default="",
        help="build for these cards only, as CMake names them: 86-real for the GeForce RTX 30 and 40. For trials",
    )
    parser.add_argument(
        "--nvidia-wheel",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="where a wheel of NVIDIA's libraries lies, instead of copying them; once for each that is needed",
    )
    options = parser.parse_args(arguments)
    try:
        python = Path(sys.executable)
        toolkit = installed_toolkit() or fetch_toolkit(python)
        build = CudaBuild(toolkit, tuple(each for each in options.architectures.split(",") if each))
        version, label = engine_version(), variant(build.architectures)
        # Before hours of work: is everything there?
        list(runtime_libraries(toolkit, this_platform()))
        _eula(toolkit)
        _nvidia_archives(options.nvidia_wheel, toolkit)
        wheel = engine.kept_wheel("cuda-avx2", version, label)
        wheel = wheel or engine.build("cuda-avx2", version, python, build, label)
        for made in make_pack(wheel, build, options.address.rstrip("/"), ROOT / "dist", options.nvidia_wheel):
            print(made)
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The same command goes on where this one was.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
