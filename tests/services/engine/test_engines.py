"""Which engine is used: made-up engine folders, some broken, and workers that die in known ways."""

import asyncio
import sys
from pathlib import Path

import pytest

from qwendesk.core.engines import BrokenEngine, EngineFile, EngineFolder
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.failures import EngineDeath
from qwendesk.engine.client import Patience, WorkerClient
from qwendesk.engine.folders import read_engine, wrong_files
from qwendesk.services.engine import crash_counts
from qwendesk.services.engine.engines import INSTALLED, Engines, EnginesService, backend_in
from qwendesk.services.engine.trial import Trial, death_reason, try_engine
from tests.fakes.engine_folders import CPU, VERSION, Tries, make_engine

pytestmark = pytest.mark.asyncio


def service(
    place: Path, tries: Tries, features: tuple[str, ...] = ("avx2", "sse4_2"), *, is_safe: bool = False
) -> EnginesService:
    return EnginesService(
        (place,), VERSION, has_installed=False, try_one=tries, features=lambda: features,
        crash_file=place / "crashes.json", is_safe=is_safe,
    )  # fmt: skip


def reason(engines: Engines, name: str) -> str:
    return next(trial.reason for trial in engines.trials if trial.name == name)


async def test_a_gpu_engine_that_runs_is_better_than_the_processor(tmp_path: Path) -> None:
    for name, backend in (("cpu-avx2", "cpu"), ("vulkan", "vulkan"), ("cuda", "cuda")):
        make_engine(tmp_path, name, backend)
    tries = Tries(cuda="There is no NVIDIA driver here.")
    engines = await service(tmp_path, tries).choose()
    assert engines.chosen == "vulkan"
    assert tries.started == ["cuda", "vulkan"]
    assert reason(engines, "cuda") == "There is no NVIDIA driver here."


async def test_the_environment_names_the_chosen_folder(tmp_path: Path) -> None:
    folder = make_engine(tmp_path, "cpu-avx2")
    chosen = service(tmp_path, Tries())
    assert chosen.environment() == {}
    await chosen.choose()
    assert chosen.environment() == {"LLAMA_CPP_LIB_PATH": str(folder), "MTMD_CPP_LIB": str(folder)}


async def test_an_engine_for_a_newer_processor_is_never_started(tmp_path: Path) -> None:
    make_engine(tmp_path, "cpu-avx2", needs=("avx2",))
    make_engine(tmp_path, "cpu-sse42", needs=("sse4_2",))
    tries = Tries()
    engines = await service(tmp_path, tries, features=("sse4_2",)).choose(try_all=True)
    assert engines.chosen == "cpu-sse42"
    assert tries.started == ["cpu-sse42"]
    assert reason(engines, "cpu-avx2") == "It needs a newer processor (with avx2)."


async def test_the_better_processor_engine_is_taken_where_it_runs(tmp_path: Path) -> None:
    make_engine(tmp_path, "a-sse42", needs=("sse4_2",))
    make_engine(tmp_path, "b-avx2", needs=("sse4_2", "avx2"))
    assert (await service(tmp_path, Tries()).choose()).chosen == "b-avx2"


async def test_safe_mode_starts_no_engine_for_gpus(tmp_path: Path) -> None:
    for name, backend in (("cpu-avx2", "cpu"), ("vulkan", "vulkan"), ("cuda", "cuda")):
        make_engine(tmp_path, name, backend)
    tries = Tries()
    engines = service(tmp_path, tries, is_safe=True)
    assert (await engines.choose("cuda", try_all=True)).chosen == "cpu-avx2"
    assert (await engines.choose("cuda")).chosen == "cpu-avx2", "as after a fetch or a deletion"
    assert await engines.try_again("cuda") is None
    assert set(tries.started) == {"cpu-avx2"}


async def test_two_crashes_set_an_engine_aside_until_somebody_asks(tmp_path: Path) -> None:
    make_engine(tmp_path, "vulkan", "vulkan")
    make_engine(tmp_path, "cpu")
    tries = Tries(vulkan="crash")
    for _ in range(3):
        assert (await service(tmp_path, tries).choose()).chosen == "cpu"
    assert tries.started == ["vulkan", "cpu", "vulkan", "cpu", "cpu"]
    again = service(tmp_path, Tries())
    assert "set aside" in reason(await again.choose(), "vulkan")
    assert (await again.choose(try_again=True)).chosen == "vulkan"


