"""`qwendesk verify`, as a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from qwendesk.core import paths
from tests.gguf_files import write_cut
from tests.hub.verified import BROKEN_TEMPLATE, FIXED_TEMPLATE, lay_record, mmproj, qwen
from tests.user_folders import user_variables

NAME = "Qwen3.5-35B-A3B-Q4_K_M.gguf"


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment whose user has no files."""
    return os.environ | user_variables(tmp_path)


def verify(home: dict[str, str], *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "qwendesk", "verify", "--offline", *map(str, arguments)],
        capture_output=True, text=True, encoding="utf-8", check=False, env=home,
    )  # fmt: skip


def test_good_files_end_with_0(home: dict[str, str]) -> None:
    done = verify(home, "--json", paths.demo_model(), paths.demo_mmproj())

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {
        "files": [
            {"path": str(paths.demo_model()), "state": "not_verified", "verdict": "ok", "findings": []},
            {"path": str(paths.demo_mmproj()), "state": "not_verified", "verdict": "ok", "findings": []},
        ]
    }


def test_a_warning_ends_with_1_and_a_bad_file_with_2(home: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "models"
    warned = qwen(folder / "a" / NAME, tokenizer__chat_template=BROKEN_TEMPLATE)
    good = qwen(folder / "b" / NAME, tokenizer__chat_template=FIXED_TEMPLATE)
    mmproj(folder / "b" / "mmproj-F16.gguf")
    assert verify(home, warned).returncode == 1
    assert verify(home, good).returncode == 0
    bad = write_cut(folder / "c.gguf", good.read_bytes(), 500)

    done = verify(home, "--json", folder)

    files = {Path(file["path"]): file for file in json.loads(done.stdout)["files"]}
    assert done.returncode == 2
    assert {path: file["verdict"] for path, file in files.items()} == {
        warned: "warning", good: "ok", folder / "b" / "mmproj-F16.gguf": "ok", bad: "bad",
    }  # fmt: skip
    (finding,) = files[bad]["findings"]
    assert set(finding) == {"code", "severity", "message", "fix", "evidence"}
    assert (finding["code"], finding["severity"]) == ("truncated", "bad")
    fix = next(each["fix"] for each in files[warned]["findings"] if each["code"] == "broken-tool-template")
    assert fix["kind"] == "fetch_template"


def test_plain_output_has_sentences(home: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "mmproj-F16.gguf"
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")

    done = verify(home, path)

    assert done.returncode == 2
    for words in ("Corrupt", "lfs-pointer", "Git LFS pointer", "Fix:", "catalog is from"):
        assert words in done.stdout


def test_full_check_hashes_each_file_once(home: dict[str, str], tmp_path: Path) -> None:
    path = qwen(tmp_path / "unsloth" / "Qwen3.5-35B-A3B-GGUF" / NAME)
    lay_record(path, "e" * 64)
    assert verify(home, path).returncode == 0

    first, second = verify(home, "--full", path), verify(home, "--full", path)

    assert (first.returncode, second.returncode) == (2, 2)
    assert "hash-mismatch" in first.stdout
    assert "SHA-256 of" in first.stderr
    assert second.stderr == ""
    assert second.stdout == first.stdout


def test_missing_path_exits_2_with_a_sentence(home: dict[str, str], tmp_path: Path) -> None:
    done = verify(home, tmp_path / "none.gguf")

    assert done.returncode == 2
    assert "none.gguf can't be read" in done.stderr


def test_empty_folder_has_no_findings(home: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()

    assert json.loads(verify(home, "--json", folder).stdout) == {"files": []}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in folders here")
def test_a_pipe_is_not_waited_for(home: dict[str, str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")

    done = verify(home, tmp_path / "pipe.gguf")

    assert done.returncode == 2
    assert "not an ordinary file" in done.stderr
