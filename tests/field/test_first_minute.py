"""The first minute: the Python that python.org or the system offers first is too new, and one that works is there.

run.cmd and test.cmd are tried by a Windows Python (`make windows-test PYTEST_ARGS=tests/field/test_first_minute.py`),
the Makefile elsewhere. Each made-up Python is the one that runs the tests, with another version.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.field.grid import Kind, Way, case
from tests.tools.made_up_pythons import Pythons, installed, put_checkout, run_script

_LATER = "without the set-up, which this stops, there is nothing to send a request to"

NEWEST_PYTHON = Kind(
    "The newest Python is not one that works",
    {way: _LATER for way in Way if way not in (Way.WINDOW, Way.CLI)},
)

WINDOWS = pytest.mark.skipif(sys.platform != "win32", reason="run.cmd is for Windows")
ELSEWHERE = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no make")
SETUP = """
import sys

def main(arguments):
    print("Set up by", ".".join(map(str, sys.version_info[:3])))
    return 1
"""

FOUND = {
    "3.14 beside 3.15, which was never tried": (Pythons("classic", ("3.15.0", "3.14.2")), "3.14.2"),
    "only 3.15, by the launcher": (Pythons("classic", ("3.15.0",)), "3.15.0"),
    "only 3.15, on PATH": (Pythons(on_path={"python": "3.15.1"}), "3.15.1"),
    "3.14 beside 3.16": (Pythons("classic", ("3.16.0", "3.14.2")), "3.14.2"),
    "3.13 beside 3.16 by the manager": (Pythons("manager", ("3.16.0", "3.13.9")), "3.13.9"),
    "only 3.11, and the manager would install 3.14": (Pythons("manager", ("3.11.9",)), "3.11.9"),
    "3.12 on PATH, and a launcher that knows none": (Pythons("classic", (), {"python": "3.12.1"}), "3.12.1"),
    "3.12 on PATH, and a manager that knows none": (Pythons("manager", (), {"python": "3.12.1"}), "3.12.1"),
    "3.16 on PATH, and 3.13 by the launcher": (Pythons("classic", ("3.13.0",), {"python": "3.16.0"}), "3.13.0"),
    "the Store's alias, and python3": (Pythons(on_path={"python3": "3.12.4"}, has_store_alias=True), "3.12.4"),
}
FOUND_BEFORE = {
    "no launcher": (Pythons(on_path={"python": "3.13.5"}), "3.13.5"),
    "the Store's alias, and 3.12 by the launcher": (Pythons("classic", ("3.12.4",), has_store_alias=True), "3.12.4"),
}
NOT_FOUND = {
    "nothing": (Pythons(), "none was found"),
    "the Store's alias": (Pythons(has_store_alias=True), "none was found"),
    "a launcher without a Python": (Pythons("classic", has_store_alias=True), "none was found"),
    "only 3.16, by the launcher": (Pythons("classic", ("3.16.0",)), "this is 3.16.0"),
    "only 3.16, on PATH": (Pythons(on_path={"python": "3.16.1"}), "this is 3.16.1"),
    "only 3.10": (Pythons("classic", ("3.10.11",), {"python": "3.10.11"}), "this is 3.10.11"),
    "the manager with 3.16, offline": (Pythons("manager", ("3.16.0",), has_network=False), "this is 3.16.0"),
}


@WINDOWS
@pytest.mark.parametrize("name", FOUND)
@case(NEWEST_PYTHON, Way.WINDOW, report="python.org's download page, October 2026", before="failed")
def test_run_cmd_takes_a_python_that_works_and_installs_none(name: str, tmp_path: Path) -> None:
    put_checkout(tmp_path, SETUP)
    pythons, version = FOUND[name]

    _, shown = run_script(tmp_path, pythons, ["cmd", "/c", "run.cmd"])

    assert f"Set up by {version}" in shown
    assert installed(tmp_path) == []


@WINDOWS
@pytest.mark.parametrize("name", FOUND_BEFORE)
@case(NEWEST_PYTHON, Way.WINDOW, report="python.org's download page, October 2026", before="held")
def test_run_cmd_takes_the_only_python(name: str, tmp_path: Path) -> None:
    put_checkout(tmp_path, SETUP)
    pythons, version = FOUND_BEFORE[name]

    _, shown = run_script(tmp_path, pythons, ["cmd", "/c", "run.cmd"])

    assert f"Set up by {version}" in shown


@WINDOWS
@pytest.mark.parametrize("name", NOT_FOUND)
@case(NEWEST_PYTHON, Way.WINDOW, report="python.org's download page, October 2026", before="failed")
def test_run_cmd_names_the_python_to_install(name: str, tmp_path: Path) -> None:
    put_checkout(tmp_path, SETUP)
    pythons, found = NOT_FOUND[name]

    code, shown = run_script(tmp_path, pythons, ["cmd", "/c", "run.cmd"])

    assert code == 1
    assert shown.count("QwenDesk needs Python 3.11 to 3.15, and ") == 1
    assert found in shown
    assert "Install Python 3.13" in shown
    assert "https://www.python.org/downloads/windows/" in shown
    assert "Press any key" in shown, "the window must not close before this can be read"


@WINDOWS
@pytest.mark.parametrize("without", [Pythons(), Pythons(has_store_alias=True), Pythons("classic", ("3.16.0",))])
@case(NEWEST_PYTHON, Way.WINDOW, report="microsoft/winget-cli#2994", before="failed")
def test_one_key_has_winget_install_a_python_and_goes_on(without: Pythons, tmp_path: Path) -> None:
    put_checkout(tmp_path, SETUP)

    _, shown = run_script(tmp_path, replace(without, winget="works", pressed="Y"), ["cmd", "/c", "run.cmd"])

    assert "Or press Y: winget installs it for you alone" in shown
    assert "Set up by 3.13.15" in shown
    assert installed(tmp_path) == ["3.13.15"]


@WINDOWS
@pytest.mark.parametrize("pressed", ["N", ""])
@case(NEWEST_PYTHON, Way.WINDOW, report="microsoft/winget-cli#2994", before="failed")
def test_nothing_is_installed_unless_it_is_asked_for(pressed: str, tmp_path: Path) -> None:
    put_checkout(tmp_path, SETUP)

    code, shown = run_script(tmp_path, Pythons(winget="works", pressed=pressed), ["cmd", "/c", "run.cmd"])

    assert code == 1
    assert "Or press Y" in shown
    assert installed(tmp_path) == []


@WINDOWS
@case(NEWEST_PYTHON, Way.WINDOW, report="microsoft/winget-cli#2994", before="failed")
def test_a_winget_that_fails_is_said(tmp_path: Path) -> None:
    put_checkout(tmp_path, SETUP)

    code, shown = run_script(tmp_path, Pythons(winget="fails", pressed="Y"), ["cmd", "/c", "run.cmd"])

    assert code == 1
    assert "winget did not install Python 3.13" in shown
    assert "Press any key" in shown


@WINDOWS
@pytest.mark.parametrize("launched", [(), ("3.16.0",), ("3.10.2", "3.16.0")])
@case(NEWEST_PYTHON, Way.WINDOW, report="python/pymanager#227", before="failed")
def test_the_install_manager_gets_the_one_that_works(launched: Sequence[str], tmp_path: Path) -> None:
    put_checkout(tmp_path, SETUP)

    _, shown = run_script(tmp_path, Pythons("manager", launched, has_store_alias=True), ["cmd", "/c", "run.cmd"])

    assert "The Python install manager gets Python 3.13 now." in shown
    assert "Set up by 3.13.1" in shown
    assert installed(tmp_path) == ["3.13.1"]


@WINDOWS
@case(NEWEST_PYTHON, Way.WINDOW, report="python/pymanager#227", before="failed")
def test_a_manager_that_may_not_install_is_left_alone(tmp_path: Path) -> None:
    put_checkout(tmp_path, SETUP)

    code, shown = run_script(
        tmp_path, Pythons("manager", ("3.16.0",)), ["cmd", "/c", "run.cmd"], PYTHON_MANAGER_AUTOMATIC_INSTALL="false"
    )

    assert code == 1
    assert "this is 3.16.0. Install Python 3.13" in shown
    assert installed(tmp_path) == []


@WINDOWS
@case(NEWEST_PYTHON, Way.WINDOW, report="the documents of the classic launcher", before="failed")
def test_a_launcher_that_may_install_takes_what_is_here_first(tmp_path: Path) -> None:
    put_checkout(tmp_path, SETUP)

    _, shown = run_script(
        tmp_path, Pythons("classic", ("3.16.0", "3.12.3")), ["cmd", "/c", "run.cmd"], PYLAUNCHER_ALLOW_INSTALL="1"
    )

    assert "Set up by 3.12.3" in shown
    assert installed(tmp_path) == []


@WINDOWS
@pytest.mark.parametrize("line", [["run.cmd", "doctor"], ["test.cmd"]])
@case(NEWEST_PYTHON, Way.CLI, report="python.org's download page, October 2026", before="failed")
def test_commands_find_their_python_the_same_way(line: Sequence[str], tmp_path: Path) -> None:
    put_checkout(tmp_path, SETUP)

    code, shown = run_script(tmp_path, Pythons("classic", ("3.16.0", "3.13.2")), ["cmd", "/c", *line])

    assert code == 1, "the made-up set-up fails"
    assert "Set up by 3.13.2" in shown


@ELSEWHERE
@pytest.mark.parametrize(
    ("on_path", "version"),
    [
        ({"python3": "3.16.0", "python3.13": "3.13.5"}, "3.13.5"),
        ({"python3": "3.16.0", "python3.11": "3.11.2", "python3.14": "3.14.1"}, "3.14.1"),
    ],
)
@case(NEWEST_PYTHON, Way.WINDOW, report="python.org's download page, October 2026", before="failed")
def test_make_passes_over_a_python_that_is_too_new(on_path: dict[str, str], version: str, tmp_path: Path) -> None:
    put_checkout(tmp_path, SETUP)

    _, shown = run_script(tmp_path, Pythons(on_path=on_path), ["make", "run"])

    assert f"Set up by {version}" in shown


@ELSEWHERE
@pytest.mark.parametrize(("first", "version"), [("3.9.6", "3.12.7"), ("3.11.7", "3.11.7")])
@case(NEWEST_PYTHON, Way.WINDOW, report="macOS has Python 3.9", before="failed")
def test_make_takes_python3_or_a_newer_one(first: str, version: str, tmp_path: Path) -> None:
    put_checkout(tmp_path, SETUP)

    _, shown = run_script(tmp_path, Pythons(on_path={"python3": first, "python3.12": "3.12.7"}), ["make", "run"])

    assert f"Set up by {version}" in shown


@ELSEWHERE
@case(NEWEST_PYTHON, Way.WINDOW, report="python.org's download page, October 2026", before="failed")
def test_make_names_the_python_to_install(tmp_path: Path) -> None:
    put_checkout(tmp_path, SETUP)

    code, shown = run_script(tmp_path, Pythons(on_path={"python3": "3.16.0", "python3.10": "3.10.2"}), ["make", "run"])

    assert code != 0
    assert "QwenDesk needs Python 3.11 to 3.15, and this is 3.16.0. Install Python 3.13" in shown
