"""What the meters say, made from frozen values. No widgets here."""

from collections.abc import Sequence

from qwendesk.core.units import GIB, show_bytes, show_rate
from qwendesk.hardware.snapshot import GpuReading, SystemReading
from qwendesk.hardware.spill import SpillState
from qwendesk.services.engine.measured import Comparison
from qwendesk.services.meters.bars import GpuBar, Meters, SegmentKind
from qwendesk.ui.kit.text import tr, tr_n

SEGMENT_ROLES: tuple[tuple[SegmentKind, str], ...] = (
    ("weights", "meter_weights"),
    ("context", "meter_context"),
    ("buffers", "meter_buffers"),
    ("vision", "meter_vision"),
    ("other", "meter_other"),
    ("free", "meter_free"),
)
"""The parts of the bar from left to right, with their theme roles."""


def segment_name(kind: SegmentKind) -> str:
    return {
        "weights": tr("Weights"),
        "context": tr("Context"),
        "buffers": tr("Buffers"),
        "vision": tr("Pictures"),
        "other": tr("Other apps"),
        "free": tr("Free"),
    }[kind]


def state_text(state: SpillState) -> tuple[str, str]:
    """The state chip: its text and tone."""
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
        SpillState.FITS: tr("The model is in video memory, with room to spare"),
        SpillState.NEAR_LIMIT: tr(
            "Little video memory is free: a longer chat or another program may push the model out of it"
        ),
        SpillState.SPILLING: tr("A part of the model sits in shared memory, which is many times slower"),
        SpillState.SUSPECTED: tr(
            "The GPU is busy at low power and slow: a part of the model probably sits in shared memory, which cannot "
            "be counted here"
        ),
        SpillState.UNIFIED: tr("The GPU uses the RAM: there is no video memory to spill from"),
        SpillState.CPU_ONLY: tr("No GPU holds any of the model: it runs on the processor, from RAM"),
    }[state]


def pair_text(used: int, total: int) -> str:
    """ "22.6 / 24 GB"."""
    return tr("{0} / {1} GB", f"{used / GIB:.1f}", _whole(total))


def bar_text(bars: tuple[GpuBar, ...]) -> str:
    """ "22.6 / 24 GB", with "24.0 + 1.3 GB shared" while something spills; all GPUs together."""
    used, total = sum(bar.used_bytes for bar in bars), sum(bar.total_bytes for bar in bars)
    excess = sum(bar.excess_bytes for bar in bars)
    if excess:
        return tr("{0} + {1} GB shared", f"{used / GIB:.1f}", f"{excess / GIB:.1f}")
    return pair_text(used, total)


def bar_tooltip(bars: tuple[GpuBar, ...], compared: Sequence[Comparison] = ()) -> str:
    """Every number of every GPU, a line each."""
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
        lines.append(tr("The model: {0}", compared_text(compared)))
    lines.append(tr("Click for the last five minutes"))
    return "\n".join(lines)


def compared_text(rows: Sequence[Comparison]) -> str:
    """ "predicted 21.4 GB, real 21.6 GB", the GPUs together; "" before the load was measured."""
    if not rows:
        return ""
    predicted, real = sum(row.predicted_bytes for row in rows), sum(row.real_bytes for row in rows)
    return tr("predicted {0}, real {1}", show_bytes(predicted), show_bytes(real))


def ram_text(system: SystemReading) -> str:
    """ "RAM 18.2 / 64 GB"; "" while it is not known."""
    if system.ram_used_bytes is None or system.ram_total_bytes is None:
        return ""
    return tr("RAM {0}", pair_text(system.ram_used_bytes, system.ram_total_bytes))


def ram_tooltip(system: SystemReading, compared: Sequence[Comparison] = ()) -> str:
    engine, swap = system.engine_ram_bytes, system.swap_used_bytes
    lines = [
        tr("RAM used by all programs"),
        tr("The engine: {0}", show_bytes(engine)) if engine is not None else "",
        tr("Swapped out: {0}", show_bytes(swap)) if swap else "",
        tr("Processor: {0}%", round(system.cpu_percent)) if system.cpu_percent is not None else "",
        tr("The model: {0}", compared_text(compared)) if compared else "",
    ]
    return "\n".join(line for line in lines if line)


def gpu_text(gpu: GpuReading | None) -> str:
    """ "GPU 97% · 312 W · 71 °C", as far as it is known."""
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
        "hardware": tr("the card's own protection"),
    }
    mega = 1024 * 1024
    lines = [
        gpu.name or "",
        tr("Power limit: {0} W", round(gpu.power_limit_w)) if gpu.power_limit_w is not None else "",
        tr("Clocks: {0} MHz, memory {1} MHz", gpu.core_mhz, gpu.memory_mhz)
        if gpu.core_mhz is not None and gpu.memory_mhz is not None
        else "",
        tr("Slowed down by: {0}", ", ".join(throttle[each] for each in gpu.throttle)) if gpu.throttle else "",
        tr("PCIe {0}.0 ×{1}", gpu.pcie_generation, gpu.pcie_width)
        if gpu.pcie_generation is not None and gpu.pcie_width is not None
        else "",
        tr(
            "Over PCIe: {0} MB/s to the GPU, {1} MB/s back",
            f"{gpu.pcie_sent_bytes_s / mega:.0f}",
            f"{gpu.pcie_received_bytes_s / mega:.0f}",
        )
        if gpu.pcie_sent_bytes_s is not None and gpu.pcie_received_bytes_s is not None
        else "",
    ]
    return "\n".join(line for line in lines if line)


def cpu_text(meters: Meters) -> str:
    """ "8 threads", for a model on the CPU; "" while it is not known."""
    return tr_n("{0} thread", "{0} threads", meters.threads) if meters.threads else ""


def rate_text(tok_s: float) -> str:
    """ "112 tok/s", one decimal below 10."""
    return tr("{0} tok/s", show_rate(tok_s))


def _whole(n_bytes: int) -> str:
    """ "24", "23.9": one decimal unless it is almost whole."""
    gib = n_bytes / GIB
    return f"{gib:.0f}" if abs(gib - round(gib)) < 0.05 else f"{gib:.1f}"
