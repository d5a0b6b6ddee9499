"""`make bundle-test`: the bundle as a stranger would try it, on Linux; with a file's name, an AppImage.

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
from typing import Any

import psutil

from tools.bundle.needed import C_LIBRARY, FROM_THE_SYSTEM
from tools.setup.project import ROOT, WORK, SetupError

assert sys.platform != "win32", "this test runs the app as another user of Linux"

_AWKWARD = "Qwen Désk 試し"
_USER = "nobody"
_LONGEST_S = 300.0
_EXPECTED = ("slow ram", "5888", "red")
"""Words of the demo's answers about VRAM spill, from the calculator and about the red picture."""


def try_bundle(bundle: Path, results: Path) -> int:
    """Copies the bundle and uses it. Returns 0, or 1 with what went wrong on standard error. Needs root and Xvfb."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        raise SetupError("This test of the bundle needs Linux and root: it runs the app as another user.")
    if not bundle.exists():
        raise SetupError("There is no bundle yet: run `make bundle`.")
    results.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="qwendesk-") as folder:
        place = Path(folder)
        place.chmod(0o755)
        copy = place / _AWKWARD / "QwenDesk"
        copy.parent.mkdir()
        home = place / "home"
        home.mkdir()
        shutil.chown(home, _USER)
        _say(f"Copying {bundle.name} to a folder with an awkward name")
        if bundle.is_dir():
            shutil.copytree(bundle, copy, symlinks=True)
            faults = [*_asked_of_the_system(copy), *_used(copy / "QwenDesk", home, results), *_left_behind(copy)]
        else:
            shutil.copy(bundle, copy)
            faults = [*_used(copy, home, results), *_left_behind(copy.parent)]
    for fault in faults:
        print(f"FAILED: {fault}", file=sys.stderr)
    _say(f"Screenshot: {results / 'window.png'}")
    _say("The bundle works." if not faults else f"{len(faults)} faults.")
    return 1 if faults else 0


def _used(program: Path, home: Path, results: Path) -> Iterator[str]:
    yield from _doctor(program, home)
    yield from _highlighter(program, home)
    yield from _window(program, home, results)


def _asked_of_the_system(copy: Path) -> Iterator[str]:
    """Libraries that an engine needs and that neither the bundle nor every desktop has."""
    inside = copy / "_internal"
    for engine in sorted((inside / "engines").iterdir()):
        environment = {"LD_LIBRARY_PATH": f"{inside}:{engine}", "PATH": os.environ["PATH"]}
        files = [str(file) for file in engine.glob("*.so*")]
        listed = subprocess.run(["ldd", *files], env=environment, capture_output=True, check=False).stdout.decode()
        # Lines like "libgomp.so.1 => /lib/libgomp.so.1 (0x7f...)"; libllama.so.0 is loaded under its other name before.
        pairs = {tuple(line.strip().split(" => ", 1)) for line in listed.splitlines() if " => " in line}
        outside = {name for name, path in pairs if str(copy) not in path and name != "libllama.so.0"}
        for name in sorted(outside):
            if not name.startswith((*C_LIBRARY, *FROM_THE_SYSTEM)):
                yield f"the engine {engine.name} needs {name} of the system"


def _doctor(program: Path, home: Path) -> Iterator[str]:
    _say("Its own examination")
    said = _examined(program, home)
    if isinstance(said, str):
        yield said
        return
    _say(f"  release {said['versions']['qwendesk']}, computes on {', '.join(said['backends'])}")
    for test in said["self_test"]:
        _say(f"  {test['name']}: {'passed' if test['passed'] else 'FAILED'}")


def _examined(program: Path, home: Path) -> dict[str, Any] | str:
    """What `doctor` says, or what went wrong."""
    done = _run([str(program), "doctor", "--json"], home, {})
    if done.returncode:
        return f"doctor ended with {done.returncode}: {done.stdout[-1000:]}{done.stderr[-2000:]}"
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def _highlighter(program: Path, home: Path) -> Iterator[str]:
    _say("The colours of code")
    request = {"code": "return 1", "language": "python", "limit_s": _LONGEST_S}
    done = _run([str(program), "--highlighter"], home, {}, json.dumps(request) + "\n")
    if done.returncode or "code_keyword" not in done.stdout:
        yield f"the highlighter ended with {done.returncode}: {done.stdout[-1000:]}{done.stderr[-2000:]}"


def _window(program: Path, home: Path, results: Path) -> Iterator[str]:
    _say("A question and a picture in its window")
    picture = home / "window.png"
    with _display() as display:
        command = [str(program), "--demo-tour", "--screenshot", str(picture)]
        done = _run(command, home, {"DISPLAY": display})
    _say(done.stdout.strip())
    if done.returncode:
        yield f"the demo tour ended with {done.returncode}: {done.stderr[-2000:]}"
    for word in _EXPECTED:
        if word not in done.stdout.lower():
            yield f'no answer has the word "{word}"'
    if picture.is_file():
        shutil.copyfile(picture, results / "window.png")
    else:
        yield "there is no screenshot"


def _run(command: list[str], home: Path, more: Mapping[str, str], typed: str = "") -> subprocess.CompletedProcess[str]:
    """As another user, with an empty PATH and a home of its own; what it prints is kept."""
    user = pwd.getpwnam(_USER)
    environment = {"HOME": str(home), "PATH": "", "LANG": "C.UTF-8", "XDG_RUNTIME_DIR": str(home), **more}
    # Without FUSE's helper, which this test does not ask for, an AppImage unpacks itself.
    environment["APPIMAGE_EXTRACT_AND_RUN"] = "1"
    return subprocess.run(
        command,
        env=environment,
        cwd="/",
        user=user.pw_uid,
        group=user.pw_gid,
        extra_groups=[],
        input=typed,
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


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    try:
        tried = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist" / "QwenDesk"
        sys.exit(try_bundle(tried, WORK / "bundle-test"))
    except SetupError as error:
        sys.exit(str(error))