async def test_a_start_that_never_came_back_counts_as_a_crash(tmp_path: Path) -> None:
    """As when the whole PC went down: the count is on disk before the engine starts."""
    make_engine(tmp_path, "vulkan", "vulkan")

    async def take_the_pc_down(*_: object) -> Trial:
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            await service(tmp_path, take_the_pc_down).choose()  # type: ignore[arg-type]
    assert "set aside" in reason(await service(tmp_path, Tries()).choose(), "vulkan")


async def called_off(engines: EnginesService) -> None:
    """A choice that is cancelled while an engine is tried."""
    is_trying = asyncio.Event()
    engines.subscribe(lambda _engines: is_trying.set())
    choice = asyncio.create_task(engines.choose())
    await is_trying.wait()
    choice.cancel()
    await asyncio.gather(choice, return_exceptions=True)


async def test_a_trial_that_was_called_off_is_no_crash(tmp_path: Path) -> None:
    """As when the window is closed while a driver takes its time."""
    make_engine(tmp_path, "vulkan", "vulkan")
    tries = Tries()
    tries.wait_for["vulkan"] = asyncio.Event()
    for _ in range(3):
        await called_off(service(tmp_path, tries))
    assert (await service(tmp_path, Tries()).choose()).chosen == "vulkan"


async def test_an_update_of_the_app_gives_every_engine_another_chance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_engine(tmp_path, "vulkan", "vulkan")
    for _ in range(2):
        await service(tmp_path, Tries(vulkan="crash")).choose()
    assert "set aside" in reason(await service(tmp_path, Tries()).choose(), "vulkan")
    monkeypatch.setattr(crash_counts, "__version__", "99.0.0")
    assert (await service(tmp_path, Tries()).choose()).chosen == "vulkan"


async def test_a_worker_waits_for_the_choice_that_is_being_made(tmp_path: Path) -> None:
    make_engine(tmp_path, "vulkan", "vulkan")
    tries, driver_is_awake = Tries(), asyncio.Event()
    tries.wait_for["vulkan"] = driver_is_awake
    engines = service(tmp_path, tries)
    choice = asyncio.create_task(engines.choose())
    environment = asyncio.create_task(engines.environment_once_chosen())
    for _ in range(20):
        await asyncio.sleep(0)
    assert not environment.done()
    driver_is_awake.set()
    await choice
    assert (await environment)["LLAMA_CPP_LIB_PATH"] == str(tmp_path / "vulkan")


async def test_the_wish_is_followed_or_answered(tmp_path: Path) -> None:
    make_engine(tmp_path, "cuda", "cuda")
    make_engine(tmp_path, "vulkan", "vulkan")
    engines = service(tmp_path, Tries())
    assert (await engines.choose("vulkan")).chosen == "vulkan"
    gone = await engines.choose("rocm")
    assert (gone.chosen, gone.note) == ("cuda", 'There is no engine called "rocm" here.')
    broken = await service(tmp_path, Tries(vulkan="No Vulkan.")).choose("vulkan")
    assert (broken.chosen, broken.note) == ("cuda", "vulkan cannot be used. No Vulkan.")


async def test_the_only_engine_there_is_needs_no_trial(tmp_path: Path) -> None:
    tries = Tries()
    alone = EnginesService((tmp_path,), VERSION, has_installed=True, try_one=tries)
    assert (await alone.choose()).chosen == INSTALLED
    assert tries.started == []
    assert (await alone.choose(try_all=True)).trials[0].devices == (CPU,)


