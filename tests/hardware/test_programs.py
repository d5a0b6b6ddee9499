"""The names of running programs."""

import os

import psutil
import pytest

from qwendesk.hardware.programs import Program, is_same_program, running_programs


def test_this_process_is_among_the_running_programs() -> None:
    assert Program(os.getpid(), psutil.Process().name()) in running_programs()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("eldenring.exe", "EldenRing.exe", True),
        ("eldenring", "eldenring.exe", True),
        ("  eldenring ", "eldenring", True),
        ("eldenring", "eldenring2", False),
        ("a-very-long-game-name", "a-very-long-gam", True),
        ("a-very-long-game-name", "a-very-long", False),
        ("", "", False),
        (".exe", "", False),
    ],
)
def test_names_of_one_program(one: str, other: str, same: bool) -> None:
    assert is_same_program(one, other) is same
    assert is_same_program(other, one) is same
