"""What a bundle for Windows takes of Visual Studio, from made-up folders."""

import os
import sys
import zipfile
from pathlib import Path

import pytest

from qwendesk import __version__
from tests.tools.test_bundle import contents
from tools.bundle.licences import collect_licences
from tools.bundle.portable import make_archive
from tools.bundle.windows import RUNTIME, RUNTIME_NAMES, build_path, redistributables, runtime_libraries, runtime_of
from tools.setup.project import SetupError


def make_release(root: Path, number: str, *without: str, toolset: str = "VC143") -> Path:
    """A folder as VC\\Redist\\MSVC has one for each release of the compiler."""
    release = root / "VC" / "Redist" / "MSVC" / number
    for part, names in RUNTIME.items():
        folder = release / "x64" / f"Microsoft.{toolset}.{part}"
        folder.mkdir(parents=True)
        for name in {*names, "concrt140.dll"} - {*without}:
            (folder / name).write_bytes(b"of " + number.encode())
    return release


def test_libraries_come_from_the_newest_release_that_has_all_four(tmp_path: Path) -> None:
    releases = [
        make_release(tmp_path, "14.9.10000"),
        make_release(tmp_path, "14.44.35112"),
        make_release(tmp_path, "14.50.20000", "vcomp140.dll", toolset="VC145"),
        tmp_path / "VC" / "Redist" / "MSVC" / "v143",
    ]
    found = runtime_libraries(releases)
    assert sorted(path.name for path in found) == sorted(RUNTIME_NAMES)
    assert {path.parents[2].name for path in found} == {"14.44.35112"}


def test_a_bundle_without_the_runtime_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"msvcp140\.dll.*vcomp140\.dll.* VCToolsRedistDir"):
        runtime_libraries([make_release(tmp_path, "14.44.35112", "msvcp140.dll")])


def test_release_is_found_by_the_compilers_environment_variable(tmp_path: Path) -> None:
    release = make_release(tmp_path, "14.44.35112")
    assert redistributables({"VCToolsRedistDir": f"{release}{os.sep}"}) == [release]
    assert redistributables({"ProgramFiles(x86)": str(tmp_path)}) == []


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script stands in for vswhere")
def test_every_visual_studio_is_searched(tmp_path: Path) -> None:
    make_release(tmp_path / "Build Tools", "14.40.1")
    make_release(tmp_path / "Community", "14.44.2")
    vswhere = tmp_path / "Microsoft Visual Studio" / "Installer" / "vswhere.exe"
    vswhere.parent.mkdir(parents=True)
    vswhere.write_text(f"#!/bin/sh\necho '{tmp_path}/Build Tools'\necho '{tmp_path}/Community'\n")
    vswhere.chmod(0o755)
    releases = redistributables({"ProgramFiles(x86)": str(tmp_path)})
    assert {release.name for release in releases} == {"14.40.1", "14.44.2"}


def test_runtime_is_bundled_with_its_notice(tmp_path: Path) -> None:
    libraries = runtime_libraries([make_release(tmp_path, "14.44.35112")])
    parts = collect_licences(contents(tmp_path, *libraries), tmp_path / "licences")
    assert "Microsoft Visual C++ runtime" in parts
    text = (tmp_path / "licences" / "Microsoft Visual C++ runtime.txt").read_text(encoding="utf-8")
    assert "redistributable" in text
    assert "https://visualstudio.microsoft.com/license-terms/" in text


def test_build_path_contains_only_python_and_the_system(tmp_path: Path) -> None:
    assert build_path(tmp_path, {"SYSTEMROOT": "W"}) == os.pathsep.join([str(tmp_path), str(Path("W", "System32"))])


def test_runtime_of_another_compiler_brings_its_licence(tmp_path: Path) -> None:
    folder = tmp_path / "runtime"
    folder.mkdir()
    with pytest.raises(SetupError, match="has no libraries of the compiler"):
        runtime_of(folder)
    (folder / "libstdc++-6.dll").write_bytes(b"of GCC")
    (folder / "libstdc++-6.txt").write_text("GPL with the exception for runtime libraries")
    libraries = runtime_of(folder)
    assert [path.name for path in libraries] == ["libstdc++-6.dll"]

    parts = collect_licences(contents(tmp_path, *libraries), tmp_path / "licences")
    assert "libstdc++-6" in parts
    assert "exception" in (tmp_path / "licences" / "libstdc++-6.txt").read_text(encoding="utf-8")


def test_portable_zip_holds_the_folder(tmp_path: Path) -> None:
    bundle = tmp_path / "QwenDesk"
    (bundle / "_internal" / "empty").mkdir(parents=True)
    (bundle / "QwenDesk.exe").write_bytes(b"program")
    archive = make_archive(bundle, tmp_path, on_windows=True)
    assert archive.name == f"QwenDesk-{__version__}-windows-x64-portable.zip"
    with zipfile.ZipFile(archive) as packed:
        assert {"QwenDesk/QwenDesk.exe", "QwenDesk/_internal/empty/"} <= set(packed.namelist())
        assert packed.read("QwenDesk/QwenDesk.exe") == b"program"
