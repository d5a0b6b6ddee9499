"""Engine packs from files, with made-up engines of which a test says whether they run."""

import asyncio
import threading
from pathlib import Path

import pytest

from qwendesk.engines import pack_file
from qwendesk.engines.engine_choice import EngineChoiceService
from qwendesk.engines.pack_file import BadPack, adding_alone
from qwendesk.engines.pack_installer import PackInstaller
from tests.fakes.engine_folders import VERSION, Tries, make_engine, make_pack_file


class Pc:
    """Engines of the app in `app`, and of the user in `own`."""

    def __init__(self, folder: Path, tries: Tries) -> None:
        self.own = folder / "own"
        self.engines = EngineChoiceService(
            (folder / "app", self.own), VERSION, has_installed=False, try_one=tries, prove_one=tries.prove,
            features=lambda: ("avx2",),
            crash_file=folder / "crashes.json",
        )  # fmt: skip
        self.installer = PackInstaller(self.engines, ())

    async def add(self, file: Path) -> None:
        pack = await self.installer.read(file)
        async with self.installer.unpacked(pack) as engine:
            await self.installer.put_in_place(engine)

    def names(self) -> list[str]:
        return sorted(path.name for path in self.own.iterdir()) if self.own.exists() else []


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        ("crash", "vulkan doesn't run on this PC, so it was not added. It crashed. Get a pack for"),
        ("No driver.", "vulkan can't be used on this PC yet, so it was not added. No driver. Once that is solved, add"),
    ],
)
async def test_engine_that_does_not_run_is_removed_again(tmp_path: Path, outcome: str, says: str) -> None:
    pc = Pc(tmp_path, Tries(vulkan=outcome))
    with pytest.raises(BadPack) as refused:
        await pc.add(make_pack_file(tmp_path, "vulkan", "vulkan"))
    assert refused.value.sentence.startswith(says)
    assert pc.names() == []
    assert not (tmp_path / "crashes.json").exists(), "an engine that was not kept counts no crashes"


async def test_older_engine_is_replaced_only_by_one_that_runs(tmp_path: Path) -> None:
    older = make_engine(tmp_path / "own", "vulkan", "vulkan", package_version="0.1")
    content = (older / "engine.json").read_bytes()
    tries = Tries(vulkan="crash")
    pc = Pc(tmp_path, tries)
    file = make_pack_file(tmp_path, "vulkan", "vulkan")
    with pytest.raises(BadPack):
        await pc.add(file)
    assert (older / "engine.json").read_bytes() == content
    tries.runs = {}
    await pc.add(file)
    assert (older / "engine.json").read_bytes() != content
    assert pc.names() == ["vulkan"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"package_version": "0.1"}, f"release 0.1, but this QwenDesk uses {VERSION}. Get a pack for engine release"),
        ({"needs": ("avx512f",)}, "It needs a newer CPU (with avx512f). Get a pack"),
        ({"name": "installed"}, 'QwenDesk has an engine named "installed" of its own'),
        ({"name": "cpu"}, 'QwenDesk has an engine named "cpu" of its own'),
    ],
)
async def test_pack_that_cannot_be_used_is_refused_before_anybody_is_asked(
    tmp_path: Path, changes: dict[str, object], says: str
) -> None:
    make_engine(tmp_path / "app", "cpu")
    tries = Tries()
    with pytest.raises(BadPack) as refused:
        await Pc(tmp_path, tries).installer.read(make_pack_file(tmp_path, "other", **changes))
    assert says in refused.value.sentence
    assert tries.started == []


async def test_cancelled_trial_leaves_nothing(tmp_path: Path) -> None:
    tries = Tries()
    tries.wait_for["vulkan"] = asyncio.Event()
    started = asyncio.Event()

    class Started(list[str]):
        def append(self, name: str) -> None:
            super().append(name)
            started.set()

    tries.started = Started()
    pc = Pc(tmp_path, tries)
    adding = asyncio.create_task(pc.add(make_pack_file(tmp_path, "vulkan", "vulkan")))
    await started.wait()
    adding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await adding
    assert pc.names() == []


async def test_cancelled_unpacking_is_stopped_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, unpacking = asyncio.get_running_loop(), asyncio.Event()
    copy = pack_file._copy_files

    def held(pack: pack_file.PackFile, target: Path, stopped: pack_file.Stopped) -> None:
        loop.call_soon_threadsafe(unpacking.set)
        while not stopped():
            threading.Event().wait(0.01)
        copy(pack, target, stopped)

    monkeypatch.setattr(pack_file, "_copy_files", held)
    tries = Tries()
    pc = Pc(tmp_path, tries)
    adding = asyncio.create_task(pc.add(make_pack_file(tmp_path, "vulkan", "vulkan")))
    await unpacking.wait()
    adding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await adding
    assert (pc.names(), tries.started) == ([], [])


async def test_two_at_once_are_refused(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    pc = Pc(tmp_path, Tries())
    with adding_alone(pc.own), pytest.raises(BadPack, match="Another window or command is adding an engine"):
        await pc.add(make_pack_file(tmp_path, "vulkan", "vulkan"))
    await pc.add(make_pack_file(tmp_path / "again", "vulkan", "vulkan"))
    assert pc.names() == ["vulkan"]
