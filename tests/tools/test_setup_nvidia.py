"""What nvidia-smi says of the cards, and which CUDA they can use."""

import subprocess
from pathlib import Path

import pytest

from tools.setup import nvidia
from tools.setup.nvidia import NvidiaCard, architectures, cards_in, nvidia_cards, obstacle, usable

TWO_CARDS = "8.9, 580.65.06, NVIDIA GeForce RTX 4070\n7.5, 580.65.06, NVIDIA GeForce GTX 1660 SUPER\n"


def test_cards_are_read_with_capability_driver_and_name() -> None:
    assert cards_in(TWO_CARDS) == (
        NvidiaCard("NVIDIA GeForce RTX 4070", "580.65.06", (8, 9)),
        NvidiaCard("NVIDIA GeForce GTX 1660 SUPER", "580.65.06", (7, 5)),
    )
    assert cards_in("[N/A], 535.54, Card, with a comma\n") == (NvidiaCard("Card, with a comma", "535.54"),)
    assert cards_in("390.157, GeForce GTX 580\n", with_capability=False) == (NvidiaCard("GeForce GTX 580", "390.157"),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No devices were found\n",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that it runs.\n",
        "8.6, [Unknown Error], NVIDIA GeForce RTX 3060\n",
    ],
)
def test_words_of_a_driver_that_does_not_work_are_no_card(text: str) -> None:
    assert cards_in(text) == ()


@pytest.mark.parametrize(
    ("card", "major", "why"),
    [
        (NvidiaCard("RTX 3060", "580.65.06", (8, 6)), 13, ""),
        (NvidiaCard("GTX 1650", "591.10", (7, 5)), 13, ""),
        (NvidiaCard("GTX 1080", "580.65.06", (6, 1)), 13, "needs a GeForce GTX 16 or RTX 20 or newer"),
        (NvidiaCard("GTX 1080", "535.1", (6, 1)), 12, ""),
        (NvidiaCard("GTX 680", "535.1", (3, 0)), 12, "needs a GeForce GTX 750 or newer"),
        (NvidiaCard("RTX 3060", "575.64", (8, 6)), 13, "needs an NVIDIA driver from 580 on, and this one is 575.64"),
        (NvidiaCard("GTX 580", "390.157"), 13, "needs an NVIDIA driver from 580 on"),
        (NvidiaCard("RTX 3060", "580.65.06"), 13, ""),
        (NvidiaCard("RTX 3060", "470.1", (8, 6)), 11, ""),
    ],
)
def test_old_cards_and_drivers_are_told_from_others(card: NvidiaCard, major: int, why: str) -> None:
    said = obstacle([card], major)
    assert why in said
    assert bool(why) == bool(said)


def test_one_card_that_is_new_enough_is_enough() -> None:
    cards = cards_in(TWO_CARDS + "6.1, 580.65.06, NVIDIA GeForce GTX 1080\n")
    assert obstacle(cards, 13) == ""
    assert architectures(usable(cards, 13)) == ("75-real", "89-real")
    assert obstacle([], 13) == ""


def fake_smi(folder: Path, monkeypatch: pytest.MonkeyPatch, answers: dict[str, tuple[int, str]]) -> None:
    """Stand in for nvidia-smi: its exit code and output by the field that a query begins with."""

    def run(command: list[str], **_options: object) -> subprocess.CompletedProcess[str]:
        field = command[1].removeprefix("--query-gpu=").split(",")[0]
        assert command[2] == "--format=csv,noheader"
        code, text = answers[field]
        return subprocess.CompletedProcess(command, code, text, "")

    monkeypatch.setattr(nvidia.shutil, "which", lambda _name: str(folder / "nvidia-smi"))
    monkeypatch.setattr(nvidia.subprocess, "run", run)


def test_driver_that_does_not_know_the_capability_still_names_its_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_smi(tmp_path, monkeypatch, {
        "compute_cap": (2, 'Field "compute_cap" is not a valid field to query.\n'),
        "driver_version": (0, "470.57.02, NVIDIA GeForce GTX 1080\n"),
    })  # fmt: skip
    assert nvidia_cards() == (NvidiaCard("NVIDIA GeForce GTX 1080", "470.57.02"),)


def test_failing_hanging_or_missing_program_means_no_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_smi(tmp_path, monkeypatch, {"compute_cap": (9, ""), "driver_version": (9, "NVIDIA-SMI has failed, 1\n")})
    assert nvidia_cards() == ()

    def hang(command: list[str], **_options: object) -> None:
        raise subprocess.TimeoutExpired(command, 20)

    monkeypatch.setattr(nvidia.subprocess, "run", hang)
    assert nvidia_cards() == ()
    monkeypatch.setattr(nvidia.shutil, "which", lambda _name: None)
    assert nvidia_cards() == ()
