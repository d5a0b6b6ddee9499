"""What the window says, made from frozen values. No widgets here."""

import re
from pathlib import Path

from qwendesk.core.conversation import Answer
from qwendesk.core.messages import DocumentPart
from qwendesk.core.paths import is_demo
from qwendesk.core.stats import AnswerStats, StopReason
from qwendesk.core.units import show_duration, show_rate, show_tokens
from qwendesk.engine.protocol import LoadReport, PictureCost
from qwendesk.engine.state import EngineState, Phase
from qwendesk.ui.kit.text import tr, tr_n

_QUANT = re.compile(r"(?:UD-)?(?:I?Q\d(?:_[A-Z0-9]{1,3})*|MXFP4(?:_MOE)?|BF16|F16|F32)(?=$|[-.])", re.IGNORECASE)


def quant_of(model: str) -> str:
    """The quant a model's file name ends with, "" for none."""
    found = _QUANT.findall(Path(model).stem)
    return str(found[-1]) if found else ""


def model_name(report: LoadReport) -> str:
    """The name without what the quant already says."""
    if is_demo(report.options.model):
        return tr("Built-in demo")
    return report.name or Path(report.options.model).stem


def model_label(state: EngineState) -> str:
    """The model button's text: "name · quant · 64K", or what happens instead."""
    if state.report is not None:
        parts = (model_name(state.report), quant_of(state.report.options.model), show_tokens(state.report.n_ctx))
        return " · ".join(part for part in parts if part)
    if state.phase in (Phase.STARTING, Phase.LOADING) and state.wanted is not None:
        return tr("Loading {0} · {1}%", _name_of(state.wanted.model), round(state.load_fraction * 100))
    if state.resting is not None:
        model = state.resting.model
        return tr("{0} · loads when you ask", tr("Built-in demo") if is_demo(model) else Path(model).stem)
    return tr("Choose a model")


def _name_of(model: str) -> str:
    return tr("built-in demo") if is_demo(model) else Path(model).stem


def engine_text(state: EngineState) -> tuple[str, str]:
    """The meter bar's state chip: its text and tone ("good", "info", "accent", "bad" or "plain")."""
    if state.death is not None:
        return tr("Engine stopped"), "bad"
    match state.phase:
        case Phase.READY:
            return tr("Ready"), "good"
        case Phase.ANSWERING:
            return tr("Answering"), "info"
        case Phase.STARTING:
            return tr("Starting"), "accent"
        case Phase.LOADING:
            return tr("Loading {0}%", round(state.load_fraction * 100)), "accent"
        case _ if state.resting is not None:
            return tr("Ejected to free memory"), "plain"
        case _:
            return (tr("Not loaded"), "bad") if state.failure is not None else (tr("No model"), "plain")


def speed_text(stats: AnswerStats) -> str:
    """ "112 tok/s", one decimal below 10; "" when too little was written to tell."""
    speed = stats.decode_tok_s
    if speed <= 0:
        return ""
    return tr("{0} tok/s", show_rate(speed))


def stats_text(answer: Answer) -> str:
    """The chip under an answer: "112 tok/s · 0.2 s" (speed, time to the first token)."""
    parts = [speed_text(answer.stats), _duration(answer.stats.ttft_s) if answer.stats.ttft_s > 0 else ""]
    text = " · ".join(part for part in parts if part)
    if answer.stop_reason in (None, "eos", "stop_string"):
        return text
    return " · ".join(part for part in (text, stop_text(answer.stop_reason)) if part)


def stats_tooltip(answer: Answer) -> str:
    """Every number of one answer, a line each."""
    stats = answer.stats
    lines = [
        tr_n("Answer: {0} token", "Answer: {0} tokens", stats.answer_tokens),
        tr_n("Thought: {0} token", "Thought: {0} tokens", stats.reasoning_tokens) if stats.reasoning_tokens else "",
        tr("First token after {0}", _duration(stats.ttft_s)),
        tr_n(
            "Re-read {1} of {0} prompt token",
            "Re-read {1} of {0} prompt tokens",
            stats.prompt_tokens,
            f"{stats.reread_tokens:,}",
        ),
        tr_n("Pictures: {0} token", "Pictures: {0} tokens", stats.image_tokens) if stats.image_tokens else "",
        tr("Ended: {0}", stop_text(answer.stop_reason)),
        stats.cache_note,
        tr_n(
            "Left out because the context was full: {0} oldest message",
            "Left out because the context was full: {0} oldest messages",
            stats.dropped_messages,
        )
        if stats.dropped_messages
        else "",
    ]
    return "\n".join(line for line in lines if line)


