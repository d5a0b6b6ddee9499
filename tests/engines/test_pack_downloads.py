"""Downloads of engines that break, fall short of space, or bring something else than expected."""

import shutil
from collections import namedtuple
from pathlib import Path

import msgspec
import pytest

from qwendesk.core.engine_manifest import EngineFolder, EnginePack
from qwendesk.engine.engine_folders import read_engine
from qwendesk.engines.packs import PacksService, PackState
from qwendesk.hub import download
from qwendesk.hub.download_control import RetryPolicy
from qwendesk.hub.network import Network
from tests.fakes.pack_server import PackServer, pack_of, unpinned_pack_of, wheel

Usage = namedtuple("Usage", "total used free")


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "RetryPolicy", lambda: RetryPolicy(first_wait_s=0.0))


def service(tmp_path: Path, pack: EnginePack) -> PacksService:
    return PacksService((pack,), "1.0", Network, folder=tmp_path / "engines", on_platform="linux-x64")


async def install(tmp_path: Path, pack: EnginePack) -> PackState:
    return await service(tmp_path, pack).install("cuda-12")


def engine_in(tmp_path: Path) -> EngineFolder:
    engine = read_engine(tmp_path / "engines" / "cuda-12")
    assert isinstance(engine, EngineFolder)
    return engine


@pytest.mark.parametrize("unpinned", [False, True])
async def test_a_download_that_breaks_at_ten_places_goes_on(
    server: PackServer, tmp_path: Path, *, unpinned: bool
) -> None:
    """LM Studio's engine for CUDA 12 never finished its download (lmstudio-bug-tracker#1312)."""
    pack = unpinned_pack_of(server) if unpinned else pack_of(server)
    size = len(server.archives["/engine.whl"])
    places = [1, 2, 30, 31, size // 4, size // 3, size // 2, size // 2 + 1, size - 2, size - 1]
    before = [0, *places]
    server.cuts = [place - start for start, place in zip(before, places, strict=False)]
    assert len(server.cuts) == 10
    if unpinned:
        server.cuts.insert(0, size)  # the list of the publisher arrives whole
    assert (await install(tmp_path, pack)).is_installed
    assert [f"bytes={place}-" for place in places] == [asked for asked in server.ranges if asked]


@pytest.mark.parametrize("digest", ["", None, "sha1:abc", "sha256:" + "xyz" * 20])
async def test_engine_without_a_pinned_sum_takes_the_publishers_or_keeps_the_first(
    server: PackServer, tmp_path: Path, digest: str | None
) -> None:
    assert (await install(tmp_path, unpinned_pack_of(server, digest=digest))).is_installed
    assert engine_in(tmp_path).manifest.unlisted == (() if digest == "" else ("engine.whl",))
    shutil.rmtree(tmp_path / "engines" / "cuda-12")
    pack = unpinned_pack_of(server, digest=digest)
    other = wheel(llama=b"virus" * 50_000, mtmd=b"mtmd")
    assert len(other) == len(server.archives["/engine.whl"])
    server.archives["/engine.whl"] = other
    state = await install(tmp_path, pack)
    assert not state.is_installed
    assert "sent wrong content" in state.problem
    assert not (tmp_path / "engines" / "cuda-12").exists()


async def test_list_of_the_publisher_that_cannot_be_had_is_done_without(server: PackServer, tmp_path: Path) -> None:
    """GitHub answers with 403 once an address has asked too often."""
    pack = unpinned_pack_of(server, listed=False)
    assert (await install(tmp_path, pack)).is_installed
    assert engine_in(tmp_path).manifest.unlisted == ("engine.whl",)


async def test_wrong_sum_of_the_publisher_never_loads(server: PackServer, tmp_path: Path) -> None:
    state = await install(tmp_path, unpinned_pack_of(server, digest="sha256:" + "0" * 64))
    assert "sent wrong content" in state.problem
    assert not (tmp_path / "engines" / "cuda-12").exists()


async def test_half_a_download_of_another_file_is_not_continued(server: PackServer, tmp_path: Path) -> None:
    """Without a sum, only what the server calls the same may be put together."""
    pack = unpinned_pack_of(server, listed=False)
    server.etags["/engine.whl"] = '"0x8DC1"'
    content = server.archives["/engine.whl"]
    server.cuts = [1000, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    assert not (await install(tmp_path, pack)).is_installed
    server.cuts.clear()
    server.ranges.clear()
    server.etags["/engine.whl"] = '"0x8DC2"'
    server.archives["/engine.whl"] = wheel(llama=b"other" * 50_000, mtmd=b"mtmd")
    assert len(server.archives["/engine.whl"]) == len(content)
    assert (await install(tmp_path, pack)).is_installed
    assert server.ranges[0] == ""


async def test_archive_is_found_by_a_pattern(server: PackServer, tmp_path: Path) -> None:
    pack = unpinned_pack_of(server)
    engine = msgspec.structs.replace(pack.archives[0], url=f"{server.address}/eng*.whl")
    assert (await install(tmp_path, msgspec.structs.replace(pack, archives=(engine, pack.archives[1])))).is_installed
    other = msgspec.structs.replace(engine, url=f"{server.address}/*manylinux*.whl")
    missing = msgspec.structs.replace(pack, archives=(other, pack.archives[1]))
    state = await install(tmp_path / "other", missing)
    assert state.problem == "The release no longer lists *manylinux*.whl."


async def test_space_is_asked_before_the_first_byte(
    server: PackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = pack_of(server)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: Usage(0, 0, 256 * 1024**2 + 3 * pack.n_bytes - 1))
    state = await install(tmp_path, pack)
    assert "Free some space" in state.problem
    assert server.ranges == []
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: Usage(0, 0, 256 * 1024**2 + 10 * 1024**2))
    assert (await install(tmp_path, pack)).is_installed


async def test_a_page_for_signing_in_is_no_engine(server: PackServer, tmp_path: Path) -> None:
    """A hotel's network answers everything with a page of its own."""
    pack = unpinned_pack_of(server, listed=False)
    server.archives["/listing"] = server.archives["/engine.whl"] = b"<html>Please sign in</html>"
    state = await install(tmp_path, pack)
    assert "can't be unpacked" in state.problem
    assert not (tmp_path / "engines" / "cuda-12").exists()
    unpinned_pack_of(server, listed=False)
    assert (await install(tmp_path, pack)).is_installed
