"""`python -m tools.install_trial FILE...`: installs a release's files on a clean machine, asks the demo, removes them.

It takes the .deb, the .tar.xz and the .AppImage on Linux, the installer and the .zip on Windows, the .dmg on a Mac. It
needs Python's standard library only, and nothing of this checkout but this file.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_AWKWARD = "Qwen Désk 試し"
_LONGEST_S = 600.0
_QUESTION, _EXPECTED = "What is VRAM spill?", "ram"
_ON_WINDOWS = os.name == "nt"


class Failed(Exception):
    """What went wrong, in a sentence."""


@contextmanager
def installed(file: Path, place: Path) -> Iterator[Path]:
    """Install `file`, what can be unpacked below `place`; yield the program for commands; remove it afterwards."""
    if file.name.endswith(".deb"):
        run(["apt-get", "install", "--yes", "--no-install-recommends", str(file.absolute())], apt_environment())
        yield Path("/usr/bin/qwendesk")
        run(["apt-get", "remove", "--yes", "qwendesk"], apt_environment())
        _refuse_left(Path("/opt/qwendesk"), Path("/usr/bin/qwendesk"))
    elif file.name.endswith(".tar.xz"):
        with tarfile.open(file) as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(place)
        yield place / "QwenDesk" / "QwenDesk"
    elif file.name.endswith(".AppImage"):
        program = place / "QwenDesk.AppImage"
        shutil.copyfile(file, program)
        program.chmod(0o755)
        yield program
    elif file.name.endswith(".zip"):
        with zipfile.ZipFile(file) as zipped:
            zipped.extractall(place)
        yield place / "QwenDesk" / "QwenDeskCommand.exe"
    elif file.name.endswith("-setup.exe"):
        run([str(file), "/VERYSILENT", "/SUPPRESSMSGBOXES", "/NORESTART"])
        program = Path(os.environ["LOCALAPPDATA"], "Programs", "QwenDesk", "QwenDeskCommand.exe")
        yield program
        # The remover goes on in a copy of itself, which ends a moment later: the program is gone when this one ends.
        run([str(program.with_name("unins000.exe")), "/VERYSILENT", "/SUPPRESSMSGBOXES"])
        _refuse_left(program)
    elif file.name.endswith(".dmg"):
        volume = place / "volume"
        run(["hdiutil", "attach", "-nobrowse", "-readonly", "-mountpoint", str(volume), str(file)])
        try:
            run(["cp", "-R", str(volume / "QwenDesk.app"), str(place)])
        finally:
            run(["hdiutil", "detach", str(volume)])
        yield place / "QwenDesk.app" / "Contents" / "MacOS" / "QwenDesk"
    else:
        raise Failed(f"{file.name} is no file of a release.")


def try_program(program: Path, home: Path, picture: Path) -> Iterator[str]:
    """Use the program as a stranger would; yield a line for each step that went well. Raises Failed."""
    environment = stranger(home)
    said = run([str(program), "ask", _QUESTION], environment)
    if _EXPECTED not in said.lower():
        raise Failed(f"The demo answered {said!r}, without the word {_EXPECTED!r}.")
    yield f"ask: {said.strip().splitlines()[-1]}"
    seen = json.loads(run([str(program), "doctor", "--json"], environment))
    tests = seen["self_test"]
    if not tests or not all(test["passed"] for test in tests):
        raise Failed(f"doctor: {tests}")
    yield f"doctor: {len(tests)} tests passed, release {seen['versions']['qwendesk']}"
    window = program.with_name("QwenDesk.exe") if program.name == "QwenDeskCommand.exe" else program
    run([str(window), "--demo-tour", "--screenshot", str(picture)], environment)
    if not picture.is_file():
        raise Failed("The window made no picture of itself.")
    yield f"window: three questions answered, {picture.name}"


def stranger(home: Path) -> dict[str, str]:
    """Return the environment of a user who has no Python, and an empty home where that can be chosen."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    if _ON_WINDOWS:
        system = kept["SYSTEMROOT"]
        return {**kept, "PATH": f"{system}\\System32;{system}", "PYTHONUTF8": "1"}
    # Without FUSE's helper an AppImage unpacks itself. Without a screen the window is drawn into memory.
    more = {"APPIMAGE_EXTRACT_AND_RUN": "1"} if sys.platform.startswith("linux") else {}
    more |= {"QT_QPA_PLATFORM": "offscreen"} if "DISPLAY" not in kept and more else {}
    return {**more, "HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "XDG_RUNTIME_DIR": str(home)}


def apt_environment() -> dict[str, str]:
    return {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}


def run(command: Sequence[str], environment: dict[str, str] | None = None) -> str:
    """Return what `command` prints. Raises Failed if it fails or takes too long."""
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, encoding="utf-8", errors="replace",
            timeout=_LONGEST_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failed(f"{command[0]}: {error}") from error
    if done.returncode:
        raise Failed(
            f"{' '.join(command[:3])} ended with {done.returncode}: {done.stdout[-1000:]}{done.stderr[-2000:]}"
        )
    return done.stdout


def _refuse_left(*paths: Path) -> None:
    left = [str(path) for path in paths if path.exists()]
    if left:
        raise Failed(f"Still there after the removal: {', '.join(left)}")


def try_file(file: Path, pictures: Path) -> Iterator[str]:
    """Install, use and remove one file; yield a line for each step that went well. Raises Failed."""
    with tempfile.TemporaryDirectory(prefix="qwendesk-", ignore_cleanup_errors=True) as folder:
        place, home = Path(folder, _AWKWARD), Path(folder, "home")
        place.mkdir()
        home.mkdir()
        with installed(file, place) as program:
            yield f"installed: {program}"
            yield from try_program(program, home, pictures / f"{file.name}.png")
    yield "removed"


def main(arguments: Sequence[str]) -> int:
    """Return 0, or 1 with a sentence of what went wrong."""
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        # The package first: it brings what the others expect of a desktop, and that stays.
        for argument in sorted(arguments, key=lambda name: not name.endswith(".deb")):
            print(argument)
            for line in try_file(Path(argument).absolute(), Path.cwd()):
                print(f"  {line}", flush=True)
    except Failed as error:
        print(f"FAILED: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
