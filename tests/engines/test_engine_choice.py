"""Which engine is used: made-up engine folders, some broken, and workers that die in known ways."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from qwendesk.core.engine_manifest import Backend, BrokenEngine, EngineFile, EngineFolder
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.failures import EngineExit
from qwendesk.engine.client import WorkerClient, WorkerTimeouts
from qwendesk.engine.engine_folders import read_engine, wrong_files
from qwendesk.engines import crash_counts
from qwendesk.engines.engine_choice import INSTALLED, EngineChoice, EngineChoiceService, backend_in
from qwendesk.engines.trial import EngineTrial, exit_reason, try_engine
from tests.fakes.engine_folders import CPU, LIBRARY, VERSION, Tries, make_engine
from tests.links import skip_without_links


def service(
    place: Path,
    tries: Callable[..., Awaitable[EngineTrial]],
    features: tuple[str, ...] = ("avx2", "sse4_2"),
    *,
    is_safe: bool = False,
) -> EngineChoiceService:
    return EngineChoiceService(
        (place,), VERSION, has_installed=False, try_one=tries, features=lambda: features,
        crash_file=place / "crashes.json", is_safe=is_safe,
    )  # fmt: skip


def reason(engines: EngineChoice, name: str) -> str:
    return next(trial.reason for trial in engines.trials if trial.name == name)


async def test_working_gpu_engine_is_preferred(tmp_path: Path) -> None:
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


async def test_engine_for_a_newer_cpu_is_never_started(tmp_path: Path) -> None:
    make_engine(tmp_path, "cpu-avx2", needs=("avx2",))
    make_engine(tmp_path, "cpu-sse42", needs=("sse4_2",))
    tries = Tries()
    engines = await service(tmp_path, tries, features=("sse4_2",)).choose(try_all=True)
    assert engines.chosen == "cpu-sse42"
    assert tries.started == ["cpu-sse42"]
    assert reason(engines, "cpu-avx2") == "It needs a newer CPU (with avx2)."


async def test_best_cpu_engine_that_runs_is_chosen(tmp_path: Path) -> None:
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


async def test_engine_that_crashed_twice_is_set_aside_until_tried_again(tmp_path: Path) -> None:
    make_engine(tmp_path, "vulkan", "vulkan")
    make_engine(tmp_path, "cpu")
    tries = Tries(vulkan="crash")
    for _ in range(3):
        assert (await service(tmp_path, tries).choose()).chosen == "cpu"
    assert tries.started == ["vulkan", "cpu", "vulkan", "cpu", "cpu"]
    again = service(tmp_path, Tries())
    assert "set aside" in reason(await again.choose(), "vulkan")
    await again.try_again("vulkan")
    assert (await again.choose()).chosen == "vulkan"


async def test_start_that_never_finished_counts_as_a_crash(tmp_path: Path) -> None:
    """As when the whole PC went down: the count is on disk before the engine starts."""
    make_engine(tmp_path, "vulkan", "vulkan")

    async def take_the_pc_down(*_: object) -> EngineTrial:
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            await service(tmp_path, take_the_pc_down).choose()  # type: ignore[arg-type]
    assert "set aside" in reason(await service(tmp_path, Tries()).choose(), "vulkan")


async def called_off(engines: EngineChoiceService) -> None:
    """A choice that is cancelled while an engine is tried."""
    is_trying = asyncio.Event()
    engines.observed.subscribe(lambda _engines: is_trying.set())
    choice = asyncio.create_task(engines.choose())
    await is_trying.wait()
    choice.cancel()
    await asyncio.gather(choice, return_exceptions=True)


async def test_cancelled_trial_is_not_a_crash(tmp_path: Path) -> None:
    """As when the window is closed while a driver takes its time."""
    make_engine(tmp_path, "vulkan", "vulkan")
    tries = Tries()
    tries.wait_for["vulkan"] = asyncio.Event()
    for _ in range(3):
        await called_off(service(tmp_path, tries))
    assert (await service(tmp_path, Tries()).choose()).chosen == "vulkan"


async def test_app_update_resets_crash_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_engine(tmp_path, "vulkan", "vulkan")
    for _ in range(2):
        await service(tmp_path, Tries(vulkan="crash")).choose()
    assert "set aside" in reason(await service(tmp_path, Tries()).choose(), "vulkan")
    monkeypatch.setattr(crash_counts, "__version__", "99.0.0")
    assert (await service(tmp_path, Tries()).choose()).chosen == "vulkan"


async def test_worker_start_waits_for_the_choice(tmp_path: Path) -> None:
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


async def test_chosen_engine_is_used_or_a_note_says_why_not(tmp_path: Path) -> None:
    make_engine(tmp_path, "cuda", "cuda")
    make_engine(tmp_path, "vulkan", "vulkan")
    engines = service(tmp_path, Tries())
    assert (await engines.choose("vulkan")).chosen == "vulkan"
    gone = await engines.choose("rocm")
    assert (gone.chosen, gone.note) == ("cuda", 'There is no engine named "rocm" here.')
    broken = await service(tmp_path, Tries(vulkan="No Vulkan.")).choose("vulkan")
    assert (broken.chosen, broken.note) == ("cuda", "vulkan can't be used. No Vulkan.")


async def test_single_installed_engine_needs_no_trial(tmp_path: Path) -> None:
    tries = Tries()
    alone = EngineChoiceService((tmp_path,), VERSION, has_installed=True, try_one=tries)
    assert (await alone.choose()).chosen == INSTALLED
    assert tries.started == []
    assert (await alone.choose(try_all=True)).trials[0].devices == (CPU,)


async def test_no_engine_is_chosen_if_none_runs(tmp_path: Path) -> None:
    engines = await service(tmp_path / "nowhere", Tries()).choose()
    assert engines == EngineChoice()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda folder: (folder / LIBRARY).unlink(), f"{LIBRARY} is missing"),
        (lambda folder: (folder / LIBRARY).write_bytes(b"cut"), "has 3 bytes instead of"),
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


async def test_newer_or_foreign_manifest_is_refused(tmp_path: Path) -> None:
    assert "newer QwenDesk" in read_engine(make_engine(tmp_path, "a", format=99)).sentence
    outside = EngineFile(f"../{LIBRARY}", 1, "")
    assert "outside" in read_engine(make_engine(tmp_path, "b", files=(outside,))).sentence
    make_engine(tmp_path, "c", package_version="0.3.1")
    engines = await service(tmp_path, Tries()).choose()
    assert reason(engines, "c") == f"It belongs to engine release 0.3.1, but this QwenDesk uses {VERSION}."


async def test_changed_bytes_of_the_right_size_are_found(tmp_path: Path) -> None:
    folder = make_engine(tmp_path, "cpu")
    engine = read_engine(folder)
    assert not isinstance(engine, BrokenEngine)
    assert wrong_files(engine) == ()
    content = (folder / LIBRARY).read_bytes()
    (folder / LIBRARY).write_bytes(content.replace(b"l", b"L"))
    assert wrong_files(engine) == (LIBRARY,)


@pytest.mark.parametrize(
    ("engine_exit", "says"),
    [
        (EngineExit(-4, "?"), "instructions that this CPU doesn't have"),
        (EngineExit(1, "?", ("CUDA driver version is insufficient for CUDA runtime",)), "driver is too old"),
        (EngineExit(1, "?", ("OSError: libcuda.so.1: cannot open shared object file",)), "no NVIDIA driver"),
        (EngineExit(1, "?", ("libvulkan.so.1: cannot open shared object file",)), "Vulkan loader is missing"),
        (EngineExit(1, "?", ("Failed to load shared library 'libllama.so'",)), "install the engine again"),
        (EngineExit(-11, "The engine crashed (invalid memory access)."), "crashed"),
    ],
)
async def test_exit_reason_is_a_plain_sentence(engine_exit: EngineExit, says: str) -> None:
    assert says in exit_reason(engine_exit)


async def test_engine_whose_program_an_antivirus_took_away_is_tried_again_once_it_is_back(tmp_path: Path) -> None:
    """Two starts without it must not set every engine aside."""
    make_engine(tmp_path, "cpu")
    program = tmp_path / "quarantined" / "QwenDeskEngine"

    async def try_quarantined(name: str, backend: Backend, engine: EngineFolder | None) -> EngineTrial:
        return await try_engine(name, backend, engine, lambda _engine: WorkerClient((str(program), "--worker")))

    for _ in range(3):
        chosen = await service(tmp_path, try_quarantined).choose()
        (trial,) = chosen.trials
        assert not trial.is_set_aside
        assert "QwenDeskEngine is missing or blocked" in trial.reason
        assert "antivirus" in trial.reason

    assert (await service(tmp_path, Tries()).choose()).chosen == "cpu"


async def test_the_installed_engine_really_runs() -> None:
    trial = await try_engine(INSTALLED, "cpu", None)
    assert trial.usable
    assert "CPU" in {device.name for device in trial.devices}


async def test_worker_with_invalid_libraries_reports_them(tmp_path: Path) -> None:
    engine = read_engine(make_engine(tmp_path, "cpu"))
    assert isinstance(engine, EngineFolder)
    trial = await try_engine("cpu", "cpu", engine)
    assert (trial.usable, trial.crashed) == (False, True)
    assert trial.reason == "One of its libraries can't be loaded: install the engine again."


async def test_hung_engine_is_stopped(tmp_path: Path) -> None:
    script = tmp_path / "hang.py"
    script.write_text("import sys\nsys.stdin.read()\n")
    client = WorkerClient((sys.executable, str(script)), WorkerTimeouts(start_s=0.2, stop_s=0.2))
    trial = await try_engine("cpu", "cpu", None, lambda _engine: client)
    assert (trial.usable, trial.crashed) == (False, True)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("import os; os.abort()", "because of an internal error"),
        ("import os, signal; os.kill(os.getpid(), getattr(signal, 'SIGILL', signal.SIGTERM))", "doesn't have"),
        ("import sys; sys.exit('libcudart.so.12: cannot open shared object file')", "install the engine again"),
        ("import sys; sys.exit(7)", "7"),
    ],
    ids=["crash at load", "newer processor", "missing library", "exit code"],
)
@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of Linux and macOS")
async def test_process_that_exits_at_its_start_has_a_reason(script: str, says: str) -> None:
    client = WorkerClient((sys.executable, "-c", script), WorkerTimeouts(stop_s=0.2))
    trial = await try_engine("cpu", "cpu", None, lambda _engine: client)
    assert (trial.usable, trial.crashed) == (False, True)
    assert says in trial.reason


async def test_libraries_for_another_cpu_are_reported_as_unloadable(tmp_path: Path) -> None:
    elf_for_arm = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\xb7\x00" + bytes(44)
    folder = make_engine(tmp_path, "cpu", files=(EngineFile(LIBRARY, len(elf_for_arm), ""),))
    (folder / LIBRARY).write_bytes(elf_for_arm)
    engine = read_engine(folder)
    assert isinstance(engine, EngineFolder)
    trial = await try_engine("cpu", "cpu", engine)
    assert trial.reason == "One of its libraries can't be loaded: install the engine again."


async def test_crashed_engine_names_its_changed_files(tmp_path: Path) -> None:
    folder = make_engine(tmp_path, "vulkan", "vulkan")
    make_engine(tmp_path, "cpu")
    content = (folder / LIBRARY).read_bytes()
    (folder / LIBRARY).write_bytes(content.replace(b"l", b"L"))
    engines = await service(tmp_path, Tries(vulkan="crash")).choose()
    assert reason(engines, "vulkan") == f"These files are damaged or were changed: {LIBRARY}. Install the engine again."


async def test_trying_again_resets_only_that_engines_crashes(tmp_path: Path) -> None:
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
    found = engines.engines.find("cuda")
    assert found is not None
    assert found.is_set_aside
    assert (await engines.choose()).chosen == "vulkan"


async def test_only_the_users_own_engines_can_be_deleted(tmp_path: Path) -> None:
    make_engine(tmp_path / "app", "cpu")
    make_engine(tmp_path / "own", "vulkan", "vulkan")
    engines = EngineChoiceService(
        (tmp_path / "app", tmp_path / "own"), VERSION, has_installed=False, try_one=Tries(),
        features=lambda: (), crash_file=tmp_path / "crashes.json",
    )  # fmt: skip
    await engines.choose()
    with pytest.raises(QwenDeskError, match="belongs to QwenDesk"):
        await engines.delete("cpu")
    await engines.delete("vulkan")
    assert [each.name for each in engines.engines.trials] == ["cpu"]
    assert not (tmp_path / "own" / "vulkan").exists()


async def test_deleting_an_engine_deletes_nothing_through_a_link(tmp_path: Path) -> None:
    skip_without_links(tmp_path)
    make_engine(tmp_path / "drive", "vulkan", "vulkan")
    make_engine(tmp_path / "elsewhere", "cuda", "cuda")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "cuda").symlink_to(tmp_path / "elsewhere" / "cuda", target_is_directory=True)
    engines = EngineChoiceService(
        (tmp_path / "own",), VERSION, has_installed=False, try_one=Tries(), features=lambda: (),
        crash_file=tmp_path / "crashes.json",
    )  # fmt: skip
    await engines.choose()
    await engines.delete("cuda")
    assert not (tmp_path / "own" / "cuda").is_symlink()
    assert any((tmp_path / "elsewhere" / "cuda").iterdir()), "only the link went"

    (tmp_path / "own").rmdir()
    (tmp_path / "own").symlink_to(tmp_path / "drive", target_is_directory=True)
    await engines.choose()
    with pytest.raises(QwenDeskError, match="is a link to"):
        await engines.delete("vulkan")
    assert any((tmp_path / "drive" / "vulkan").iterdir())


async def test_backend_is_recognised_by_library_names(tmp_path: Path) -> None:
    assert backend_in(tmp_path) == "cpu"
    (tmp_path / "libggml-vulkan.so").touch()
    assert backend_in(tmp_path) == "vulkan"
    (tmp_path / "ggml-cuda.dll").touch()
    assert backend_in(tmp_path) == "cuda"
