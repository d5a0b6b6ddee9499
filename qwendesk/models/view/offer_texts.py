"""Texts about offers and downloads for the Models page and the first start. No widgets here."""

import math
from typing import Final

from qwendesk.core.devices import short_card_name
from qwendesk.core.everyday_units import pages_text
from qwendesk.core.number_format import show_count, show_date, show_decimal
from qwendesk.core.translation import join_list, join_sentences, tr, tr_n
from qwendesk.core.units import GIB, show_bytes, show_duration, show_reported, show_tokens
from qwendesk.hub.catalog_schema import CatalogModel, Licence, Quality, SpeedReport
from qwendesk.hub.download_queue import DownloadItem
from qwendesk.models.fit import FitLabel, Pc
from qwendesk.models.new_models import NewModel, NewOffer, files_note
from qwendesk.models.purposes import LARGE_B, Choice
from qwendesk.models.ranking import Offer, QuantOffer

# A GPU that may use this share of the memory may use practically all of it.
_MOST_OF_IT: Final = 0.9
# Shown for a quant whose quality was not measured.
NO_DETAIL = "–"
# Download speeds to expect before one is measured: common lines of 400 and of 80 Mbit/s.
ASSUMED_BYTES_PER_S: Final = (50_000_000, 10_000_000)
# From so many minutes on, hours are told.
_HOUR_TOLD = 90
# Least billions of weights of a model for hard, everyday and short questions.
_DEEP_B, _EVERYDAY_B, _SHORT_B = 15.0, 7.0, 3.0


def fit_text(fit: FitLabel) -> tuple[str, str]:
    """Return the text and tone ("good", "warn", "bad", "plain") of a fit label."""
    length, fills_it = pages_text(fit.n_ctx), tr("Too tight: would fill your memory")
    match fit.kind:
        case "vram" if fit.is_unified and fit.is_tight:
            tight = tr("Tight: leaves {0} GB of shared memory free", _free_gb(fit))
            return (fills_it if fit.fills_memory else tight), "warn"
        case "vram" if fit.is_unified:
            room = _used_of(fit.gpu_bytes, fit.gpu_room_bytes)
            if fit.with_pictures:
                return tr("Fits in shared memory with vision: {0}, with room for {1}", room, length), "good"
            return tr("Fits in shared memory: {0}, with room for {1}", room, length), "good"
        case "vram":
            room = _used_of(fit.gpu_bytes, fit.gpu_room_bytes)
            if fit.has_vision_on_cpu:
                return tr("Fits in VRAM, vision on the CPU: {0}, with room for {1}", room, length), "good"
            with_pictures = tr("Fits in VRAM with vision: {0}, with room for {1}", room, length)
            without = tr("Fits in VRAM: {0}, with room for {1}", room, length)
            return (with_pictures if fit.with_pictures else without), "good"
        case "experts":
            layers = tr("{0} of {1} expert layers on CPU", fit.on_cpu, fit.of_layers)
            if fit.is_tight:
                return tr("{0}, leaves {1} GB of RAM free", layers, _free_gb(fit)), "warn"
            return tr("{0}, {1} RAM, with room for {2}", layers, show_bytes(fit.ram_bytes), length), "warn"
        case "layers":
            layers = tr("{0} of {1} layers on CPU", fit.on_cpu, fit.of_layers)
            if fit.is_tight:
                return tr("{0}, leaves {1} GB of RAM free: slow", layers, _free_gb(fit)), "warn"
            return tr("{0}, {1} RAM: slow", layers, show_bytes(fit.ram_bytes)), "warn"
        case "cpu":
            if fit.is_tight:
                tight = tr("Tight: leaves {0} GB of RAM free", _free_gb(fit))
                tight = fills_it if fit.fills_memory else tight
                return (tr("CPU only. {0}", tight) if fit.gpu_room_bytes else tight), "warn"
            room = _used_of(fit.ram_bytes, fit.ram_room_bytes)
            if fit.gpu_room_bytes:
                return tr("CPU only: {0} RAM, with room for {1}", room, length), "warn"
            return tr("Fits in RAM: {0}, with room for {1}", room, length), "good"
        case "too_large":
            return tr("Too large: needs {0} memory", show_bytes(fit.ram_bytes)), "bad"
        case _:
            return tr("Fit unknown"), "plain"


