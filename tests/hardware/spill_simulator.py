"""A PC made up of numbers: a GPU, a desktop, a model and a game, seen once a second as a probe sees them."""

from collections.abc import Callable

from qwendesk.core.units import GIB, MIB
from qwendesk.hardware.spill import GpuAllocation, Sample, SpillTrack, start, step


class Pc:
    """Changed by a test between seconds. What does not fit into video memory sits in shared memory, at once."""

    def __init__(self, *, total: int = 24 * GIB, reserve: int | None = GIB, counts_shared: bool = True) -> None:
        self.total = total
        self.desktop = 600 * MIB
        self.game = 0
        self.model = 0
        self.pinned = 0
        """Buffers of the engine in system memory, which the driver counts as shared."""
        self.demoted = 0
        """Of the model, what the driver put into shared memory although there is room."""
        self.counts_shared = counts_shared
        self.reserve = reserve
        self.budget: int | None = None
        """What the system lets the model's process hold."""
        self.busy: float | None = 30.0
        self.power: float | None = 120.0
        self.decode: float | None = None
        self.best: float | None = None

    @property
    def spilled(self) -> int:
        return max(self.demoted, self.desktop + self.game + self.model - self.total, 0)

    def loaded(self, **changes) -> GpuAllocation:
        values = {"device_bytes": self.model, "host_bytes": self.pinned, "reserve_bytes": self.reserve}
        return GpuAllocation(**(values | changes))

    def sample(self) -> Sample:
        in_vram = self.model - self.spilled
        return Sample(
            total_bytes=self.total,
            used_bytes=min(self.total, self.desktop + self.game + in_vram),
            dedicated_bytes=in_vram if self.counts_shared else None,
            shared_bytes=self.pinned + self.spilled if self.counts_shared else None,
            budget_bytes=self.budget,
            busy_percent=self.busy,
            power_w=self.power,
            power_limit_w=350.0,
            decode_tok_s=self.decode,
            best_tok_s=self.best,
        )


LETTERS = {"fits": "F", "near_limit": "N", "spilling": "S", "suspected": "P", "unified": "U", "cpu_only": "C"}


class SpillRun:
    """Runs the spill detection and records one letter per second.

    F fits, N near limit, S spilling, P probably spilling.
    """

    def __init__(self, pc: Pc, loaded: GpuAllocation | None = None) -> None:
        self.pc = pc
        self.loaded = pc.loaded() if loaded is None else loaded
        self.track: SpillTrack = start(self.loaded)
        self.states = ""

    def run(self, seconds: int, change: Callable[[Pc], None] | None = None) -> str:
        """`seconds` more, `change` before each of them; returns their states."""
        begin = len(self.states)
        for _ in range(seconds):
            if change is not None:
                change(self.pc)
            self.track = step(self.track, self.pc.sample(), self.loaded)
            self.states += LETTERS[self.track.state]
        return self.states[begin:]
