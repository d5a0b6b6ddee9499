"""Plans for loading a model: memory on each device, decided options, reasons and expected speed.

hardware/planner.py makes plans from estimates. engines/exact_plan.py replaces the estimates with the engine's figures.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from qwendesk.core.devices import DeviceInfo, default_gpus
from qwendesk.core.options import DecidedOptions, LoadOptions

# From here on a PCIe link counts as fast: 3.0 x16 and 4.0 x8 both carry 15.8 GB/s one way (PCI-SIG).
FAST_LINK_BYTES_S = 15e9

# Source of the figures: the planner's estimate, or a dry run of the engine, which allocates nothing.
PlanSource = Literal["estimate", "engine"]

# Where the weights are, from fastest to slowest: all in VRAM; some or all experts in RAM; whole layers in RAM;
# everything in RAM; more than fits in RAM, so that parts are read from disk repeatedly.
PlanKind = Literal["vram", "some_experts_in_ram", "all_experts_in_ram", "layers_in_ram", "cpu", "disk"]

# "" if the system doesn't tell.
DriveKind = Literal["ssd", "hdd", ""]


class MachineMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The memory available to a plan, in bytes, from the engine and the hardware probes."""

    devices: tuple[DeviceInfo, ...] = ()
    """In the engine's order; may include the CPU."""
    ram_total_bytes: int
    ram_available_bytes: int
    """Free RAM, including what our own engine uses now."""
    reserve_bytes: int = 1024**3
    """Left free on each GPU for games and other apps."""
    spends_headroom: bool = False
    """True if the plan may use what is kept free beside the reserve, or as much of it: for a placement that the user
    set, and on a GPU that shares the RAM, where the CPU would take as much."""
    engine_bytes: tuple[tuple[str, int], ...] = ()
    """Device name and bytes that our engine uses there now; loading something else frees them."""
    drift: tuple[tuple[str, int], ...] = ()
    """Device name and bytes that loads used beyond the estimate, as measured on this PC."""
    unplanned_bytes: tuple[tuple[str, int], ...] = ()
    """Device name and bytes to add: memory that a plan left out and the engine's dry run found."""
    physical_cores: int = 0
    ram_bandwidth: tuple[float, float] | None = None
    """Lowest and highest bytes/s of its kind and channels; None if they aren't known."""
    gpu_factor: float = 1.0
    """By how much the GPUs were faster than estimated, as measured on this PC; 1 before any measurement."""
    drive: DriveKind = ""
    """The drive of the model file."""
    pcie_bandwidth: tuple[tuple[str, float], ...] = ()
    """Device name and bytes/s of copies over its PCIe link, where the probes tell generation and width."""
    carve_outs: tuple[tuple[str, int], ...] = ()
    """Name of an integrated GPU and the bytes that the firmware sets aside for it, which are not part of the RAM."""

    @property
    def is_unified(self) -> bool:
        """True if the GPUs that llama.cpp uses by default, and the CPU, share one memory."""
        gpus = default_gpus(self.devices)
        return bool(gpus) and all(gpu.shares_ram for gpu in gpus)


class DevicePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of one device under a plan, in bytes."""

    name: str
    description: str = ""
    weights_bytes: int = 0
    expert_bytes: int = 0
    """The part of the weights that are experts, of which each token uses a few."""
    kv_bytes: int = 0
    recurrent_bytes: int = 0
    compute_bytes: int = 0
    vision_bytes: int = 0
    """The vision encoder with its compute buffer."""
    draft_bytes: int = 0
    """The next-token (MTP) layer with its context."""
    other_bytes: int = 0
    """On a GPU, the driver and what loads on this PC used beyond the estimate. In RAM, the worker process and its
    prompt cache."""
    gpu_bytes: int = 0
    """In RAM, what GPUs use of it that have no other memory."""
    budget_bytes: int | None = None
    """Bytes that the plan may use; None if the device does not report its memory."""
    limit_bytes: int | None = None
    """All free memory including the reserve: the limit for options that the user chose."""
    layers: int = 0
    """Layers that are computed here, without the output. Layers that several GPUs share count for the first."""
    cpu_expert_layers: int = 0
    """Those of them whose experts are in RAM."""
    shares_ram: bool = False
    """True for a GPU whose memory is the RAM, except for its carve-out."""
    carve_out_bytes: int = 0
    """Memory that the firmware sets aside for this GPU, which is not part of the RAM."""

    @property
    def title(self) -> str:
        """Name for people, with the engine's name if the driver gives one, because a PC may have two equal cards."""
        return f"{self.description} ({self.name})" if self.description else self.name

    @property
    def total_bytes(self) -> int:
        parts = self.weights_bytes + self.kv_bytes + self.recurrent_bytes + self.compute_bytes
        return parts + self.vision_bytes + self.draft_bytes + self.other_bytes + self.gpu_bytes

    @property
    def missing_bytes(self) -> int:
        """Bytes beyond the budget; 0 if it fits or the budget is unknown."""
        return 0 if self.budget_bytes is None else max(self.total_bytes - self.budget_bytes, 0)