def fit_word(fit: FitLabel) -> tuple[str, str]:
    """Return the text and tone of a short fit label, without numbers of memory."""
    match fit.kind:
        case "vram" if fit.is_unified:
            return (tr("Tight in memory"), "warn") if fit.is_tight else (tr("Fits in memory"), "good")
        case "vram":
            return tr("Fits in VRAM"), "good"
        case "experts" | "layers":
            return tr("Partly on CPU"), "warn"
        case "cpu" if fit.gpu_room_bytes:
            return tr("CPU only"), "warn"
        case "cpu":
            return (tr("Tight in RAM"), "warn") if fit.is_tight else (tr("Fits in RAM"), "good")
        case "too_large":
            return tr("Too large"), "bad"
        case _:
            return tr("Fit unknown"), "plain"


def fit_place(fit: FitLabel) -> tuple[str, str, str]:
    """Return whether a file fits in a word, where it is in memory, and the tone: "good", "warn", "off" or "plain"."""
    if fit.kind == "unknown":
        return tr("Not known"), "", "plain"
    if not fit.fits:
        return tr("Too large"), tr("needs {0}", show_bytes(fit.ram_bytes)), "off"
    if fit.is_tight:
        left = tr("nothing left") if fit.fills_memory else tr("{0} GB left", _free_gb(fit))
        return tr("Tight"), left, "warn"
    if fit.kind == "vram":
        return tr("Fits"), tr("in shared memory") if fit.is_unified else tr("on the GPU"), "good"
    return tr("Fits"), tr("in RAM") if fit.kind == "cpu" else tr("GPU and RAM"), "good"


def fit_details(fit: FitLabel) -> str:
    """Return the tooltip of a fit label, with all numbers."""
    on_gpu, in_ram = _used_of(fit.gpu_bytes, fit.gpu_room_bytes), _used_of(fit.ram_bytes, fit.ram_room_bytes)
    if fit.is_unified:
        memory = (tr("GPU: {0}, as part of the shared memory", on_gpu), tr("Shared memory: {0}", in_ram))
    else:
        memory = (tr("Video memory: {0}", on_gpu) if fit.gpu_room_bytes else "", tr("RAM: {0}", in_ram))
    lines = [
        *memory,
        tr("A tight fit: other programs may get slow. Close some, or choose a smaller file.") if fit.is_tight else "",
        tr("Context: {0} tokens, KV cache {1}", show_count(fit.n_ctx), fit.cache_type),
        tr("Includes the vision file.") if fit.with_pictures else tr("Without the vision file."),
        tr("Estimated from file sizes. The exact plan is made when the model loads."),
    ]
    return "\n".join(line for line in lines if line)


def memory_text(fit: FitLabel) -> str:
    """Return what a model needs: "9.9 GB on the GPU, 13.5 GB in RAM"."""
    on_gpu, in_ram = show_bytes(fit.gpu_bytes), show_bytes(fit.ram_bytes)
    if fit.kind == "too_large":
        return tr("needs {0}", in_ram)
    if fit.is_unified and fit.gpu_bytes:
        return tr("{0} of the shared memory", in_ram)
    if fit.kind == "cpu" or not fit.gpu_bytes:
        return tr("{0} in RAM", in_ram)
    return tr("{0} on the GPU, {1} in RAM", on_gpu, in_ram)


def model_facts_text(model: CatalogModel, *, with_pictures: bool) -> str:
    """Return "35B total, 3B active · sees pictures · Apache 2.0", or "9B dense · …" for a model without experts."""
    size = _billions(model.params_b)
    is_mixture = bool(model.hyperparameters.expert_count)
    text = tr("{0} total, {1} active", size, _billions(model.active_params_b)) if is_mixture else tr("{0} dense", size)
    return " · ".join((text, *((tr("sees pictures"),) if with_pictures else ()), model.licence.name))


def table_text(fit: FitLabel) -> str:
    """Return that a table of the model stays on the drive, and what that asks of it; "" if none does."""
    if not fit.lazy_bytes:
        return ""
    if fit.drive == "hdd":
        return tr(
            "A table of {0} would be read from your models folder, which is on a hard disk: too slow. Choose a folder "
            "on an SSD.",
            show_bytes(fit.lazy_bytes),
        )
    if fit.drive == "ssd":
        return tr("A table of {0} stays on the SSD.", show_bytes(fit.lazy_bytes))
    return tr("A table of {0} stays on the drive, which should be an SSD.", show_bytes(fit.lazy_bytes))


def licence_text(licence: Licence) -> str:
    """Return the name of a licence, and what it restricts in a sentence."""
    name = tr("Licence: {0}.", licence.name)
    return join_sentences(name, tr(licence.restriction)) if licence.restriction else name