def stop_text(reason: StopReason | None) -> str:
    return {
        "eos": tr("by itself"),
        "stop_string": tr("at a stop text"),
        "max_tokens": tr("longest output reached"),
        "context_full": tr("context full"),
        "cancelled": tr("stopped"),
        None: tr("by an error"),
    }[reason]


def thought_text(seconds: float, tokens: int) -> str:
    """ "Thought for 12 s · 431 tokens"; the count is left out while it is not known (0)."""
    duration = _duration(seconds)
    if not tokens:
        return tr("Thought for {0}", duration)
    return tr_n("Thought for {1} · {0} token", "Thought for {1} · {0} tokens", tokens, duration)


def picture_text(cost: PictureCost, n_ctx: int) -> str:
    """ "1024×768 → 788 tokens, 1.2% of context"."""
    size = f"{cost.width}×{cost.height}"
    return tr("{0} → {1}", size, share_text(cost.tokens, n_ctx))


def share_text(tokens: int, n_ctx: int) -> str:
    """ "788 tokens, 1.2% of context"."""
    return tr_n("{0} token, {1}% of context", "{0} tokens, {1}% of context", tokens, _percent(tokens, n_ctx))


def document_text(document: DocumentPart, *, with_tokens: bool = False) -> str:
    """ "12 pages" or "128 lines"; with the tokens it fills, if asked for and known."""
    if document.pages:
        size = tr_n("{0} page", "{0} pages", document.pages)
    else:
        lines = document.text.count("\n") + (not document.text.endswith("\n"))
        size = tr_n("{0} line", "{0} lines", lines)
    if with_tokens and document.tokens:
        return tr("{0} · {1}", size, tr_n("{0} token", "{0} tokens", document.tokens))
    return size


def _percent(tokens: int, n_ctx: int) -> str:
    percent = 100 * tokens / n_ctx if n_ctx else 0.0
    return f"{percent:.1f}" if percent >= 0.05 else "<0.1"


def context_text(stats: AnswerStats | None, n_ctx: int) -> str:
    """ "Context 1.2K / 32K": what the last answer left in the engine's memory, of what fits."""
    if not n_ctx:
        return tr("Context –")
    used = 0 if stats is None else stats.prompt_tokens + stats.reasoning_tokens + stats.answer_tokens
    return tr("Context {0} / {1}", show_tokens(used), show_tokens(n_ctx))


def last_line(thought: str, longest: int = 220) -> str:
    """The end of a thought, as one line of at most `longest` characters."""
    tail = thought[-4 * longest :].rstrip()
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    if not lines:
        return ""
    line = lines[-1]
    return line if len(line) <= longest else "…" + line[-longest:]


def device_text(state: EngineState) -> str:
    """Where the model is: "On CPU", "On NVIDIA GeForce RTX 3090", "On ... and CPU"; "" while nothing is loaded."""
    if state.report is None:
        return ""
    names = {device.name: device.description.strip() for device in state.devices if device.kind != "cpu"}
    used = [each.device for each in state.report.allocations if each.weights_bytes]
    gpus = dict.fromkeys(names.get(device, device) for device in used if not _is_host(device))
    if not used:
        return ""
    parts = [*gpus, *([tr("CPU")] if any(_is_host(device) for device in used) else [])]
    return tr("On {0}", tr(" and ").join(parts))


def _duration(seconds: float) -> str:
    """As everywhere, but never "0.0 s"."""
    return tr("<0.1 s") if seconds < 0.05 else show_duration(seconds)


def _is_host(device: str) -> bool:
    return device.upper().startswith("CPU") or device.lower().endswith("_host")