class MemoryUse(msgspec.Struct, frozen=True, kw_only=True):
    """Memory use of decided options. `gpus` are in the engine's order; `ram` is all RAM of the worker.

    With unified memory, that includes what the GPUs use of it, so `ram` is the one budget of both.
    """

    gpus: tuple[DevicePlan, ...]
    ram: DevicePlan
    ram_weights_bytes: int
    """The weights in RAM, which mmap may leave on disk."""
    experts_in_ram: bool
    lazy_bytes: int = 0
    """A table that is read row by row from the file, and is not in RAM."""

    @property
    def cpu_expert_layers(self) -> int:
        """Layers on a GPU whose experts are in RAM."""
        return sum(gpu.cpu_expert_layers for gpu in self.gpus)

    @property
    def is_unified(self) -> bool:
        """True if there are GPUs and all of them use the RAM as their memory."""
        return bool(self.gpus) and all(gpu.shares_ram for gpu in self.gpus)

    @property
    def shared(self) -> DevicePlan:
        """The one memory of GPU and CPU, with all that both use of it. Call it only if `is_unified`."""
        rows, set_aside = (*self.gpus, self.ram), sum(gpu.carve_out_bytes for gpu in self.gpus)
        parts = ("weights", "expert", "kv", "recurrent", "compute", "vision", "draft", "other")
        shared = DevicePlan(
            name=self.ram.name,
            budget_bytes=(self.ram.budget_bytes or 0) + set_aside,
            limit_bytes=(self.ram.limit_bytes or 0) + set_aside,
            shares_ram=True,
        )
        sums = {f"{part}_bytes": sum(getattr(row, f"{part}_bytes") for row in rows) for part in parts}
        return msgspec.structs.replace(shared, **sums)

    @property
    def fits(self) -> bool:
        return not any(device.missing_bytes for device in (*self.gpus, self.ram))


def shared_bytes(gpus: Sequence[DevicePlan]) -> int:
    """Return the bytes of RAM that these GPUs use. An integrated GPU fills its carve-out first."""
    return sum(max(gpu.total_bytes - gpu.carve_out_bytes, 0) for gpu in gpus if gpu.shares_ram)


class SpeedEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """Expected tokens per second of generation as (low, high), at the start of a chat and in a long one.

    Estimated from memory bandwidth and the bytes read per token, until measured on this PC.
    """

    start: tuple[float, float]
    long: tuple[float, float]
    long_tokens: int
    """Context length in tokens to which `long` applies."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One way to load a model."""

    fits: bool
    options: DecidedOptions
    memory: MemoryUse
    kind: PlanKind
    speed: SpeedEstimate | None
    """None if the speed of neither the device nor the RAM is known."""
    why: tuple[str, ...]
    """One sentence per decision."""
    accuracy: str = ""
    """A sentence that says which numbers are the engine's own, or why none is; "" before the engine is asked."""
    label: str = ""
    """Warning to show with the plan, such as "Reads from disk: slow"; "" for none."""
    source: PlanSource = "estimate"
    nearest: LoadOptions | None = None
    """The user's options with the nearest value that fits, if theirs doesn't; None if there is none."""

    @property
    def devices(self) -> tuple[DevicePlan, ...]:
        """The GPUs, or only the RAM if there are none."""
        return self.memory.gpus or (self.memory.ram,)

    @property
    def ram_bytes(self) -> int:
        return self.memory.ram.total_bytes


class Comparison(msgspec.Struct, frozen=True):
    """Predicted and actual memory use of one device after a load."""

    device: str
    predicted_bytes: int
    real_bytes: int
