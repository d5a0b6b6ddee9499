"""How many threads the engine computes with while other programs want the processor's cores.

llama.cpp's threads wait for each other after every operation, so one that shares its core holds all of them up: with
two threads on two cores that others use, SmolLM2 wrote 12 tokens a second, and 58 with one thread.

With another number of threads, flash attention cuts the cache elsewhere from 512 tokens on, and logits change by
rounding. An answer that is to be the same each time keeps the number with which it began.
"""

import contextlib
import os
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import llama_cpp.llama_cpp as C
import psutil

from qwendesk.core.generation_options import GenerationOptions
from qwendesk.engine.worker.model import LoadedModel

# One look reads the state of each thread of this process: 0.3 ms with twenty.
_LOOK_EVERY_S = 0.2
_CHANGE_EVERY_S = 1.0
# A number is changed by the mean of so many looks. What was seen longer ago than this doesn't count.
_FEWEST_LOOKS, _LOOKS, _FORGOTTEN_AFTER_S = 4, 6, 10.0
# Looks at the beginning of an answer, while others seemed to be busy: a program that computes is ready in each of them.
_LOOKS_AGAIN, _AGAIN_EVERY_S = 5, 0.002
_LOADAVG, _OWN_TASKS = Path("/proc/loadavg"), Path("/proc/self/task")


