"""What `make bundle` is made of, without making one."""

import fnmatch
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import msgspec
import pytest

from qwendesk.core.engine_manifest import EngineFolder, EnginePack
from qwendesk.engine.engine_folders import read_engine, wrong_files
from tests.tools.dlls import make_dll
from tools.bundle import needed, pack
from tools.bundle.__main__ import chosen_engines, compiled_engines
from tools.bundle.appimage import make_appimage
from tools.bundle.deb import make_deb
from tools.bundle.engines import CPU_ENGINES, VULKAN, lacks_matrix_shaders, make_engine_folder, same_files
from tools.bundle.licences import collect_licences
from tools.bundle.size import report
from tools.setup import engine as engine_setup
from tools.setup import system_packages
from tools.setup.cuda_build import CudaBuild
from tools.setup.cuda_toolkit import CudaToolkit
from tools.setup.project import ROOT, SetupError
from tools.setup.system_packages import Need

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the libraries' names are Linux's")


def make_wheel(path: Path, *more: str) -> Path:
    with zipfile.ZipFile(path, "w") as wheel:
        for library in ("ggml", "ggml-base", "ggml-cpu", "llama", "mtmd", *more):
            for ending in (".so", ".so.0", ".so.0.25.3"):
                wheel.writestr(f"llama_cpp/lib/lib{library}{ending}", f"library {library}")
        wheel.writestr("llama_cpp/__init__.py", "")
        wheel.writestr("bin/llama-cli", "a program")
    return path


@LINUX
def test_engine_folder_has_each_library_once(tmp_path: Path) -> None:
    manifest = make_engine_folder(make_wheel(tmp_path / "a.whl"), tmp_path / "cpu-avx2", CPU_ENGINES[0], "0.3.36")
    assert {file.name for file in manifest.files} == {
        "libllama.so", "libmtmd.so", "libggml.so.0", "libggml-base.so.0", "libggml-cpu.so.0",
    }  # fmt: skip
    assert "avx2" in manifest.cpu_needs
    engine = read_engine(tmp_path / "cpu-avx2")
    assert isinstance(engine, EngineFolder)
    assert wrong_files(engine) == ()


@LINUX
def test_vulkan_engine_adds_one_library_to_the_avx2_engine(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "a.whl", "ggml-vulkan")
    manifest = make_engine_folder(wheel, tmp_path / "vulkan", VULKAN, "0.3.36")
    assert (manifest.backend, "avx2" in manifest.cpu_needs) == ("vulkan", True)
    assert "libggml-vulkan.so.0" in {file.name for file in manifest.files}
    assert lacks_matrix_shaders(tmp_path / "vulkan")
    cpu = make_engine_folder(make_wheel(tmp_path / "b.whl"), tmp_path / "cpu-avx2", CPU_ENGINES[0], "0.3.36")
    assert {file.name for file in manifest.files} - {file.name for file in same_files(manifest, cpu)} == {
        "libggml-vulkan.so.0"
    }


@pytest.fixture
def without_glslc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_setup, "kept_wheel", lambda _backend, _version: None)
    monkeypatch.setattr(system_packages, "missing", lambda _wanted: [Need("program", "glslc", "glslc")])


@pytest.mark.usefixtures("without_glslc")
def test_bundle_without_vulkan_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")  # nothing is installed there
    assert chosen_engines("auto", "0.3.36") == CPU_ENGINES
    said = capsys.readouterr().out
    assert "Without Vulkan, which cannot be built here. Missing to build a Vulkan engine: glslc." in said


@pytest.mark.usefixtures("without_glslc")
def test_release_fails_if_vulkan_cannot_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SetupError, match="glslc"):
        chosen_engines("yes", "0.3.36")


def test_cached_vulkan_engine_needs_no_build_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_setup, "kept_wheel", lambda _backend, _version: Path("kept.whl"))
    assert VULKAN in chosen_engines("auto", "0.3.36")
    assert VULKAN not in chosen_engines("no", "0.3.36")


