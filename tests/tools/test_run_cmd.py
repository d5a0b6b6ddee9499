"""What a double-click on run.cmd says on a Windows PC where QwenDesk can't start yet."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.setup.project import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "win32", reason="run.cmd is for Windows")


def double_click(folder: Path, *, with_python: bool) -> tuple[int, str]:
    """Run a copy of run.cmd in `folder`, press a key, and return the exit code and what its window showed."""
    script = folder / "run.cmd"
    # Git gives Windows' line ends to this file on Windows only, and labels need them.
    script.write_bytes(b"\r\n".join((ROOT / "run.cmd").read_bytes().splitlines()) + b"\r\n")
    # Not Windows' folder itself, where Python's launcher may be.
    system = Path(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32")
    places = [str(system), *([str(Path(sys.executable).parent)] if with_python else [])]
    known = {name: value for name, value in os.environ.items() if name.upper() not in ("PATH", "CI", "ENGINE")}
    done = subprocess.run(
        ["cmd", "/c", str(script)],
        input="\r\n",
        capture_output=True,
        text=True,
        errors="replace",
        cwd=folder,
        env={**known, "PATH": os.pathsep.join(places)},
        check=False,
    )
    return done.returncode, done.stdout


def put_setup(folder: Path, code: str) -> None:
    """Put a set-up that runs `code` where run.cmd looks for the real one."""
    package = folder / "tools" / "setup"
    package.mkdir(parents=True)
    # Without these, a `tools` of another folder that Python knows comes before this one.
    for each in (package.parent, package):
        (each / "__init__.py").touch()
    (package / "__main__.py").write_text(code, encoding="utf-8")


def test_started_inside_the_zip_it_says_to_extract_it(tmp_path: Path) -> None:
    code, shown = double_click(tmp_path, with_python=True)

    assert code == 1
    assert "extract all of it first" in shown
    assert "Press any key" in shown, "the window must not close before this can be read"


def test_without_python_it_says_where_to_get_it(tmp_path: Path) -> None:
    put_setup(tmp_path, "")

    code, shown = double_click(tmp_path, with_python=False)

    assert code == 1
    assert "python.org" in shown
    assert "Press any key" in shown


def test_what_the_setup_says_stays_readable(tmp_path: Path) -> None:
    put_setup(tmp_path, "import sys\nprint('No space left on drive C:')\nsys.exit(1)\n")

    code, shown = double_click(tmp_path, with_python=True)

    assert code == 1
    assert "No space left on drive C:" in shown
    assert "Press any key" in shown
