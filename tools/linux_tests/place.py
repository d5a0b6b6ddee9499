"""Where the commands run: in the Debian folder of `make windows`, or on this machine if it is Debian 13 or newer."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.windows import chroot
from tools.windows.folders import COMPILED, LOGS, inside

_OS_RELEASE = Path("/etc/os-release")
_FIRST_RELEASE = 13
"""Debian 12's Mesa 22.3 crashes or answers wrongly as a Vulkan device."""
SYSTEM_PACKAGES = {"cmake": "cmake", "ninja": "ninja-build", "ccache": "ccache", "git": "git"}
"""Programs, each with its Debian package, that are needed on this machine beside those of tools/setup."""
SOFTWARE_DRIVER = "/usr/share/vulkan/icd.d/lvp_icd.json"
"""Mesa's Vulkan driver that computes on the CPU, of the package mesa-vulkan-drivers."""


@dataclass(frozen=True)
class Place:
    """Where commands run."""

    is_here: bool
    """On this machine itself; else in the Debian folder."""

    def path(self, path: Path) -> str:
        """Return the place that a file or folder below SHARED has for commands."""
        return str(path) if self.is_here else inside(path)

    def command(self, script: str, folder: Path, environment: Sequence[str] = ()) -> list[str]:
        """Return the command line that runs a bash script in a folder below SHARED.

        `environment` has more variables, as "NAME=value".
        """
        if not self.is_here:
            return chroot.command(script, inside(folder), environment)
        script = f"cd {shlex.quote(str(folder))}\n{script}"
        return ["env", f"CCACHE_DIR={COMPILED}", *environment, "bash", "-ec", script]

    def run(
        self, what: str, script: str, log_name: str, folder: Path, take: Callable[[str], None] = lambda line: None
    ) -> None:
        """Run a bash script. Raises SetupError that says that `what` failed, with the last lines of the output."""
        chroot.run_logged(what, self.command(script, folder), LOGS / f"{log_name}.log", take)


def find_place() -> Place:
    """Return this machine if its release is new enough, else the Debian folder."""
    try:
        text = _OS_RELEASE.read_text(encoding="utf-8")
    except OSError:
        text = ""
    return Place(is_new_debian(text))


def is_new_debian(os_release: str) -> bool:
    """Return whether this text of /etc/os-release is of Debian 13 or newer."""
    values = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    release = values.get("VERSION_ID", "").strip('"')
    return values.get("ID", "").strip('"') == "debian" and release.isdigit() and int(release) >= _FIRST_RELEASE
