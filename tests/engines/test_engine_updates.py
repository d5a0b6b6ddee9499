"""Other releases of llama.cpp as engines: from a made-up GitHub to an engine beside the one in use, or refused."""

import asyncio
import datetime
import errno
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from qwendesk.core.app_options import AppOptions
from qwendesk.core.engine_manifest import EngineFolder
from qwendesk.core.observed import Observed
from qwendesk.engines import engine_updates, pack_file, release_pack
from qwendesk.engines.engine_choice import EngineChoiceService
from qwendesk.engines.engine_comparison import EngineComparison, EngineFindings
from qwendesk.engines.engine_updates import EngineUpdates
from qwendesk.engines.pack_installer import PackInstaller
from qwendesk.engines.self_test import Check
from qwendesk.hub import download_part
from qwendesk.hub.network import Network
from tests.engine.worker.test_struct_layouts import changed_abi
from tests.engines.test_release_pack import linux
from tests.fakes.engine_folders import VERSION, Tries, make_engine
from tests.fakes.llama_releases import addresses, publish, sources_of, tar_of, zip_of
from tests.fakes.pack_server import PackServer
from tests.fakes.waits import Waits

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the made-up archive is one for Linux")
NEW, NAME = "b99999", "b99999-cpu"
ARCHIVE = f"llama-{NEW}-bin-ubuntu-x64.tar.gz"
NOW = datetime.datetime(2026, 11, 29, 12, 0, tzinfo=datetime.UTC)
GOOD = EngineFindings(checks=(Check("load", True, 0.1),), answers=("5",), answer_tok_s=100.0)


class Pc:
    """A PC with the app's engine "cpu", a made-up GitHub, and engines of which a test says whether they run."""

    def __init__(self, folder: Path, server: PackServer, tries: Tries | None = None) -> None:
        if not (folder / "app").exists():
            make_engine(folder / "app", "cpu")
        self.own, self.server, self.options = folder / "own", server, Observed(AppOptions())
        self.after, self.network, self.waits = GOOD, Network(), Waits()
        tries = tries or Tries()
        self.engines = EngineChoiceService(
            (folder / "app", self.own), VERSION, has_installed=False, try_one=tries, prove_one=tries.prove,
            features=lambda: (), crash_file=folder / "crashes.json",
        )  # fmt: skip
        self.installer = PackInstaller(self.engines, ())
        self.updates = self.restarted()

    def restarted(self) -> EngineUpdates:
        async def compared(_before: EngineFolder | None, _after: EngineFolder) -> EngineComparison:
            return EngineComparison(GOOD, self.after)

        self.updates = EngineUpdates(
            self.engines, self.installer, self.installer.add, self.options, lambda: self.network,
            server=addresses(self.server), platform="linux-x64", compare_with=compared, now=lambda: NOW,
            wait=self.waits.wait,
        )  # fmt: skip
        return self.updates

    async def look_and_get(self) -> str:
        """Return the problem; "" if there was none."""
        await self.engines.choose()
        await self.updates.look()
        if not self.updates.state.value.problem:
            await self.updates.get()
        return self.updates.state.value.problem

    @property
    def own_engines(self) -> list[str]:
        return sorted(path.parent.name for path in self.own.glob("*/engine.json")) if self.own.exists() else []


@pytest.fixture
def pc(tmp_path: Path, server: PackServer) -> Pc:
    publish(server, NEW, {ARCHIVE: linux()}, sources_of(architectures=("qwen35", "qwen4")))
    return Pc(tmp_path, server)


async def test_a_newer_release_becomes_an_engine_beside_the_one_in_use(pc: Pc) -> None:
    phases = []
    pc.updates.state.subscribe(lambda state: phases.append(state.phase))
    assert await pc.look_and_get() == ""
    assert pc.own_engines == [NAME]
    assert not (pc.own / ".fetching" / NAME).exists()
    assert list(dict.fromkeys(phases)) == ["looking", "", "checking", "downloading", "unpacking", "trying", "comparing"]
    state = pc.updates.state.value
    assert (state.added, state.comparison) == (NAME, EngineComparison(GOOD, GOOD))
    choice = await pc.engines.choose()
    assert choice.chosen == "cpu", "it is used when the user says so"
    assert pc.updates.newer is None, "it is here already"
    await pc.engines.choose(NAME)
    assert (pc.updates.release_in_use, pc.updates.previous) == (NEW, "cpu")
    await pc.engines.delete(NAME)
    assert pc.own_engines == []


