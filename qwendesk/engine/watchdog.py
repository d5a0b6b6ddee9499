"""Kill a worker whose chat template does not finish, or which is frozen.

Templates run in a sandbox that keeps them away from files and processes, but cannot prevent every endless loop and huge
string. Nothing inside the process can stop those reliably, so the app watches it from outside.
"""

import asyncio
from collections.abc import Callable

import msgspec
import psutil

from qwendesk.core.translation import tr
from qwendesk.core.units import GIB, show_bytes, show_duration

_INTERVAL_S = 0.1


class TemplateWatchdogLimits(msgspec.Struct, frozen=True):
    """How long a template may run without another event, and how much the worker's memory may grow during that."""

    time_s: float = 10.0
    growth_bytes: int = GIB


def exceeded_limit(limits: TemplateWatchdogLimits, *, elapsed_s: float, growth_bytes: int) -> str | None:
    """Return a sentence for the user on why the worker must be stopped; None if the template is within its limits."""
    if growth_bytes > limits.growth_bytes:
        return tr(
            "The model's chat template used more than {0} of memory, so QwenDesk stopped the engine. Choose another "
            "template with the option “Chat template file” (chat_template_file), or another file of this model.",
            show_bytes(limits.growth_bytes),
        )
    if elapsed_s > limits.time_s:
        return tr(
            "The model's chat template ran for more than {0}, so QwenDesk stopped the engine. Choose another template "
            "with the option “Chat template file” (chat_template_file), or another file of this model.",
            show_duration(limits.time_s),
        )
    return None


class SilenceLimits(msgspec.Struct, frozen=True):
    """After how many looks, `look_s` seconds apart, a worker of which nothing came is silent, and is killed.

    Looks are counted, not seconds: after a PC was asleep, or the app was busy, there was no time to hear anything.
    """

    look_s: float = 2.0
    silent: int = 3
    frozen: int = 10


class SilenceWatch:
    """Looks at a running worker until `stop`: it says every second that it isn't frozen, whatever it does."""

    def __init__(self, limits: SilenceLimits, show: Callable[[bool], None], kill: Callable[[], None]) -> None:
        """`show` is called with True when the worker has become silent, and with False when it speaks again."""
        self._limits, self._show, self._kill = limits, show, kill
        self._missed = 0
        self._timer = asyncio.get_running_loop().call_later(limits.look_s, self._look)

    def heard(self) -> None:
        """Note that something came from the worker."""
        missed, self._missed = self._missed, 0
        if missed >= self._limits.silent:
            self._show(False)

    def stop(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        self._missed += 1
        self._timer = asyncio.get_running_loop().call_later(self._limits.look_s, self._look)
        if self._missed == self._limits.silent:
            self._show(True)
        elif self._missed == self._limits.frozen:
            self._kill()


class TemplateGuard:
    """Watches one run of a template until `stop`. Calls `kill` at most once, with a sentence for the user."""

    def __init__(self, pid: int, limits: TemplateWatchdogLimits, kill: Callable[[str], None]) -> None:
        self._limits = limits
        self._kill = kill
        self._loop = asyncio.get_running_loop()
        self._started_at = self._loop.time()
        self._process: psutil.Process | None = None
        self._rss_at_start = 0
        try:
            self._process = psutil.Process(pid)
            self._rss_at_start = self._process.memory_info().rss
        except psutil.Error:
            self._process = None  # the worker has exited, which WorkerProcess reports
        self._timer = self._loop.call_later(_INTERVAL_S, self._check)

    def stop(self) -> None:
        self._timer.cancel()

    def _check(self) -> None:
        growth_bytes = 0
        if self._process is not None:
            try:
                growth_bytes = self._process.memory_info().rss - self._rss_at_start
            except psutil.Error:
                return
        elapsed_s = self._loop.time() - self._started_at
        sentence = exceeded_limit(self._limits, elapsed_s=elapsed_s, growth_bytes=growth_bytes)
        if sentence is None:
            self._timer = self._loop.call_later(_INTERVAL_S, self._check)
        else:
            self._kill(sentence)
