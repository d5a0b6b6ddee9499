"""When the set-up does something, and that it does nothing when nothing changed."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tools.setup import backends, command, cuda_toolkit, engine, environment, system_packages
from tools.setup.cuda_build import CudaBuild
from tools.setup.cuda_toolkit import CudaToolkit
from tools.setup.duration import build_minutes
from tools.setup.nvidia import NvidiaCard
from tools.setup.project import ROOT, SetupError
from tools.setup.system_packages import Need

RTX_3060 = NvidiaCard("NVIDIA GeForce RTX 3060", "580.65.06", (8, 6))
WHEEL = "llama_cpp_python-0.0.0-py3-none-any.whl"


class Recorder:
    """Stands in for the slow parts, and writes down which of them ran."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: list[str] = []
        self.needed: set[str] = set()
        self.wheel = folder / "cpu-0.0.0" / WHEEL
        self.wheel.parent.mkdir()
        self.wheel.write_text("engine")
        self.python = folder / "venv" / "python"
        self.note = folder / "venv" / "note.json"
        monkeypatch.setattr(environment, "_NOTE", self.note)
        monkeypatch.setattr(environment, "create", self._create)
        monkeypatch.setattr(environment, "install", self._install)
        monkeypatch.setattr(command, "venv_python", lambda: self.python)
        monkeypatch.setattr(engine, "kept_wheel", lambda backend, version: self.wheel)
        monkeypatch.setattr(system_packages, "provide", self._provide)

    def take(self) -> list[str]:
        """What was done since the last call."""
        done, self.done = self.done, []
        return done

    def _provide(self, wanted: Sequence[Need], say: object) -> None:
        self.needed = {need.debian_package for need in wanted}
        self.done.append("packages")

    def _create(self, *, moved: bool) -> bool:
        fresh = moved or not self.python.exists()
        self.python.parent.mkdir(exist_ok=True)
        self.python.write_text("")
        self.done.append("created" if fresh else "reused")
        return fresh

    def _install(self, wheel: Path, *, new_engine: bool, with_tests: bool) -> None:
        assert not self.note.exists(), "a set-up that breaks off here would look complete"
        self.done.append(f"{'engine and ' if new_engine else ''}libraries{' with tests' if with_tests else ''}")


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return Recorder(tmp_path, monkeypatch)


def test_second_run_does_nothing(parts: Recorder) -> None:
    assert command.main(["--engine", "cpu"]) == 0
    assert parts.take() == ["packages", "created", "engine and libraries"]

    assert command.main(["--engine", "cpu"]) == 0
    assert parts.take() == []


