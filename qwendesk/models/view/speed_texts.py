"""Texts about the speed of a model on this PC: measured here, reported by users, or estimated. No widgets here."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from qwendesk.core.translation import join_list, join_sentences, mark, tr, unbroken
from qwendesk.core.units import show_expected, show_rate, show_reported, show_tokens
from qwendesk.hub.catalog_schema import SpeedReport
from qwendesk.models.expected_speed import ExpectedSpeed, SpeedRange, SpeedSource, origin_text
from qwendesk.models.ranking import Offer, QuantOffer

_BACKENDS: Mapping[str, str] = MappingProxyType(
    {"cuda": "CUDA", "vulkan": "Vulkan", "metal": "Metal", "rocm": "ROCm", "cpu": "CPU"}
)

_SOURCES: Mapping[SpeedSource, str] = MappingProxyType(
    {"estimated": mark("estimated"), "reported": mark("reported by users"), "pasted": mark("pasted by you")}
)


def measured_text(tok_s: float) -> str:
    """Return the speed that was measured on this PC: "Measured here: 12 tok/s"."""
    return unbroken(tr("Measured here: {0} tok/s", show_rate(tok_s)))


def expected_text(offer: Offer, quant: QuantOffer | None) -> str:
    """Return the speed to expect of a quant of `offer`, and what it is known from; "" if unknown."""
    speed = quant.expected if quant is not None else None
    if speed is None:
        return ""
    if not speed.reports:
        start, long = (show_expected((each.slow, each.fast)) for each in (speed.speeds[0], speed.speeds[-1]))
        return tr("Estimated {0} tok/s at the start, {1} in long chats.", start, long)
    texts = [tr("Estimated {0} tok/s at the start.", show_expected(speed.start))] if speed.source == "estimated" else []
    pasted, reported = (_known(speed, source) for source in ("pasted", "reported"))
    if pasted.reports:
        texts.append(tr("You pasted {0} ({1}).", _speeds_text(pasted), _conditions(pasted, offer.id)))
    if reported.reports:
        texts.append(tr("Others report {0} ({1}).", _speeds_text(reported), _conditions(reported, offer.id)))
    return join_sentences(*texts)


def short_speed_text(quant: QuantOffer) -> str:
    """Return the speed in new chats with its range and source: "about 45 tok/s (29–69, estimated)"; "–" if unknown."""
    speed = quant.expected
    if speed is None:
        return "–"
    rate, source = show_rate(quant.likely_tok_s), _SOURCES[speed.source]
    if speed.start[0] == speed.start[1]:
        return tr("about {0} tok/s ({1})", rate, tr(source))
    shown = show_expected if speed.source == "estimated" else show_reported
    return tr("about {0} tok/s ({1}, {2})", rate, shown(speed.start), tr(source))


def speed_cell(quant: QuantOffer, measured_tok_s: float | None) -> str:
    """Return the speed of a quant in new chats for a table, and in a second line what it is known from; "" if unknown.

    Reports of long chats aren't shown, because they can't be compared with the other rows.
    """
    if measured_tok_s is not None:
        return unbroken(tr("{0} tok/s\nmeasured here", show_rate(measured_tok_s)))
    speed = quant.expected
    if speed is None:
        return ""
    if speed.source == "estimated":
        return unbroken(tr("{0} tok/s\nestimated", show_expected(speed.start)))
    rate, depth = show_reported(speed.start), speed.speeds[0].depth
    if speed.source == "pasted" and depth:
        return unbroken(tr("{0} tok/s\npasted by you, at {1}", rate, show_tokens(depth)))
    if speed.source == "pasted":
        return unbroken(tr("{0} tok/s\npasted by you", rate))
    if depth:
        return unbroken(tr("{0} tok/s\nreported at {1}", rate, show_tokens(depth)))
    return unbroken(tr("{0} tok/s\nreported", rate))


def speed_sources(quant: QuantOffer, measured_tok_s: float | None) -> list[str]:
    """Return what the shown speed is known from, in lines; [] if the speed is unknown."""
    if measured_tok_s is not None:
        return [tr("Speed: measured on this PC in your last chat with it.")]
    speed = quant.expected
    if speed is None:
        return []
    doubtful = [_doubtful_text(report) for report in quant.doubtful]
    reports = [report_text(report) for report in speed.reports]
    if speed.source == "estimated":
        estimated = tr("Speed: estimated from memory bandwidth and the bytes read per token. Not measured on this PC.")
        return [estimated, *reports, *doubtful]
    if speed.source == "pasted":
        return [tr("Speed: from a report of the same cards and engine that you pasted."), *reports, *doubtful]
    reported = tr("Speed: reported by users with the same cards and engine. Not measured on this PC.")
    return [reported, *reports, *doubtful]


def _known(speed: ExpectedSpeed, source: SpeedSource) -> ExpectedSpeed:
    """Return the ranges and reports of one source."""
    return ExpectedSpeed(
        tuple(each for each in speed.speeds if each.source == source),
        tuple(each for each in speed.reports if each.is_pasted == (source == "pasted")),
    )


def _speeds_text(speed: ExpectedSpeed) -> str:
    return join_list(_at_depth(each, is_first=not index) for index, each in enumerate(speed.speeds))


def _at_depth(speed: SpeedRange, *, is_first: bool) -> str:
    rate = show_reported((speed.slow, speed.fast))
    if not speed.depth:
        return tr("{0} tok/s at the start", rate)
    depth = show_tokens(speed.depth)
    return tr("{0} tok/s at {1}", rate, depth) if is_first else tr("{0} at {1}", rate, depth)


def _conditions(speed: ExpectedSpeed, model: str) -> str:
    """Return "RTX 3090, CUDA, Q4_K_M", and the model if the reports are of another version."""
    cards = _joined([_cards(report) for report in speed.reports])
    quants = _joined([_file_text(report, model) for report in speed.reports])
    backend = _BACKENDS.get(speed.reports[0].backend, "")
    return join_list((cards, backend if speed.reports[0].gpus else "", quants))


def report_text(report: SpeedReport) -> str:
    """Return a report in a line: speed and length of the chat, cards, backend and file, and where it's from."""
    rate = tr("{0} tok/s at the start", show_reported(report.range))
    if report.depth:
        rate = tr("{0} tok/s at {1}", show_reported(report.range), show_tokens(report.depth))
    known = (
        _cards(report),
        _ram(report),
        _BACKENDS.get(report.backend, "") if report.gpus else "",
        f"{report.model} {report.quant}",
    )
    remark = (report.remark,) if report.remark else ()
    return " · ".join((rate, join_list(known), origin_text(report), *remark))


def _doubtful_text(report: SpeedReport) -> str:
    if report.has_old_engine:
        return tr("{0} · with an old engine that used the CPU for some layers: expect more", report_text(report))
    if report.is_unusual:
        return report_text(report)  # its remark says why
    return tr("{0} · the engine isn't named", report_text(report))


def _cards(report: SpeedReport) -> str:
    return " + ".join(report.gpus) or (tr("a CPU with {0}", report.ram_kind) if report.ram_kind else tr("CPU"))


def _ram(report: SpeedReport) -> str:
    """Return the RAM if weights are in it and its kind is known: "62 GB DDR4-2667"."""
    if not report.ram_kind or not report.ram_gb or report.placement == "vram":
        return ""
    return f"{tr('{0} GB', round(report.ram_gb))} {report.ram_kind}"


def _file_text(report: SpeedReport, model: str) -> str:
    return report.quant if report.model == model else f"{report.model} {report.quant}"


def _joined(texts: Sequence[str]) -> str:
    return " / ".join(dict.fromkeys(texts))