def advice_text(choice: Choice) -> str:
    """Return why to take a model for its purpose, what speaks against it, and what to set for it, in lines."""
    lines = [choice.reason, tr("But: {0}", choice.drawback)]
    if choice.options.aim == "long_context":
        lines.append(tr("Set the aim Long context in its load options to get this context."))
    return "\n".join(lines)


def other_engines_texts(offer: Offer) -> list[str]:
    """Return that the speeds here are llama.cpp's, and what users report of other engines, in lines."""
    lines = [tr("All other speeds of this model here are llama.cpp's.")] if offer.other_speeds else []
    return [_other_engine_text(report) for report in offer.other_speeds] + lines


def _other_engine_text(report: SpeedReport) -> str:
    with_ram = tr("{0} with {1} GB of RAM", " + ".join(report.gpus), f"{report.ram_gb:g}")
    speed, source = show_reported(report.range), f"{report.source}, {report.date}"
    return tr("Reported with {0}, another program: {1} tok/s on {2}, {3} ({4}).",
              report.engine, speed, with_ram, report.quant, source)  # fmt: skip


def size_text(quant: QuantOffer) -> str:
    """Return the size of the download: "19.7 GB with vision file"."""
    size = show_bytes(quant.total_bytes)
    return tr("{0} with vision file", size) if quant.mmproj_bytes else size


def reason_text(offer: Offer) -> str:
    """Return why this quant is recommended, in a sentence."""
    quant = offer.recommended
    if quant is None:
        return tr("No quant of this model fits in this PC's memory.")
    context = show_tokens(quant.fit.n_ctx)
    if quant.fit.is_unified and offer.reason in ("best_in_vram", "partly_in_ram", "good_with_experts_in_ram"):
        if quant.fit.kind != "vram":
            return tr("{0} needs more memory than the GPU may use, so the CPU computes a part of it.", quant.quant)
        return tr("{0} is the best quant that fits in this PC's memory with a context of {1}.", quant.quant, context)
    return {
        "best_in_vram": tr(
            "{0} is the best quant that fits entirely in video memory with a context of {1}.", quant.quant, context
        ),
        "good_with_experts_in_ram": tr(
            "{0} doesn't fit in video memory, but a mixture of experts stays fast with some expert layers in RAM. "
            "Smaller quants would lose more quality than they gain speed.",
            quant.quant,
        ),
        "good_on_cpu": tr("{0} fits in RAM. Larger quants would be too slow on a CPU.", quant.quant),
        "smaller_to_fit": tr("Only a small quant or a short context fits. {0} is the best choice.", quant.quant),
        "partly_in_ram": tr("{0} doesn't fit in video memory. Part of it runs from RAM, which is slow.", quant.quant),
        None: "",
    }[offer.reason]


def quality_text(quality: Quality, offer: Offer) -> str:
    """Return "perplexity 6.589 (+0.6%) · Series B … · source"."""
    before = (tr("before the file was fixed"),) if quality.is_before_fix else ()
    return " · ".join((_quality_number(quality, offer), *before, tr(quality.series), tr(quality.source)))


def quality_short(quant: QuantOffer, offer: Offer) -> str:
    """Return the measured quality, and on a second line its series, since series can't be compared; "–" if unknown."""
    now = [each for each in quant.quality if not each.is_before_fix]
    if not now:
        return NO_DETAIL
    return f"{_quality_number(now[-1], offer)}\n{tr(now[-1].series).partition(':')[0]}"


def _quality_number(quality: Quality, offer: Offer) -> str:
    """Return the value: of a perplexity, also by how much it's above the best of its series.

    For example "perplexity 6.589 (+0.6%)", "KL divergence 0.047" or "same top token 92.3%".
    """
    if quality.measure == "same top token":
        return tr("same top token {0}%", show_decimal(quality.value, 1))
    if quality.measure == "KL divergence":
        return tr("KL divergence {0}", show_decimal(quality.value, 3))
    worse = offer.percent_above_best(quality)
    percent = f" (+{show_decimal(worse, 1)}%)" if worse >= 0.05 else ""
    return f"{quality.measure} {show_decimal(quality.value, 3)}{percent}"


def pc_text(pc: Pc) -> str:
    """Return "RTX 3090, 24 GB (1 GB reserved) · 64 GB RAM"."""
    ram = tr("{0} RAM", _round_gb(pc.ram_bytes))
    if not pc.gpus:
        return tr("No usable GPU · {0}", ram)
    names = " + ".join(short_card_name(gpu.description.strip() or gpu.name) for gpu in pc.gpus)
    if pc.is_unified:
        return tr("{0}, {1}", names, _shared_memory(pc))
    reserved = tr("{0} ({1} reserved)", _vram_gb(pc), show_bytes(pc.reserve_bytes * len(pc.gpus)))
    return tr("{0}, {1} · {2}", names, reserved if pc.reserve_bytes else _vram_gb(pc), ram)


