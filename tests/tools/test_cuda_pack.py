"""The pack of a CUDA engine that was built with NVIDIA's fetched compiler."""

import sys
import zipfile
from pathlib import Path

import msgspec
import pytest

from qwendesk.core.engine_manifest import MANIFEST_NAME, EngineManifest, EnginePack
from tests.tools.test_bundle import make_wheel
from tools.bundle import needed, pack
from tools.setup.cuda_build import CudaBuild
from tools.setup.cuda_toolkit import CudaToolkit, pinned_wheels
from tools.setup.project import SetupError

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the compiler is fetched on Linux only")

ADDRESS = "https://example.org/engines"
LIBRARIES = ("libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libnvrtc.so.13", "libnvrtc-builtins.so.13.5")


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CudaBuild:
    """A build for one kind of cards, with a made-up toolkit in the layout of NVIDIA's packages."""
    root = tmp_path / "toolkit" / "nvidia" / "cu13"
    (root / "lib").mkdir(parents=True)
    (root / "lib64").symlink_to("lib")
    for name in LIBRARIES:
        (root / "lib" / name).write_bytes(b"library of NVIDIA")
    licence = tmp_path / "toolkit" / "nvidia_cublas-13.10.0.20.dist-info" / "licenses" / "License.txt"
    licence.parent.mkdir(parents=True)
    licence.write_text("EULA")
    monkeypatch.setattr(needed, "headers_of", lambda _library: "RPATH [$ORIGIN]")
    return CudaBuild(CudaToolkit(root, (13, 5), is_fetched=True), ("86-real",))


def nvidia_addresses() -> list[str]:
    """Where NVIDIA's three wheels would lie."""
    names = ("nvidia-cuda-runtime", "nvidia-cublas", "nvidia-cuda-nvrtc")
    return [
        f"https://example.org/a1/{wheel.name.replace('-', '_')}-{wheel.version}-py3-none-manylinux_2_17_x86_64.whl"
        for wheel in pinned_wheels()
        if wheel.name in names
    ]


def test_pack_for_a_file_has_nvidias_libraries_and_licence(tmp_path: Path, build: CudaBuild) -> None:
    wheel = make_wheel(tmp_path / "a.whl", "ggml-cuda")
    archive, entry = pack.make_pack(wheel, build, ADDRESS, tmp_path / "out")
    assert archive.name.startswith("qwendesk-engine-cuda-13-86-real-")
    said = msgspec.json.decode(entry.read_bytes(), type=EnginePack)
    assert (said.gpu_architectures, said.minimum_driver, len(said.archives)) == (("86",), "580.65.06", 1)
    with zipfile.ZipFile(archive) as packed:
        manifest = msgspec.json.decode(packed.read(MANIFEST_NAME), type=EngineManifest)
        assert packed.read("licences/NVIDIA-EULA.txt") == b"EULA"
    assert {*LIBRARIES, "libllama.so", "libggml-cuda.so.0"} <= {file.name for file in manifest.files}


def test_listed_pack_names_nvidias_wheels_by_hash_instead(tmp_path: Path, build: CudaBuild) -> None:
    wheel = make_wheel(tmp_path / "a.whl", "ggml-cuda")
    archive, entry = pack.make_pack(wheel, build, ADDRESS, tmp_path / "out", nvidia_addresses())
    said = msgspec.json.decode(entry.read_bytes(), type=EnginePack)
    assert [each.url for each in said.archives[1:]] == [
        address for name in ("runtime", "cublas", "nvrtc") for address in nvidia_addresses() if name in address
    ]
    pins = {wheel.sha256 for wheel in pinned_wheels()}
    assert all(each.sha256 in pins and each.n_bytes == 0 for each in said.archives[1:]), "engine_packs measures them"
    with zipfile.ZipFile(archive) as packed:
        assert not any("cudart" in name or "cublas" in name or "NVIDIA" in name for name in packed.namelist())


def test_missing_or_strange_wheel_is_refused(tmp_path: Path, build: CudaBuild) -> None:
    wheel = make_wheel(tmp_path / "a.whl", "ggml-cuda")
    complete = nvidia_addresses()
    with pytest.raises(SetupError, match="No address names nvidia_"):
        pack.make_pack(wheel, build, ADDRESS, tmp_path / "out", complete[1:])
    with pytest.raises(SetupError, match=r"nvidia_cublas-1\.0-any\.whl is none of the wheels"):
        pack.make_pack(
            wheel, build, ADDRESS, tmp_path / "out", [*complete, "https://example.org/nvidia_cublas-1.0-any.whl"]
        )
    own = CudaBuild(CudaToolkit(build.toolkit.root, (13, 5)))
    with pytest.raises(SetupError, match="hide nvcc"):
        pack.make_pack(wheel, own, ADDRESS, tmp_path / "out", complete)
