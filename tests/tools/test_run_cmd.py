"""What a double-click on run.cmd says on a Windows PC where QwenDesk can't start yet.

Which Python it takes is tried in tests/field/test_first_minute.py.
"""

import sys
from pathlib import Path

import pytest

from tests.tools.made_up_pythons import Pythons, put_checkout, run_script

pytestmark = pytest.mark.skipif(sys.platform != "win32", reason="run.cmd is for Windows")

HERE = Pythons(on_path={"python": ".".join(str(number) for number in sys.version_info[:3])})


def test_started_inside_the_zip_it_says_to_extract_it(tmp_path: Path) -> None:
    put_checkout(tmp_path, "")
    (tmp_path / "tools" / "setup" / "find_python.cmd").unlink()

    code, shown = run_script(tmp_path, HERE, ["cmd", "/c", "run.cmd"])

    assert code == 1
    assert "extract all of it first" in shown
    assert "Press any key" in shown, "the window must not close before this can be read"


def test_what_the_setup_says_stays_readable(tmp_path: Path) -> None:
    put_checkout(tmp_path, "def main(arguments):\n    print('No space left on drive C:')\n    return 1\n")

    code, shown = run_script(tmp_path, HERE, ["cmd", "/c", "run.cmd"])

    assert code == 1
    assert "No space left on drive C:" in shown
    assert "Press any key" in shown
