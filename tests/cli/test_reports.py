"""`qwendesk reports`: what is added from a file or standard input, listed, counted by `recommend`, and removed."""

import io
import sys
from pathlib import Path

import pytest

from qwendesk.cli import main as cli
from tests.models import pasted


def test_a_table_is_added_listed_counted_and_removed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "bench.txt"
    table = pasted.TERMINAL.replace("UD-Q4_K_M", "UD-IQ4_XS").replace("20.60", "16.50")
    file.write_text(table.replace("Q4_K - Medium", "IQ4_XS - 4.25 bpw"), "utf-8")

    assert cli.main(["reports", "add", str(file)]) == 0
    assert cli.main(["reports", "list"]) == 0
    listed = capsys.readouterr().out.splitlines()[-2:]
    assert listed[0].startswith(
        "1. 122 tok/s at the start · RTX 3090, CUDA, Qwen3.6-35B-A3B UD-IQ4_XS · pasted by you: "
    )

    arguments = ["recommend", "--gpu", "RTX 3090:24", "--ram", "64"]
    assert cli.main(arguments) == 0
    assert "You pasted" in capsys.readouterr().out
    assert cli.main(["reports", "add", str(file)]) == 2
    assert "added before" in capsys.readouterr().err
    assert cli.main(["reports", "remove", "3"]) == 2
    assert cli.main(["reports", "remove", "1", "2"]) == 0
    capsys.readouterr()
    assert cli.main(["reports", "list"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (pasted.FRAMEWORK.encode(), "doesn't name the graphics card"),
        (b"\x00\xff" * 50, "no measured speed"),
        (b"| a " * 250_000, "too long"),
    ],
)
def test_what_can_not_be_added_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: bytes, reason: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert cli.main(["reports", "add"]) == 2
    assert reason in capsys.readouterr().err


def test_the_card_can_be_named_and_a_missing_file_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(pasted.FRAMEWORK.encode())))
    assert cli.main(["reports", "add", "--on", "Radeon 8060S"]) == 0
    assert "2 speeds were added." in capsys.readouterr().err
    assert cli.main(["reports", "remove", "1", "2"]) == 0
    assert cli.main(["reports", "add", str(tmp_path / "none.txt")]) == 2
    assert "none.txt can't be read" in capsys.readouterr().err
