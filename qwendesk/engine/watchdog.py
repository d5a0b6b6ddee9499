"""Ends a worker whose chat template does not.

Templates run in a sandbox that keeps them from files and processes, but not from endless loops and huge strings.
Nothing inside the process can stop those reliably, so its parent watches from outside.
"""

import asyncio
from collections.abc import Callable

import msgspec
import psutil

from qwendesk.core.units import GIB, show_bytes, show_duration

_TICK_S = 0.1


class TemplateLimits(msgspec.Struct, frozen=True):
    """How long a template may run without a further event, and how far the worker may grow meanwhile."""

    time_s: float = 10.0
    growth_bytes: int = GIB


def verdict(limits: TemplateLimits, *, elapsed_s: float, growth_bytes: int) -> str | None:
    """Why the worker must end, as a sentence for people; None while the template is within its limits."""
    if growth_bytes > limits.growth_bytes:
        fault = f"took more than {show_bytes(limits.growth_bytes)} of memory"
    elif elapsed_s > limits.time_s:
        fault = f"ran for more than {show_duration(limits.time_s)}"
    else:
        return None
    return (
        f"The model's chat template {fault}, so the engine was ended. Choose another template with the option "
        "chat_template_file, or another file of this model."
    )


class TemplateGuard:
    """Watches one template run from its making until `stop`; calls `kill` with a sentence, at most once."""

    def __init__(self, pid: int, limits: TemplateLimits, kill: Callable[[str], None]) -> None:
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
            self._process = None  # it has ended by itself: its reader tells
        self._timer = self._loop.call_later(_TICK_S, self._look)

    def stop(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        growth_bytes = 0
        if self._process is not None:
            try:
                growth_bytes = self._process.memory_info().rss - self._rss_at_start
            except psutil.Error:
                return
        elapsed_s = self._loop.time() - self._started_at
        sentence = verdict(self._limits, elapsed_s=elapsed_s, growth_bytes=growth_bytes)
        if sentence is None:
            self._timer = self._loop.call_later(_TICK_S, self._look)
        else:
            self._kill(sentence)
