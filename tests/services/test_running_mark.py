"""The mark that the installer on Windows looks for."""

import re
from pathlib import Path

from qwendesk.services import running_mark

INSTALLER = Path(__file__).parents[2] / "packaging" / "windows" / "qwendesk.iss"


def test_the_installer_asks_for_the_mark_that_the_app_makes() -> None:
    asked = re.findall(r"CheckForMutexes\('(\w+)'\)", INSTALLER.read_text(encoding="utf-8"))
    assert set(asked) == {running_mark.NAME}
    running_mark.mark_as_running()
