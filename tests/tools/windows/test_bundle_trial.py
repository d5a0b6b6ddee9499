"""What the trial of the installer reads: chats, the registry, loaded engines."""

import sqlite3
from pathlib import Path

from tools.setup.project import ROOT
from tools.windows import innosetup
from tools.windows.bundle_test import steps
from tools.windows.bundle_test.records import (
    Answer,
    command_for,
    failure_count,
    finished_answers,
    has_attachment,
    loaded_engine,
    question_count,
    registry_value,
)

REGISTRY = r"""
HKEY_CURRENT_USER\Software\Classes\QwenDesk.gguf\shell\open\command
    (Default)    REG_SZ    "C:\Programs\QwenDesk\QwenDesk.exe" "%1"
    DisplayVersion    REG_SZ    0.1.0

"""


def test_registry_values_are_read_from_reg_query() -> None:
    command = registry_value(REGISTRY)
    assert command == r'"C:\Programs\QwenDesk\QwenDesk.exe" "%1"'
    assert registry_value(REGISTRY, "DisplayVersion") == "0.1.0"
    assert registry_value("reg: Unable to find the specified registry key", "DisplayVersion") is None


def test_the_command_gets_the_file_as_one_word() -> None:
    words = command_for(r'"C:\Programs\Qwen Desk\QwenDesk.exe" --x "%1"', r"C:\My models\Modell ä.gguf")
    assert words == [r"C:\Programs\Qwen Desk\QwenDesk.exe", "--x", r"C:\My models\Modell ä.gguf"]


def test_loaded_engine_is_the_folder_of_its_library() -> None:
    maps = """\
7f00-7f10 r-xp 00000000 08:01 1 /desk/x/drive_c/Programs/QwenDesk/_internal/python313.dll
7f20-7f30 r-xp 00000000 08:01 2 /desk/x/drive_c/Programs/QwenDesk/_internal/engines/cpu-sse42/llama.dll
"""
    assert loaded_engine(maps) == "cpu-sse42"
    assert loaded_engine(maps.splitlines()[0]) == ""


def test_only_finished_answers_count_and_the_file_stays_as_it_was(tmp_path: Path) -> None:
    database = tmp_path / "chats.db"
    assert finished_answers(database) == []
    opened = sqlite3.connect(database)
    opened.execute("PRAGMA journal_mode = WAL")
    opened.execute("CREATE TABLE messages (chat_id, role, text, stop_reason, model, created_s, error)")
    opened.execute("CREATE TABLE drafts (chat_id, pictures)")
    rows = [
        ("one", "user", "What?", None, "", 1.0, ""),
        ("one", "assistant", "That.", "stop", "demo.gguf", 2.0, ""),
        ("one", "assistant", "Half of", None, "demo.gguf", 3.0, ""),
        ("two", "assistant", "", "error", "demo.gguf", 4.0, "No model is loaded."),
    ]
    opened.executemany("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    opened.commit()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    assert finished_answers(database) == [Answer("one", "That.", "demo.gguf")]
    assert (question_count(database), failure_count(database)) == (1, 1)
    assert not has_attachment(database)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    opened.execute("INSERT INTO drafts VALUES ('one', '[]'), ('two', '[\"sha\"]')")
    opened.commit()
    assert has_attachment(database)
    opened.close()


def test_a_file_that_is_being_written_has_no_answers_yet(tmp_path: Path) -> None:
    (tmp_path / "chats.db").write_bytes(b"SQLite format 3\0 and then nothing")
    assert finished_answers(tmp_path / "chats.db") == []


def test_the_trial_looks_where_the_installer_writes() -> None:
    script = (ROOT / innosetup.SCRIPT).read_text(encoding="utf-8")
    app_id = next(line for line in script.splitlines() if line.startswith("AppId=")).removeprefix("AppId={")
    assert steps.UNINSTALL_KEY.endswith(f"\\{app_id}_is1")
    assert r"Software\Classes\QwenDesk.gguf\shell\open\command" in script
    assert steps.OPEN_KEY.endswith(r"Software\Classes\QwenDesk.gguf\shell\open\command")