async def test_nothing_runs(tmp_path: Path) -> None:
    engines = await service(tmp_path / "nowhere", Tries()).choose()
    assert engines == Engines()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda folder: (folder / "libllama.so").unlink(), "libllama.so is missing"),
        (lambda folder: (folder / "libllama.so").write_bytes(b"cut"), "has 3 bytes instead of"),
        (lambda folder: (folder / "engine.json").write_bytes(b"{"), "is damaged"),
        (lambda folder: (folder / "engine.json").write_bytes(b"{}"), "is damaged"),
        (lambda folder: folder.rename(folder.with_name("another")), "was renamed"),
    ],
)
async def test_a_broken_folder_says_why_and_is_not_started(tmp_path: Path, damage: object, says: str) -> None:
    folder = make_engine(tmp_path, "cpu")
    damage(folder)  # type: ignore[operator]
    tries = Tries()
    engines = await service(tmp_path, tries).choose()
    assert engines.chosen == ""
    assert tries.started == []
    assert says in engines.trials[0].reason


async def test_a_manifest_of_tomorrow_or_of_somewhere_else_is_refused(tmp_path: Path) -> None:
    assert "newer QwenDesk" in read_engine(make_engine(tmp_path, "a", format=99)).sentence
    outside = EngineFile("../libllama.so", 1, "")
    assert "outside" in read_engine(make_engine(tmp_path, "b", files=(outside,))).sentence
    make_engine(tmp_path, "c", package_version="0.3.1")
    engines = await service(tmp_path, Tries()).choose()
    assert reason(engines, "c") == f"It belongs to engine release 0.3.1; this QwenDesk uses {VERSION}."


async def test_changed_bytes_of_the_right_size_are_found(tmp_path: Path) -> None:
    folder = make_engine(tmp_path, "cpu")
    engine = read_engine(folder)
    assert not isinstance(engine, BrokenEngine)
    assert wrong_files(engine) == ()
    content = (folder / "libllama.so").read_bytes()
    (folder / "libllama.so").write_bytes(content.replace(b"l", b"L"))
    assert wrong_files(engine) == ("libllama.so",)


@pytest.mark.parametrize(
    ("death", "says"),
    [
        (EngineDeath(-4, "?"), "instructions that this processor does not have"),
        (EngineDeath(1, "?", ("CUDA driver version is insufficient for CUDA runtime",)), "driver is too old"),
        (EngineDeath(1, "?", ("OSError: libcuda.so.1: cannot open shared object file",)), "no NVIDIA driver"),
        (EngineDeath(1, "?", ("libvulkan.so.1: cannot open shared object file",)), "Vulkan loader is missing"),
        (EngineDeath(1, "?", ("Failed to load shared library 'libllama.so'",)), "fetch the engine again"),
        (EngineDeath(-11, "The engine crashed (invalid memory access)."), "crashed"),
    ],
)
async def test_why_an_engine_died_is_said_plainly(death: EngineDeath, says: str) -> None:
    assert says in death_reason(death)


async def test_what_this_pc_lacks_is_no_crash_so_that_a_new_driver_is_noticed(tmp_path: Path) -> None:
    script = tmp_path / "dies.py"
    script.write_text("import sys\nsys.exit('OSError: libvulkan.so.1: cannot open shared object file')\n")
    client = WorkerClient((sys.executable, str(script)), Patience(start_s=60, stop_s=1))
    trial = await try_engine("vulkan", "vulkan", None, lambda _engine: client)
    assert (trial.usable, trial.crashed) == (False, False)
    assert "libvulkan1" in trial.reason


async def test_the_installed_engine_really_runs() -> None:
    trial = await try_engine(INSTALLED, "cpu", None)
    assert trial.usable
    assert "CPU" in {device.name for device in trial.devices}


async def test_a_real_worker_with_libraries_that_are_none_says_so(tmp_path: Path) -> None:
    engine = read_engine(make_engine(tmp_path, "cpu"))
    assert isinstance(engine, EngineFolder)
    trial = await try_engine("cpu", "cpu", engine)
    assert (trial.usable, trial.crashed) == (False, True)
    assert trial.reason == "One of its libraries cannot be loaded: fetch the engine again."


