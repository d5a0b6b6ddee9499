"""NVIDIA's compiler from Python packages: fetched by hash into a folder of its own, and used by builds that resume."""

import io
import json
import os
import re
import shlex
import sys
import tarfile
from pathlib import Path

import pytest

from tools.setup import cuda_build, cuda_toolkit, engine
from tools.setup.cuda_build import CudaBuild, architectures_here
from tools.setup.cuda_toolkit import fetch_toolkit, fetched_toolkit, pinned_wheels, wheels_release
from tools.setup.nvidia import NvidiaCard
from tools.setup.project import SetupError

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the compiler is fetched on Linux only")

PIP = """#!{python}
import json, os, pathlib, sys
arguments = sys.argv[1:]
folder = pathlib.Path(arguments[arguments.index("--target" if "--target" in arguments else "--wheel-dir") + 1])
if "--target" in arguments:
    with open({calls!r}, "a") as calls:
        calls.write(json.dumps([arguments, os.environ["TMPDIR"]]) + "\\n")
    if {fails}:
        sys.exit("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.")
    root = folder / "nvidia" / "cu13"
    for name in ("lib/libcudart.so.13", "lib/libcublas.so.13", "lib/libcublasLt.so.13", "bin/nvcc"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
else:
    source = pathlib.Path(arguments[arguments.index("--verbose") + 1])
    objects = pathlib.Path(os.environ["SKBUILD_BUILD_DIR"])
    objects.mkdir(exist_ok=True)
    for name in sorted(path.name for path in source.glob("*.cu")):
        if not (objects / name).exists():
            print("compiling", name)
            (objects / name).write_text("an object")
            if name == {stops_at!r}:
                sys.exit("killed")
    print(os.environ["CMAKE_ARGS"], os.environ.get("CUDACXX"), os.environ.get("CUDAToolkit_ROOT"))
    (folder / "llama_cpp_python-1.2.3-py3-none-any.whl").write_text("wheel")
"""
CARD = NvidiaCard("NVIDIA GeForce RTX 3060", "580.65.06", (8, 6))


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (cuda_build, cuda_toolkit, engine):
        monkeypatch.setattr(module, "ENGINES", tmp_path / ".engine")
        monkeypatch.setattr(module, "WORK", tmp_path / "work")
    monkeypatch.setattr(cuda_toolkit.platform, "system", lambda: "Linux")
    monkeypatch.setattr(cuda_toolkit.platform, "machine", lambda: "x86_64")
    monkeypatch.delenv("CMAKE_ARGS", raising=False)


def interpreter(folder: Path, *, fails: bool = False, stops_at: str = "") -> Path:
    """An executable in Python's place, whose `-m pip` does what a test needs of pip."""
    path = folder / "python"
    path.write_text(PIP.format(python=sys.executable, calls=str(folder / "calls"), fails=fails, stops_at=stops_at))
    path.chmod(0o755)
    return path


