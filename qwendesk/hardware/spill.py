"""Detects from samples whether a loaded model spills out of video memory. Pure functions.

A spill is not an error: the driver moves memory to system memory, and the model becomes many times slower. Shared
memory of the engine's process counts as spilled if it exceeds a baseline taken right after the load. The baseline
is normal: buffers through which data goes to the GPU.
"""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from qwendesk.core.units import GIB, MIB

# More than this in shared memory is a spill. A well-known report is about 200 MB.
EXCESS_BYTES = 128 * MIB
# With less free video memory than this, the state is NEAR_LIMIT.
HEADROOM_BYTES = 512 * MIB
# At or below this, a spill is over.
_SPILL_END_BYTES = 64 * MIB
# NEAR_LIMIT ends when this much more than HEADROOM_BYTES is free.
_NEAR_LIMIT_END_BYTES = 128 * MIB
# The state changes after this many equal samples in a row, which are taken once a second.
_SAMPLES = 3
# Drivers use some pages of their own for each process.
_SLACK_BYTES = 64 * MIB
# The largest accepted baseline if the engine did not report its buffers in system memory.
_MAX_BASELINE_BYTES = 512 * MIB
_MIN_BUSY_PERCENT, _MAX_POWER_SHARE, _SLOW_SHARE, _FAST_SHARE = 90.0, 0.5, 0.5, 0.7


class SpillState(StrEnum):
    FITS = "fits"
    NEAR_LIMIT = "near_limit"
    SPILLING = "spilling"
    SUSPECTED = "suspected"
    """Probably spilling: shared memory can't be measured here, but the GPU seems to wait for memory."""
    UNIFIED = "unified"
    """The GPU's memory is the RAM."""
    CPU_ONLY = "cpu_only"


_WORST_FIRST = (
    SpillState.SPILLING,
    SpillState.SUSPECTED,
    SpillState.NEAR_LIMIT,
    SpillState.FITS,
    SpillState.UNIFIED,
    SpillState.CPU_ONLY,
)


class GpuAllocation(msgspec.Struct, frozen=True, kw_only=True):
    """What was loaded on one GPU, in bytes, as the engine reported it."""

    on_gpu: bool = True
    unified: bool = False
    device_bytes: int = 0
    """Allocated on this GPU."""
    host_bytes: int | None = None
    """Buffers of the engine in system memory, which the driver may count as shared; None if it did not report them."""
    reserve_bytes: int | None = None
    """Memory that the plan left free on this GPU; None if the load had no plan. None and 0 have the same effect."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU at one moment. None means unknown."""

    total_bytes: int | None = None
    used_bytes: int | None = None
    dedicated_bytes: int | None = None
    """Dedicated memory of the engine's process."""
    shared_bytes: int | None = None
    """Shared memory of the engine's process on Windows; its GTT plus its evicted memory on Linux."""
    budget_bytes: int | None = None
    """Bytes that the engine's process may use before Windows moves its memory out."""
    busy_percent: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    decode_tok_s: float | None = None
    """Speed of the answer in progress."""
    best_tok_s: float | None = None
    """Best speed of this model on this PC in chats of similar length."""


class SpillTrack(msgspec.Struct, frozen=True, kw_only=True):
    """The state after a sample, with everything that the next sample needs."""

    state: SpillState = SpillState.FITS
    baseline_bytes: int | None = None
    """Shared memory that is normal; None before the first sample that measures it."""
    excess_bytes: int = 0
    candidate: SpillState = SpillState.FITS
    candidate_samples: int = 0


def start(loaded: GpuAllocation) -> SpillTrack:
    """Return the track right after a load."""
    if not loaded.on_gpu:
        return SpillTrack(state=SpillState.CPU_ONLY)
    return SpillTrack(state=SpillState.UNIFIED if loaded.unified else SpillState.FITS)


def step(track: SpillTrack, sample: Sample, loaded: GpuAllocation) -> SpillTrack:
    """Return the track after one more sample."""
    if track.state in (SpillState.CPU_ONLY, SpillState.UNIFIED):
        return track
    baseline = track.baseline_bytes
    if baseline is None and sample.shared_bytes is not None:
        baseline = plausible_baseline(sample, loaded)
    excess = 0 if sample.shared_bytes is None or baseline is None else max(0, sample.shared_bytes - baseline)
    suggested = _suggested_state(track.state, sample, loaded, excess)
    samples = track.candidate_samples + 1 if suggested is track.candidate else 1
    state = suggested if suggested is not track.state and samples >= _SAMPLES else track.state
    return SpillTrack(
        state=state,
        baseline_bytes=baseline,
        excess_bytes=excess,
        candidate=suggested,
        candidate_samples=min(samples, _SAMPLES),
    )