def fit_threads(most: int, n_cores: int, n_wanted: float) -> int:
    """Return how many of `most` threads to compute with, where other programs want `n_wanted` of `n_cores`.

    At least half of them: programs of low priority want cores too, but hold up a thread only for a moment, and one
    thread of eight would be slower than eight that wait.
    """
    n_taken = int(n_wanted + 0.5)
    return min(most, max(1, (most + 1) // 2, n_cores - n_taken)) if n_taken else most


class Threads:
    """The threads of one model's contexts: its own and that of its draft head."""

    def __init__(
        self, model: LoadedModel, most: int, most_batch: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`most` threads generate and `most_batch` process prompts on a quiet PC. `clock` returns seconds."""
        self.most, self._most_batch, self._clock = most, most_batch, clock
        self._model, self._wanted = model, wanted_by_others()
        self._sees_at_once = self._wanted is _runnable
        """Whether a look sees a moment, not the time since the last look."""
        # Two threads of one core take from each other, but neither has to wait until the other sleeps.
        self._n_cores = os.cpu_count() or 1
        self._looks: deque[float] = deque(maxlen=_LOOKS)
        self._looked_at = self._changed_at = float("-inf")
        self._n_wanted = 0
        self._used = -1
        self.n_looks = 0
        self.sum_wanted = 0.0
        """Over all looks, the cores that other programs wanted."""

    def look(self) -> None:
        """Note what other programs do, unless that was done just now. Between two steps of the engine, or idle."""
        now = self._clock()
        if now - self._looked_at < _LOOK_EVERY_S:
            return
        if now - self._looked_at > _FORGOTTEN_AFTER_S:
            self._looks.clear()
        self._looked_at = now
        self._looks.append(self._wanted())
        self.n_looks, self.sum_wanted = self.n_looks + 1, self.sum_wanted + self._looks[-1]
        mean = sum(self._looks) / len(self._looks) if len(self._looks) >= _FEWEST_LOOKS else 0.0
        if int(mean + 0.5) != self._n_wanted and now - self._changed_at >= _CHANGE_EVERY_S:
            self._n_wanted, self._changed_at = int(mean + 0.5), now

    @property
    def n_wanted(self) -> int:
        """How many cores other programs want, by the last looks."""
        return self._n_wanted

    def begin(self) -> None:
        """Look again if others were busy, because an answer begins: what kept them busy may have just ended."""
        for _ in range(_LOOKS_AGAIN if self._sees_at_once else 0):
            if not self._n_wanted:
                break
            if (n_wanted := int(self._wanted() + 0.5)) < self._n_wanted:
                self._n_wanted = n_wanted
                self._looks.clear()
            time.sleep(_AGAIN_EVERY_S)

    def use(self, n_wanted: int = 0) -> int:
        """Compute with what fits beside others that want `n_wanted` cores. Return the number of threads."""
        n_threads = fit_threads(self.most, self._n_cores, n_wanted)
        if n_wanted != self._used:
            self._used = n_wanted
            n_batch = fit_threads(self._most_batch, self._n_cores, n_wanted)
            head = self._model.head
            for ctx in (self._model.ctx, *((head.ctx,) if head is not None else ())):
                C.llama_set_n_threads(ctx, n_threads, n_batch)
        return n_threads


class ThreadsOfAnswer:
    """The threads of one answer. Call `follow` between its steps, where its own threads rest."""

    def __init__(self, threads: Threads, options: GenerationOptions) -> None:
        self._threads = threads
        self._is_fixed = options.temperature == 0 or options.seed >= 0
        threads.begin()
        self._n_wanted = threads.n_wanted
        self._looks_before, self._sum_before = threads.n_looks, threads.sum_wanted
        self._delays_before = _delays()
        self.fewest = threads.use(self._n_wanted)
        """Number of threads it was computed with at its narrowest."""

    def follow(self) -> None:
        """Take as many threads as fit beside other programs, or those with which an answer began that is fixed."""
        self._threads.look()
        if not self._is_fixed:
            self._n_wanted = self._threads.n_wanted
        self.fewest = min(self.fewest, self._threads.use(self._n_wanted))

    @property
    def mean_wanted(self) -> float:
        """How many cores other programs wanted during the answer; 0.0 with too few looks to tell."""
        n_looks = self._threads.n_looks - self._looks_before
        return (self._threads.sum_wanted - self._sum_before) / n_looks if n_looks >= _FEWEST_LOOKS else 0.0

    @property
    def delayed_s(self) -> float:
        """How many seconds a thread of this process waited for a core during the answer: the one that waited most."""
        return max((delay - self._delays_before.get(task, 0.0) for task, delay in _delays().items()), default=0.0)

    def resume(self) -> None:
        """Take the answer's threads again, after another one was computed."""
        self._threads.use(self._n_wanted)


def wanted_by_others() -> Callable[[], float]:
    """Return what tells how many cores other programs want now.

    On Linux these are the tasks that could run at this moment, also those of low priority that don't get a core. Where
    the system doesn't tell, they are the cores that were in use since the last call, without this process's.
    """
    if sys.platform == "linux" and _LOADAVG.exists():
        return _runnable
    return _Usage().cores


def _runnable() -> float:
    try:
        own = sum(_is_running(task / "stat") for task in _OWN_TASKS.iterdir())
        return float(max(0, int(_LOADAVG.read_text().split()[3].split("/")[0]) - own))
    except (OSError, ValueError, IndexError):
        return 0.0


def _delays() -> dict[str, float]:
    """Return for each thread of this process how many seconds it was ready and got no core. Linux alone tells."""
    delays = {}
    with contextlib.suppress(OSError):
        for task in _OWN_TASKS.iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):
                delays[task.name] = int((task / "schedstat").read_text("ascii").split()[1]) / 1e9
    return delays


def _is_running(stat: Path) -> bool:
    try:
        return stat.read_text(errors="replace").rpartition(")")[2].split()[0] == "R"
    except (OSError, IndexError):
        return False  # the thread has ended


class _Usage:
    """Cores in use between two looks."""

    def __init__(self) -> None:
        self._own = psutil.Process()
        self._last = self._now()

    def cores(self) -> float:
        before, self._last = self._last, self._now()
        at, busy, own = (new - old for new, old in zip(self._last, before, strict=True))
        return max(0.0, (busy - own) / at) if at > 0 else 0.0

    def _now(self) -> tuple[float, float, float]:
        of_all, of_own = psutil.cpu_times(), self._own.cpu_times()
        idle = of_all.idle + getattr(of_all, "iowait", 0.0)
        return time.monotonic(), sum(of_all) - idle, of_own.user + of_own.system
