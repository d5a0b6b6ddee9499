"""What a plan is: where a model's bytes go, what was chosen, why, and how fast it should be. Values only.

hardware/planner.py makes plans from numbers, services/engine/exact.py replaces them by the engine's own.
"""

from typing import Literal

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.options import LoadOptions

PlanSource = Literal["estimate", "engine"]
"""Who gave the numbers: our formulas, or the engine asked without allocating anything."""

PlanKind = Literal["vram", "some_experts_in_ram", "all_experts_in_ram", "layers_in_ram", "cpu", "disk"]
"""Where the weights lie, from fastest to slowest: all in video memory; some or all experts in RAM; whole layers in
RAM; everything in RAM; more than RAM holds, the rest read from disk again and again."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The memory a plan may count on. Bytes; made by services from what the engine and the probes report."""

    devices: tuple[DeviceInfo, ...] = ()
    """In the engine's order, CPU among them or not."""
    ram_total_bytes: int
    ram_available_bytes: int
    """Free for us now, what our own engine holds included."""
    reserve_bytes: int = 1024**3
    """Left free on each GPU for games and other programs."""
    ours: tuple[tuple[str, int], ...] = ()
    """Device name and bytes our engine holds there now; they come back when it loads something else."""
    drift: tuple[tuple[str, int], ...] = ()
    """Device name and bytes a load took there beyond the formulas, as measured on this PC."""
    extra: tuple[tuple[str, int], ...] = ()
    """Device name and bytes to count beside everything else: what the engine said was missing from a plan."""
    physical_cores: int = 0
    ram_bandwidth: float | None = None
    """Bytes/s if it was measured here; None takes what is usual."""


class DevicePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What one device holds under a plan, in bytes."""

    name: str
    description: str = ""
    weights_bytes: int = 0
    kv_bytes: int = 0
    recurrent_bytes: int = 0
    compute_bytes: int = 0
    vision_bytes: int = 0
    """The picture encoder with its compute buffer."""
    draft_bytes: int = 0
    """The next-token (MTP) layer with its context."""
    drift_bytes: int = 0
    """What the driver takes and what formulas do not see."""
    budget_bytes: int | None = None
    """What the plan may fill; None where the device does not tell its memory."""
    limit_bytes: int | None = None
    """All that is free for us now, the reserve included: what the user's own choices may fill."""

    @property
    def total_bytes(self) -> int:
        parts = self.weights_bytes + self.kv_bytes + self.recurrent_bytes + self.compute_bytes
        return parts + self.vision_bytes + self.draft_bytes + self.drift_bytes

    @property
    def missing_bytes(self) -> int:
        """Bytes beyond the budget; 0 when it fits, or when nobody knows."""
        return 0 if self.budget_bytes is None else max(self.total_bytes - self.budget_bytes, 0)


class Prices(msgspec.Struct, frozen=True, kw_only=True):
    """What one set of decided options costs. `gpus` in the engine's order; `ram` is the worker's whole RAM."""

    gpus: tuple[DevicePlan, ...]
    ram: DevicePlan
    ram_weights_bytes: int
    """Of the RAM, weights: what mmap may leave on disk."""
    experts_in_ram: bool

    @property
    def fits(self) -> bool:
        return not any(device.missing_bytes for device in (*self.gpus, self.ram))


class SpeedEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens per second while writing, as (low, high) at the start of a chat and when it is long. An estimate from
    memory bandwidth and the bytes a token reads, until it is measured on this PC."""

    start: tuple[float, float]
    long: tuple[float, float]
    long_tokens: int
    """Tokens in the context that `long` speaks of."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One way to load a model: nothing in `options` that the planner decides is left to "auto"."""

    fits: bool
    options: LoadOptions
    prices: Prices
    kind: PlanKind
    speed: SpeedEstimate | None
    """None where neither device nor RAM speed can be guessed."""
    why: tuple[str, ...]
    """One sentence for each choice."""
    label: str = ""
    """What must be said beside the choice ("Reads from disk: slow"); "" for a plan that needs no warning."""
    source: PlanSource = "estimate"

    @property
    def devices(self) -> tuple[DevicePlan, ...]:
        """The GPUs; RAM alone when there are none."""
        return self.prices.gpus or (self.prices.ram,)

    @property
    def ram_bytes(self) -> int:
        return self.prices.ram.total_bytes