def short_pc_text(pc: Pc) -> str:
    """Return "RTX 3090 with 24 GB · 64 GB RAM"."""
    ram = tr("{0} RAM", _round_gb(pc.ram_bytes))
    if not pc.gpus:
        return tr("No usable GPU · {0}", ram)
    names = " + ".join(short_card_name(gpu.description.strip() or gpu.name) for gpu in pc.gpus)
    if pc.is_unified:
        return tr("{0} with {1}", names, _shared_memory(pc))
    return tr("{0} with {1} · {2}", names, _vram_gb(pc), ram)


def good_at_text(model: CatalogModel, *, with_pictures: bool) -> str:
    """Return what a model is good at, in a few words."""
    if "coder" in model.id.lower():
        return tr("Programming and coding agents")
    if model.params_b >= LARGE_B:
        return tr("The hardest questions")
    if model.hyperparameters.expert_count:
        return tr("All-rounder: chat, code, pictures") if with_pictures else tr("All-rounder: chat, code, texts")
    if model.params_b >= _DEEP_B:
        return tr("Hard maths and code")
    if model.params_b >= _EVERYDAY_B:
        return tr("Everyday questions, summaries")
    return tr("Short questions, translations") if model.params_b >= _SHORT_B else tr("A first try, simple answers")


def introduction_text(model: CatalogModel, *, with_pictures: bool) -> str:
    """Return what the recommended model is good at, in a sentence."""
    if model.params_b >= LARGE_B or (model.params_b >= _DEEP_B and not model.hyperparameters.expert_count):
        return tr("Thinks hard: for difficult maths, code and long texts.")
    if model.params_b < _SHORT_B:
        return tr("Small and quick: for simple questions and short texts.")
    if model.params_b < _EVERYDAY_B:
        return tr("Quick: for everyday questions, summaries and translations.")
    if with_pictures:
        return tr("A clever all-rounder: explains, writes, codes and understands your screenshots.")
    return tr("A clever all-rounder: explains, writes, codes and summarizes.")


def time_text(n_bytes: int, measured_bytes_per_s: float = 0.0) -> str:
    """Return how long a download takes: "about 7 minutes", or "7 to 36 minutes" while no speed was measured."""
    if measured_bytes_per_s:
        return _about_minutes(_minutes(n_bytes, measured_bytes_per_s))
    soonest, latest = (_minutes(n_bytes, speed) for speed in ASSUMED_BYTES_PER_S)
    if latest == 1:
        return _about_minutes(1)
    if latest < _HOUR_TOLD:
        return tr("{0} to {1} minutes", soonest, latest)
    return tr("{0} to {1} hours", *(show_decimal(each / 60, 1) for each in (soonest, latest)))


def _minutes(n_bytes: int, bytes_per_s: float) -> int:
    return max(math.ceil(n_bytes / bytes_per_s / 60), 1)


def _about_minutes(minutes: int) -> str:
    if minutes >= _HOUR_TOLD:
        return tr("about {0} hours", show_decimal(minutes / 60, 1))
    return tr_n("about {0} minute", "about {0} minutes", minutes)


def _used_of(used: int, room: int) -> str:
    return tr("{0} of {1} GB", show_decimal(used / GIB, 1), show_decimal(room / GIB, 1))


def _free_gb(fit: FitLabel) -> str:
    return show_decimal(fit.free_ram_bytes / GIB, 1)


def _billions(params_b: float) -> str:
    return f"{show_decimal(params_b, 0 if params_b >= 1.95 else 1)}B"


def _vram_gb(pc: Pc) -> str:
    """Return the video memory of all GPUs, each rounded: two cards of 24 GB are 48 GB, though drivers report 47.4."""
    return tr("{0} GB", sum(round((gpu.total_bytes or 0) / GIB) for gpu in pc.gpus))


def _shared_memory(pc: Pc) -> str:
    """Return "128 GB of memory for GPU and CPU", and how much of it the GPU may use if that is clearly less."""
    total = _round_gb(pc.shared_bytes)
    if pc.vram_bytes >= _MOST_OF_IT * pc.shared_bytes:
        return tr("{0} of memory for GPU and CPU", total)
    return tr("{0} of memory for GPU and CPU, {1} of it for the GPU", total, _round_gb(pc.vram_bytes))


