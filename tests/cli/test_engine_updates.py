"""`qwendesk engines update` and `use`, on a made-up GitHub."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qwendesk.cli import engine_updates as cli_updates
from qwendesk.cli import main as cli
from qwendesk.core.json_decoding import decode_json
from qwendesk.engines import engine_updates
from qwendesk.engines.engine_choice import EngineChoiceService
from qwendesk.settings.service import settings_file
from tests.cli.keyboard import Keyboard
from tests.engines.conftest import server
from tests.engines.test_engine_updates import ARCHIVE, GOOD, NAME, NEW, Folder
from tests.engines.test_release_pack import linux
from tests.fakes.engine_folders import VERSION, Tries, make_engine
from tests.fakes.llama_releases import addresses, publish, sources_of
from tests.fakes.pack_server import PackServer

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the made-up archive is one for Linux")
__all__ = ["server"]


@pytest.fixture
def own(tmp_path: Path, server: PackServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's folder of engines. The app has an engine "cpu", and a made-up GitHub a newer one."""
    make_engine(tmp_path / "app", "cpu")
    publish(server, NEW, {ARCHIVE: linux()}, sources_of())
    tries = Tries()

    async def preferred() -> EngineChoiceService:
        found = EngineChoiceService(
            (tmp_path / "app", tmp_path / "own"), VERSION, has_installed=False, try_one=tries, prove_one=tries.prove,
            features=lambda: (), crash_file=tmp_path / "crashes.json",
        )  # fmt: skip
        await found.choose()
        return found

    async def compared(_client: object) -> object:
        return GOOD

    monkeypatch.setattr(cli_updates, "preferred_engine", preferred)
    monkeypatch.setattr(cli_updates, "ReleaseServer", lambda: addresses(server))
    monkeypatch.setattr(engine_updates, "this_platform", lambda: "linux-x64")
    monkeypatch.setattr("qwendesk.engines.engine_comparison.examine", compared)
    settings_file().unlink(missing_ok=True)
    yield tmp_path / "own"
    settings_file().unlink(missing_ok=True)


def chosen() -> str:
    file = settings_file()
    return str(decode_json(file.read_bytes(), dict[str, object]).get("engine", "")) if file.exists() else ""


def test_update_tells_the_cost_asks_and_uses_it_if_wanted(
    own: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Keyboard("y\n"))
    assert cli.main(["engines", "update"]) == 0
    said = capsys.readouterr()
    assert f"llama.cpp {NEW} of 2026-11-12 for cpu" in said.out
    assert "Saved chat states are of no use to another release" in said.err
    assert "It passes 1 of 1 tests." in said.err
    assert f"{NAME} was added." in said.out
    assert "Back: `qwendesk engines use cpu`" in said.out
    assert (own / NAME / "abi.json").is_file()
    assert chosen() == NAME


def test_check_and_a_no_change_nothing(
    own: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.main(["engines", "update", "--check"]) == 0
    assert NEW in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", Keyboard("n\n"))
    assert cli.main(["engines", "update"]) == 1
    assert not list(own.glob("*/engine.json"))


def test_yes_adds_it_without_using_it(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["engines", "update", "--yes"]) == 0
    assert f"To use it: `qwendesk engines use {NAME}`" in capsys.readouterr().out
    assert chosen() == ""
    assert cli.main(["engines", "update", "--yes"]) == 0
    assert "you have it or a newer one" in capsys.readouterr().out


def test_a_folder_is_enough_without_a_network(
    own: Path, tmp_path: Path, server: PackServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.archives.clear()
    folder = Folder(tmp_path)
    assert cli.main(["engines", "update", "--yes", "--from", str(folder.path)]) == 2
    assert f"has no source of {NEW}" in capsys.readouterr().err
    folder.add_source()
    assert cli.main(["engines", "update", "--yes", "--use", "--from", str(folder.path)]) == 0
    assert chosen() == NAME
    assert server.headers == []


def test_no_network_is_a_failure_with_its_reason(
    own: Path, server: PackServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.archives.clear()
    assert cli.main(["engines", "update", "--yes"]) == 2
    assert "no longer has this file of llama.cpp" in capsys.readouterr().err
    assert not list(own.glob("*/engine.json"))


def test_use_chooses_an_engine_that_is_there(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_engine(own, "vulkan", "vulkan")
    assert cli.main(["engines", "use", "vulkan"]) == 0
    assert chosen() == "vulkan"
    assert cli.main(["engines", "use", "none"]) == 2
    assert 'There is no engine named "none"' in capsys.readouterr().err
    assert cli.main(["engines", "use", "automatic"]) == 0
    assert chosen() == ""
