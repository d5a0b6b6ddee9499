"""`qwendesk engines`: on made-up engines, and once with the real engine as a pack."""

import json
from pathlib import Path

import pytest

from qwendesk.cli import engines as cli_engines
from qwendesk.cli import main as cli
from qwendesk.core import paths
from qwendesk.core.engine_manifest import EnginePack
from qwendesk.engines.engine_choice import EngineChoiceService, package_version
from qwendesk.engines.packs import this_platform
from qwendesk.settings.service import SettingsService, settings_file
from tests.cli.keyboard import Keyboard
from tests.fakes.engine_folders import VERSION, Tries, make_engine, make_pack_file
from tests.real_libraries import real_libraries
from tools.bundle.pack import sha256_of, write_archive
from tools.setup.project import ROOT


@pytest.fixture
def tries() -> Tries:
    return Tries()


@pytest.fixture
def own(tmp_path: Path, tries: Tries, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder of engines. The app has an engine "cpu"."""
    make_engine(tmp_path / "app", "cpu")

    def engines() -> EngineChoiceService:
        return EngineChoiceService(
            (tmp_path / "app", tmp_path / "own"), VERSION, has_installed=False, try_one=tries, prove_one=tries.prove,
            features=lambda: (),
            crash_file=tmp_path / "crashes.json",
        )  # fmt: skip

    async def preferred(*, try_all: bool) -> EngineChoiceService:
        found = engines()
        await found.choose(try_all=try_all)
        return found

    monkeypatch.setattr(cli_engines, "installed_engines", engines)
    monkeypatch.setattr(cli_engines, "preferred_engine", preferred)
    return tmp_path / "own"


@pytest.mark.parametrize(
    ("typed", "added"), [("y\n", True), ("yes\n", True), ("\n", False), ("n\n", False), ("", False)]
)
def test_add_shows_the_hash_and_asks(
    own: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    typed: str,
    added: bool,
) -> None:
    archive = make_pack_file(tmp_path, "vulkan", "vulkan")
    monkeypatch.setattr("sys.stdin", Keyboard(typed))
    assert cli.main(["engines", "add", str(archive)]) == (0 if added else 1)
    said = capsys.readouterr()
    assert f"SHA-256: {sha256_of(archive)}\n" in said.err
    assert "not on QwenDesk's list. An engine is native code that runs with your user rights" in said.err
    assert ("was added" in said.out) == added
    assert (own / "vulkan").exists() == added


def test_add_without_a_terminal_needs_yes(own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = make_pack_file(tmp_path, "vulkan", "vulkan")
    assert cli.main(["engines", "add", str(archive)]) == 2
    assert "Add --yes" in capsys.readouterr().err
    assert not own.exists()
    assert cli.main(["engines", "add", "--yes", str(archive)]) == 0
    assert (own / "vulkan").is_dir()


def test_engine_that_does_not_run_is_refused_with_a_next_step(
    own: Path, tmp_path: Path, tries: Tries, capsys: pytest.CaptureFixture[str]
) -> None:
    tries.runs = {"vulkan": "crash"}
    assert cli.main(["engines", "add", "--yes", str(make_pack_file(tmp_path, "vulkan", "vulkan"))]) == 2
    assert "it was not added. It crashed. Get a pack for" in capsys.readouterr().err
    assert not list(own.iterdir())


def test_missing_file_is_reported(own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["engines", "add", str(tmp_path / "none.zip")]) == 2
    assert "none.zip can't be read: " in capsys.readouterr().err


def test_list_says_which_engine_is_used_and_why_others_are_not(
    own: Path, tries: Tries, capsys: pytest.CaptureFixture[str]
) -> None:
    make_engine(own, "cuda-12", "cuda")
    tries.runs = {"cuda_12": "This PC has no NVIDIA driver."}
    assert cli.main(["engines", "list"]) == 0
    out = capsys.readouterr().out
    assert f"cuda-12  (cuda, release {VERSION}" in out
    assert str(own / "cuda-12") in out
    assert "This PC has no NVIDIA driver." in out
    assert "in use" in out
    assert cli.main(["engines", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(each["name"], each["usable"], each["in_use"]) for each in listed["engines"]] == [
        ("cuda-12", False, False), ("cpu", True, True),
    ]  # fmt: skip


def test_remove_asks_and_leaves_the_apps_own_engines(
    own: Path, tries: Tries, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_engine(own, "cuda-12", "cuda")
    monkeypatch.setattr("sys.stdin", Keyboard("n\n"))
    assert cli.main(["engines", "remove", "cuda-12"]) == 1
    assert (own / "cuda-12").is_dir()
    monkeypatch.setattr("sys.stdin", Keyboard("y\n"))
    assert cli.main(["engines", "remove", "cuda-12"]) == 0
    assert str(own / "cuda-12") in capsys.readouterr().err
    assert not (own / "cuda-12").exists()
    assert cli.main(["engines", "remove", "--yes", "cpu"]) == 2
    assert "belongs to QwenDesk" in capsys.readouterr().err
    assert cli.main(["engines", "remove", "--yes", "cuda-12"]) == 2
    assert "`qwendesk engines list` shows their names" in capsys.readouterr().err
    assert tries.started == [], "nothing is started to delete it"


@pytest.mark.parametrize(("chosen", "left"), [("cuda-12", ""), ("cpu", "cpu")])
def test_removing_the_chosen_engine_sets_the_choice_back_to_automatic(
    own: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    chosen: str,
    left: str,
) -> None:
    monkeypatch.setattr(paths, "config_folder", lambda: tmp_path / "config")
    settings_file().parent.mkdir()
    settings_file().write_text(json.dumps({"engine": chosen, "language": "de"}), encoding="utf-8")
    make_engine(own, "cuda-12", "cuda")
    assert cli.main(["engines", "remove", "--yes", "cuda-12"]) == 0
    said = capsys.readouterr()
    assert ("It was the engine chosen in the settings. The best one that runs is used now." in said.err) == (not left)
    after = SettingsService().options
    assert (after.engine, after.language) == (left, "de")


def test_choice_that_cannot_be_saved_is_reported(
    own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "config_folder", lambda: tmp_path / "config")
    settings_file().parent.mkdir()
    settings_file().write_text('{"engine": "cuda-12"}', encoding="utf-8")
    make_engine(own, "cuda-12", "cuda")

    def refuse(*_arguments: object, **_more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("qwendesk.core.json_file.write_whole", refuse)
    assert cli.main(["engines", "remove", "--yes", "cuda-12"]) == 0
    assert "Your settings couldn't be saved: No space left on device" in capsys.readouterr().err


def test_real_engine_is_added_from_a_pack_and_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "engine_places", lambda: (tmp_path / "app", tmp_path / "own"))
    pack = EnginePack(
        name="cpu-pack", title="CPU", platform=this_platform(), package_version=package_version(), backend="cpu"
    )
    archive = tmp_path / "cpu-pack.zip"
    write_archive(archive, real_libraries(), pack, {"llama.cpp.txt": ROOT / "packaging" / "licences" / "llama.cpp.txt"})
    assert cli.main(["engines", "add", "--yes", str(archive)]) == 0
    monkeypatch.setattr(paths, "config_folder", lambda: tmp_path)
    settings_file().write_text('{"engine": "cpu-pack"}', encoding="utf-8")
    capsys.readouterr()
    assert cli.main(["doctor", "--json"]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert checked["engines"]["cpu-pack"] == "in use"
    assert checked["passed"]
    assert {check["name"] for check in checked["self_test"]} >= {"text, thinking on", "picture"}
