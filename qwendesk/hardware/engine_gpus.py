"""Matches the readings of the probes with the engine's devices, and makes samples for the spill rules of them."""

from collections.abc import Sequence

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.units import GIB
from qwendesk.hardware.gpu_cards import find_card, pcie_bandwidth
from qwendesk.hardware.snapshot import GpuReading
from qwendesk.hardware.spill import Sample

# A card with less memory is too small for a useful model.
_SMALLEST_CARD_BYTES = 2 * GIB
# AMD's carve-outs are 0.5 GiB by default, and up to 96 GiB if the user chose so.
_LEAST_CARVE_OUT_BYTES = 2 * GIB


def match_gpus(devices: Sequence[DeviceInfo], gpus: Sequence[GpuReading]) -> dict[str, GpuReading]:
    """Return the reading of each of the engine's GPUs by device name, matched by product name or else by order."""
    wanted = [device for device in devices if device.kind in ("gpu", "igpu")]
    left, found = list(gpus), {}
    for device in wanted:
        same = next((gpu for gpu in left if gpu.name and _same_name(gpu.name, device.description)), None)
        if same is not None:
            found[device.name] = same
            left.remove(same)
    missing = [device for device in wanted if device.name not in found]
    dedicated = [gpu for gpu in left if not gpu.unified]
    for device, gpu in zip(missing, dedicated if len(dedicated) >= len(missing) else left, strict=False):
        found[device.name] = gpu
    return found


def gpus_for_models(gpus: Sequence[GpuReading]) -> tuple[GpuReading, ...]:
    """Return the NVIDIA and AMD GPUs that are worth an engine of their own.

    They have enough memory of their own for a model, or share fast memory with the CPU, as in a Strix Halo.
    """
    return tuple(gpu for gpu in gpus if gpu.vendor in ("nvidia", "amd") and _has_memory_for_models(gpu))


def _has_memory_for_models(gpu: GpuReading) -> bool:
    if gpu.unified:
        card = find_card(gpu.name or "")
        return card is not None and card.shares_ram
    return gpu.total_bytes is None or gpu.total_bytes >= _SMALLEST_CARD_BYTES


def sees_card(devices: Sequence[DeviceInfo]) -> bool:
    """Return whether an engine with these devices sees a graphics card, or hasn't listed its devices yet.

    An integrated GPU counts if it shares fast memory with the CPU, as in a Strix Halo.
    """
    return not devices or any(device.kind == "gpu" or _is_fast(device) for device in devices)


def _is_fast(device: DeviceInfo) -> bool:
    card = find_card(device.description) if device.kind == "igpu" else None
    return card is not None and card.shares_ram


def link_speeds(devices: Sequence[DeviceInfo], gpus: Sequence[GpuReading]) -> tuple[tuple[str, float], ...]:
    """Return device name and bytes/s of the PCIe link of each of the engine's GPUs whose link at work is known."""
    return tuple(
        (name, pcie_bandwidth(gpu.pcie_max_generation, gpu.pcie_width))
        for name, gpu in match_gpus(devices, gpus).items()
        if gpu.pcie_max_generation and gpu.pcie_width
    )


def carve_outs(devices: Sequence[DeviceInfo], gpus: Sequence[GpuReading]) -> tuple[tuple[str, int], ...]:
    """Return name and carve-out in bytes of the engine's integrated GPUs that have a large one.

    The firmware sets it aside when the PC starts, so the system doesn't count it as RAM. A small one is full of what
    the desktop shows.
    """
    integrated = tuple(device for device in devices if device.kind == "igpu")
    return tuple(
        (name, gpu.total_bytes)
        for name, gpu in match_gpus(integrated, gpus).items()
        if gpu.vendor == "amd" and gpu.total_bytes is not None and gpu.total_bytes >= _LEAST_CARVE_OUT_BYTES
    )


def spill_sample(gpu: GpuReading, pid: int | None, decode_tok_s: float | None, best_tok_s: float | None) -> Sample:
    """Return one sample for the spill rules."""
    ours = gpu.process(pid)
    shared = ours.shared_bytes if ours is not None else None
    if shared is not None and ours is not None and ours.evicted_bytes:
        shared = max(shared, ours.evicted_bytes)
    return Sample(
        total_bytes=gpu.total_bytes,
        used_bytes=gpu.used_bytes,
        dedicated_bytes=ours.dedicated_bytes if ours is not None else None,
        shared_bytes=shared,
        budget_bytes=gpu.budget_bytes,
        busy_percent=gpu.busy_percent,
        power_w=gpu.power_w,
        power_limit_w=gpu.power_limit_w,
        decode_tok_s=decode_tok_s,
        best_tok_s=best_tok_s,
    )


def _same_name(one: str, other: str) -> bool:
    one, other = (" ".join(name.lower().replace("(r)", "").replace("(tm)", "").split()) for name in (one, other))
    return bool(one and other) and (one in other or other in one)
