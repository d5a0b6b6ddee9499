"""Engines fetched from a server of our own."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from qwendesk.core import files
from qwendesk.core.engine_manifest import EngineFolder, EnginePack
from qwendesk.engine.engine_folders import read_engine, wrong_files
from qwendesk.engines.engine_choice import package_version
from qwendesk.engines.packs import PacksService, read_packs, this_platform
from qwendesk.hub.download import download_file
from qwendesk.hub.network import Network
from tests.fakes.pack_server import PackServer, pack_of
from tests.links import skip_without_links


def service(tmp_path: Path, *packs: EnginePack, network: Network | None = None) -> PacksService:
    made = network or Network()
    return PacksService(packs, "1.0", lambda: made, folder=tmp_path / "engines", on_platform="linux-x64")


async def test_a_pack_becomes_an_engine_folder(server: PackServer, tmp_path: Path) -> None:
    pack = pack_of(server)
    packs = service(tmp_path, pack)
    told: list[int] = []
    packs.observed.subscribe(lambda states: told.append(states[0].done_bytes))
    state = await packs.install("cuda-12")
    assert (state.is_installed, state.problem) == (True, "")
    assert max(told) == pack.n_bytes
    engine = read_engine(tmp_path / "engines" / "cuda-12")
    assert isinstance(engine, EngineFolder)
    assert {file.name for file in engine.manifest.files} == {"libllama.so", "libmtmd.so", "libcudart.so"}
    assert (engine.manifest.minimum_driver, wrong_files(engine)) == ("525", ())
    assert service(tmp_path, pack).states[0].is_installed


async def test_token_is_not_sent_and_errors_name_the_archives_server(server: PackServer, tmp_path: Path) -> None:
    secret = Network(endpoint=server.address, token="hf_secret")
    assert (await service(tmp_path, pack_of(server), network=secret).install("cuda-12")).is_installed
    assert not any("authorization" in headers for headers in server.headers)
    del server.archives["/engine.whl"]
    other = service(tmp_path / "other", pack_of(server), network=Network())
    server.archives.clear()
    assert "127.0.0.1" in (await other.install("cuda-12")).problem


async def test_broken_or_outdated_engine_can_be_installed_again(server: PackServer, tmp_path: Path) -> None:
    pack = pack_of(server)
    packs = service(tmp_path, pack)
    await packs.install("cuda-12")
    (tmp_path / "engines" / "cuda-12" / "libmtmd.so").unlink()
    packs.refresh()
    assert not packs.states[0].is_installed
    assert (await packs.install("cuda-12")).is_installed
    newer = PacksService(
        (pack_of(server, package_version="1.1"),), "1.1", Network, folder=tmp_path / "engines", on_platform="linux-x64"
    )
    assert not newer.states[0].is_installed
    assert (await newer.install("cuda-12")).is_installed


async def test_paused_download_survives_a_restart_and_can_be_discarded(server: PackServer, tmp_path: Path) -> None:
    pack = pack_of(server)
    server.hold_after = 1000
    packs = service(tmp_path, pack)
    come = asyncio.Event()
    packs.observed.subscribe(lambda states: come.set() if states[0].done_bytes >= 1000 else None)
    fetching = asyncio.create_task(packs.install("cuda-12"))
    await come.wait()
    packs.cancel("cuda-12")
    await fetching
    later = service(tmp_path, pack)
    assert later.states[0].done_bytes == 1000
    await later.discard("cuda-12")
    assert later.states[0].done_bytes == 0


async def test_close_stops_a_download_whose_task_was_cancelled(
    server: PackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[bool] = []

    def download(*arguments: Any) -> None:
        try:
            download_file(*arguments)
        finally:
            ended.append(True)

    monkeypatch.setattr("qwendesk.engines.packs.download_file", download)
    server.hold_after = 1000
    packs = service(tmp_path, pack_of(server))
    come = asyncio.Event()
    packs.observed.subscribe(lambda states: come.set() if states[0].done_bytes >= 1000 else None)
    fetching = asyncio.create_task(packs.install("cuda-12"))
    await come.wait()
    fetching.cancel()
    await asyncio.gather(fetching, return_exceptions=True)
    assert ended == []
    await packs.close()
    assert ended == [True]


async def test_install_waits_for_the_virus_scanner(
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
    state = await service(tmp_path, pack_of(server)).install("cuda-12")
    assert (state.is_installed, state.problem) == (True, "")
    assert 15 <= sum(waits) <= 20


async def test_unexpected_error_leaves_an_installable_pack(
    server: PackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: Any) -> None:
        raise ValueError("a fault of ours")

    packs = service(tmp_path, pack_of(server))
    with monkeypatch.context() as patch:
        patch.setattr("qwendesk.engines.packs.download_file", broken)
        with pytest.raises(ValueError, match="of ours"):
            await packs.install("cuda-12")
    assert (await packs.install("cuda-12")).is_installed


async def test_only_packs_for_this_pc_and_this_version_are_offered(server: PackServer, tmp_path: Path) -> None:
    fitting = pack_of(server)
    others = (pack_of(server, name="a", platform="windows-x64"), pack_of(server, name="b", package_version="0.9"))
    assert [state.pack.name for state in service(tmp_path, fitting, *others).states] == ["cuda-12"]


async def test_bundled_pack_list_is_valid_and_pinned() -> None:
    assert {pack.package_version for pack in read_packs()} == {package_version()}, "the pin has moved"
    for pack in read_packs():
        assert pack.archives
        for archive in pack.archives:
            assert archive.url.startswith("https://")
            assert len(archive.sha256) == 64 or archive.listing.startswith("https://api.github.com/")
            assert archive.n_bytes
            assert archive.licence
    assert this_platform()


async def test_an_engine_behind_a_link_is_not_replaced_and_the_link_is_named(
    server: PackServer, tmp_path: Path
) -> None:
    """The user moved the folder of engines to a larger drive, where something else has the pack's name."""
    skip_without_links(tmp_path)
    thesis = tmp_path / "drive" / "cuda-12" / "thesis.txt"
    thesis.parent.mkdir(parents=True)
    thesis.touch()
    (tmp_path / "engines").symlink_to(tmp_path / "drive", target_is_directory=True)
    state = await service(tmp_path, pack_of(server)).install("cuda-12")
    assert thesis.exists()
    assert f"{tmp_path / 'engines'} is a link to {tmp_path / 'drive'}" in state.problem
    assert sorted(path.name for path in (tmp_path / "drive").iterdir()) == [".fetching", "cuda-12"]


