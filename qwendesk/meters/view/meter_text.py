"""Texts and tooltips of the meters, computed from values without creating widgets."""

from collections.abc import Sequence

from qwendesk.core.devices import Segment, number_equal_names, short_card_name
from qwendesk.core.number_format import show_decimal
from qwendesk.core.plan import Comparison
from qwendesk.core.translation import join_list, tr, tr_n
from qwendesk.core.units import GIB, show_bytes, show_rate
from qwendesk.hardware.snapshot import GpuReading, SystemReading
from qwendesk.hardware.spill import SpillState
from qwendesk.meters.meter_state import GpuBar, MeterState
from qwendesk.widgets.vram_bar import segment_name


def state_text(state: SpillState) -> tuple[str, str]:
    """Return the text and the tone of the state chip."""
    return {
        SpillState.FITS: (tr("Fits"), "good"),
        SpillState.NEAR_LIMIT: (tr("Near limit"), "warn"),
        SpillState.SPILLING: (tr("Spilling"), "bad"),
        SpillState.SUSPECTED: (tr("Probably spilling"), "bad"),
        SpillState.UNIFIED: (tr("Shared memory PC"), "info"),
        SpillState.CPU_ONLY: (tr("CPU only"), "plain"),
    }[state]


def state_tooltip(state: SpillState) -> str:
    return {
        SpillState.FITS: tr("The model fits into video memory with room to spare"),
        SpillState.NEAR_LIMIT: tr(
            "Little video memory is free. A longer chat or another program may push the model out of it"
        ),
        SpillState.SPILLING: tr("Part of the model is in shared memory, which is many times slower"),
        SpillState.SUSPECTED: tr(
            "The GPU is busy at low power and slow. Part of the model is probably in shared memory, which can't be "
            "measured here"
        ),
        SpillState.UNIFIED: tr("The GPU uses the RAM, so there is no video memory to spill from"),
        SpillState.CPU_ONLY: tr("The model runs on the CPU, from RAM"),
    }[state]


def pair_text(used: int, total: int) -> str:
    """Return used and total memory as "22.6 / 24 GB"."""
    return tr("{0} / {1} GB", show_decimal(used / GIB, 1), _whole(total))


def bar_text(bars: tuple[GpuBar, ...]) -> str:
    """Return the memory of all GPUs together as "22.6 / 24 GB", or "24.0 + 1.3 GB shared" during a spill."""
    used, total = sum(bar.used_bytes for bar in bars), sum(bar.total_bytes for bar in bars)
    excess = sum(bar.excess_bytes for bar in bars)
    if excess:
        return tr("{0} + {1} GB shared", show_decimal(used / GIB, 1), show_decimal(excess / GIB, 1))
    return pair_text(used, total)


def bar_tooltip(bars: tuple[GpuBar, ...], compared: Sequence[Comparison] = ()) -> str:
    """Return all numbers of all GPUs, one on each line."""
    lines: list[str] = []
    for bar in bars:
        lines.append(
            tr(
                "{0}: {1} of {2}",
                bar.gpu.name or tr("GPU"),
                show_bytes(bar.used_bytes),
                show_bytes(bar.total_bytes),
            )
        )
        lines += [tr("{0}: {1}", segment_name(each.kind), show_bytes(each.n_bytes)) for each in bar.segments]
        if bar.excess_bytes:
            lines.append(tr("Shared memory: {0}", show_bytes(bar.excess_bytes)))
    if compared:
        lines.append(tr("This model: {0}", compared_text(compared)))
    lines.append(tr("Click to see the last five minutes"))
    return "\n".join(lines)


def named_bars(bars: Sequence[GpuBar], gpus: Sequence[GpuReading]) -> list[tuple[str, GpuBar]]:
    """Return `bars` with a name for each, in the order of `gpus`, which are all readings of the last sample."""
    order = list(gpus)
    placed = sorted(bars, key=lambda bar: order.index(bar.gpu) if bar.gpu in order else len(order))
    names = number_equal_names([short_card_name(bar.gpu.name or tr("GPU")) for bar in placed])
    return list(zip(names, placed, strict=True))


def gpu_line_texts(bar: GpuBar, name: str) -> tuple[str, ...]:
    """Return "RTX 3090 #1 · 22.6 / 24 GB · 97% · 312 W" for one of several GPUs, and ever shorter forms of it."""
    memory, gpu = bar_text((bar,)), bar.gpu
    busy = tr("{0}%", round(gpu.busy_percent)) if gpu.busy_percent is not None else ""
    watts = tr("{0} W", round(gpu.power_w)) if gpu.power_w is not None else ""
    number = name[name.rindex("#") :] if "#" in name else ""
    forms = (
        (name, memory, busy, watts),
        (name, memory, busy),
        (name, memory),
        (number, memory),
        (memory,),
        (number or name,),
    )
    return tuple(dict.fromkeys(" · ".join(part for part in form if part) for form in forms))