async def test_an_engine_that_hangs_is_given_up(tmp_path: Path) -> None:
    script = tmp_path / "hang.py"
    script.write_text("import sys\nsys.stdin.read()\n")
    client = WorkerClient((sys.executable, str(script)), Patience(start_s=0.2, stop_s=0.2))
    trial = await try_engine("cpu", "cpu", None, lambda _engine: client)
    assert (trial.usable, trial.crashed) == (False, True)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("import os; os.abort()", "gave up on an internal error"),
        ("import os, signal; os.kill(os.getpid(), getattr(signal, 'SIGILL', signal.SIGTERM))", "does not have"),
        ("import sys; sys.exit('libcudart.so.12: cannot open shared object file')", "fetch the engine again"),
        ("import sys; sys.exit(7)", "7"),
    ],
    ids=["crash at load", "newer processor", "missing library", "exit code"],
)
@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of Linux and macOS")
async def test_a_real_process_that_dies_at_its_start_says_how(script: str, says: str) -> None:
    client = WorkerClient((sys.executable, "-c", script), Patience(stop_s=0.2))
    trial = await try_engine("cpu", "cpu", None, lambda _engine: client)
    assert (trial.usable, trial.crashed) == (False, True)
    assert says in trial.reason


async def test_libraries_for_another_kind_of_processor_are_said_as_unloadable(tmp_path: Path) -> None:
    elf_for_arm = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\xb7\x00" + bytes(44)
    folder = make_engine(tmp_path, "cpu", files=(EngineFile("libllama.so", len(elf_for_arm), ""),))
    (folder / "libllama.so").write_bytes(elf_for_arm)
    engine = read_engine(folder)
    assert isinstance(engine, EngineFolder)
    trial = await try_engine("cpu", "cpu", engine)
    assert trial.reason == "One of its libraries cannot be loaded: fetch the engine again."


async def test_an_engine_that_crashed_with_changed_files_says_which(tmp_path: Path) -> None:
    folder = make_engine(tmp_path, "vulkan", "vulkan")
    make_engine(tmp_path, "cpu")
    content = (folder / "libllama.so").read_bytes()
    (folder / "libllama.so").write_bytes(content.replace(b"l", b"L"))
    engines = await service(tmp_path, Tries(vulkan="crash")).choose()
    assert reason(engines, "vulkan") == "libllama.so was changed or is damaged: fetch it again."


async def test_trying_one_again_forgets_only_its_own_crashes_and_keeps_the_choice(tmp_path: Path) -> None:
    for name, backend in (("cuda", "cuda"), ("vulkan", "vulkan"), ("cpu", "cpu")):
        make_engine(tmp_path, name, backend)
    tries = Tries(cuda="crash", vulkan="crash")
    for _ in range(3):
        await service(tmp_path, tries).choose()
    engines = service(tmp_path, tries)
    await engines.choose()
    tries.runs.clear()
    trial = await engines.try_again("vulkan")
    assert trial is not None
    assert trial.usable
    assert engines.engines.chosen == "cpu"
    found = engines.engines.named("cuda")
    assert found is not None
    assert found.is_set_aside
    assert (await engines.choose()).chosen == "vulkan"


async def test_only_folders_of_ones_own_are_deleted(tmp_path: Path) -> None:
    make_engine(tmp_path / "app", "cpu")
    make_engine(tmp_path / "own", "vulkan", "vulkan")
    engines = EnginesService(
        (tmp_path / "app", tmp_path / "own"), VERSION, has_installed=False, try_one=Tries(),
        features=lambda: (), crash_file=tmp_path / "crashes.json",
    )  # fmt: skip
    await engines.choose()
    with pytest.raises(QwenDeskError, match="belongs to the app"):
        await engines.delete("cpu")
    await engines.delete("vulkan")
    assert [each.name for each in engines.engines.trials] == ["cpu"]
    assert not (tmp_path / "own" / "vulkan").exists()


async def test_what_the_installed_engine_is_for_shows_in_its_libraries(tmp_path: Path) -> None:
    assert backend_in(tmp_path) == "cpu"
    (tmp_path / "libggml-vulkan.so").touch()
    assert backend_in(tmp_path) == "vulkan"
    (tmp_path / "ggml-cuda.dll").touch()
    assert backend_in(tmp_path) == "cuda"
