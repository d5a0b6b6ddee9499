"""Shows how far a build is, from what pip and ninja print."""

import re
import time
from collections.abc import Callable
from typing import TextIO

_STEP = re.compile(r"^\s*\[(\d+)/(\d+)\] ")
_STAGES = (
    (re.compile(r"^\s*Downloading llama_cpp_python"), "downloading the source"),
    (re.compile(r"^\s*Installing build dependencies: started"), "getting the build tools"),
    (re.compile(r"^\s*\*\*\* Configuring CMake"), "looking at the compiler"),
    (re.compile(r"^\s*\*\*\* Installing project into wheel"), "packing"),
)


class BuildProgress:
    """Takes the build's output line by line. On a terminal it rewrites one line, elsewhere it adds one every 10%."""

    def __init__(self, out: TextIO, *, terminal: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out
        self._terminal = terminal
        self._clock = clock
        self._start = clock()
        self._stage = ""
        self._total = 1
        self._percent = -1
        self._width = 0

    def feed(self, line: str) -> None:
        """Shows what `line` of the build's output means, if it is progress."""
        step = _STEP.match(line)
        if step:
            self._step(int(step[1]), int(step[2]))
            return
        for pattern, stage in _STAGES:
            if pattern.match(line) and stage != self._stage:
                self._stage = stage
                self._show(stage)

    def finish(self, outcome: str) -> None:
        """Writes the last line, with the time it all took."""
        self._show(outcome)
        if self._terminal:
            self._out.write("\n")
            self._out.flush()

    def _step(self, done: int, total: int) -> None:
        if total < self._total:
            return  # a build inside the build (Vulkan's shaders), which counts its own few steps
        if total > self._total:
            self._total, self._percent = total, -1
        percent, before = done * 100 // total, self._percent
        self._percent = percent
        if percent // 10 > before // 10 or (self._terminal and percent > before):
            self._show(f"{percent}% compiled")

    def _show(self, text: str) -> None:
        line = f"  engine: {text} ({elapsed(self._clock() - self._start)})"
        if self._terminal:
            self._out.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            self._out.write(line + "\n")
        self._out.flush()


def elapsed(seconds: float) -> str:
    """A duration as people say it: "42 s", "3 min 05 s"."""
    whole = int(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02d} s"
