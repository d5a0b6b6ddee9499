"""The tokens per second to expect of a file on this PC: as users with such a PC report, or as the planner estimates."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from qwendesk.core.plan import SpeedEstimate
from qwendesk.core.translation import tr
from qwendesk.core.units import GIB
from qwendesk.hardware.gpu_cards import backend_of, find_card, ram_bandwidth
from qwendesk.hub.catalog_schema import CatalogModel, SpeedReport
from qwendesk.models.fit import FitLabel, Pc

# Up to this many tokens a chat counts as new, and up to this many a speed is that of a short one.
_START_DEPTH, _SHORT_DEPTH = 8_192, 12_288

# "pasted" is a report that the user has added.
SpeedSource = Literal["reported", "pasted", "estimated"]


class SpeedRange(msgspec.Struct, frozen=True):
    """A range of tokens per second in a chat of `depth` tokens."""

    depth: int
    slow: float
    fast: float
    source: SpeedSource


class ExpectedSpeed(msgspec.Struct, frozen=True):
    """What to expect before the model has run on this PC."""

    speeds: tuple[SpeedRange, ...]
    """By length of the chat, the shortest first; at least one. The first is of a short chat.

    At one length, what the user pasted comes before what others report.
    """
    reports: tuple[SpeedReport, ...] = ()
    """The reports that `speeds` are from, in the same order; empty for an estimate."""

    @property
    def source(self) -> SpeedSource:
        """What the speed in short chats is known from."""
        return self.speeds[0].source

    @property
    def start(self) -> tuple[float, float]:
        """The range in the shortest chats that are known."""
        return self.speeds[0].slow, self.speeds[0].fast


def expect_speed(reports: tuple[SpeedReport, ...], estimate: SpeedEstimate | None) -> ExpectedSpeed | None:
    """Return what users report of PCs like this one, and the estimate for short chats if they report long ones only.

    `reports` are those that hold for this PC and this file. Return None if the speed in short chats isn't known.
    """
    reported = _by_depth(reports)
    if reported and reported[0].depth <= _SHORT_DEPTH:
        return ExpectedSpeed(reported, reports)
    if estimate is None:
        return None
    start = SpeedRange(0, *estimate.start, "estimated")
    return ExpectedSpeed(
        (start, *(reported or (SpeedRange(estimate.long_tokens, *estimate.long, "estimated"),))), reports
    )


def _by_depth(reports: tuple[SpeedReport, ...]) -> tuple[SpeedRange, ...]:
    """Return one range for each length of chat and source. All reports of new chats have one length."""
    found: dict[tuple[int, SpeedSource], tuple[float, float]] = {}
    for report in reports:
        depth = 0 if report.depth <= _START_DEPTH else report.depth
        key: tuple[int, SpeedSource] = depth, "pasted" if report.is_pasted else "reported"
        slow, fast = found.get(key, report.range)
        found[key] = min(slow, report.range[0]), max(fast, report.range[1])
    by_depth = sorted(found, key=lambda key: (key[0], key[1] != "pasted"))
    return tuple(SpeedRange(depth, *found[depth, source], source) for depth, source in by_depth)


def origin_text(report: SpeedReport) -> str:
    """Return where a report is from: "r/LocalLLaMA, 2026-03", or "pasted by you: llama-bench, build e85e15cf6"."""
    origin = f"{report.source}, {report.date}" if report.date else report.source
    return tr("pasted by you: {0}", origin) if report.is_pasted else origin


# Files whose sizes differ by less than this factor are alike: the next larger or smaller quant.
_LIKE_SIZE = 1.15
# Files of the same quant differ by about this much between versions and uploaders.
_SAME_SIZE = 1.06
# RAM whose bandwidths differ by less than this factor is about as fast.
_LIKE_RAM = 1.15
# Sizes are printed with three digits.
_ROUNDED = 1.005
# How many of the expert layers, as a share, may be on the other side.
_LIKE_PLACEMENT = 0.15


def find_reports(
    reports: Sequence[SpeedReport], model: CatalogModel, quant: str, n_bytes: int, fit: FitLabel, pc: Pc
) -> tuple[SpeedReport, ...]:
    """Return the reports that hold for a file of `n_bytes` on `pc`, those of the shortest chats first.

    They are of this file, or else of the quant whose file is most alike in size and of those about as large as that
    one: reports of others would contradict each other. Reports from older engines or unusual PCs never count.
    """
    found = [
        report
        for report in reports
        if not report.has_old_engine
        and not report.is_unusual
        and _is_like_file(report, model, quant, n_bytes)
        and _is_no_larger(report, quant, n_bytes)
        and _has_same_placement(report, fit)
        and _has_same_cards(report, pc)
        and _has_same_backend(report, pc)
    ]
    found = [report for report in found if _is_same_file(report, quant, n_bytes)] or found
    closest = min((report.n_bytes for report in found), key=lambda size: abs(size - n_bytes), default=0)
    alike = (report for report in found if _is_within(report.n_bytes, closest, _SAME_SIZE))
    return tuple(sorted(alike, key=lambda report: (report.depth, not report.is_pasted, report.tok_s)))


def find_doubtful(
    reports: Sequence[SpeedReport], model: CatalogModel, quant: str, n_bytes: int, fit: FitLabel, pc: Pc
) -> tuple[SpeedReport, ...]:
    """Return the reports of these cards that nothing is expected from.

    Their engine is old or isn't named, or their PC is unusual, as their remark says.
    They are worth reading: their users asked the same question.
    """
    found = (
        report
        for report in reports
        if report.gpus
        and (report.has_old_engine or report.is_unusual or not report.backend)
        and _is_like_file(report, model, quant, n_bytes)
        and (not report.placement or _has_same_placement(report, fit))
        and _has_same_cards(report, pc)
    )
    return tuple(sorted(found, key=lambda report: (report.depth, report.tok_s)))


def _is_like_file(report: SpeedReport, model: CatalogModel, quant: str, n_bytes: int) -> bool:
    return (
        _layers(report.model) == _layers(model.id)
        and _is_within(report.n_bytes, n_bytes, _LIKE_SIZE)
        and _is_mxfp4(report.quant) == _is_mxfp4(quant)
    )


def _is_same_file(report: SpeedReport, quant: str, n_bytes: int) -> bool:
    return report.quant == quant or _is_within(report.n_bytes, n_bytes, _ROUNDED)


def _is_no_larger(report: SpeedReport, quant: str, n_bytes: int) -> bool:
    """Return whether the file is at most as large as the report's: a larger one is slower."""
    return n_bytes <= report.n_bytes * (_SAME_SIZE if report.quant == quant else _ROUNDED)


