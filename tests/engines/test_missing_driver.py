"""An engine for NVIDIA's cards on a PC without their driver: named as that, no crash, and another engine is used."""

import ctypes
import hashlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from qwendesk.core.engine_manifest import EngineFile, EngineFolder
from qwendesk.core.failures import EngineExit
from qwendesk.engine.client import WorkerClient, WorkerTimeouts
from qwendesk.engine.engine_folders import read_engine
from qwendesk.engine.protocol import Devices
from qwendesk.engines import trial
from qwendesk.engines.crash_counts import CrashCounts
from qwendesk.engines.engine_choice import EngineChoiceService, package_version
from qwendesk.engines.pack_file import BadPack
from qwendesk.engines.pack_installer import PackInstaller
from qwendesk.engines.trial import exit_reason, try_engine
from tests.fakes.engine_folders import CPU, make_engine
from tests.real_libraries import real_libraries

NO_DRIVER = "This PC has no NVIDIA driver."


def has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


real_loader = pytest.mark.skipif(
    not sys.platform.startswith("linux") or has_driver(), reason="it is Linux's loader without NVIDIA's driver"
)


def cuda_engine(place: Path) -> Path:
    """An engine whose libllama asks the real loader for NVIDIA's driver, as one for CUDA does through libggml-cuda."""

    def ask_for_driver(folder: Path) -> None:
        llama = folder / "libllama.so"
        content = llama.read_bytes()
        assert content.count(b"\0libggml.so.0\0") == 1
        llama.write_bytes(content.replace(b"\0libggml.so.0\0", b"\0libcuda.so.1\0"))

    return make_real_engine(place, "cuda-12", ask_for_driver)


def make_real_engine(place: Path, name: str, change: Callable[[Path], None] = lambda _folder: None) -> Path:
    """The CPU's engine in a folder that calls it one for CUDA."""
    folder = place / name
    folder.mkdir(parents=True)
    for library in real_libraries():
        shutil.copy(library, folder)
    change(folder)
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    files = tuple(EngineFile(file, len(data), hashlib.sha256(data).hexdigest()) for file, data in found.items())
    made = make_engine(place / "made", name, "cuda", package_version=package_version(), files=files)
    shutil.move(made / "engine.json", folder)
    shutil.rmtree(place / "made")
    return folder


@real_loader
async def test_another_engine_is_used_and_no_crash_is_counted(tmp_path: Path) -> None:
    cuda_engine(tmp_path / "own")
    crashes = tmp_path / "crashes.json"
    engines = EngineChoiceService(
        (tmp_path / "own",), package_version(), has_installed=True, features=lambda: (), crash_file=crashes
    )
    for _ in range(3):
        chosen = await engines.choose("cuda-12")
        cuda = chosen.find("cuda-12")
        assert cuda is not None
        assert (chosen.chosen, cuda.reason, cuda.crashed, cuda.is_set_aside) == ("installed", NO_DRIVER, False, False)
        assert CrashCounts(crashes).count("cuda-12") == 0
    assert chosen.note == f"cuda-12 can't be used. {NO_DRIVER}"


@real_loader
async def test_engine_that_starts_without_the_driver_is_told_the_same(tmp_path: Path) -> None:
    """One built with NVIDIA's fetched compiler doesn't ask the loader for the driver: it starts and finds no card."""
    folder, crashes = make_real_engine(tmp_path / "own", "cuda-13"), tmp_path / "crashes.json"
    engines = EngineChoiceService(
        (tmp_path / "own",), package_version(), has_installed=True, features=lambda: (), crash_file=crashes
    )
    chosen = await engines.choose("cuda-13")
    cuda = chosen.find("cuda-13")
    assert cuda is not None
    assert cuda.folder == str(folder)
    assert (chosen.chosen, cuda.reason, cuda.crashed) == ("installed", NO_DRIVER, False)
    assert CrashCounts(crashes).count("cuda-13") == 0


async def test_driver_without_a_usable_card_names_the_driver_that_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class CpuAlone(WorkerClient):
        async def probe(self) -> Devices:
            return Devices(id=1, devices=(CPU,), cpu_features=())

    monkeypatch.setattr(trial, "missing_driver", lambda _backend: "")
    made = read_engine(make_engine(tmp_path, "cuda-13", "cuda", minimum_driver="580.65.06"))
    assert isinstance(made, EngineFolder)
    tried = await try_engine("cuda-13", "cuda", made, lambda _engine: CpuAlone())
    assert (tried.usable, tried.crashed) == (False, False)
    assert tried.reason.endswith("no graphics card that it can use. It needs graphics driver 580.65.06 or newer.")


@real_loader
async def test_pack_for_nvidia_is_refused_with_the_next_step(tmp_path: Path) -> None:
    folder = cuda_engine(tmp_path / "given")
    engines = EngineChoiceService(
        (tmp_path / "own",), package_version(), has_installed=True, features=lambda: (),
        crash_file=tmp_path / "crashes.json",
    )  # fmt: skip
    installer = PackInstaller(engines, ())
    pack = await installer.read(folder)
    with pytest.raises(BadPack) as refused:
        async with installer.unpacked(pack):
            pass
    assert f"so it was not added. {NO_DRIVER} Once that is solved, add it again." in refused.value.sentence
    assert list((tmp_path / "own").iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        "RuntimeError: Failed to load shared library '/e/libllama.so': libcuda.so.1: cannot open shared object file: "
        "No such file or directory",
        "OSError: libcuda.so.1: cannot open shared object file: No such file or directory",
        "FileNotFoundError: Could not find module 'nvcuda.dll' (or one of its dependencies).",
        'err:module:import_dll Library nvcuda.dll (which is needed by L"ggml-cuda.dll") not found',
    ],
)
async def test_loaders_words_for_a_missing_driver_are_no_crash(tmp_path: Path, words: str) -> None:
    script = tmp_path / "exits.py"
    script.write_text(f"import sys\nsys.exit({words!r})\n", encoding="utf-8")
    client = WorkerClient((sys.executable, str(script)), WorkerTimeouts(start_s=60, stop_s=1))
    tried = await try_engine("cuda-12", "cuda", None, lambda _engine: client, lambda _backend: "")
    assert (tried.usable, tried.crashed, tried.reason) == (False, False, NO_DRIVER)


@pytest.mark.parametrize("exit_code", [0xC0000135, 0xC0000135 - 2**32])
async def test_exit_code_for_a_missing_library_asks_what_windows_lacks(tmp_path: Path, exit_code: int) -> None:
    class Exits(WorkerClient):
        async def probe(self) -> EngineExit:
            return EngineExit(exit_code, "The engine couldn't find one of its libraries.")

    tried = await try_engine("cuda-12", "cuda", None, lambda _engine: Exits(), lambda _backend: NO_DRIVER)
    assert (tried.crashed, tried.reason) == (False, NO_DRIVER)


async def test_missing_cuda_runtime_is_the_engines_own_fault() -> None:
    engine_exit = EngineExit(1, "?", ("libcudart.so.12: cannot open shared object file: No such file or directory",))
    assert "CUDA is missing from the engine's folder" in exit_reason(engine_exit)
