"""The environment in .venv, and the note in it that says what it was made from."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.setup.pip import run_pip
from tools.setup.progress import LibraryProgress, ProgressLine
from tools.setup.project import ENGINE_PACKAGE, ROOT, VENV, WORK, SetupError, venv_python

CONSTRAINTS = ROOT / "constraints.txt"
FOR_TESTS = "# What tests and bundles need besides"
"""The line of constraints.txt that begins its second part."""
_NOTE = VENV / "qwendesk-setup.json"


@dataclass(frozen=True)
class Note:
    """What the environment was made from. If nothing of it changed, the environment is up to date."""

    root: str
    """An environment does not survive a move: its scripts name their interpreter by its whole path."""
    project: str
    """Hash of the files that decide what is installed."""
    wanted_engine: str
    prebuilt: bool
    tools: str
    """See backends.tool_signature: what ENGINE=auto looked at."""
    wheel: str
    """The engine's wheel, by path, size and time of change."""
    purposes: tuple[str, ...]
    """What the system was checked and libraries were installed for: "run", "test"."""


def read_note() -> Note | None:
    """The note of the last complete set-up; None if there is none, or one of another form."""
    try:
        values = json.loads(_NOTE.read_text(encoding="utf-8"))
        return Note(**{**values, "purposes": tuple(values["purposes"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_note(note: Note) -> None:
    """Written last, so that a set-up that broke off is taken up again."""
    _NOTE.write_text(json.dumps(asdict(note), indent=1), encoding="utf-8")


def forget_note() -> None:
    """Called before the environment is changed."""
    _NOTE.unlink(missing_ok=True)


def project_hash(root: Path = ROOT) -> str:
    """Changes with every file that decides what is installed."""
    files = [root / "pyproject.toml", root / "constraints.txt", *sorted((root / "tools" / "setup").glob("*.py"))]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def wheel_mark(wheel: Path) -> str:
    """Tells a rebuilt wheel from the one that was installed; empty if it is gone."""
    try:
        status = wheel.stat()
    except OSError:
        return ""
    return f"{wheel}|{status.st_size}|{status.st_mtime_ns}"


def create(*, moved: bool) -> bool:
    """Makes .venv with this interpreter, unless one that works is there. Returns whether it is new and so empty."""
    if not moved and _works(venv_python()):
        return False
    if VENV.exists():
        shutil.rmtree(VENV)
    # Not sys.executable: that may be the one just removed, when the environment is active.
    base = getattr(sys, "_base_executable", sys.executable)
    done = subprocess.run([base, "-m", "venv", str(VENV)], stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise SetupError("Python could not make a virtual environment; its own words stand above.")
    return True


def install(wheel: Path, *, new_engine: bool, with_tests: bool) -> None:
    """Installs the engine's wheel, then the project from its own folder, and its libraries as constraints.txt says.

    `with_tests` adds what tests and bundles need. What is installed already stays. Raises SetupError.
    """
    terminal = sys.stdout.isatty()
    line = ProgressLine("libraries", sys.stdout, terminal=terminal)
    progress = LibraryProgress(line, pinned_count(with_tests=with_tests), terminal=terminal)
    if new_engine:
        # By force, because the engines of two backends have the same name and release.
        _pip(line, ["install", "--force-reinstall", "--no-deps", str(wheel)], "engine")
    # Never a second engine build, out of sight, should the one just installed not do.
    arguments = ["install", "--constraint", str(CONSTRAINTS), "--only-binary", ENGINE_PACKAGE, "--progress-bar", "off"]
    arguments += ["--editable", f"{ROOT}[dev]" if with_tests else str(ROOT)]
    _pip(line, arguments, "libraries", progress.feed)
    line.finish("installed")


def pinned_count(constraints: Path = CONSTRAINTS, *, with_tests: bool) -> int:
    """Return how many libraries constraints.txt pins: those that running needs come first."""
    text = constraints.read_text(encoding="utf-8")
    return (text if with_tests else text.partition(FOR_TESTS)[0]).count("==")


def _works(python: Path) -> bool:
    if not python.exists():
        return False
    script = "import sys, pip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))"
    return subprocess.run([str(python), "-c", script], capture_output=True, check=False).returncode == 0


def _pip(
    line: ProgressLine, arguments: Sequence[str], name: str, take: Callable[[str], None] = lambda text: None
) -> None:
    trouble = run_pip(venv_python(), arguments, WORK / f"setup-{name}.log", take)
    if trouble:
        line.finish("the installation failed")
        raise SetupError(f"pip could not install what is needed. Are you online? {trouble}")
