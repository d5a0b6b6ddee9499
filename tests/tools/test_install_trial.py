"""The trial on a clean machine, with archives whose programs are scripts: what passes, and what is found."""

import sys
import tarfile
from pathlib import Path

import pytest

from tools.bundle.portable import make_archive
from tools.install_trial import main

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the made-up program is a script for sh")
PROGRAM = """#!/bin/sh
case "$1" in
  ask) echo "{answer}";;
  doctor) echo '{{"self_test": [{{"name": "text", "passed": {passed}}}], "versions": {{"qwendesk": "0.1.0"}}}}';;
  --demo-tour) touch "$3";;
esac
[ -z "$PYTHONPATH" ] && [ -z "$VIRTUAL_ENV" ]
"""


def make_tar(folder: Path, answer: str = "VRAM spill means slow RAM.", passed: str = "true") -> Path:
    bundle = folder / "QwenDesk"
    bundle.mkdir()
    program = bundle / "QwenDesk"
    program.write_text(PROGRAM.format(answer=answer, passed=passed))
    program.chmod(0o755)
    return make_archive(bundle, folder, on_windows=False)


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "a checkout")


def test_archive_keeps_programs_and_belongs_to_root(tmp_path: Path) -> None:
    with tarfile.open(make_tar(tmp_path)) as archive:
        entry = archive.getmember("QwenDesk/QwenDesk")
    assert (entry.mode & 0o777, entry.uid, entry.uname) == (0o755, 0, "root")


def test_file_that_works_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = make_tar(tmp_path)
    assert main([str(archive)]) == 0
    said = capsys.readouterr().out
    assert "ask: VRAM spill means slow RAM." in said
    assert "doctor: 1 tests passed, release 0.1.0" in said
    assert (tmp_path / f"{archive.name}.png").is_file()


@pytest.mark.parametrize(
    ("more", "said"),
    [({"answer": "I don't know."}, "without the word 'ram'"), ({"passed": "false"}, "doctor: [{"), ({}, "no file of")],
)
def test_what_is_wrong_is_said(
    tmp_path: Path, more: dict[str, str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = make_tar(tmp_path, **more)
    if not more:
        file = file.rename(tmp_path / "QwenDesk.rpm")
    assert main([str(file)]) == 1
    assert said in capsys.readouterr().err