def segments_text(segments: Sequence[Segment]) -> str:
    """Return used and total memory of a bar as "52.3 / 125 GB"."""
    total = sum(each.n_bytes for each in segments)
    return pair_text(total - sum(each.n_bytes for each in segments if each.kind == "free"), total)


def shared_tooltip(segments: Sequence[Segment], compared: Sequence[Comparison]) -> str:
    """Return all numbers of a memory that GPU and CPU share, one on each line."""
    lines = [tr("GPU and CPU use the same memory")]
    lines += [tr("{0}: {1}", segment_name(each.kind), show_bytes(each.n_bytes)) for each in segments]
    if compared:
        lines.append(tr("This model: {0}", compared_text(compared)))
    lines.append(tr("Click to see the last five minutes"))
    return "\n".join(lines)


def compared_text(rows: Sequence[Comparison]) -> str:
    """Return "estimated 21.4 GB, actual 21.6 GB" for all GPUs together; "" before the load was measured."""
    if not rows:
        return ""
    predicted, real = sum(row.predicted_bytes for row in rows), sum(row.real_bytes for row in rows)
    return tr("estimated {0}, actual {1}", show_bytes(predicted), show_bytes(real))


def ram_text(segments: Sequence[Segment]) -> str:
    """Return used and total RAM as "RAM 18.2 / 64 GB"; "" if unknown."""
    return tr("RAM {0}", segments_text(segments)) if segments else ""


def ram_tooltip(system: SystemReading, compared: Sequence[Comparison] = ()) -> str:
    engine, swap = system.engine_ram_bytes, system.swap_used_bytes
    lines = [
        tr("RAM used by all programs"),
        tr("Engine: {0}", show_bytes(engine)) if engine is not None else "",
        tr("Swap: {0}", show_bytes(swap)) if swap else "",
        tr("CPU: {0}%", round(system.cpu_percent)) if system.cpu_percent is not None else "",
        tr("This model: {0}", compared_text(compared)) if compared else "",
    ]
    return "\n".join(line for line in lines if line)


def gpu_text(gpu: GpuReading | None) -> str:
    """Return the known readings as "GPU 97% · 312 W · 71 °C"."""
    if gpu is None:
        return ""
    parts = [
        tr("GPU {0}%", round(gpu.busy_percent)) if gpu.busy_percent is not None else "",
        tr("{0} W", round(gpu.power_w)) if gpu.power_w is not None else "",
        tr("{0} °C", round(gpu.temperature_c)) if gpu.temperature_c is not None else "",
    ]
    return " · ".join(part for part in parts if part)


def gpu_tooltip(gpu: GpuReading | None) -> str:
    if gpu is None:
        return ""
    throttle = {
        "idle": tr("idle"),
        "power cap": tr("power limit"),
        "thermal": tr("too hot"),
        "hardware": tr("hardware protection"),
    }
    mega = 1024 * 1024
    lines = [
        gpu.name or "",
        tr("Power limit: {0} W", round(gpu.power_limit_w)) if gpu.power_limit_w is not None else "",
        tr("Clocks: {0} MHz, memory {1} MHz", gpu.core_mhz, gpu.memory_mhz)
        if gpu.core_mhz is not None and gpu.memory_mhz is not None
        else "",
        tr("Throttled: {0}", join_list(throttle[each] for each in gpu.throttle)) if gpu.throttle else "",
        tr("PCIe {0}.0 ×{1}", gpu.pcie_generation, gpu.pcie_width)
        if gpu.pcie_generation is not None and gpu.pcie_width is not None
        else "",
        tr(
            "PCIe traffic: {0} MB/s to the GPU, {1} MB/s back",
            show_decimal(gpu.pcie_sent_bytes_s / mega, 0),
            show_decimal(gpu.pcie_received_bytes_s / mega, 0),
        )
        if gpu.pcie_sent_bytes_s is not None and gpu.pcie_received_bytes_s is not None
        else "",
    ]
    return "\n".join(line for line in lines if line)


def cpu_text(meters: MeterState) -> str:
    """Return the CPU threads of the model as "8 threads"; "" if unknown."""
    return tr_n("{0} thread", "{0} threads", meters.threads) if meters.threads else ""


def rate_text(tok_s: float) -> str:
    """Return a speed as "112 tok/s", with one decimal below 10."""
    return tr("{0} tok/s", show_rate(tok_s))


def _whole(n_bytes: int) -> str:
    """Return bytes in GiB as "24" or "23.9": with one decimal unless the number is almost whole."""
    gib = n_bytes / GIB
    return show_decimal(gib, 0 if abs(gib - round(gib)) < 0.05 else 1)
