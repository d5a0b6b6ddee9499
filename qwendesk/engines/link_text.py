"""Texts about the links of graphics cards, for the window and the commands `plan` and `doctor`."""

from collections.abc import Sequence

from qwendesk.core.number_format import show_decimal
from qwendesk.core.translation import join_sentences, tr, tr_n
from qwendesk.core.units import GIB, show_bytes, show_duration
from qwendesk.hardware.gpu_links import LinkReport, link_reports
from qwendesk.hardware.snapshot import GpuReading

_EXAMPLE_BYTES = 10 * GIB


def link_sentences(gpus: Sequence[GpuReading]) -> dict[str, str]:
    """Return the sentences about each graphics card whose link is known, by the key of its reading."""
    return {report.key: link_text(report) for report in link_reports(gpus)}


def link_text(report: LinkReport, weights_bytes: int = 0) -> str:
    """Return the sentences about one link. With `weights_bytes`, loading is counted for what the card gets of a model.

    Without, a slow link has 10 GB as an example.
    """
    sentences = [_rate(report)]
    if weights_bytes and report.speed in ("enough", "slow"):
        sentences.append(_loading(weights_bytes, report))
    elif report.speed == "slow":
        sentences.append(_loading(_EXAMPLE_BYTES, report))
    if report.n_cards > 1:
        sentences += [_nvlink(name, n_links) for name, n_links in report.nvlinks]
        sentences.append(_split(report))
    if report.speed == "fast" and report.n_cards == 1:
        sentences.append(tr("That is enough for everything."))
    elif report.speed in ("enough", "slow"):
        sentences.append(tr("If experts are in RAM, long prompts take longer, because experts are copied over it."))
    return join_sentences(*sentences)


def _rate(report: LinkReport) -> str:
    if report.bytes_s is None:
        return ""
    rate = show_decimal(report.bytes_s / 1e9, 1)
    if report.is_idle:
        return tr(
            "At work, PCIe {0}.0 ×{1} carries {2} GB/s each way. It shows {3}.0 now to save power.",
            report.generation, report.width, rate, report.generation_now,
        )  # fmt: skip
    return tr("PCIe {0}.0 ×{1} carries {2} GB/s each way.", report.generation, report.width, rate)


def _loading(n_bytes: int, report: LinkReport) -> str:
    seconds = show_duration(n_bytes / report.copy_bytes_s)
    return tr("Loading {0} over it takes at least {1}.", show_bytes(n_bytes), seconds)


def _nvlink(name: str, n_links: int) -> str:
    return tr_n("NVLink joins it with {1} ({0} link).", "NVLink joins it with {1} ({0} links).", n_links, name)


def _split(report: LinkReport) -> str:
    """Return what suits several cards, of which the slowest link decides."""
    if len(report.nvlinks) == report.n_cards - 1:
        return tr("The split mode tensor can pay off.")
    if report.nvlinks:
        return tr("The split mode tensor can pay off between these cards, if only they are used.")
    if report.slowest == "fast":
        return tr("The split mode layer hardly uses it, and tensor can pay off too.")
    if report.slowest is None:
        return tr("The split mode layer hardly uses it.")
    return tr("The split mode layer hardly uses it. Row and tensor would wait for the slowest link in every layer.")
