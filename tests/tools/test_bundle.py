"""What `make bundle` is made of, without making one."""

import json
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import msgspec
import pytest

from qwendesk.core.engines import EngineFolder
from qwendesk.engine.folders import read_engine, wrong_files
from tools.bundle.deb import logo_image, logo_svg, make_deb
from tools.bundle.engines import make_engine_folder
from tools.bundle.licences import collect_licences
from tools.bundle.size import report
from tools.setup.project import SetupError

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the libraries' names are Linux's")


def make_wheel(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as wheel:
        for library in ("ggml", "ggml-base", "ggml-cpu", "llama", "mtmd"):
            for ending in (".so", ".so.0", ".so.0.25.3"):
                wheel.writestr(f"llama_cpp/lib/lib{library}{ending}", f"library {library}")
        wheel.writestr("llama_cpp/__init__.py", "")
        wheel.writestr("bin/llama-cli", "a program")
    return path


@LINUX
def test_an_engine_folder_has_each_library_once_and_is_sound(tmp_path: Path) -> None:
    manifest = make_engine_folder(make_wheel(tmp_path / "a.whl"), tmp_path / "cpu-avx2", "cpu", "0.3.36")
    assert {file.name for file in manifest.files} == {
        "libllama.so", "libmtmd.so", "libggml.so.0", "libggml-base.so.0", "libggml-cpu.so.0",
    }  # fmt: skip
    assert "avx2" in manifest.cpu_needs
    engine = read_engine(tmp_path / "cpu-avx2")
    assert isinstance(engine, EngineFolder)
    assert wrong_files(engine) == ()


def contents(tmp_path: Path, *sources: Path) -> Path:
    noted = tmp_path / "contents.json"
    noted.write_text(json.dumps({"files": [[path.name, str(path)] for path in sources], "modules": []}))
    return noted


def test_every_package_that_is_inside_gives_its_licence(tmp_path: Path) -> None:
    parts = collect_licences(contents(tmp_path, Path(msgspec.__file__)), tmp_path / "licences")
    assert {"msgspec", "Python", "QwenDesk", "llama.cpp", "llama_cpp_python"} <= set(parts)
    assert "BSD" in (tmp_path / "licences" / "msgspec.txt").read_text()


def test_a_file_of_unknown_origin_stops_the_bundle(tmp_path: Path) -> None:
    stranger = tmp_path / "libstranger.so"
    stranger.write_bytes(b"from nowhere")
    with pytest.raises(SetupError, match=r"libstranger\.so"):
        collect_licences(contents(tmp_path, stranger), tmp_path / "licences")


@pytest.mark.skipif(shutil.which("dpkg") is None, reason="no Debian here")
def test_a_library_of_the_system_gives_the_licence_of_its_package(tmp_path: Path) -> None:
    folder = Path("/usr/lib", sysconfig.get_config_var("MULTIARCH") or "")
    library = next(folder.glob("libgcc_s.so*"), None) or Path("/bin/dash")
    parts = collect_licences(contents(tmp_path, library), tmp_path / "licences")
    assert any(part.startswith(("libgcc", "dash")) for part in parts)


def test_the_report_counts_every_byte_once(tmp_path: Path) -> None:
    (tmp_path / "_internal" / "PySide6").mkdir(parents=True)
    (tmp_path / "_internal" / "PySide6" / "lib.so").write_bytes(bytes(3_000_000))
    (tmp_path / "QwenDesk").write_bytes(bytes(1_000))
    (tmp_path / "link").symlink_to("QwenDesk")
    total, table = report(tmp_path)
    assert total == 3_001_000
    assert "2.9 MiB  _internal/PySide6" in table


def test_the_logo_is_drawn_in_its_colour() -> None:
    image = logo_image(logo_svg("#ff0000"), 64)
    colours = {
        image.pixelColor(x, y).name() for x in range(64) for y in range(64) if image.pixelColor(x, y).alpha() > 250
    }
    assert colours == {"#ff0000"}


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="no dpkg-deb here")
def test_the_package_holds_the_bundle_and_what_a_desktop_needs(tmp_path: Path) -> None:
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