def test_compiled_engines_are_taken_from_their_folders(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no folder cpu-avx2"):
        compiled_engines(tmp_path)
    for name in ("cpu-avx2", "vulkan"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "llama.dll").write_bytes(name.encode())
    (tmp_path / "cpu-avx2" / "notes.txt").touch()
    found = compiled_engines(tmp_path)
    assert list(found) == [CPU_ENGINES[0], VULKAN]

    manifest = make_engine_folder(found[CPU_ENGINES[0]], tmp_path / "bundle" / "cpu-avx2", CPU_ENGINES[0], "0.3.36")
    assert [file.name for file in manifest.files] == ["llama.dll"]
    assert (tmp_path / "bundle" / "cpu-avx2" / "llama.dll").read_bytes() == b"cpu-avx2"
    engine = read_engine(tmp_path / "bundle" / "cpu-avx2")
    assert isinstance(engine, EngineFolder)
    assert wrong_files(engine) == ()


def contents(tmp_path: Path, *sources: Path) -> Path:
    noted = tmp_path / "contents.json"
    noted.write_text(json.dumps({"files": [[path.name, str(path)] for path in sources], "modules": []}))
    return noted


def test_bundle_contains_the_licence_of_each_package(tmp_path: Path) -> None:
    parts = collect_licences(contents(tmp_path, Path(msgspec.__file__)), tmp_path / "licences")
    assert {"msgspec", "Python", "QwenDesk", "llama.cpp", "llama_cpp_python"} <= set(parts)
    assert "BSD" in (tmp_path / "licences" / "msgspec.txt").read_text()


def test_file_of_unknown_origin_is_refused(tmp_path: Path) -> None:
    stranger = tmp_path / "libstranger.so"
    stranger.write_bytes(b"from nowhere")
    with pytest.raises(SetupError, match=r"libstranger\.so"):
        collect_licences(contents(tmp_path, stranger), tmp_path / "licences")


@pytest.mark.skipif(shutil.which("dpkg") is None, reason="no Debian here")
def test_system_library_brings_the_licence_of_its_package(tmp_path: Path) -> None:
    folder = Path("/usr/lib", sysconfig.get_config_var("MULTIARCH") or "")
    library = next(folder.glob("libgcc_s.so*"), None) or Path("/bin/dash")
    parts = collect_licences(contents(tmp_path, library), tmp_path / "licences")
    assert any(part.startswith(("libgcc", "dash")) for part in parts)


def test_size_report_counts_every_byte_once(tmp_path: Path) -> None:
    (tmp_path / "_internal" / "PySide6").mkdir(parents=True)
    (tmp_path / "_internal" / "PySide6" / "lib.so").write_bytes(bytes(3_000_000))
    (tmp_path / "QwenDesk").write_bytes(bytes(1_000))
    (tmp_path / "link").symlink_to("QwenDesk")
    vulkan = tmp_path / "_internal" / "engines" / "vulkan" / "libggml-vulkan.so.0"
    vulkan.parent.mkdir(parents=True)
    vulkan.write_bytes(bytes(2_000_000))
    sizes, table = report(tmp_path)
    assert (sizes.cpu_bytes, sizes.all_bytes, sizes.fits) == (3_001_000, 5_001_000, True)
    assert "2.9 MiB  _internal/PySide6" in table
    assert "2.9 MiB  in all, for a processor (at most 320)" in table
    assert "4.8 MiB  in all, with Vulkan" in table


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="no dpkg-deb here")
def test_package_contains_the_bundle_and_desktop_files(tmp_path: Path) -> None:
    bundle = tmp_path / "QwenDesk"
    bundle.mkdir()
    (bundle / "QwenDesk").write_bytes(b"program")
    package = make_deb(bundle, tmp_path, tmp_path / "work")
    listed = subprocess.run(["dpkg-deb", "--contents", str(package)], capture_output=True, text=True, check=True).stdout
    for name in (
        "./opt/qwendesk/QwenDesk",
        "./usr/bin/qwendesk -> /opt/qwendesk/QwenDesk",
        "./usr/share/applications/qwendesk.desktop",
        "./usr/share/mime/packages/qwendesk.xml",
        "./usr/share/icons/hicolor/256x256/apps/qwendesk.png",
    ):
        assert name in listed


