"""Engines fetched from a server of our own."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qwendesk.core import files
from qwendesk.core.engines import EngineFolder, EnginePack
from qwendesk.engine.folders import read_engine, wrong_files
from qwendesk.hub.download import download_file
from qwendesk.hub.network import Network
from qwendesk.services.engine.packs import PacksService, read_packs, this_platform
from tests.fakes.pack_server import PackServer, pack_of, running_pack_server

pytestmark = pytest.mark.asyncio


@pytest.fixture
def server() -> Iterator[PackServer]:
    with running_pack_server() as server:
        yield server


def service(tmp_path: Path, *packs: EnginePack, network: Network | None = None) -> PacksService:
    made = network or Network()
    return PacksService(packs, "1.0", lambda: made, folder=tmp_path / "engines", on_platform="linux-x64")


async def test_a_pack_becomes_an_engine_folder(server: PackServer, tmp_path: Path) -> None:
    pack = pack_of(server)
    packs = service(tmp_path, pack)
    told: list[int] = []
    packs.subscribe(lambda states: told.append(states[0].done_bytes))
    state = await packs.fetch("cuda-12")
    assert (state.is_here, state.problem) == (True, "")
    assert max(told) == pack.n_bytes
    engine = read_engine(tmp_path / "engines" / "cuda-12")
    assert isinstance(engine, EngineFolder)
    assert {file.name for file in engine.manifest.files} == {"libllama.so", "libmtmd.so", "libcudart.so"}
    assert (engine.manifest.minimum_driver, wrong_files(engine)) == ("525", ())
    assert service(tmp_path, pack).states[0].is_here


async def test_a_cut_connection_is_resumed(server: PackServer, tmp_path: Path) -> None:
    pack = pack_of(server)
    server.cut_after = 1000
    assert (await service(tmp_path, pack).fetch("cuda-12")).is_here
    assert "bytes=1000-" in server.ranges


async def test_wrong_content_of_the_right_size_never_becomes_an_engine(server: PackServer, tmp_path: Path) -> None:
    pack = pack_of(server)
    server.archives["/engine.whl"] = bytes(len(server.archives["/engine.whl"]))
    state = await service(tmp_path, pack).fetch("cuda-12")
    assert not state.is_here
    assert "not what it announces" in state.problem
    assert not (tmp_path / "engines" / "cuda-12").exists()


async def test_an_archive_that_is_gone_says_so(server: PackServer, tmp_path: Path) -> None:
    pack = pack_of(server)
    del server.archives["/runtime.whl"]
    state = await service(tmp_path, pack).fetch("cuda-12")
    assert not state.is_here
    assert state.problem


async def test_offline_means_no_connection(server: PackServer, tmp_path: Path) -> None:
    pack = pack_of(server)
    state = await service(tmp_path, pack, network=Network(offline=True)).fetch("cuda-12")
    assert "offline" in state.problem.lower()
    assert server.ranges == []


async def test_stopped_and_taken_up_again(server: PackServer, tmp_path: Path) -> None:
    pack = pack_of(server)
    packs = service(tmp_path, pack)
    first = asyncio.create_task(packs.fetch("cuda-12"))
    while not packs.states[0].is_running:  # noqa: ASYNC110 - it is set in the task's first step
        await asyncio.sleep(0)
    packs.cancel("cuda-12")
    await first
    assert not packs.states[0].is_running
    assert packs.states[0].problem == ""
    assert (await packs.fetch("cuda-12")).is_here
    await packs.close()


async def test_nobodys_token_goes_to_the_archives_and_troubles_name_their_own_server(
    server: PackServer, tmp_path: Path
) -> None:
    secret = Network(endpoint=server.address, token="hf_secret")
    assert (await service(tmp_path, pack_of(server), network=secret).fetch("cuda-12")).is_here
    assert not any("authorization" in headers for headers in server.headers)
    del server.archives["/engine.whl"]
    other = service(tmp_path / "other", pack_of(server), network=Network())
    server.archives.clear()
    assert "127.0.0.1" in (await other.fetch("cuda-12")).problem


async def test_a_folder_that_is_broken_or_of_another_release_can_be_fetched_again(
    server: PackServer, tmp_path: Path
) -> None:
    pack = pack_of(server)
    packs = service(tmp_path, pack)
    await packs.fetch("cuda-12")
    (tmp_path / "engines" / "cuda-12" / "libmtmd.so").unlink()
    packs.look()
    assert not packs.states[0].is_here
    assert (await packs.fetch("cuda-12")).is_here
    newer = PacksService(
        (pack_of(server, package_version="1.1"),), "1.1", Network, folder=tmp_path / "engines", on_platform="linux-x64"
    )
    assert not newer.states[0].is_here
    assert (await newer.fetch("cuda-12")).is_here


async def test_what_was_paused_is_known_after_a_restart_and_can_be_thrown_away(
    server: PackServer, tmp_path: Path
) -> None:
    pack = pack_of(server)
    server.hold_after = 1000
    packs = service(tmp_path, pack)
    come = asyncio.Event()
    packs.subscribe(lambda states: come.set() if states[0].done_bytes >= 1000 else None)
    fetching = asyncio.create_task(packs.fetch("cuda-12"))
    await come.wait()
    packs.cancel("cuda-12")
    await fetching
    later = service(tmp_path, pack)
    assert later.states[0].done_bytes == 1000
    await later.discard("cuda-12")
    assert later.states[0].done_bytes == 0


async def test_closing_ends_a_download_whose_task_was_cancelled(
    server: PackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[bool] = []

    def download(*arguments: Any) -> None:
        try:
            download_file(*arguments)
        finally:
            ended.append(True)

    monkeypatch.setattr("qwendesk.services.engine.packs.download_file", download)
    server.hold_after = 1000
    packs = service(tmp_path, pack_of(server))
    come = asyncio.Event()
    packs.subscribe(lambda states: come.set() if states[0].done_bytes >= 1000 else None)
    fetching = asyncio.create_task(packs.fetch("cuda-12"))
    await come.wait()
    fetching.cancel()
    await asyncio.gather(fetching, return_exceptions=True)
    assert ended == []
    await packs.close()
    assert ended == [True]


async def test_a_scanner_that_looks_at_new_libraries_is_waited_for(
    server: PackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    replace = Path.replace

    def scanned(source: Path, target: Path) -> Path:
        if target.name == "cuda-12" and sum(waits) < 15:
            raise PermissionError(13, "Access is denied", str(target))
        return replace(source, target)

    monkeypatch.setattr(files, "_LOCKS_OPEN_FILES", True)
    monkeypatch.setattr(files, "sleep", waits.append)
    monkeypatch.setattr(Path, "replace", scanned)
    state = await service(tmp_path, pack_of(server)).fetch("cuda-12")
    assert (state.is_here, state.problem) == (True, "")
    assert 15 <= sum(waits) <= 20


async def test_what_nobody_thought_of_leaves_a_pack_that_can_be_fetched(
    server: PackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: Any) -> None:
        raise ValueError("a fault of ours")

    packs = service(tmp_path, pack_of(server))
    with monkeypatch.context() as patch:
        patch.setattr("qwendesk.services.engine.packs.download_file", broken)
        with pytest.raises(ValueError, match="of ours"):
            await packs.fetch("cuda-12")
    assert (await packs.fetch("cuda-12")).is_here


async def test_only_packs_for_this_pc_and_this_version_are_offered(server: PackServer, tmp_path: Path) -> None:
    fitting = pack_of(server)
    others = (pack_of(server, name="a", platform="windows-x64"), pack_of(server, name="b", package_version="0.9"))
    assert [state.pack.name for state in service(tmp_path, fitting, *others).states] == ["cuda-12"]


async def test_the_apps_own_list_is_sound_and_pinned() -> None:
    for pack in read_packs():
        assert pack.archives
        for archive in pack.archives:
            assert archive.url.startswith("https://")
            assert len(archive.sha256) == 64
            assert archive.n_bytes
            assert archive.licence
    assert this_platform()
