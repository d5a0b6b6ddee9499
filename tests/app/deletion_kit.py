"""Folders of the app in a temporary place, with something of each kind in them."""

from pathlib import Path

import pytest

from qwendesk.core import paths


def use_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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
    for name in ("attachments/ab/abcd", "speeds.json", "speed-reports.json", "downloads.json", "templates/a.jinja"):
        write(root / "data" / name)
    for name in ("catalog-updates.json", "catalog-look-up.json", "catalog-new-models.json"):
        write(root / "data" / name)
    for name in ("models/owner/repo/a.gguf", "engines/cuda/lib.so", "something-new.bin"):
        write(root / "data" / name)
    write(root / "data" / "notes.json")
    for name in ("settings.json", "prompts.json", "tokens.json", "token_hosts.json"):
        write(root / "config" / name, b"{}")
    write(root / "data" / "file-edits" / "0123.json")
    write(root / "cache" / "pasted" / "a.png")
    write(root / "log" / "window.log")
    write(root / "log" / "crashes" / "crash-1.json")
