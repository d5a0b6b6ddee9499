"""`make check` runs the tests of what was changed, and a run of tests ends even if its processes do so before."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.check import ROOT, TWO_AT_A_TIME
from tools.check import tests_of as chosen


def test_the_tests_of_a_module_lie_in_the_folder_that_mirrors_its_own() -> None:
    found = chosen(["qwendesk/hub/library.py", "tools/check.py"])

    assert {"tests/hub/test_library.py", "tests/tools/test_check.py", "tests/test_import_rules.py"} <= set(found)
    assert not any(name.startswith("tests/chat") for name in found)


def test_a_changed_test_runs_and_a_deleted_one_does_not() -> None:
    found = chosen(["tests/chat/test_service.py", "tests/chat/test_that_is_gone.py", "tests/hub/hub_server.py"])

    assert "tests/chat/test_service.py" in found
    assert "tests/chat/test_that_is_gone.py" not in found


ENDS_ONCE = """
import os
from pathlib import Path

def test_first():
    pass

def test_ends_the_process_once():
    mark = Path(__file__).with_suffix(".ended")
    if {ends} and not mark.exists():
        mark.touch()
        os._exit(3)
"""


@pytest.mark.parametrize("n_files", [2, 5])
def test_a_run_whose_process_has_ended_comes_to_its_end(tmp_path: Path, n_files: int) -> None:
    """pytest-xdist's own way waited for ever: CI ended it after 90 minutes."""
    for number in range(n_files):
        ends = number == n_files - 1
        (tmp_path / f"test_{number}.py").write_text(ENDS_ONCE.format(ends=ends), encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-W", "ignore", *TWO_AT_A_TIME, str(tmp_path)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}

    done = subprocess.run(
        command, cwd=tmp_path, env={**environment, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )

    assert f"1 failed, {2 * n_files} passed" in done.stdout, done.stdout + done.stderr
