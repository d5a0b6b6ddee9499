"""What the Models page and the first start say of offers: words made from values. No widgets here."""

import math

from qwendesk.core.units import GIB, show_bytes, show_duration, show_expected, show_tokens
from qwendesk.hub.catalog_schema import Model, Quality
from qwendesk.hub.queue_state import DownloadItem
from qwendesk.services.models.fitting import FitLabel, Pc
from qwendesk.services.models.ranking import Offer, QuantOffer, Speed
from qwendesk.ui.kit.text import tr, tr_n, unbroken

ASSUMED_BYTES_PER_S = 50_000_000
"""Where no download has been measured: a common fast line (400 Mbit/s). Said together with the number."""


def fit_text(fit: FitLabel) -> tuple[str, str]:
    """A fit label's words and tone ("good", "warn", "bad", "plain"); always says with what it was counted."""
    context = show_tokens(fit.n_ctx)
    match fit.kind:
        case "vram":
            room = _of(fit.gpu_bytes, fit.gpu_room_bytes)
            with_pictures = tr("Fits in VRAM with pictures: {0} at {1}", room, context)
            return (with_pictures if fit.with_pictures else tr("Fits in VRAM: {0} at {1}", room, context)), "good"
        case "experts":
            layers = tr("{0} of {1} expert layers on CPU", fit.on_cpu, fit.of_layers)
            return tr("{0}, {1} of RAM, at {2}", layers, show_bytes(fit.ram_bytes), context), "warn"
        case "layers":
            layers = tr("{0} of {1} layers on CPU", fit.on_cpu, fit.of_layers)
            return tr("{0}, {1} of RAM: slow", layers, show_bytes(fit.ram_bytes)), "warn"
        case "cpu":
            return tr("On the CPU: {0} of RAM at {1}", _of(fit.ram_bytes, fit.ram_room_bytes), context), "warn"
        case "too_large":
            return tr("Too large: needs {0} of memory", show_bytes(fit.ram_bytes)), "bad"
        case _:
            return tr("Fit not known"), "plain"


def fit_details(fit: FitLabel) -> str:
    """The tooltip of a fit label: every number."""
    lines = [
        tr("Video memory: {0}", _of(fit.gpu_bytes, fit.gpu_room_bytes)) if fit.gpu_room_bytes else "",
        tr("RAM: {0}", _of(fit.ram_bytes, fit.ram_room_bytes)),
        tr("Context: {0} tokens, KV cache {1}", f"{fit.n_ctx:,}", fit.cache_type),
        tr("The picture file is counted in.") if fit.with_pictures else tr("Without pictures."),
        tr("Worked out from sizes; the plan made when it is loaded decides."),
    ]
    return "\n".join(line for line in lines if line)


def model_facts_text(model: Model, *, with_pictures: bool) -> str:
    """ "35B total, 3B active · reads pictures"."""
    size = _billions(model.params_b)
    is_mixture = bool(model.hyperparameters.expert_count)
    text = tr("{0} total, {1} active", size, _billions(model.active_params_b)) if is_mixture else tr("{0} dense", size)
    return tr("{0} · reads pictures", text) if with_pictures else text


def size_text(offer: Offer, quant: QuantOffer) -> str:
    """ "19.7 GB with pictures"."""
    size = show_bytes(offer.total_bytes(quant))
    return tr("{0} with pictures", size) if offer.mmproj_bytes else size


def reason_text(offer: Offer) -> str:
    """Why this quant, in a sentence."""
    quant = offer.recommended
    if quant is None:
        return tr("Nothing of this model fits into the memory of this PC.")
    return {
        "best_in_vram": tr(
            "{0} is the best quant that lies wholly in video memory here with a context of {1}.",
            quant.quant,
            show_tokens(quant.fit.n_ctx),
        ),
        "good_with_experts_in_ram": tr(
            "{0} does not fit into video memory, but a mixture of experts stays quick with some expert layers in RAM; "
            "smaller quants lose more quality than they gain speed.",
            quant.quant,
        ),
        "good_on_cpu": tr("{0} fits into RAM and is the largest quant worth its time on a CPU.", quant.quant),
        "smaller_to_fit": tr("Only a small quant or a short context fits here; {0} is the best of them.", quant.quant),
        "partly_in_ram": tr(
            "It does not fit into video memory: part of {0} runs from RAM, which is slow.", quant.quant
        ),
        None: "",
    }[offer.reason]


