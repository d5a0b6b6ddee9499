"""What the app keeps, and where."""

from pathlib import Path

import pytest

from qwendesk.settings import deletion
from tests.app.deletion_kit import everything, use_folders, write
from tests.links import skip_without_links


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return use_folders(tmp_path, monkeypatch)


def test_each_kind_is_found_with_its_size(folders: Path) -> None:
    everything(folders)
    sizes = {stored.kind: stored.n_bytes for stored in deletion.find_stored_data()}
    assert sizes["chats"] == 20
    assert sizes["attachments"] == sizes["models"] == sizes["engines"] == sizes["cache"] == sizes["other"] == 5
    assert sizes["settings"] == 4
    assert sizes["token"] == 4
    assert sizes["tools"] == sizes["notes"] == 5
    assert sizes["crashes"] == sizes["logs"] == 5
    assert all(stored.places for stored in deletion.find_stored_data())


def test_nothing_is_stored_before_the_first_start(folders: Path) -> None:
    assert all(stored.places == () and stored.n_bytes == 0 for stored in deletion.find_stored_data())


def test_linked_folders_are_listed_with_their_targets(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without_links(folders)
    monkeypatch.setattr(Path, "home", lambda: folders / "user")
    moved = write(folders / "big drive" / "a" / "b.png").parents[1]
    (folders / "user").mkdir()
    (folders / "data").mkdir()
    (folders / "data" / "attachments").symlink_to(moved, target_is_directory=True)
    (folders / "data" / "models").symlink_to(folders, target_is_directory=True)
    (folders / "data" / "engines").symlink_to(folders / "nowhere", target_is_directory=True)
    (folders / "config").symlink_to(moved, target_is_directory=True)
    named = {each.link.name: (each.target, each.may_be_emptied) for each in deletion.find_linked_folders()}
    assert named == {"attachments": (moved, True), "models": (folders, False), "config": (moved, True)}