def _round_gb(n_bytes: int) -> str:
    """Return an amount of memory in whole GB, as printed on the box: drivers report a little less."""
    return tr("{0} GB", round(n_bytes / GIB))


def download_text(item: DownloadItem) -> str:
    """Return the progress, "12% · 38 MB/s · 6 min 3 s left", or why the download is stopped."""
    percent = tr("{0}%", 100 * item.n_done // max(item.saved.n_bytes, 1))
    match item.saved.state:
        case "queued":
            return tr("Waiting · {0}", percent)
        case "paused":
            return tr("Paused · {0}", percent)
        case "failed":
            return tr("Failed · {0}", percent)
    if item.phase == "checking":
        return tr("Checking · {0}", percent)
    return " · ".join(part for part in (percent, rate_text(item)) if part)


def rate_text(item: DownloadItem) -> str:
    """Return "38 MB/s · 6 min 3 s left" for a running download, or what it is waiting for."""
    rate = tr("{0} MB/s", show_decimal(item.bytes_per_s / 1e6, 1)) if item.bytes_per_s else item.note
    left = tr("{0} left", show_duration(item.seconds_left)) if item.seconds_left is not None else ""
    return " · ".join(part for part in (rate, left) if part)


def new_summary_text(offer: NewOffer) -> str:
    """Return whether a new model fits and how large it is, or why it can't be loaded, in a line."""
    item = offer.item
    if item is None or item.fit is None:
        return offer.why_not or no_fit_text(offer.model)
    word, place, _ = fit_place(item.fit)
    fit = tr("{0} {1}", word, place) if item.fit.kind in ("vram", "experts", "layers", "cpu") else word
    size = show_bytes(item.n_bytes + item.mmproj_bytes)
    return join_sentences(tr("{0}: {1}.", fit, size), tr("QwenDesk hasn't tested it."))


def new_facts_text(offer: NewOffer) -> str:
    """Return "72 layers · context 256K · by unsloth · 2026-11-20"."""
    model, facts = offer.model, offer.model.facts
    layers = facts.block_count - facts.nextn_layers if facts is not None else 0
    parts = [
        tr_n("{0} layer", "{0} layers", layers) if layers else "",
        tr_n("{0} expert", "{0} experts", facts.expert_count) if facts is not None and facts.expert_count else "",
        tr("context {0}", show_tokens(facts.context_length)) if facts is not None and facts.context_length else "",
        tr("by {0}", model.repo.partition("/")[0]),
        show_date(model.created),
    ]
    return " · ".join(part for part in parts if part)


def no_fit_text(model: NewModel) -> str:
    """Return why it isn't known how a new model would run, in a few words."""
    is_read = model.facts is not None or bool(model.errors)
    return tr("Can't be loaded here") if is_read else tr("Not checked yet")


def new_model_texts(offer: NewOffer) -> list[str]:
    """Return what to know of a new model before its download, in lines: the file, what it is like, the licence."""
    model, item = offer.model, offer.item
    lines = [
        offer.why_not,
        _item_text(offer) if item is not None else "",
        _smallest_text(offer) if item is None else "",
        tr("Other files of {0}, which is in the catalog.", offer.known) if offer.known else "",
        offer.like if item is not None else "",
        files_note(model) if item is not None else "",
        tr("Accept its terms on its page, and enter your access token in the settings.") if model.is_gated else "",
        _licence_line(offer),
        tr("Also from {0}.", join_list(each.partition("/")[0] for each in model.others)) if model.others else "",
    ]
    return [line for line in lines if line]


def _smallest_text(offer: NewOffer) -> str:
    smallest = show_bytes(min((each.n_bytes for each in offer.model.items), default=0))
    if offer.is_too_large:
        return tr("Its smallest file has {0}, which is too large for this PC.", smallest)
    return tr("Its smallest file has {0}.", smallest)


def _item_text(offer: NewOffer) -> str:
    item = offer.item
    if item is None:
        return ""
    size = show_bytes(item.n_bytes + item.mmproj_bytes)
    words = tr("{0} with vision file", size) if item.mmproj_bytes else size
    name = item.quant or item.name
    table = table_text(item.fit) if item.fit is not None else ""
    return join_sentences(tr("For this PC: {0}, {1}.", name, words), table)


def _licence_line(offer: NewOffer) -> str:
    if offer.licence is not None:
        return licence_text(offer.licence)
    if offer.model.licence and offer.model.licence != "other":
        return tr("Licence: {0}, as its card says.", offer.model.licence)
    return tr("Its licence is on its model card.")
