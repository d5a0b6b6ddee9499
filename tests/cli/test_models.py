"""`qwendesk models` on real folders."""

import hashlib
import json
from pathlib import Path

import pytest

from qwendesk.cli import main as cli
from qwendesk.core import paths
from qwendesk.hub import model_deletion
from qwendesk.hub.model_folders import ModelFolders, write_folders
from tests.cli.keyboard import Keyboard
from tests.gguf_files import mmproj_values, model_values, tensor, write_model


@pytest.fixture
def ours(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(paths, "config_folder", lambda: tmp_path / "settings")
    monkeypatch.setattr(paths, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    write_folders(ModelFolders((str(tmp_path / "ours"),)))
    return tmp_path / "ours"


def model(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_model(path, model_values(), [tensor("token_embd.weight", 64)])


def test_list_without_models_says_where_they_go(ours, capsys):
    assert cli.main(["models", "list"]) == 0
    assert str(ours) in capsys.readouterr().out


def test_list_shows_models_with_their_state(ours, tmp_path, capsys):
    path = model(ours / "o" / "Qwen-GGUF" / "Qwen-Q4_K_M.gguf")
    write_model(path.with_name("mmproj-F16.gguf"), mmproj_values(64))
    model(tmp_path / "home" / ".lmstudio" / "models" / "o" / "r" / "Theirs.gguf")
    (ours / "cut.gguf").write_bytes(b"GGUF")
    assert cli.main(["models", "list"]) == 0
    out = capsys.readouterr().out
    assert "Qwen-Q4_K_M  (" in out
    assert "vision file: " in out
    assert str(path) in out
    assert "LM Studio" in out
    assert "! cut.gguf is incomplete" in out


def test_list_as_json(ours, capsys):
    path = model(ours / "o" / "Qwen-GGUF" / "Qwen-Q4_K_M.gguf")
    assert cli.main(["models", "list", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert list(result) == ["models", "mmprojs", "others", "unreadable"]
    (found,) = result["models"]
    assert (found["name"], found["path"], found["quant"]) == ("Qwen-Q4_K_M", str(path), "Q4_K_M")
    assert (found["repo"], found["origin"], found["n_bytes"]) == ("o/Qwen-GGUF", "ours", path.stat().st_size)


def test_delete_moves_to_the_trash(ours, capsys, monkeypatch):
    trashed = []
    monkeypatch.setattr(model_deletion, "_to_trash", lambda path: (trashed.append(path), path.unlink()))
    path = model(ours / "a.gguf")
    n_bytes = path.stat().st_size
    assert cli.main(["models", "delete", "a", "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"deleted": [str(path)], "n_bytes": n_bytes, "in_trash": True}
    assert trashed == [path]


@pytest.mark.parametrize(("answer", "left"), [("y\n", False), ("\n", True), ("n\n", True), ("", True)])
def test_delete_asks_and_names_the_size(ours, capsys, monkeypatch, answer, left):
    path = model(ours / "a.gguf")
    monkeypatch.setattr("sys.stdin", Keyboard(answer))
    assert cli.main(["models", "delete", "a", "--permanently"]) == (1 if left else 0)
    err = capsys.readouterr().err
    assert "Permanently delete" in err
    assert str(path) in err
    assert path.exists() == left


def test_delete_without_a_terminal_needs_yes(ours, capsys):
    path = model(ours / "a.gguf")
    assert cli.main(["models", "delete", "a"]) == 2
    assert "--yes" in capsys.readouterr().err
    assert path.exists()


def test_delete_leaves_other_apps_files(ours, tmp_path, capsys):
    path = model(tmp_path / "home" / ".lmstudio" / "models" / "o" / "r" / "Theirs.gguf")
    assert cli.main(["models", "delete", str(path), "--yes"]) == 1
    assert "LM Studio" in capsys.readouterr().err
    assert path.exists()


def test_delete_offers_another_way_when_the_trash_fails(ours, capsys, monkeypatch):
    def fail(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(model_deletion, "_to_trash", fail)
    model(ours / "a.gguf")
    assert cli.main(["models", "delete", "a", "--yes"]) == 1
    assert "--permanently" in capsys.readouterr().err


def test_missing_model_is_reported(ours, capsys):
    assert cli.main(["models", "delete", "nothing", "--yes"]) == 2
    assert "models list" in capsys.readouterr().err


def test_import_copies_and_says_where(ours, tmp_path, capsys):
    path = model(tmp_path / "Downloads" / "m.gguf")
    assert cli.main(["models", "import", str(path), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    target = ours / "imported" / "m" / "m.gguf"
    content = path.read_bytes()
    assert result == {
        "imported": [{"path": str(target), "sha256": hashlib.sha256(content).hexdigest()}],
        "n_bytes": len(content),
        "left_behind": [],
    }
    assert target.read_bytes() == content


def test_import_moves_to_another_folder(ours, tmp_path, capsys):
    path = model(tmp_path / "Downloads" / "m.gguf")
    assert cli.main(["models", "import", str(path), "--move", "--to", str(tmp_path / "other")]) == 0
    assert str(tmp_path / "other" / "imported" / "m" / "m.gguf") in capsys.readouterr().out
    assert not path.exists()


def test_failed_import_says_why(ours, tmp_path, capsys):
    assert cli.main(["models", "import", str(tmp_path / "gone.gguf")]) == 1
    assert "gone.gguf" in capsys.readouterr().err
