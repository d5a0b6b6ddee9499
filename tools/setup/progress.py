"""Shows how far the set-up is, from what pip and ninja print."""

import re
import time
from collections.abc import Callable
from typing import TextIO

_COMPILED = re.compile(r"^\s*\[(\d+)/(\d+)\] ")
_STAGES = (
    (re.compile(r"^\s*Downloading llama_cpp_python"), "downloading"),
    (re.compile(r"^\s*Installing build dependencies: started"), "getting the build tools"),
    (re.compile(r"^\s*\*\*\* Configuring CMake"), "checking the compiler"),
    (re.compile(r"^\s*\*\*\* Installing project into wheel"), "packing"),
)
_FILE = re.compile(
    r"^\s*(?:Downloading|Using cached) (?:\S*/)?([A-Za-z0-9._]+)-\d\S*\.(?:whl|tar\.gz|zip)(?: \((.+)\))?\s*$"
)
_NEEDED = re.compile(r"^\s*Collecting [A-Za-z0-9]")
_UNPACKING = re.compile(r"^\s*Installing collected packages: ")


class ProgressLine:
    """One step of the set-up. A terminal gets one line that is rewritten, anything else a line for each change."""

    def __init__(self, label: str, out: TextIO, *, terminal: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._label = label
        self._out = out
        self._terminal = terminal
        self._clock = clock
        self._start = clock()
        self._width = 0

    def show(self, text: str) -> None:
        """Show `text` with the time since the step began."""
        line = f"  {self._label}: {text} ({elapsed(self._clock() - self._start)})"
        if self._terminal:
            self._out.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            self._out.write(line + "\n")
        self._out.flush()

    def finish(self, outcome: str) -> None:
        """Show the outcome, which stays on screen."""
        self.show(outcome)
        if self._terminal:
            self._out.write("\n")
            self._out.flush()


class BuildProgress:
    """Reads the output of an engine's build or download. Elsewhere than on a terminal it shows every 10%."""

    def __init__(self, line: ProgressLine, *, terminal: bool) -> None:
        self._line = line
        self._terminal = terminal
        self._stage = ""
        self._total = 1
        self._percent = -1

    def feed(self, text: str) -> None:
        """Show what a line of the output means, if it is progress."""
        step = _COMPILED.match(text)
        if step:
            self._step(int(step[1]), int(step[2]))
            return
        for pattern, stage in _STAGES:
            if pattern.match(text) and stage != self._stage:
                self._stage = stage
                self._line.show(stage)

    def _step(self, done: int, total: int) -> None:
        if total < self._total:
            return  # a build inside the build (Vulkan's shaders), which counts its own few steps
        if total > self._total:
            self._total, self._percent = total, -1
        percent, before = done * 100 // total, self._percent
        self._percent = percent
        if percent // 10 > before // 10 or (self._terminal and percent > before):
            self._line.show(f"{percent}% compiled")


class LibraryProgress:
    """Reads what pip prints while it installs libraries. Elsewhere than on a terminal it shows every tenth file."""

    def __init__(self, line: ProgressLine, expected: int, *, terminal: bool) -> None:
        """`expected` is about how many libraries there are: some are only for other systems."""
        self._line = line
        self._expected = expected
        self._terminal = terminal
        self._needed = 0
        self._files: set[str] = set()

    def feed(self, text: str) -> None:
        """Show what a line of the output means, if it is progress."""
        if _UNPACKING.match(text):
            self._line.show(f"unpacking {text.count(',') + 1} packages")
            return
        if _NEEDED.match(text) and not self._files:  # older releases of pip download each one as they find it
            self._needed += 1
            self._count(self._needed, "checking")
        file = _FILE.match(text)
        if file is not None and file[1] not in self._files:
            self._files.add(file[1])
            self._count(len(self._files), "downloading", f": {file[1]}, {file[2]}" if file[2] else f": {file[1]}")

    def _count(self, number: int, what: str, detail: str = "") -> None:
        if self._terminal or number % 10 == 1:
            self._line.show(f"{what} {number} of about {self._expected}{detail}")


def elapsed(seconds: float) -> str:
    """Return a duration as people say it: "42 s", "3 min 05 s"."""
    whole = int(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02d} s"
