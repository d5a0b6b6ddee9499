"""`make bundle-test`: the bundle as a stranger would try it, on Linux.

Under Xvfb, from an awkward path, by a user who may not write there.
Nothing of this checkout, its environment or its Python is in reach of the programs that are tried.
"""

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

from tools.setup.project import ROOT, WORK, SetupError

_AWKWARD = "Qwen Désk 試し"
_USER = "nobody"
_LONGEST_S = 300.0
_EXPECTED = ("system ram", "red")
"""Words of the demo's answers about VRAM spill and about the red picture."""


def try_bundle(bundle: Path, results: Path) -> int:
    """Copies the bundle and uses it. Returns 0, or 1 with what went wrong on standard error. Needs root and Xvfb."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        raise SetupError("This test of the bundle needs Linux and root: it runs the app as another user.")
    if not bundle.is_dir():
        raise SetupError("There is no bundle yet: run `make bundle`.")
    results.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="qwendesk-") as folder:
        place = Path(folder)
        place.chmod(0o755)
        copy = place / _AWKWARD / "QwenDesk"
        shutil.copytree(bundle, copy, symlinks=True)
        home = place / "home"
        home.mkdir()
        shutil.chown(home, _USER)
        faults = [*_doctor(copy, home), *_window(copy, home, results), *_left_behind(copy)]
    for fault in faults:
        print(f"FAILED: {fault}", file=sys.stderr)
    print(f"Screenshot: {results / 'window.png'}")
    print("The bundle works." if not faults else f"{len(faults)} faults.")
    return 1 if faults else 0


def _doctor(copy: Path, home: Path) -> Iterator[str]:
    done = _run([str(copy / "QwenDesk"), "doctor", "--json"], home, {})
    if done.returncode:
        yield f"doctor ended with {done.returncode}: {done.stderr[-2000:]}"
        return
    said = json.loads(done.stdout)
    print(json.dumps(said, indent=1)[:2000])


def _window(copy: Path, home: Path, results: Path) -> Iterator[str]:
    picture = home / "window.png"
    with _display() as display:
        command = [str(copy / "QwenDesk"), "--demo-tour", "--screenshot", str(picture)]
        done = _run(command, home, {"DISPLAY": display})
    print(done.stdout)
    if done.returncode:
        yield f"the demo tour ended with {done.returncode}: {done.stderr[-2000:]}"
    for word in _EXPECTED:
        if word not in done.stdout.lower():
            yield f'no answer has the word "{word}"'
    if picture.is_file():
        shutil.copyfile(picture, results / "window.png")
    else:
        yield "there is no screenshot"


def _run(command: list[str], home: Path, more: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """As another user, with an empty PATH and a home of its own; what it prints is kept."""
    user = pwd.getpwnam(_USER)
    environment = {"HOME": str(home), "PATH": "", "LANG": "C.UTF-8", "XDG_RUNTIME_DIR": str(home), **more}
    return subprocess.run(
        command,
        env=environment,
        cwd="/",
        user=user.pw_uid,
        group=user.pw_gid,
        extra_groups=[],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        timeout=_LONGEST_S,
        check=False,
    )


def _left_behind(copy: Path) -> Iterator[str]:
    """Processes of the bundle that still run, and files it wrote into its own folder."""
    for process in psutil.process_iter(["exe"]):
        if process.info["exe"] and Path(process.info["exe"]).is_relative_to(copy):
            yield f"process {process.pid} still runs"
    if list(copy.rglob("__pycache__")):
        yield "Python wrote into the app's folder"


@contextmanager
def _display() -> Iterator[str]:
    """A screen of its own; yields its name."""
    read, write = os.pipe()
    command = ["Xvfb", "-displayfd", str(write), "-screen", "0", "1280x800x24", "-nolisten", "tcp"]
    with subprocess.Popen(command, pass_fds=[write], stderr=subprocess.DEVNULL) as server:
        os.close(write)
        try:
            with os.fdopen(read) as pipe:
                number = pipe.readline().strip()
            if not number:
                raise SetupError("Xvfb did not start.")
            yield f":{number}"
        finally:
            server.terminate()


if __name__ == "__main__":
    try:
        sys.exit(try_bundle(ROOT / "dist" / "QwenDesk", WORK / "bundle-test"))
    except SetupError as error:
        sys.exit(str(error))
