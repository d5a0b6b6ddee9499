"""`python -m tools.bundle.pack`: the CUDA engine as an archive that the app can fetch, and its entry for its list.

Needs the CUDA toolkit, 12.8 or later, and a C++ compiler; no graphics card. Hours on a few cores.
"""

import argparse
import hashlib
import shutil
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
from tools.setup.backends import CUDA_ARCHITECTURES, cuda_toolkit_release
from tools.setup.project import ROOT, SetupError, engine_version

_OLDEST_TOOLKIT = (12, 8)
"""The first that compiles for the GeForce RTX 50."""
_OLDEST_DRIVER = {("linux-x64", 12): "525.60.13", ("windows-x64", 12): "528.33"}
"""As NVIDIA's release notes say for a major release of CUDA: any minor one runs, as the code is compiled beforehand."""
_PARTS = ("cudart", "cublas", "cublasLt")
_LICENCE = "MIT (llama.cpp) and NVIDIA CUDA Toolkit EULA (cudart, cublas)"


def make_pack(wheel: Path, toolkit: Path, release: tuple[int, int], address: str, target: Path) -> tuple[Path, Path]:
    """Writes the archive and its entry for resources/engine_packs.json into `target`; returns both.

    Raises SetupError when the toolkit is too old, something of it is missing, or a library would find no neighbour.
    """
    if release < _OLDEST_TOOLKIT:
        raise SetupError(f"The CUDA toolkit {release[0]}.{release[1]} is too old: 12.8 is the first for every card.")
    major, where, version = release[0], this_platform(), engine_version()
    name = f"cuda-{major}"
    target.mkdir(parents=True, exist_ok=True)
    archive = target / f"qwendesk-engine-{name}-{version}-{where}.zip"
    pack = EnginePack(
        name=name,
        title=f"NVIDIA (CUDA {major})",
        platform=where,
        package_version=version,
        backend="cuda",
        cpu_needs=AVX2,
        gpu_architectures=tuple(each.split("-")[0].rstrip("a") for each in CUDA_ARCHITECTURES),
        minimum_driver=_OLDEST_DRIVER.get((where, major), ""),
    )
    with tempfile.TemporaryDirectory() as folder:
        libraries = [*_unpacked(wheel, Path(folder)), *runtime_libraries(toolkit, major, where)]
        needed.refuse_unmet(libraries)
        licences = {"llama.cpp.txt": ROOT / "packaging/licences/llama.cpp.txt", "NVIDIA-EULA.txt": _eula(toolkit)}
        write_archive(archive, libraries, pack, licences)
    digest = sha256_of(archive)
    download = PackArchive(f"{address}/{archive.name}", archive.stat().st_size, digest, _LICENCE, ("engine/*",))
    pack = msgspec.structs.replace(pack, archives=(download,))
    entry = archive.with_suffix(".json")
    entry.write_bytes(msgspec.json.format(msgspec.json.encode(pack), indent=1))
    return archive, entry


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


def runtime_libraries(toolkit: Path, major: int, where: str) -> Iterator[Path]:
    """NVIDIA's libraries that the engine asks for. Raises SetupError when one is missing or would find no neighbour."""
    for part in _PARTS:
        if where.startswith("windows"):
            names = [f"bin/x64/{part}64_{major}.dll", f"bin/{part}64_{major}.dll"]
        else:
            names = [f"lib64/lib{part}.so.{major}", f"targets/x86_64-linux/lib/lib{part}.so.{major}"]
        found = next((toolkit / name for name in names if (toolkit / name).is_file()), None)
        if found is None:
            raise SetupError(f"The CUDA toolkit in {toolkit} has none of {', '.join(names)}.")
        if part == "cublas" and not where.startswith("windows") and "$ORIGIN" not in needed.headers_of(found):
            raise SetupError(f"{found} does not look beside itself for cublasLt; the engine would not start.")
        yield found


def _unpacked(wheel: Path, folder: Path) -> Iterator[Path]:
    with zipfile.ZipFile(wheel) as archive:
        for member in library_names(archive):
            library = folder / PurePosixPath(member).name
            library.write_bytes(archive.read(member))
            yield library


def _eula(toolkit: Path) -> Path:
    places = [
        toolkit / "EULA.txt",
        toolkit / "doc" / "EULA.txt",
        *Path("/usr/share/doc").glob("cuda-cudart-*/copyright"),
    ]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise SetupError(f"The CUDA toolkit in {toolkit} has no EULA.txt, and its libraries may not go out without it.")
    return found


def main(arguments: Sequence[str]) -> int:
    """Returns 0, or 1 with a sentence of what is missing."""
    parser = argparse.ArgumentParser(prog="python -m tools.bundle.pack", description="Makes the CUDA pack in dist/.")
    parser.add_argument("--address", required=True, help="the folder on the web where the archive will lie")
    options = parser.parse_args(arguments)
    try:
        release, nvcc = cuda_toolkit_release(), shutil.which("nvcc")
        if release is None or nvcc is None:
            raise SetupError("The CUDA toolkit is missing: nvcc is not on PATH.")
        toolkit = Path(nvcc).resolve().parents[1]
        version = engine_version()
        # Before hours of work: is everything there?
        list(runtime_libraries(toolkit, release[0], this_platform()))
        _eula(toolkit)
        wheel = engine.kept_wheel("cuda-avx2", version) or engine.build("cuda-avx2", version, Path(sys.executable))
        for made in make_pack(wheel, toolkit, release, options.address.rstrip("/"), ROOT / "dist"):
            print(made)
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
