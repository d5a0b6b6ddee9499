"""Made-up Pythons on a PATH of their own: both launchers, versions that aren't on this PC, and the Store's alias."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tools.setup.project import ROOT

_SCRIPT = Path(__file__).with_name("made_up_python.py")


@dataclass(frozen=True)
class Pythons:
    """The Pythons of a made-up PC."""

    launcher: str = ""
    """"classic", "manager" (the Python install manager) or none."""
    launched: Sequence[str] = ()
    """The versions that the launcher knows."""
    on_path: Mapping[str, str] = field(default_factory=dict)
    """Version by command."""
    has_store_alias: bool = False
    """`python` is the program of Windows that only names the Microsoft Store."""
    has_network: bool = True
    winget: str = ""
    """"works", "fails" or none."""
    pressed: str = ""
    """The key that answers `choice` (Wine has none of its own), or no keyboard."""

    def put(self, folder: Path) -> None:
        """Put the commands into a folder for PATH."""
        folder.mkdir()
        script = Path(shutil.copy(_SCRIPT, folder))
        (folder / "pc.json").write_text(json.dumps(asdict(self)), encoding="utf-8")
        names = [*self.on_path, *(["python"] if self.has_store_alias else [])]
        names += {"": [], "classic": ["py"], "manager": ["py", "pymanager"]}[self.launcher]
        names += ["winget", "choice"] if self.winget else []
        for name in names:
            if os.name == "nt":
                (folder / f"{name}.cmd").write_text(f'@"{sys.executable}" "{script}" {name} %*\n', encoding="utf-8")
            else:
                command = folder / name
                command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" {name} "$@"\n', encoding="utf-8")
                command.chmod(0o755)


def put_checkout(folder: Path, setup: str) -> None:
    """Put what a double-click on run.cmd or `make run` needs into a folder, with `setup` in place of the set-up."""
    package = folder / "tools" / "setup"
    package.mkdir(parents=True)
    # Without these, a `tools` of another folder that Python knows comes before this one.
    for each in (package.parent, package):
        (each / "__init__.py").touch()
    for name in ("run.cmd", "test.cmd", "Makefile", "tools/setup/find_python.cmd", "tools/setup/__main__.py"):
        content = (ROOT / name).read_bytes()
        # Git gives Windows' line ends to such a file on Windows only, and labels need them.
        lines = b"\r\n".join(content.splitlines()) + b"\r\n" if name.endswith(".cmd") else content
        (folder / name).write_bytes(lines)
    (package / "command.py").write_text(setup, encoding="utf-8")


def run_script(folder: Path, pythons: Pythons, line: Sequence[str], **variables: str) -> tuple[int, str]:
    """Run a command of a checkout with these Pythons alone, press a key, and return exit code and what it showed."""
    pythons.put(made_up_path(folder))
    # Not Windows' folder itself, where Python's launcher may be.
    system = [str(Path(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32"))] if os.name == "nt" else []
    hidden = ("PATH", "CI", "ENGINE", "PYTHON", "PYTHON_MANAGER_AUTOMATIC_INSTALL", "PYLAUNCHER_ALLOW_INSTALL")
    known = {name: value for name, value in os.environ.items() if name.upper() not in hidden}
    done = subprocess.run(
        [shutil.which(line[0]) or line[0], *line[1:]],
        input="\r\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=folder,
        env={
            **known,
            "LOCALAPPDATA": str(folder / "local"),
            **variables,
            "PATH": os.pathsep.join([str(made_up_path(folder)), *system]),
        },
        check=False,
    )
    return done.returncode, done.stdout


def installed(folder: Path) -> list[str]:
    """Return the versions that were installed because a launcher or winget was asked for them."""
    file = made_up_path(folder) / "installed.txt"
    return file.read_text(encoding="utf-8").split() if file.exists() else []


def made_up_path(folder: Path) -> Path:
    """Return the folder on PATH that a checkout's commands run with."""
    return folder / "made-up-path"