def make_source(folder: Path, *files: str) -> None:
    """What pip's download of the source would leave: its archive."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(folder / "llama_cpp_python-1.2.3.tar.gz", "w:gz") as archive:
        for name in files:
            entry = tarfile.TarInfo(f"llama_cpp_python-1.2.3/{name}")
            entry.size = 4
            archive.addfile(entry, io.BytesIO(b"code"))


def test_every_package_is_pinned_by_version_and_hash() -> None:
    lines = [line for line in cuda_toolkit.WHEELS_FILE.read_text().splitlines() if line and not line.startswith("#")]
    wheels = pinned_wheels()
    assert len(wheels) == len(lines) == len({wheel.name for wheel in wheels})
    assert all(re.fullmatch(r"[0-9a-f]{64}", wheel.sha256) for wheel in wheels)
    compiler = {
        wheel.version for wheel in wheels if wheel.name in ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt")
    }
    assert len(compiler) == 1, "the parts of the compiler belong together"
    assert wheels_release() == (13, 5)


def test_compiler_is_fetched_once_by_hash_into_its_own_folder(tmp_path: Path) -> None:
    python = interpreter(tmp_path)
    for _ in range(2):
        toolkit = fetch_toolkit(python)
    ((arguments, temporary),) = [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]
    assert {"--require-hashes", "--no-deps", str(cuda_toolkit.WHEELS_FILE)} <= {*arguments}
    assert Path(temporary).is_relative_to(tmp_path / ".engine"), "/tmp may be too small"
    assert toolkit == fetched_toolkit()
    assert toolkit.nvcc == tmp_path / ".engine" / "cuda-toolkit-13.5.37" / "nvidia" / "cu13" / "bin" / "nvcc"
    assert (toolkit.root / "lib64" / "libcudart.so").read_text() == "lib/libcudart.so.13"
    assert [path.name for path in (tmp_path / ".engine").iterdir()] == ["cuda-toolkit-13.5.37"]


def test_wheel_with_another_hash_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="could not be downloaded"):
        fetch_toolkit(interpreter(tmp_path, fails=True))
    assert fetched_toolkit() is None
    assert list((tmp_path / ".engine").iterdir()) == []


@pytest.mark.parametrize(("system", "machine"), [("Windows", "AMD64"), ("Darwin", "arm64"), ("Linux", "aarch64")])
def test_other_systems_are_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str, machine: str
) -> None:
    monkeypatch.setattr(cuda_toolkit.platform, "system", lambda: system)
    monkeypatch.setattr(cuda_toolkit.platform, "machine", lambda: machine)
    with pytest.raises(SetupError, match=r"on Linux with an x86-64 processor only.*ENGINE=vulkan"):
        fetch_toolkit(interpreter(tmp_path))


def test_full_disk_is_named_before_the_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = cuda_toolkit.shutil.disk_usage(tmp_path)._replace(free=3_900_000_000)
    monkeypatch.setattr(cuda_toolkit.shutil, "disk_usage", lambda _folder: usage)
    with pytest.raises(SetupError, match=r"needs 4 GB of room in .* and 3\.9 GB are free"):
        fetch_toolkit(interpreter(tmp_path))
    assert not (tmp_path / "calls").exists()


def test_interrupted_build_compiles_only_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build = CudaBuild(fetch_toolkit(interpreter(tmp_path)), ("86-real",), is_for_this_pc=True)
    kept = tmp_path / ".engine" / "cuda-1.2.3.build"
    make_source(kept / "source", "a.cu")
    (kept / "source" / "a.cu").write_text("code")
    (kept / "source" / "b.cu").write_text("code")
    with pytest.raises(SetupError, match="killed"):
        engine.build("cuda", "1.2.3", interpreter(tmp_path, stops_at="a.cu"), build)
    assert [path.name for path in (kept / "objects").iterdir()] == ["a.cu"]

    wheel = engine.build("cuda", "1.2.3", interpreter(tmp_path), build)

    log = (tmp_path / "work" / "engine-cuda.log").read_text()
    assert "compiling b.cu" in log
    assert "compiling a.cu" not in log
    assert f"{build.toolkit.nvcc} {build.toolkit.root}" in log
    assert engine.kept_wheel("cuda", "1.2.3") == wheel
    assert not kept.exists(), "a finished build needs no objects"


def test_source_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cuda.build"
    downloads: list[str] = []

    def download(_python: Path, arguments: list[str], *_more: object) -> None:
        downloads.append(arguments[-1])
        make_source(Path(arguments[arguments.index("--dest") + 1]), "a.cu")

    monkeypatch.setattr(cuda_build, "run_pip", download)
    for _ in range(2):
        source = cuda_build.keep_source(folder, "1.2.3", tmp_path / "python", print)
    assert downloads == ["llama-cpp-python==1.2.3"]
    assert (source / "a.cu").read_text() == "code"
    assert [path.name for path in folder.iterdir()] == ["source"]

    monkeypatch.setattr(cuda_build, "run_pip", lambda *_arguments: "The end of the log")
    with pytest.raises(SetupError, match=r"source could not be downloaded\. Are you online"):
        cuda_build.keep_source(tmp_path / "other", "1.2.3", tmp_path / "python", print)


def test_engine_for_this_pc_finds_nvidias_libraries_from_the_environment(tmp_path: Path) -> None:
    toolkit = fetch_toolkit(interpreter(tmp_path))
    flags = shlex.split(" ".join(CudaBuild(toolkit, ("86-real", "89-real"), is_for_this_pc=True).flags()))
    assert "-DCMAKE_CUDA_ARCHITECTURES=86-real;89-real" in flags
    assert "-DGGML_CUDA_NO_VMM=ON" in flags
    linker = next(flag for flag in flags if flag.startswith("-DCMAKE_SHARED_LINKER_FLAGS="))
    path = re.search(r"-rpath,'\$ORIGIN/(.+)'$", linker)
    assert path is not None
    installed = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages" / "llama_cpp" / "lib"
    assert Path(os.path.normpath(installed / path[1])) == toolkit.root / "lib"
    for_others = CudaBuild(toolkit, ("86-real",)).flags()
    assert not any("rpath" in flag for flag in for_others), "a pack has the libraries beside it"


def test_architectures_are_those_of_the_cards_or_the_users_own() -> None:
    old = NvidiaCard("NVIDIA GeForce GTX 1080", "580.65.06", (6, 1))
    assert architectures_here((CARD, old), 13, "") == ("86-real",)
    assert architectures_here((), 13, "-DCMAKE_CUDA_ARCHITECTURES=86-real") == ()
    with pytest.raises(SetupError, match="nvidia-smi"):
        architectures_here((), 13, "")
    with pytest.raises(SetupError, match=r"would not run here.*ENGINE=vulkan"):
        architectures_here((old,), 13, "")
