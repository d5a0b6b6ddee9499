"""llama-server is built once from the engine's source, and what is missing for that is named."""

import os
import sys
from pathlib import Path

import pytest

from tools import build_peer
from tools.setup.project import SetupError, engine_version

PROGRAMS = ("llama-server", "llama-perplexity")
CMAKE = """#!{python}
import os, pathlib, sys
print(sys.argv[1:], os.environ.get("CXXFLAGS"))
if "-B" in sys.argv:
    pathlib.Path(sys.argv[sys.argv.index("-B") + 1], "bin").mkdir(parents=True)
else:
    if {fails}:
        sys.exit("error: server.cpp: broken, see https://index.example/")
    print("[1/2] c++ server.cpp")
    folder = pathlib.Path(sys.argv[sys.argv.index("--build") + 1], "bin")
    for program in {programs}:
        (folder / program).write_text("program")
    (folder / "libllama.so").write_text("library")
"""


@pytest.fixture
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that stands in for .engine, with a source that needs no download."""
    if os.name == "nt":
        pytest.skip("a script cannot stand in for cmake.exe")
    monkeypatch.setattr(build_peer, "ENGINES", tmp_path / "engines")
    monkeypatch.setattr(build_peer, "WORK", tmp_path / "work")
    monkeypatch.setattr(build_peer, "provide", lambda wanted, *, say: None)
    monkeypatch.setenv("CMAKE_ARGS", "-DGGML_NATIVE=OFF '-DNAME=two words'")
    source = tmp_path / "engines" / "peer" / f"{engine_version()}.build" / "source"
    llama_cpp = source / "vendor" / "llama.cpp"
    llama_cpp.mkdir(parents=True)
    llama_cpp.joinpath("CMakeLists.txt").write_text("")
    return tmp_path / "engines"


def put_cmake(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, fails: bool = False, programs: tuple[str, ...] = PROGRAMS
) -> None:
    """Put a script in CMake's place, which makes these programs."""
    commands = folder / "commands"
    commands.mkdir()
    cmake = commands / "cmake"
    cmake.write_text(CMAKE.format(python=sys.executable, fails=fails, programs=programs))
    cmake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")


def test_server_is_built_once(
    engines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put_cmake(tmp_path, monkeypatch)

    assert build_peer.main() == 0
    first = capsys.readouterr().out
    assert build_peer.main() == 0

    server = build_peer.peer_server()
    assert server.is_relative_to(engines)
    assert first.splitlines()[-1] == f"Built: {server}"
    assert capsys.readouterr().out == f"Already built: {server}\n"
    assert {path.name for path in server.parent.iterdir()} == {*PROGRAMS, "libllama.so"}
    assert [path.name for path in server.parent.parent.iterdir()] == [engine_version()]


def test_a_server_without_its_neighbour_is_built_again(
    engines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Earlier versions built llama-server alone."""
    put_cmake(tmp_path, monkeypatch)
    build_peer.peer_server().parent.mkdir()
    build_peer.peer_server().write_text("an older one")

    assert build_peer.main() == 0

    assert capsys.readouterr().out.endswith(f"Built: {build_peer.peer_server()}\n")
    assert build_peer.peer_perplexity().is_file()


def test_a_build_without_one_of_the_programs_is_a_sentence(
    engines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put_cmake(tmp_path, monkeypatch, programs=PROGRAMS[:1])

    assert build_peer.main() == 1

    assert "The build made no llama-perplexity." in capsys.readouterr().err


def test_server_has_the_engines_flags(engines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_cmake(tmp_path, monkeypatch)
    build_peer.main()

    log = (tmp_path / "work" / "build-peer.log").read_text()

    for flag in ("-DLLAMA_OPENSSL=OFF", "-DLLAMA_USE_PREBUILT_UI=OFF", "-DGGML_NATIVE=OFF", "-DNAME=two words"):
        assert f"'{flag}'" in log
    assert "'--target', 'llama-server'" in log


def test_failed_build_shows_its_last_lines_and_resumes(
    engines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put_cmake(tmp_path, monkeypatch, fails=True)

    assert build_peer.main() == 1

    error = capsys.readouterr().err
    assert "server.cpp: broken" in error
    assert "index.example" not in error
    assert not build_peer.peer_server().exists()
    assert [path.suffix for path in build_peer.peer_server().parent.parent.iterdir()] == [".build"]


def test_missing_cmake_is_a_sentence(
    engines: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")

    assert build_peer.main() == 1
    assert "CMake is missing. Install it" in capsys.readouterr().err


def test_source_without_llama_cpp_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"has no llama\.cpp in it"):
        build_peer.configure_command(tmp_path, tmp_path / "objects", "1.2.3")