def test_test_dependencies_are_installed_at_the_first_test_run_and_stay(
    parts: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    command.main(["--engine", "cpu"])
    assert parts.take() == ["packages", "created", "engine and libraries"]

    command.main(["--engine", "cpu", "--for", "test"])
    assert parts.take() == ["packages", "reused", "libraries with tests"]

    command.main(["--engine", "cpu"])
    assert parts.take() == []

    monkeypatch.setattr(environment, "project_hash", lambda: "changed")
    command.main(["--engine", "cpu"])
    assert parts.take() == ["packages", "reused", "libraries with tests"], "an update brings both up to date"


def test_first_run_announces_its_duration_and_steps(parts: Recorder, capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["--engine", "cpu"])
    first, *steps = capsys.readouterr().out.splitlines()
    assert "This is done once and takes about 2 minutes" in first, "the engine is there already"
    assert [step.partition(":")[0] for step in steps] == ["Step 1 of 3", "Step 2 of 3", "Step 3 of 3"]

    command.main(["--engine", "cpu", "--for", "test"])
    assert capsys.readouterr().out.startswith("Adding what the tests need. This is done once")

    command.main(["--engine", "cpu"])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("purpose", ["run", "test"])
def test_fresh_linux_gets_all_packages_of_the_purpose(
    purpose: str, parts: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command.platform, "system", lambda: "Linux")

    command.main(["--engine", "cpu", "--for", purpose])

    assert "libegl1" in parts.needed
    assert ("xvfb" in parts.needed) == (purpose == "test")


def test_other_engine_replaces_the_installed_one(parts: Recorder) -> None:
    command.main(["--engine", "cpu"])
    parts.take()
    parts.wheel.write_text("another engine")

    command.main(["--engine", "cuda"])

    assert parts.take() == ["packages", "reused", "engine and libraries"]


def test_a_moved_checkout_gets_a_new_environment(parts: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    command.main(["--engine", "cpu"])
    parts.take()
    monkeypatch.setattr(command, "ROOT", Path("elsewhere"))

    command.main(["--engine", "cpu"])

    assert parts.take() == ["packages", "created", "engine and libraries"]


def test_deleted_environment_is_recreated(parts: Recorder) -> None:
    command.main(["--engine", "cpu"])
    parts.take()
    parts.note.unlink()
    parts.python.unlink()

    command.main(["--engine", "cpu"])

    assert parts.take() == ["packages", "created", "engine and libraries"]


def test_damaged_note_counts_as_missing(parts: Recorder) -> None:
    command.main(["--engine", "cpu"])
    parts.note.write_text('{"root": 1}')

    assert environment.read_note() is None


def test_missing_requirement_is_reported_without_a_traceback(
    parts: Recorder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(wanted: object, say: object) -> None:
        raise SetupError("Run: sudo apt-get install libegl1")

    monkeypatch.setattr(system_packages, "provide", refuse)

    assert command.main(["--engine", "cpu"]) == 1
    assert capsys.readouterr().err == "\nRun: sudo apt-get install libegl1\n"
    assert parts.take() == []


def start_setup(patch: str, *arguments: str) -> tuple[int, str]:
    """Start the set-up with a Python that is another after `patch`. Returns the exit code and what it says."""
    entry = str(ROOT / "tools" / "setup" / "__main__.py")
    script = f"import platform, runpy, sys, sysconfig; {patch}; runpy.run_path({entry!r})"
    line = [sys.executable, "-c", script, *arguments]
    run = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    return run.returncode, run.stderr.strip()


@pytest.mark.parametrize(
    ("patch", "found"),
    [
        ("sys.version_info = (3, 9, 6, 'final', 0)", "3.9.6"),
        ("sys.version_info = (3, 16, 0, 'final', 0)", "3.16.0"),
        ("sys.maxsize = 2**31 - 1; sys.version_info = (3, 13, 1)", "3.13.1 (32-bit)"),
        ("sysconfig.get_config_var = lambda name: 1; sys.version_info = (3, 14, 0)", "3.14.0 (free-threaded)"),
        ("platform.python_implementation = lambda: 'PyPy'; sys.version_info = (3, 11, 13)", "3.11.13 (PyPy)"),
        ("sysconfig.get_platform = lambda: 'mingw_x86_64_ucrt_gnu'; sys.version_info = (3, 12, 9)", "3.12.9 (MSYS2)"),
    ],
)
def test_wrong_python_is_refused_with_the_one_to_install(patch: str, found: str) -> None:
    code, said = start_setup(patch)

    assert code == 1
    assert said.startswith(f"QwenDesk needs Python 3.11 to 3.15, and this is {found}. Install Python 3.13 ")
    assert start_setup(patch, "--check-python") == (3, said)


@pytest.mark.parametrize("minor", [11, 12, 13, 14])
def test_each_supported_python_is_taken(minor: int) -> None:
    assert start_setup(f"sys.version_info = (3, {minor}, 0, 'final', 0)", "--check-python") == (0, "")


def gaming_pc_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A PC with a driver and no toolkit, whose ready Vulkan engine can't be downloaded."""
    pc = backends.Machine("Windows", cards=(RTX_3060,), takes_ready=True, has_gpu=True, has_vulkan=True)
    monkeypatch.setattr(backends, "look_at_machine", lambda *, prebuilt: pc)
    monkeypatch.setattr(engine, "kept_wheel", lambda backend, version: None)


def test_pc_without_a_ready_engine_for_its_gpu_starts_on_the_cpu(
    parts: Recorder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gaming_pc_on_windows(monkeypatch)
    fetched: list[str] = []

    def fetch(backend: str, version: str, python: Path) -> Path:
        fetched.append(backend)
        if backend == "vulkan":
            raise SetupError("There is no ready-made vulkan engine for this machine.")
        return parts.wheel

    monkeypatch.setattr(engine, "fetch_prebuilt", fetch)

    assert command.main(["--prebuilt"]) == 0

    said = capsys.readouterr().out
    assert fetched == ["vulkan", "cpu"]
    assert "There is no ready-made vulkan engine for this machine." in said
    assert "set ENGINE=vulkan" in said
    assert "QwenDesk downloads it in the background" in said
    assert parts.take()[-1] == "engine and libraries"


def test_an_engine_that_was_asked_for_is_never_replaced(
    parts: Recorder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gaming_pc_on_windows(monkeypatch)

    def fetch(backend: str, version: str, python: Path) -> Path:
        raise SetupError(f"There is no ready-made {backend} engine for this machine.")

    monkeypatch.setattr(engine, "fetch_prebuilt", fetch)

    assert command.main(["--prebuilt", "--engine", "vulkan"]) == 1

    assert "no ready-made vulkan engine" in capsys.readouterr().err


def gaming_pc_on_linux(monkeypatch: pytest.MonkeyPatch, kept: dict[str, Path]) -> None:
    """A PC with a driver, Vulkan and no toolkit, with these engines built before."""
    pc = backends.Machine("Linux", cards=(RTX_3060,), wheels=(13, 5), has_gpu=True, has_vulkan=True)
    monkeypatch.setattr(backends, "look_at_machine", lambda *, prebuilt: pc)
    monkeypatch.setattr(engine, "kept_wheel", lambda backend, version: kept.get(backend))
    monkeypatch.setattr(command.os, "cpu_count", lambda: 8)


def test_auto_takes_vulkan_and_offers_the_cuda_build_with_its_time(
    parts: Recorder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gaming_pc_on_linux(monkeypatch, {"vulkan": parts.wheel})

    assert command.main([]) == 0

    *_, last = capsys.readouterr().out.splitlines()
    assert last.startswith("NVIDIA GeForce RTX 3060 can also be used by a CUDA engine")
    assert last.endswith("make run ENGINE=cuda")
    minutes = build_minutes("cuda", 8)
    assert f"about {minutes + 2} minutes, once, and a download of 0.63 GB" in last


def test_auto_takes_a_cuda_engine_that_was_built_before(
    parts: Recorder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gaming_pc_on_linux(monkeypatch, {"vulkan": parts.wheel, "cuda": parts.wheel})

    assert command.main([]) == 0

    said = capsys.readouterr().out
    assert "engine for cuda (it was built before)" in said
    assert "can also" not in said


def test_cuda_without_a_toolkit_is_built_with_the_fetched_one_for_this_card(
    parts: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gaming_pc_on_linux(monkeypatch, {})
    builds: list[CudaBuild | None] = []

    def build(backend: str, version: str, python: Path, cuda: CudaBuild | None) -> Path:
        assert (backend, python) == ("cuda", parts.python)
        builds.append(cuda)
        return parts.wheel

    toolkit = CudaToolkit(tmp_path / "nvidia" / "cu13", (13, 5), is_fetched=True)
    monkeypatch.setattr(cuda_toolkit, "installed_toolkit", lambda: None)
    monkeypatch.setattr(cuda_toolkit, "fetched_toolkit", lambda: None)
    monkeypatch.setattr(cuda_toolkit, "fetch_toolkit", lambda python: toolkit)
    monkeypatch.setattr(engine, "build", build)
    monkeypatch.delenv("CMAKE_ARGS", raising=False)

    assert command.main(["--engine", "cuda"]) == 0

    assert builds == [CudaBuild(toolkit, ("86-real",), is_for_this_pc=True)]
    total = build_minutes("cuda", 8) + 2 + 2
    assert f"takes about {total} minutes" in capsys.readouterr().out, "the compiler and the libraries are downloaded"


def test_nothing_is_downloaded_for_a_card_that_cuda_cannot_use(
    parts: Recorder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gaming_pc_on_linux(monkeypatch, {})
    old = backends.Machine("Linux", cards=(NvidiaCard("NVIDIA GeForce GTX 1080", "580.65.06", (6, 1)),), wheels=(13, 5))
    monkeypatch.setattr(backends, "look_at_machine", lambda *, prebuilt: old)
    monkeypatch.setattr(cuda_toolkit, "installed_toolkit", lambda: None)
    monkeypatch.setattr(cuda_toolkit, "fetch_toolkit", lambda python: pytest.fail("a download"))
    monkeypatch.delenv("CMAKE_ARGS", raising=False)

    assert command.main(["--engine", "cuda"]) == 1

    said = capsys.readouterr().err
    assert "A CUDA engine would not run here: CUDA 13 needs a GeForce GTX 16 or RTX 20 or newer" in said
    assert "ENGINE=vulkan" in said
