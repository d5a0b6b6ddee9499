"""How busy a process keeps a GPU on Linux, from the time its clients spent on each engine (drm-engine-*, drm-cycles-*).

amdgpu and i915 count nanoseconds; xe counts the GPU's cycles, and beside them those that passed altogether.
"""

from collections.abc import Mapping

import msgspec

from qwendesk.hardware.probes.base import number_in

_NS_PER_S = 1_000_000_000
_TIME, _CYCLES, _TOTAL, _CAPACITY = "drm-engine-", "drm-cycles-", "drm-total-cycles-", "drm-engine-capacity-"


class EngineTime(msgspec.Struct, frozen=True):
    """Work of one client on one kind of engine since it was opened."""

    engine: str
    worked: int
    """Nanoseconds, or cycles."""
    passed: int | None = None
    """Cycles that passed; None where time is counted, which a clock tells."""
    capacity: int = 1
    """Engines of this kind."""


def engine_times(fields: Mapping[str, str]) -> tuple[EngineTime, ...]:
    """The engines that the fields of one fdinfo file speak of."""
    found = []
    for key, value in fields.items():
        start = next((start for start in (_CAPACITY, _TIME, _CYCLES) if key.startswith(start)), _CAPACITY)
        worked = number_in(value) if start != _CAPACITY else None
        if worked is None:
            continue
        engine = key.removeprefix(start)
        passed = number_in(fields.get(_TOTAL + engine)) if start == _CYCLES else None
        if start == _TIME or passed:
            found.append(EngineTime(engine, worked, passed, _capacity(fields, engine)))
    return tuple(found)


def busy_percent(
    before: Mapping[str, tuple[EngineTime, ...]], now: Mapping[str, tuple[EngineTime, ...]], seconds: float
) -> float | None:
    """How busy the clients of one GPU kept it between two looks `seconds` apart: of its engines the busiest.

    Both by client; None when no client was there both times, or none counts its work.
    """
    shares: dict[str, float] = {}
    for client, times in now.items():
        earlier = {each.engine: each for each in before.get(client, ())}
        for each in times:
            share = _share(earlier.get(each.engine), each, seconds)
            if share is not None:
                shares[each.engine] = shares.get(each.engine, 0.0) + share
    return round(min(max(shares.values()), 1.0) * 100, 1) if shares else None


def _share(before: EngineTime | None, now: EngineTime, seconds: float) -> float | None:
    if before is None or now.worked < before.worked:
        return None
    counts_time = now.passed is None or before.passed is None
    passed = seconds * _NS_PER_S if counts_time else (now.passed or 0) - (before.passed or 0)
    return (now.worked - before.worked) / passed / now.capacity if passed > 0 else None


def _capacity(fields: Mapping[str, str], engine: str) -> int:
    return max(number_in(fields.get(_CAPACITY + engine)) or 1, 1)