async def test_download_behind_a_link_is_kept_and_named(server: PackServer, tmp_path: Path) -> None:
    skip_without_links(tmp_path)
    (tmp_path / "drive").mkdir()
    (tmp_path / "engines").symlink_to(tmp_path / "drive", target_is_directory=True)
    packs = service(tmp_path, pack_of(server))
    state = await packs.install("cuda-12")
    assert state.is_installed
    assert str(tmp_path / "engines" / ".fetching") in state.problem
    await packs.discard("cuda-12")
    assert "Delete that folder" in packs.states[0].problem


async def test_an_engine_that_is_itself_a_link_is_replaced_and_its_target_stays(
    server: PackServer, tmp_path: Path
) -> None:
    skip_without_links(tmp_path)
    thesis = tmp_path / "drive" / "thesis.txt"
    thesis.parent.mkdir()
    thesis.touch()
    (tmp_path / "engines").mkdir()
    (tmp_path / "engines" / "cuda-12").symlink_to(tmp_path / "drive", target_is_directory=True)
    assert (await service(tmp_path, pack_of(server)).install("cuda-12")).is_installed
    assert thesis.exists()
    assert not (tmp_path / "engines" / "cuda-12").is_symlink()


async def test_only_leftover_unpacking_folders_are_deleted(server: PackServer, tmp_path: Path) -> None:
    left, kept = tmp_path / "engines" / "cuda-12.unpacking-abcd1234", tmp_path / "engines" / "cuda-12.original"
    for folder in (left, kept):
        folder.mkdir(parents=True)
        (folder / "lib.so").touch()
    assert (await service(tmp_path, pack_of(server)).install("cuda-12")).is_installed
    assert (left.exists(), kept.exists()) == (False, True)
