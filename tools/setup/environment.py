"""The environment in .venv, and the note in it that says what it was made from."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.setup.project import ENGINE_PACKAGE, ROOT, VENV, SetupError, venv_python

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
    """What the system was checked for: "run", "test"."""


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


def create(*, moved: bool, say: Callable[[str], None]) -> bool:
    """Makes .venv with this interpreter, unless one that works is there. Returns whether it is new and so empty."""
    if not moved and _works(venv_python()):
        return False
    say(f"Making the environment in {VENV.name} with Python {sys.version.split()[0]}")
    if VENV.exists():
        shutil.rmtree(VENV)
    # Not sys.executable: that may be the one just removed, when the environment is active.
    base = getattr(sys, "_base_executable", sys.executable)
    done = subprocess.run([base, "-m", "venv", str(VENV)], stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise SetupError("Python could not make a virtual environment; its own words stand above.")
    return True


def install(wheel: Path, *, new_engine: bool, say: Callable[[str], None]) -> None:
    """Installs the engine's wheel, then the project from its own folder, and its libraries as constraints.txt says."""
    if new_engine:
        say(f"Installing the engine {wheel.parent.name}")
        # By force, because the engines of two backends have the same name and release.
        _pip("install", "--force-reinstall", "--no-deps", str(wheel))
    say("Installing the libraries")
    constraints = str(ROOT / "constraints.txt")
    # Never a second engine build, out of sight, should the one just installed not do.
    ready_engine = ["--only-binary", ENGINE_PACKAGE]
    _pip("install", "--constraint", constraints, *ready_engine, "--editable", f"{ROOT}[dev]")


def _works(python: Path) -> bool:
    if not python.exists():
        return False
    script = "import sys, pip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))"
    return subprocess.run([str(python), "-c", script], capture_output=True, check=False).returncode == 0


def _pip(*arguments: str) -> None:
    quiet = [] if sys.stdout.isatty() else ["--quiet"]
    command = [str(venv_python()), "-m", "pip", "--no-input", "--disable-pip-version-check", *arguments, *quiet]
    if subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode:
        raise SetupError("pip could not install what is needed; its own words stand above.")