@pytest.mark.skipif(shutil.which("mksquashfs") is None, reason="no mksquashfs here")
def test_appimage_is_its_runtime_followed_by_an_image_with_desktop_files(tmp_path: Path) -> None:
    bundle = tmp_path / "QwenDesk"
    bundle.mkdir()
    (bundle / "QwenDesk").write_bytes(b"program")
    runtime = tmp_path / "runtime"
    runtime.write_bytes(b"\x7fELF0000AI\x02" + bytes(4085))
    made = make_appimage(bundle, runtime, tmp_path, tmp_path / "work")
    assert made.stat().st_mode & 0o111
    assert made.read_bytes()[:4096] == runtime.read_bytes()
    command = ["unsquashfs", "-offset", "4096", "-lls", str(made)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name in (
        "/AppRun -> usr/lib/qwendesk/QwenDesk",
        "/.DirIcon -> qwendesk.png",
        "/qwendesk.desktop",
        "/qwendesk.png",
        "/usr/lib/qwendesk/QwenDesk",
        "/usr/share/mime/packages/qwendesk.xml",
    ):
        assert name in listed


@pytest.mark.skipif(shutil.which("mksquashfs") is None, reason="no mksquashfs here")
def test_invalid_appimage_runtime_is_refused(tmp_path: Path) -> None:
    (tmp_path / "QwenDesk").mkdir()
    with pytest.raises(SetupError, match="no AppImage runtime"):
        make_appimage(tmp_path / "QwenDesk", Path(sys.executable), tmp_path, tmp_path / "work")


@LINUX
def test_cuda_pack_matches_its_manifest_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toolkit = tmp_path / "cuda"
    (toolkit / "lib64").mkdir(parents=True)
    (toolkit / "EULA.txt").write_text("NVIDIA")
    for part in ("cudart", "cublas"):
        (toolkit / "lib64" / f"lib{part}.so.12").write_bytes(b"library of NVIDIA")
    monkeypatch.setattr(needed, "headers_of", lambda _library: "RUNPATH [$ORIGIN]")
    wheel = make_wheel(tmp_path / "a.whl", "ggml-cuda")
    build = CudaBuild(CudaToolkit(toolkit, (12, 8)))
    with pytest.raises(SetupError, match=r"none of lib64/libcublasLt\.so\.12"):
        pack.make_pack(wheel, build, "https://example.org/engines", tmp_path / "out")
    (toolkit / "lib64" / "libcublasLt.so.12").write_bytes(b"library of NVIDIA")
    old = CudaBuild(CudaToolkit(toolkit, (12, 4)))
    with pytest.raises(SetupError, match="too old"):
        pack.make_pack(wheel, old, "https://example.org/engines", tmp_path / "out")
    archive, entry = pack.make_pack(wheel, build, "https://example.org/engines", tmp_path / "out")
    said = msgspec.json.decode(entry.read_bytes(), type=EnginePack)
    assert (said.name, said.minimum_driver, said.gpu_architectures[0]) == ("cuda-12", "525.60.13", "75")
    assert said.gpu_architectures[-1] == "120"
    assert said.archives[0].url == f"https://example.org/engines/{archive.name}"
    assert said.archives[0].sha256 == hashlib.sha256(archive.read_bytes()).hexdigest()
    with zipfile.ZipFile(archive) as packed:
        taken = {name for name in packed.namelist() if fnmatch.fnmatch(name, said.archives[0].keep[0])}
    assert {"engine/libllama.so", "engine/libggml-cuda.so.0", "engine/libcublasLt.so.12"} <= taken
    assert not any("EULA" in name for name in taken)


def test_pack_that_needs_rare_libraries_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asks = {
        "libggml-cuda.so.0": ["libcudart.so.12", "libnccl.so.2", "libcuda.so.1", "libggml-base.so.0", "libc.so.6"],
        "libcudart.so.12": ["libpthread.so.0"],
        "libggml-base.so.0": ["libgomp.so.1", "libstdc++.so.6"],
        "libmtmd.so": ["libllama.so.0"],
        "libllama.so": ["libggml-base.so.0"],
    }

    def headers(library: Path) -> str:
        lines = [f" 0x01 (NEEDED)   Shared library: [{name}]" for name in asks[library.name]]
        return "\n".join([*lines, f" 0x0e (SONAME)   Library soname: [{library.name.removesuffix('.so')}.so.0]"])

    monkeypatch.setattr(needed, "headers_of", headers)
    assert needed.unmet([tmp_path / name for name in asks]) == {"libggml-cuda.so.0": ["libnccl.so.2"]}
    with pytest.raises(SetupError, match=r"libggml-cuda\.so\.0 asks for libnccl\.so\.2\.$"):
        needed.refuse_unmet([tmp_path / name for name in asks])


@pytest.mark.parametrize(
    ("runtime", "missing"),
    [
        ("MSVCP140.dll", "libstdc++-6.dll"),
        ("libstdc++-6.dll", "MSVCP140.dll"),
    ],
)
def test_windows_engine_may_need_system_libraries_and_the_bundled_runtime(
    tmp_path: Path, runtime: str, missing: str
) -> None:
    asked = ["ggml-base.dll", "vulkan-1.dll", "api-ms-win-crt-heap-l1-1-0.dll", "KERNEL32.dll", runtime, missing]
    libraries = [
        make_dll(tmp_path / "ggml-base.dll", ["KERNEL32.dll"]),
        make_dll(tmp_path / "ggml-vulkan.dll", asked),
    ]
    assert needed.unmet(libraries, [runtime.upper()]) == {"ggml-vulkan.dll": [missing]}
    with pytest.raises(SetupError, match=rf"ggml-vulkan\.dll asks for {re.escape(missing)}\.$"):
        needed.refuse_unmet(libraries, [runtime])
    assert needed.unmet(libraries, [runtime, missing]) == {}


@LINUX
@pytest.mark.skipif(shutil.which("readelf") is None, reason="no binutils here")
def test_needed_libraries_of_a_real_library_are_read(tmp_path: Path) -> None:
    wheel = next((ROOT / ".engine").glob("cpu-*/*.whl"), None)
    if wheel is None:
        pytest.skip("no engine was built here")
    folder = tmp_path / "cpu"
    make_engine_folder(wheel, folder, CPU_ENGINES[0], "0.3.36")
    libraries = sorted(folder.glob("*.so*"))
    assert needed.unmet(libraries) == {}
    without_base = [path for path in libraries if path.name != "libggml-base.so.0"]
    assert ["libggml-base.so.0"] in needed.unmet(without_base).values()


def test_engine_program_prints_why_it_cannot_start_and_exits(tmp_path: Path) -> None:
    """On Windows an error that nobody catches opens a window, and the app waits for it."""
    program = ROOT / "packaging" / "entry_engine.py"
    script = (
        "import runpy, sys; sys.excepthook = lambda *_: print('a window', file=sys.stderr);"
        f"runpy.run_path({str(program)!r}, run_name='__main__')"
    )
    nowhere = {**os.environ, "PYTHONPATH": str(ROOT), "LLAMA_CPP_LIB_PATH": str(tmp_path)}
    command = [sys.executable, "-c", script, "--worker"]
    done = subprocess.run(command, env=nowhere, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
    assert "Shared library with base name 'llama' not found" in done.stderr
    assert "a window" not in done.stderr
