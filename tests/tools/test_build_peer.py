"""llama-server is built once from the engine's source, and what is missing for that is named."""

import os
import sys
from pathlib import Path

import pytest

from tools import build_peer
from tools.setup.cuda_build import CudaBuild
from tools.setup.cuda_toolkit import CudaToolkit
from tools.setup.project import engine_version

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


def put_cmake(folder: Path, monkeypatch: pytest.MonkeyPatch, *, fails: bool = False) -> None:
    """Put a script in CMake's place, which makes the programs."""
    commands = folder / "commands"
    commands.mkdir()
    cmake = commands / "cmake"
    cmake.write_text(CMAKE.format(python=sys.executable, fails=fails, programs=PROGRAMS))
    cmake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")


def test_server_is_built_once(
    engines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put_cmake(tmp_path, monkeypatch)

    assert build_peer.main([]) == 0
    first = capsys.readouterr().out
    assert build_peer.main([]) == 0

    server = build_peer.peer_server()
    assert server.is_relative_to(engines)
    assert first.splitlines()[-1] == f"Built: {server}"
    assert capsys.readouterr().out == f"Already built: {server}\n"
    assert {path.name for path in server.parent.iterdir()} == {*PROGRAMS, "libllama.so"}
    assert [path.name for path in server.parent.parent.iterdir()] == [engine_version()]


def test_failed_build_shows_its_last_lines_and_resumes(
    engines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put_cmake(tmp_path, monkeypatch, fails=True)

    assert build_peer.main([]) == 1

    error = capsys.readouterr().err
    assert "server.cpp: broken" in error
    assert "index.example" not in error
    assert not build_peer.peer_server().exists()
    assert [path.suffix for path in build_peer.peer_server().parent.parent.iterdir()] == [".build"]


def test_a_card_gets_llama_bench_and_an_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CMAKE_ARGS", raising=False)
    (tmp_path / "vendor" / "llama.cpp").mkdir(parents=True)
    (tmp_path / "vendor" / "llama.cpp" / "CMakeLists.txt").write_text("")
    toolkit = CudaToolkit(tmp_path / "toolkit", (13, 5), is_fetched=True)
    peer = build_peer.card_peer(CudaBuild(toolkit, ("90-real",)))

    configure = build_peer.configure_command(peer, tmp_path, tmp_path / "objects")
    compile_all = build_peer._compile_command(peer, tmp_path / "objects")

    assert peer.folder.name == f"cuda-90-real-{engine_version()}"
    architectures = [each for each in configure if each.startswith("-DCMAKE_CUDA_ARCHITECTURES=")]
    assert architectures[-1] == "-DCMAKE_CUDA_ARCHITECTURES=90-real", "CMake takes the last one"
    assert {"-DGGML_CUDA=ON", "-DGGML_CUDA_NO_VMM=ON", "-DGGML_NATIVE=OFF", "-DBUILD_SHARED_LIBS=ON"} <= set(configure)
    assert compile_all[compile_all.index("--target") + 1 : compile_all.index("--parallel")] == ["llama-bench", "mtmd"]