def quality_text(quality: Quality) -> str:
    """ "perplexity 6.589 · Series B … · source"."""
    number = f"{quality.measure} {quality.value:.3f}"
    before = tr(" (the file before the fix)") if quality.is_before_fix else ""
    return f"{number}{before} · {quality.series} · {quality.source}"


def quality_short(quant: QuantOffer) -> str:
    """The number of the files offered now with its series, as series must not be compared; "–" without one."""
    now = [each for each in quant.quality if not each.is_before_fix]
    return f"{now[-1].measure} {now[-1].value:.3f} · {now[-1].series.partition(':')[0]}" if now else "–"


def speed_text(speed: Speed | None) -> str:
    """ "About 94–111 tok/s at the start, 55–80 in long chats, others report"; "" when not known."""
    if speed is None:
        return ""
    start = show_expected(speed.start)
    if not speed.is_reported:
        long = show_expected(speed.long or speed.start)
        return unbroken(tr("Estimated {0} tok/s at the start, {1} in long chats.", start, long))
    if speed.long is None:
        return unbroken(tr("Others report about {0} tok/s.", start))
    text = tr("Others report about {0} tok/s at the start, {1} in long chats.", start, show_expected(speed.long))
    return unbroken(text)


def pc_text(pc: Pc) -> str:
    """ "RTX 3090, 24 GB (1 GB reserved) · 64 GB RAM"."""
    ram = tr("{0} RAM", _round_gb(pc.ram_bytes))
    if not pc.gpus:
        return tr("No GPU that the engine can use · {0}", ram)
    names = " + ".join(gpu.description.strip() or gpu.name for gpu in pc.gpus)
    reserved = tr("{0} ({1} reserved)", _round_gb(pc.vram_bytes), show_bytes(pc.reserve_bytes * len(pc.gpus)))
    return tr("{0}, {1} · {2}", names, reserved if pc.reserve_bytes else _round_gb(pc.vram_bytes), ram)


def welcome_pc_text(pc: Pc) -> str:
    """ "Your PC: RTX 3090, 24 GB VRAM · 64 GB RAM. Everything stays on this PC."."""
    ram = tr("{0} RAM", _round_gb(pc.ram_bytes))
    if pc.gpus:
        names = " + ".join(gpu.description.strip() or gpu.name for gpu in pc.gpus)
        return tr("Your PC: {0}, {1} VRAM · {2}. Everything stays on this PC.", names, _round_gb(pc.vram_bytes), ram)
    return tr("Your PC: {0}, no GPU that the engine can use. Everything stays on this PC.", ram)


def time_text(n_bytes: int, measured_bytes_per_s: float = 0.0) -> str:
    """ "About 7 minutes at 50 MB/s (assumed)", or at the speed that was measured."""
    speed = measured_bytes_per_s or ASSUMED_BYTES_PER_S
    minutes = math.ceil(n_bytes / speed / 60)
    label = tr("measured here") if measured_bytes_per_s else tr("assumed")
    shown = f"{speed / 1e6:.0f}" if speed >= 1e6 else f"{speed / 1e6:.1f}"
    if minutes >= 90:
        return tr("About {0} hours at {1} MB/s ({2}).", f"{minutes / 60:.1f}", shown, label)
    unit = tr_n("{0} minute", "{0} minutes", minutes)
    return tr("About {0} at {1} MB/s ({2}).", unit, shown, label)


def _of(used: int, room: int) -> str:
    return tr("{0} of {1} GB", f"{used / GIB:.1f}", f"{room / GIB:.1f}")


def _billions(params_b: float) -> str:
    return f"{params_b:.0f}B" if params_b >= 1.95 else f"{params_b:.1f}B"


def _round_gb(n_bytes: int) -> str:
    """Memory as it is sold: drivers keep a little of it back."""
    return tr("{0} GB", round(n_bytes / GIB))


def download_text(item: DownloadItem) -> str:
    """ "12% · 38 MB/s · 6 min 3 s left", or why it does not move."""
    percent = tr("{0}%", 100 * item.n_done // max(item.kept.n_bytes, 1))
    match item.kept.state:
        case "queued":
            return tr("Waiting · {0}", percent)
        case "paused":
            return tr("Paused · {0}", percent)
        case "failed":
            return tr("Stopped · {0}", percent)
    if item.phase == "checking":
        return tr("Checking · {0}", percent)
    parts = [percent, tr("{0} MB/s", f"{item.bytes_per_s / 1e6:.1f}") if item.bytes_per_s else item.note]
    if item.seconds_left is not None:
        parts.append(tr("{0} left", show_duration(item.seconds_left)))
    return " · ".join(part for part in parts if part)
