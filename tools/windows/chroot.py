"""Programs in the Debian folder: each command has its own mounts and processes, which end with it."""

import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.setup.pip import without_addresses
from tools.setup.project import SetupError
from tools.windows.folders import COMPILED, DEBIAN, INSIDE, LOGS, PREFIX, PYTHON, SHARED, inside

# Wine counts the processors in /sys, and /dev has a few nodes of its own in memory. The machine's /dev is never mounted
# here, so deleting this folder can delete nothing else, even while a command runs.
MOUNTS = """
root=$1 shared=$2
shift 2
mkdir -p "$root@INSIDE" "$root/proc" "$root/sys" "$root/dev" "$root/tmp"
mount --bind "$shared" "$root@INSIDE"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mknod -m 666 "$root/dev/null" c 1 3
mknod -m 666 "$root/dev/zero" c 1 5
mknod -m 666 "$root/dev/full" c 1 7
mknod -m 666 "$root/dev/random" c 1 8
mknod -m 666 "$root/dev/urandom" c 1 9
mknod -m 666 "$root/dev/tty" c 5 0
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
cd /
exec chroot "$root" "$@"
""".replace("@INSIDE", INSIDE)
"""Runs in a mount namespace and a process namespace of its own: root folder, shared folder, then the command."""

SCREEN = """
mkfifo /tmp/screen
Xvfb -displayfd 3 -screen 0 1400x900x24 -nolisten tcp 3>/tmp/screen >/tmp/Xvfb.log 2>&1 &
read -r number </tmp/screen
export DISPLAY=:$number
"""
"""Starts an X server that ends with the command."""

_PASSED_ON = ("http_proxy", "https_proxy", "no_proxy", "TERM")
_LAST_LINES = 25


def by_windows_python(arguments: Sequence[str]) -> str:
    """Return the bash script that runs the Windows Python with a screen, and exits with its exit code.

    Wine's services keep standard output open after it. They end with the script, since it is the first process.
    """
    line = shlex.join(["wine", inside(PYTHON / "python.exe"), *arguments])
    return f"{SCREEN}\ncode=0\n{line} </dev/null 2>&1 || code=$?\nexit $code"


def command(script: str, folder: str = "/", environment: Sequence[str] = ()) -> list[str]:
    """Return the command line that runs a bash script in `folder` of the Debian folder.

    `environment` has more variables, as "NAME=value".
    """
    variables = [
        "HOME=/root",
        "LANG=C.UTF-8",
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
        "DEBIAN_FRONTEND=noninteractive",
        f"WINEPREFIX={inside(PREFIX)}",
        "WINEDEBUG=-all",
        f"CCACHE_DIR={inside(COMPILED)}",
        *(f"{name}={os.environ[name]}" for name in _PASSED_ON if name in os.environ),
        *environment,
    ]
    namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
    inner = ["env", "-i", *variables, "bash", "-ec", f"cd {shlex.quote(folder)}\n{script}"]
    return [*namespaces, "sh", "-ec", MOUNTS, "sh", str(DEBIAN), str(SHARED), *inner]


def run(
    what: str,
    script: str,
    log_name: str,
    *,
    folder: str = "/",
    take: Callable[[str], None] = lambda line: None,
    environment: Sequence[str] = (),
) -> None:
    """Run a bash script in the Debian folder. Its output goes to a log and, line by line, to `take`.

    `environment` has more variables, as "NAME=value". Raises SetupError that says that `what` failed, with the last
    lines of the output.
    """
    run_logged(what, command(script, folder, environment), LOGS / f"{log_name}.log", take)


def run_logged(what: str, line: Sequence[str], log: Path, take: Callable[[str], None] = lambda line: None) -> None:
    """Run a command line with its output in a log. Raises SetupError with the end of the log if it fails."""
    if run_to_log(line, log, take):
        end = "".join(log.read_text(encoding="utf-8").splitlines(keepends=True)[-_LAST_LINES:])
        raise SetupError(f"{what} failed. The end of {log}:\n{without_addresses(end)}")


def run_to_log(line: Sequence[str], log: Path, take: Callable[[str], None]) -> int:
    """Run a command line and return its exit code. Its output goes to a log and, line by line, to `take`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("w", encoding="utf-8") as file,
        subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        ) as process,
    ):
        for text in process.stdout or ():
            file.write(text)
            take(text)
    return process.returncode
