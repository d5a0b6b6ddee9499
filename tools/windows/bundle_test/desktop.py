"""A Windows desktop under Wine, used from the Linux side: programs, windows, keys, the mouse and screenshots."""

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

LONGEST_S = 600.0
"""For anything that is waited for. A busy machine takes minutes where an idle one takes seconds."""
_LOOK_AGAIN_S = 0.5
_MANY_COLOURS = 100
"""More than an empty screen or an empty window has: letters with soft edges have hundreds."""
TITLE = "QwenDesk"


class Failed(Exception):
    """A step that did not do what a user expects. The text says what."""


class Desktop:
    """The drive C: in `prefix`, and the screen that DISPLAY names."""

    def __init__(self, prefix: Path, pictures: Path) -> None:
        self.drive = prefix / "drive_c"
        self.home = self.drive / "users" / "root"
        self._pictures = pictures

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a Windows program to its end. Raises Failed if it takes longer than LONGEST_S."""
        try:
            return subprocess.run(
                ["wine", program, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=LONGEST_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Failed(f"{program} did not end within {LONGEST_S / 60:.0f} minutes") from error

    def start(self, program: str, *arguments: str) -> None:
        """Start a Windows program and leave it running."""
        nothing = subprocess.DEVNULL
        subprocess.Popen(["wine", program, *arguments], stdin=nothing, stdout=nothing, stderr=nothing)

    def wait(self, what: str, is_so: Callable[[], bool]) -> None:
        """Wait until `is_so` returns True. Raises Failed, with `what` was waited for, after LONGEST_S."""
        end = time.monotonic() + LONGEST_S
        while not is_so():
            if time.monotonic() > end:
                raise Failed(f"{what}: not within {LONGEST_S / 60:.0f} minutes")
            time.sleep(_LOOK_AGAIN_S)

    def windows(self) -> list[str]:
        """Return the visible windows of the app, as xdotool numbers them."""
        return _said("xdotool", "search", "--onlyvisible", "--name", TITLE).split()

    def wait_for_window(self) -> None:
        """Wait until the app's window is drawn, at the size of the whole screen, and make it the active one."""
        self.wait("the window", lambda: bool(self.windows()))
        window = self.windows()[-1]
        _said("xdotool", "windowmove", "--sync", window, "0", "0")
        _said("xdotool", "windowsize", window, "1390", "860")
        self.wait("the window's content", lambda: self._colour_count() > _MANY_COLOURS)
        self.activate()

    def _colour_count(self) -> int:
        shown = subprocess.run(["import", "-window", "root", "png:-"], capture_output=True, check=False).stdout
        said = subprocess.run(["identify", "-format", "%k", "-"], input=shown, capture_output=True, check=False).stdout
        return int(said) if said.isdigit() else 0

    def activate(self) -> None:
        """Make the app's window the active one."""
        for window in self.windows()[-1:]:
            _said("xdotool", "windowactivate", "--sync", window)

    def key(self, *keys: str) -> None:
        """Press keys such as "ctrl+n", one after the other."""
        _said("xdotool", "key", "--delay", "100", *keys)

    def type(self, text: str) -> None:
        """Type a text into what has the focus."""
        _said("xdotool", "type", "--delay", "30", text)

    def click(self, x: int, y: int) -> None:
        """Click at a point of the screen, in pixels."""
        _said("xdotool", "mousemove", "--sync", str(x), str(y), "click", "1")

    def picture(self, name: str) -> None:
        """Take a screenshot."""
        subprocess.run(["import", "-window", "root", str(self._pictures / f"{name}.png")], check=False)

    def keep_picture(self, file: Path, name: str) -> None:
        """Keep a picture that the app made among the screenshots."""
        shutil.copy(file, self._pictures / f"{name}.png")

    def processes(self, program: str) -> list[int]:
        """Return the numbers of the running processes of a Windows program, by its file's name."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                command = (folder / "cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
            except OSError:  # it has ended
                continue
            if command.replace("/", "\\").rpartition("\\")[2].lower() == program.lower():
                found.append(int(folder.name))
        return found

    def wait_until_gone(self, program: str) -> None:
        """Wait until no process of a program runs."""
        self.wait(f"the end of {program}", lambda: not self.processes(program))


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout


def check(is_so: bool, otherwise: str) -> None:
    """Raise Failed with the sentence `otherwise` unless `is_so`."""
    if not is_so:
        raise Failed(otherwise)