async def test_what_was_found_is_known_after_a_restart(pc: Pc) -> None:
    await pc.engines.choose()
    assert await pc.updates.look() is not None
    found = pc.restarted().newer
    assert found is not None
    assert (found.tag, found.architectures) == (NEW, ("qwen35", "qwen4"))
    assert pc.updates.state.value.done == NOW


async def test_a_release_that_is_not_newer_is_not_offered(pc: Pc, tmp_path: Path, server: PackServer) -> None:
    server.archives.clear()
    publish(server, "b11000", {"llama-b11000-bin-ubuntu-x64.tar.gz": linux()}, sources_of())
    await pc.engines.choose()
    assert await pc.updates.look() is None
    assert pc.updates.state.value.problem == ""


async def test_headers_that_do_not_fit_cost_no_download_of_the_archive(pc: Pc, server: PackServer) -> None:
    server.archives.clear()
    publish(server, NEW, {ARCHIVE: linux()}, sources_of(changed_abi(r"int32 n_tokens;", "int64 n_tokens;")))
    problem = await pc.look_and_get()
    assert "The field llama_batch.n_tokens now has the type int64 instead of int32." in problem
    assert pc.own_engines == []
    assert not list((pc.own / ".fetching" / NAME).glob("*.tar.gz*"))


def make_worse(pc: "Pc") -> None:
    pc.after = msgspec.structs.replace(GOOD, checks=(Check("load", passed=False, seconds=0.0, detail="Bad."),))


def exchange(path: str) -> Callable[["Pc"], None]:
    """Put something else of the same size on the server."""
    return lambda pc: pc.server.archives.update({path: bytes(len(pc.server.archives[path]))})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (make_worse, "It failed the test “load”: Bad. The engine in use stays."),
        (exchange(f"/files/{NEW}/{ARCHIVE}"), "sent wrong content"),
        (exchange(f"/raw/{NEW}/include/llama.h"), "sent wrong content"),
    ],
    ids=["worse", "another archive", "other headers"],
)
async def test_bad_releases_leave_the_engine_in_use(pc: Pc, change: Callable[[Pc], object], says: str) -> None:
    await pc.engines.choose()
    await pc.updates.look()
    change(pc)
    await pc.updates.get()
    assert says in pc.updates.state.value.problem
    assert pc.own_engines == []
    assert (await pc.engines.choose()).chosen == "cpu"


@pytest.mark.parametrize(("outcome", "says"), [("crash", "It crashed."), ("No driver.", "No driver.")])
async def test_an_engine_that_does_not_run_is_not_kept(
    tmp_path: Path, server: PackServer, outcome: str, says: str
) -> None:
    publish(server, NEW, {ARCHIVE: linux()}, sources_of())
    pc = Pc(tmp_path, server, Tries(b99999_cpu=outcome))
    assert says in await pc.look_and_get()
    assert pc.own_engines == []


async def test_a_cut_download_is_resumed(pc: Pc, server: PackServer) -> None:
    await pc.engines.choose()
    await pc.updates.look()
    n_before = len(server.ranges)
    server.cuts += [10**9] * 8 + [100]  # the eight files of the source, then the archive
    await pc.updates.get()
    assert pc.updates.state.value.problem == ""
    assert any(asked.startswith("bytes=") for asked in server.ranges[n_before:])
    assert pc.own_engines == [NAME]


async def test_stopping_keeps_what_was_downloaded(pc: Pc, server: PackServer) -> None:
    await pc.engines.choose()
    await pc.updates.look()
    server.hold_after = 10
    come = asyncio.Event()
    pc.updates.state.subscribe(lambda state: come.set() if state.done_bytes >= 10 else None)
    getting = asyncio.create_task(pc.updates.get())
    await come.wait()
    pc.updates.stop()
    await getting
    state = pc.updates.state.value
    assert (state.phase, state.problem, pc.own_engines) == ("", "", [])
    n_before = len(server.ranges)
    await pc.updates.get()
    assert pc.own_engines == [NAME]
    assert server.ranges[n_before] == "bytes=10-"


