"""The names of running programs."""

import os

import psutil
import pytest

from qwendesk.hardware.programs import RunningProgram, is_same_program, running_programs, started_programs


def test_this_process_is_among_the_running_programs() -> None:
    assert RunningProgram(os.getpid(), psutil.Process().name()) in running_programs()


def test_programs_of_the_user_are_listed_once_the_latest_first_without_our_own_processes() -> None:
    parent = psutil.Process().parent()
    assert parent is not None
    started = started_programs(most=1_000)
    names = [program.name for program in started]
    assert parent.name() in names
    assert len(set(names)) == len(names)
    assert os.getpid() not in [program.pid for program in started]
    assert len(started_programs(most=1)) == 1


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