def _layers(model: str) -> str:
    """Return what models of several versions have in common: "27B" of 3.5, 3.6 and 3.8 has the same layers."""
    return model.partition("-")[2] if model.startswith("Qwen3.") else model


def _is_mxfp4(quant: str) -> bool:
    """Return whether the experts are in MXFP4, which has kernels of its own."""
    return quant.startswith("MXFP4")


def _is_within(one: float, other: float, factor: float) -> bool:
    low, high = sorted((one, other))
    return high <= factor * low


def _has_same_placement(report: SpeedReport, fit: FitLabel) -> bool:
    """Return whether the weights were where they would be here. Nobody reports of a table on a hard disk."""
    if report.placement != fit.kind or (fit.lazy_bytes and fit.drive == "hdd"):
        return False
    if report.on_cpu is None or fit.kind == "cpu":
        return True
    return abs(report.on_cpu - fit.on_cpu) <= _LIKE_PLACEMENT * fit.of_layers


def _has_same_cards(report: SpeedReport, pc: Pc) -> bool:
    if not report.gpus:
        return not pc.gpus and _has_like_ram(report, pc)
    if len(report.gpus) != len(pc.gpus):
        return False
    if report.placement != "vram" and any(not _has_memory(gpu.total_bytes, report.gpu_gb) for gpu in pc.gpus):
        return False
    left = [find_card(name, round(report.gpu_gb * GIB)) for name in report.gpus]
    for gpu in pc.gpus:
        card = find_card(gpu.description or gpu.name, gpu.total_bytes)
        like = next((each for each in left if card is not None and each is not None and card.is_like(each)), None)
        if like is None:
            return False
        left.remove(like)
    return True


def _has_like_ram(report: SpeedReport, pc: Pc) -> bool:
    """Return whether the RAM is about as fast. Nothing is promised where that of this PC isn't known."""
    if pc.ram_bandwidth is None:
        return False
    reported = ram_bandwidth(report.ram_kind, report.ram_channels) if report.ram_channels else None
    return reported is not None and all(
        slow <= _LIKE_RAM * fast
        for slow, fast in ((reported[0], pc.ram_bandwidth[1]), (pc.ram_bandwidth[0], reported[1]))
    )


def _has_same_backend(report: SpeedReport, pc: Pc) -> bool:
    return all(backend_of(gpu) == report.backend for gpu in pc.gpus)


def _has_memory(n_bytes: int | None, gib: float) -> bool:
    """Return whether a card has the memory that is printed on its box, of which drivers report a little less."""
    return n_bytes is not None and abs(n_bytes / GIB - gib) <= 1
