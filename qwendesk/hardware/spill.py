"""Whether a loaded model spills out of video memory: samples in, states out. Pure.

Spilled memory does not fail: the driver moves it to system memory, and the model becomes many times slower. What
counts as spilled is what the engine's process holds in shared memory beyond a baseline taken right after the load,
because a part of that is meant to be there (buffers through which data goes to the GPU).
"""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from qwendesk.core.units import GIB, MIB

EXCESS_BYTES = 128 * MIB
"""More than this in shared memory is a spill (200 MB is the famous case)."""
HEADROOM_BYTES = 512 * MIB
"""Less free video memory than this is near the limit."""
_CALM_EXCESS_BYTES = 64 * MIB
"""A spill is over below this."""
_CALM_HEADROOM_BYTES = 128 * MIB
"""So much more free memory than the limit ends "near the limit"."""
_SAMPLES = 3
"""So many samples in a row change the state; one a second."""
_SLACK_BYTES = 64 * MIB
"""A driver keeps some pages of its own for each process."""
_UNKNOWN_BASELINE_BYTES = 512 * MIB
"""The largest baseline believed when the engine did not say which buffers it keeps in system memory."""
_BUSY_PERCENT, _LOW_POWER, _SLOW, _FAST = 90.0, 0.5, 0.5, 0.7


class SpillState(StrEnum):
    FITS = "fits"
    NEAR_LIMIT = "near_limit"
    SPILLING = "spilling"
    SUSPECTED = "suspected"
    """Probably spilling: nothing counts it here, but the GPU looks as if it waited for memory."""
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


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """What was loaded on one GPU, as the engine reported it. Bytes."""

    on_gpu: bool = True
    unified: bool = False
    device_bytes: int = 0
    """Allocated on this GPU."""
    host_bytes: int | None = None
    """Buffers the engine keeps in system memory, which the driver may count as shared; None when it did not say."""
    reserve_bytes: int | None = None
    """What the plan left free on this GPU; None when no plan made this load, and 0 promises nothing either."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU at one moment; None is unknown."""

    total_bytes: int | None = None
    used_bytes: int | None = None
    dedicated_bytes: int | None = None
    """Of the engine's process."""
    shared_bytes: int | None = None
    """Of the engine's process: shared memory on Windows, GTT plus what was evicted on Linux."""
    budget_bytes: int | None = None
    """What the system lets the engine's process hold before it moves memory out (Windows)."""
    busy_percent: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    decode_tok_s: float | None = None
    """While an answer is written."""
    best_tok_s: float | None = None
    """This model's best on this PC, in chats about as long."""


class Track(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is remembered from one sample to the next."""

    state: SpillState = SpillState.FITS
    baseline_bytes: int | None = None
    """Shared memory that belongs there; None before the first sample that counts it."""
    excess_bytes: int = 0
    candidate: SpillState = SpillState.FITS
    candidate_samples: int = 0


def start(loaded: Loaded) -> Track:
    """The track right after a load."""
    if not loaded.on_gpu:
        return Track(state=SpillState.CPU_ONLY)
    return Track(state=SpillState.UNIFIED if loaded.unified else SpillState.FITS)


def step(track: Track, sample: Sample, loaded: Loaded) -> Track:
    """The track after one more sample."""
    if track.state in (SpillState.CPU_ONLY, SpillState.UNIFIED):
        return track
    baseline = track.baseline_bytes
    if baseline is None and sample.shared_bytes is not None:
        baseline = believable_baseline(sample, loaded)
    excess = 0 if sample.shared_bytes is None or baseline is None else max(0, sample.shared_bytes - baseline)
    seen = _looks_like(track.state, sample, loaded, excess)
    samples = track.candidate_samples + 1 if seen is track.candidate else 1
    state = seen if seen is not track.state and samples >= _SAMPLES else track.state
    return Track(
        state=state,
        baseline_bytes=baseline,
        excess_bytes=excess,
        candidate=seen,
        candidate_samples=min(samples, _SAMPLES),
    )


def believable_baseline(sample: Sample, loaded: Loaded) -> int:
    """The part of the first reading after a load that belongs in shared memory.

    A load that already spilled must not become normal. So it is at most what the engine reported as buffers in system
    memory; and what it reported on the GPU but the driver does not count there is missing, so it sits in shared memory.
    """
    reading = sample.shared_bytes or 0
    expected = _UNKNOWN_BASELINE_BYTES if loaded.host_bytes is None else loaded.host_bytes
    baseline = min(reading, expected + _SLACK_BYTES)
    if sample.dedicated_bytes is not None:
        missing = loaded.device_bytes - sample.dedicated_bytes
        if missing > EXCESS_BYTES:
            baseline = min(baseline, max(0, reading - missing))
    return baseline


def worst(states: Iterable[SpillState]) -> SpillState:
    """Of several GPUs the one that people must hear of; CPU only when there is none."""
    found = set(states)
    return next((state for state in _WORST_FIRST if state in found), SpillState.CPU_ONLY)


def slowdown(excess_bytes: int, total_bytes: int) -> tuple[float, float]:
    """How many times slower such a spill makes decoding, lowest and highest, before it was measured here.

    The lower end is a series on an 8 GB laptop card, 1 + 75 x (excess / VRAM); the upper end goes through the report
    of 200 MB on 16 GB being 7 times slower.
    """
    share = excess_bytes / max(total_bytes, 1)
    return round(1 + 75 * share, 1), round(min(30.0, 1 + 6 * share * 16 * GIB / (200 * MIB)), 1)


def _looks_like(state: SpillState, sample: Sample, loaded: Loaded, excess: int) -> SpillState:
    """What this one sample says; between two limits it confirms the state there is."""
    if sample.shared_bytes is not None:
        limit = _CALM_EXCESS_BYTES if state is SpillState.SPILLING else EXCESS_BYTES
        if excess > limit:
            return SpillState.SPILLING
    elif _waits_for_memory(state, sample):
        return SpillState.SUSPECTED
    return SpillState.NEAR_LIMIT if _is_near(state, sample, loaded) else SpillState.FITS


def _is_near(state: SpillState, sample: Sample, loaded: Loaded) -> bool:
    headroom = _headroom(sample)
    if headroom is None:
        return state is SpillState.NEAR_LIMIT
    if loaded.reserve_bytes and headroom >= loaded.reserve_bytes:
        return False  # what the plan left free is still free
    limit = HEADROOM_BYTES + (_CALM_HEADROOM_BYTES if state is SpillState.NEAR_LIMIT else 0)
    return headroom < limit


def _headroom(sample: Sample) -> int | None:
    """Free memory of the card, or what the system still grants the engine's process if that is less."""
    if sample.total_bytes is None or sample.used_bytes is None:
        return None
    free = sample.total_bytes - sample.used_bytes
    if sample.budget_bytes is not None and sample.dedicated_bytes is not None:
        free = min(free, sample.budget_bytes - sample.dedicated_bytes)
    return free


def _waits_for_memory(state: SpillState, sample: Sample) -> bool:
    """Busy at low power while it writes slowly. A suspicion stays until a fast answer, or until nothing is known."""
    if sample.decode_tok_s is None or sample.best_tok_s is None:
        return state is SpillState.SUSPECTED
    if state is SpillState.SUSPECTED:
        return sample.decode_tok_s < _FAST * sample.best_tok_s
    if sample.busy_percent is None or sample.power_w is None or not sample.power_limit_w:
        return False
    return (
        sample.busy_percent >= _BUSY_PERCENT
        and sample.power_w < _LOW_POWER * sample.power_limit_w
        and sample.decode_tok_s < _SLOW * sample.best_tok_s
    )