def plausible_baseline(sample: Sample, loaded: GpuAllocation) -> int:
    """Return the part of the first sample's shared memory that is normal.

    If the load has already spilled, the spill must not become the baseline. So the result is at most what the engine
    reported as buffers in system memory. Also, if the driver measures less dedicated memory than the engine
    allocated, the difference must be in shared memory, and is subtracted.
    """
    reading = sample.shared_bytes or 0
    expected = _MAX_BASELINE_BYTES if loaded.host_bytes is None else loaded.host_bytes
    baseline = min(reading, expected + _SLACK_BYTES)
    if sample.dedicated_bytes is not None:
        missing = loaded.device_bytes - sample.dedicated_bytes
        if missing > EXCESS_BYTES:
            baseline = min(baseline, max(0, reading - missing))
    return baseline


def worst(states: Iterable[SpillState]) -> SpillState:
    """Return the most serious state of several GPUs; CPU_ONLY if there are none."""
    found = set(states)
    return next((state for state in _WORST_FIRST if state in found), SpillState.CPU_ONLY)


def slowdown(excess_bytes: int, total_bytes: int) -> tuple[float, float]:
    """Return how many times slower a spill makes decoding, as the lowest and highest estimate.

    The lowest follows measurements on an 8 GB laptop card, 1 + 75 x (excess / VRAM). The highest follows a report of
    200 MB on 16 GB being 7 times slower, and is at most 30.
    """
    share = excess_bytes / max(total_bytes, 1)
    return round(1 + 75 * share, 1), round(min(30.0, 1 + 6 * share * 16 * GIB / (200 * MIB)), 1)


def _suggested_state(state: SpillState, sample: Sample, loaded: GpuAllocation, excess: int) -> SpillState:
    """Return the state that one sample suggests. Values between two limits confirm the current state."""
    if sample.shared_bytes is not None:
        limit = _SPILL_END_BYTES if state is SpillState.SPILLING else EXCESS_BYTES
        if excess > limit:
            return SpillState.SPILLING
    elif _waits_for_memory(state, sample):
        return SpillState.SUSPECTED
    return SpillState.NEAR_LIMIT if _is_near_limit(state, sample, loaded) else SpillState.FITS


def _is_near_limit(state: SpillState, sample: Sample, loaded: GpuAllocation) -> bool:
    headroom = _headroom(sample)
    if headroom is None:
        return state is SpillState.NEAR_LIMIT
    if loaded.reserve_bytes and headroom >= loaded.reserve_bytes:
        return False  # as much is free as the plan intended
    limit = HEADROOM_BYTES + (_NEAR_LIMIT_END_BYTES if state is SpillState.NEAR_LIMIT else 0)
    return headroom < limit


def _headroom(sample: Sample) -> int | None:
    """Return the free memory of the card, or what the system still allows the engine's process if that is less."""
    if sample.total_bytes is None or sample.used_bytes is None:
        return None
    free = sample.total_bytes - sample.used_bytes
    if sample.budget_bytes is not None and sample.dedicated_bytes is not None:
        free = min(free, sample.budget_bytes - sample.dedicated_bytes)
    return free


def _waits_for_memory(state: SpillState, sample: Sample) -> bool:
    """Return whether the GPU seems to wait for memory: busy at low power during slow generation.

    A suspicion lasts until generation is fast again. While speeds are unknown, it doesn't change.
    """
    if sample.decode_tok_s is None or sample.best_tok_s is None:
        return state is SpillState.SUSPECTED
    if state is SpillState.SUSPECTED:
        return sample.decode_tok_s < _FAST_SHARE * sample.best_tok_s
    if sample.busy_percent is None or sample.power_w is None or not sample.power_limit_w:
        return False
    return (
        sample.busy_percent >= _MIN_BUSY_PERCENT
        and sample.power_w < _MAX_POWER_SHARE * sample.power_limit_w
        and sample.decode_tok_s < _SLOW_SHARE * sample.best_tok_s
    )
