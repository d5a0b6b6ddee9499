"""How many threads the engine computes with while other programs want the processor's cores.

llama.cpp's threads wait for each other after every operation, so one that shares its core holds all of them up: with
two threads on two cores that others use, SmolLM2 wrote 12 tokens a second, and 58 with one thread.

With another number of threads, flash attention cuts the cache elsewhere from 512 tokens on, and logits change by
rounding. An answer that is to be the same each time keeps the number with which it began.
"""

import contextlib
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import llama_cpp.llama_cpp as C
import psutil

from qwendesk.core.generation_options import GenerationOptions
from qwendesk.engine.worker.model import LoadedModel

# One look takes 0.2 ms, and 1 ms while others are ready: it reads the state of each of this process's twenty threads.
_LOOK_EVERY_S = 0.1
_CHANGE_EVERY_S = 1.0
# A number is changed by a mean of what looks saw, each for the time since the one before, that forgets at this rate.
_MEAN_OVER_S = 0.3
# To say what others wanted during an answer takes so many looks.
_FEWEST_LOOKS = 2
# Looks at the beginning of an answer, while others seemed to be busy: a program that computes is ready in each of them.
_LOOKS_AGAIN, _AGAIN_EVERY_S = 5, 0.002
# A program that wants a core gets half of one at least beside a thread of the same priority.
_WANTED_OF_USED = 2.0
# What is taken is a mean in which a new look counts for so much. Programs of the lowest priority take 0.1 cores of two,
# and 0.9 for a few tenths of a second now and then, when Linux has put two threads of this process on one core.
_NEW_TAKEN = 0.1
# With fewer threads nothing is taken from them any more; so long it is believed that it would be again.
_TAKEN_FOR_S = 10.0
# What psutil's times of all processors have beside programs of normal priority; guests are counted as users already.
_NOT_USED = ("idle", "iowait", "nice", "steal", "guest", "guest_nice")
_LOADAVG, _OWN_TASKS = Path("/proc/loadavg"), Path("/proc/self/task")


def fit_threads(most: int, n_cores: int, n_wanted: float) -> int:
    """Return how many of `most` threads to compute with, where other programs want `n_wanted` of `n_cores`.

    At least half of them: one thread of eight would be slower than eight that wait.
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
        self._model, self._wanted, self._ready = model, wanted_by_others(), ready_of_others()
        # Two threads of one core take from each other, but neither has to wait until the other sleeps.
        self._n_cores = os.cpu_count() or 1
        self._mean_wanted = 0.0
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
        wanted, share = self._wanted(), 1.0 - math.exp((self._looked_at - now) / _MEAN_OVER_S)
        self._looked_at = now
        self._mean_wanted += share * (min(wanted, self._n_cores) - self._mean_wanted)
        self.n_looks, self.sum_wanted = self.n_looks + 1, self.sum_wanted + wanted
        n_wanted = int(self._mean_wanted + 0.5)
        if n_wanted != self._n_wanted and now - self._changed_at >= _CHANGE_EVERY_S:
            self._n_wanted, self._changed_at = n_wanted, now

    @property
    def n_wanted(self) -> int:
        """How many cores other programs want, by the last looks."""
        return self._n_wanted

    def begin(self) -> None:
        """Look anew, because an answer begins: what kept others busy may have just ended."""
        for _ in range(_LOOKS_AGAIN):
            if not self._n_wanted:
                break
            self._n_wanted = min(self._n_wanted, self._ready())
            time.sleep(_AGAIN_EVERY_S)
        # Those that still are ready may be of low priority: the next looks tell, and needn't wait for a second.
        self._wanted()
        self._mean_wanted = float(self._n_wanted)
        self._looked_at, self._changed_at = self._clock(), float("-inf")

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
    """Return what tells how many cores other programs wanted since the last call. Where Linux doesn't tell: used."""
    return _CoresWanted().cores if sys.platform == "linux" and _LOADAVG.exists() else _Usage().cores


def ready_of_others() -> Callable[[], int]:
    """Return what tells how many cores other programs would use at this moment, at most. Linux alone tells."""
    return _ready if sys.platform == "linux" and _LOADAVG.exists() else lambda: sys.maxsize


def count_wanted(n_ready: int, used: float, taken: float) -> float:
    """Return how many cores other programs want that could use `n_ready` of them.

    Those of normal priority used `used` cores. `taken` is what threads of this process lacked, in cores: some programs
    of low priority take as much as others, for Linux weighs priorities only among the programs of one control group or
    session; most of them take next to nothing, and narrow nobody.
    """
    return min(float(n_ready), max(_WANTED_OF_USED * used, taken))


def _ready() -> int:
    """Return how many tasks of other programs could run at this moment, also those that don't get a core."""
    try:
        n_ready = int(_LOADAVG.read_text().split()[3].split("/")[0])
        # The one that looks is one of them. To look at each of this process's costs more.
        own = sum(_is_running(task / "stat") for task in _OWN_TASKS.iterdir()) if n_ready > 1 else 1
        return max(0, n_ready - own)
    except (OSError, ValueError, IndexError):
        return 0


class _CoresWanted:
    """What other programs want on Linux, between two looks."""

    def __init__(self) -> None:
        self._usage, self._delays, self._at = _Usage(), _delays(), time.monotonic()
        self._mean_taken = self._taken = 0.0
        self._taken_at = float("-inf")

    def cores(self) -> float:
        if not (n_ready := _ready()):
            return 0.0
        used, delays, now = self._usage.cores(), _delays(), time.monotonic()
        before, seconds = self._delays, now - self._at
        self._delays, self._at = delays, now
        taken = sum(delay - before.get(task, 0.0) for task, delay in delays.items()) / seconds if seconds > 0 else 0.0
        self._mean_taken += _NEW_TAKEN * (taken - self._mean_taken)
        if self._mean_taken >= self._taken or now - self._taken_at > _TAKEN_FOR_S:
            self._taken, self._taken_at = self._mean_taken, now
        return count_wanted(n_ready, used, self._taken)


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
    """Cores that others used between two looks. On Linux and macOS programs of low priority don't count."""

    def __init__(self) -> None:
        self._own = psutil.Process()
        self._last = self._now()

    def cores(self) -> float:
        before, self._last = self._last, self._now()
        at, busy, own = (new - old for new, old in zip(self._last, before, strict=True))
        return max(0.0, (busy - own) / at) if at > 0 else 0.0

    def _now(self) -> tuple[float, float, float]:
        of_all, of_own = psutil.cpu_times(), self._own.cpu_times()
        not_used = sum(getattr(of_all, name, 0.0) for name in _NOT_USED)
        return time.monotonic(), sum(of_all) - not_used, of_own.user + of_own.system
