"""What the app keeps, and that "delete everything" leaves nothing of it."""

from pathlib import Path

import pytest

from qwendesk.core import paths
from qwendesk.services import privacy
from qwendesk.services.privacy import app_folders, delete_everything


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("data", "config", "cache", "log"):
        monkeypatch.setattr(paths, f"{name}_folder", lambda name=name: tmp_path / name)
    return tmp_path


def write(path: Path, content: bytes = b"12345") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def everything(root: Path) -> None:
    for name in ("chats.db", "chats.db-wal", "chats-version-1.backup.db", "damaged-20260101-000000/chats.db"):
        write(root / "data" / name)
    for name in ("attachments/ab/abcd", "speeds.json", "downloads.json", "catalog-updates.json", "templates/a.jinja"):
        write(root / "data" / name)
    for name in ("models/owner/repo/a.gguf", "engines/cuda/lib.so", "something-new.bin"):
        write(root / "data" / name)
    for name in ("settings.json", "prompts.json", "tokens.json"):
        write(root / "config" / name, b"{}")
    write(root / "cache" / "pasted" / "a.png")
    write(root / "log" / "window.log")
    write(root / "log" / "crashes" / "crash-1.json")


def test_each_kind_is_found_with_its_size(folders: Path) -> None:
    everything(folders)
    sizes = {holding.kind: holding.n_bytes for holding in privacy.look()}
    assert sizes["chats"] == 20
    assert sizes["attachments"] == sizes["models"] == sizes["engines"] == sizes["cache"] == sizes["other"] == 5
    assert sizes["settings"] == 4
    assert sizes["token"] == 2
    assert sizes["crashes"] == sizes["logs"] == 5
    assert all(holding.places for holding in privacy.look())


def test_nothing_is_kept_before_the_first_start(folders: Path) -> None:
    assert all(holding.places == () and holding.n_bytes == 0 for holding in privacy.look())
    assert delete_everything(models=True, forget_token=lambda _host: None) == ()


def test_nothing_is_left_but_the_models_that_stay(folders: Path) -> None:
    everything(folders)
    hosts: list[str] = []
    assert delete_everything(models=False, forget_token=hosts.append, hosts=("mirror.example",)) == ()
    assert {path.name for path in folders.rglob("*") if path.is_file()} == {"a.gguf"}
    assert {"huggingface.co", "mirror.example"} <= set(hosts)


def test_nothing_at_all_is_left_with_the_models(folders: Path) -> None:
    everything(folders)
    assert delete_everything(models=True, forget_token=lambda _host: None) == ()
    assert not any(folder.exists() for folder in app_folders())


def test_a_link_is_deleted_and_not_what_it_leads_to(folders: Path) -> None:
    outside = write(folders / "outside" / "thesis.txt")
    (folders / "data").mkdir()
    (folders / "data" / "attachments").symlink_to(outside.parent, target_is_directory=True)
    assert delete_everything(models=True, forget_token=lambda _host: None) == ()
    assert outside.exists()
    assert not (folders / "data").exists()


def test_folders_that_lie_in_each_other_keep_the_models(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "config_folder", paths.data_folder)
    monkeypatch.setattr(paths, "log_folder", lambda: folders / "data" / "Logs")
    write(folders / "data" / "models" / "a.gguf")
    write(folders / "data" / "Logs" / "window.log")
    kinds = {holding.kind: holding.n_bytes for holding in privacy.look()}
    assert kinds["logs"] == 5
    assert kinds["other"] == 0
    assert delete_everything(models=False, forget_token=lambda _host: None) == ()
    assert [path.name for path in folders.rglob("*") if path.is_file()] == ["a.gguf"]


def test_what_cannot_be_deleted_is_told(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = write(folders / "data" / "chats.db")

    def refuse(self: Path, **_options: bool) -> None:
        raise PermissionError(13, "in use")

    monkeypatch.setattr(Path, "unlink", refuse)
    assert delete_everything(models=True, forget_token=lambda _host: None) == (f"{stuck}: in use",)