@pytest.mark.parametrize(
    "step",
    [
        (download_part, "create_own"), (release_pack, "_write"), (release_pack, "write_whole"),
        (pack_file, "_copy_file"), (pack_file, "write_whole"), (pack_file, "replace"),
    ],
    ids=lambda step: f"{step[0].__name__.rpartition('.')[2]}.{step[1]}",
)  # fmt: skip
async def test_a_full_disk_at_any_step_says_so_and_loses_nothing(
    pc: Pc, step: tuple[ModuleType, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(*step, full)
    problem = await pc.look_and_get()
    assert "space" in problem
    assert (pc.own_engines, pc.updates.state.value.phase) == ([], "")
    assert (await pc.engines.choose()).chosen == "cpu"
    monkeypatch.undo()
    await pc.updates.get()
    assert (pc.updates.state.value.problem, pc.own_engines) == ("", [NAME])


async def test_too_little_room_is_told_before_anything_is_downloaded(pc: Pc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_updates, "_ROOM_RATIO", 10**12)
    assert "Free some space there" in await pc.look_and_get()
    assert not (pc.own / ".fetching").exists()


async def test_offline_asks_nobody(pc: Pc, server: PackServer) -> None:
    pc.network = Network(offline=True)
    assert "offline" in await pc.look_and_get()
    assert server.headers == []


async def test_once_a_week_if_allowed(pc: Pc) -> None:
    await pc.engines.choose()
    pc.updates.start()
    await pc.waits.end()
    assert pc.updates.state.value.tried is None, "off at first"
    pc.options.set(msgspec.structs.replace(pc.options.value, look_up_weekly=True))
    looked = asyncio.Event()
    pc.updates.state.subscribe(lambda state: looked.set() if state.done and not state.phase else None)
    await pc.waits.end()
    await looked.wait()
    assert pc.updates.newer is not None
    assert pc.own_engines == [], "nothing is downloaded"
    await pc.updates.close()


class Folder:
    """What somebody without a network carries from GitHub's page."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "stick"
        self.path.mkdir()
        self.add(ARCHIVE, linux())

    def add(self, name: str, content: bytes) -> None:
        (self.path / name).write_bytes(content)

    def add_source(self) -> None:
        texts = {f"llama.cpp-{NEW}/{path}": text.encode() for path, text in sources_of().items()}
        self.add(f"llama.cpp-{NEW}.zip", zip_of(texts))


async def test_a_folder_is_enough_without_a_network(pc: Pc, tmp_path: Path, server: PackServer) -> None:
    folder = Folder(tmp_path)
    pc.network = Network(offline=True)
    await pc.engines.choose()
    await pc.updates.add_from(folder.path / ARCHIVE)
    assert f"has no source of {NEW}" in pc.updates.state.value.problem
    folder.add_source()
    await pc.updates.add_from(folder.path)
    assert (pc.updates.state.value.problem, pc.own_engines) == ("", [NAME])
    assert server.headers == []
    assert {path.name for path in folder.path.iterdir()} == {ARCHIVE, f"llama.cpp-{NEW}.zip"}


async def test_a_folder_without_an_archive_for_this_pc_says_which(pc: Pc, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "llama-b99999-bin-win-cpu-x64.zip").write_bytes(tar_of(NEW, {}))
    await pc.engines.choose()
    await pc.updates.add_from(tmp_path / "empty")
    assert "llama-bNNNNN-bin-ubuntu-x64.tar.gz" in pc.updates.state.value.problem


async def test_downloads_of_older_releases_are_deleted(pc: Pc) -> None:
    (pc.own / ".fetching" / "b11500-cpu").mkdir(parents=True)
    (pc.own / ".fetching" / "cuda-12-0.3.36").mkdir()
    assert await pc.look_and_get() == ""
    assert [path.name for path in (pc.own / ".fetching").iterdir()] == ["cuda-12-0.3.36"]
