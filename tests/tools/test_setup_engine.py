"""The engine's wheel is kept when it is whole, and only then."""

import os
import sys
from pathlib import Path

import pytest

from tools.setup import engine
from tools.setup.project import SetupError

PIP = """#!{python}
import os, pathlib, sys
if "--dest" in sys.argv and not sys.argv[sys.argv.index("--index-url") + 1].endswith({works!r}):
    sys.exit(1)
folder = sys.argv[sys.argv.index("--wheel-dir" if "--wheel-dir" in sys.argv else "--dest") + 1]
print("CMAKE_ARGS", os.environ.get("CMAKE_ARGS"))
print("  [1/2] g++ one.cpp")
if {fails}:
    sys.exit("error: one.cpp: no such file, see https://index.example/simple/")
print("  [2/2] g++ two.cpp")
pathlib.Path(folder, "llama_cpp_python-1.2.3-py3-none-any.whl").write_text("wheel")
"""


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "ENGINES", tmp_path / "engines")
    monkeypatch.setattr(engine, "WORK", tmp_path / "work")
    monkeypatch.setenv("CMAKE_ARGS", "-DGGML_NATIVE=OFF")


def interpreter(folder: Path, *, fails: bool = False, works: str = "") -> Path:
    """An executable in Python's place, whose `-m pip` does what a test needs of pip."""
    if os.name == "nt":
        pytest.skip("a script cannot stand in for python.exe")
    path = folder / "python"
    path.write_text(PIP.format(python=sys.executable, fails=fails, works=works))
    path.chmod(0o755)
    return path


def test_build_shows_progress_and_caches_its_wheel_by_backend_and_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel = engine.build("vulkan", "1.2.3", interpreter(tmp_path))

    assert wheel.parent == tmp_path / "engines" / "vulkan-1.2.3"
    assert engine.kept_wheel("vulkan", "1.2.3") == wheel
    assert engine.kept_wheel("cpu", "1.2.3") is None
    assert "50% compiled" in capsys.readouterr().out
    log = (tmp_path / "work" / "engine-vulkan.log").read_text()
    assert "-DGGML_VULKAN=ON -DGGML_NATIVE=OFF" in log


def test_failed_build_shows_the_compilers_output_and_leaves_no_wheel(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no such file") as refused:
        engine.build("cpu", "1.2.3", interpreter(tmp_path, fails=True))

    assert "index.example" not in str(refused.value)
    assert engine.kept_wheel("cpu", "1.2.3") is None
    assert list((tmp_path / "engines").iterdir()) == []


def test_interrupted_build_is_restarted(tmp_path: Path) -> None:
    left = tmp_path / "engines" / "cpu-1.2.3.unfinished"
    left.mkdir(parents=True)
    (left / "llama_cpp_python-1.2.3-half.whl").write_text("")

    wheel = engine.build("cpu", "1.2.3", interpreter(tmp_path))

    assert [path.name for path in wheel.parent.iterdir()] == [wheel.name]
    assert not left.exists()


def test_ready_engine_is_kept_and_its_address_is_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheel = engine.fetch_prebuilt("hip", "1.2.3", interpreter(tmp_path, works="hip-radeon"))

    assert engine.kept_wheel("hip", "1.2.3") == wheel
    assert "://" not in capsys.readouterr().out


def test_missing_prebuilt_engine_is_explained(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no ready-made cpu engine") as refused:
        engine.fetch_prebuilt("cpu", "1.2.3", interpreter(tmp_path, works="nowhere"))

    assert "://" not in str(refused.value)

    assert engine.kept_wheel("cpu", "1.2.3") is None
