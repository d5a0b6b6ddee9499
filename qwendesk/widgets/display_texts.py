"""Texts of the window made from immutable values. No widgets here."""

from collections import Counter

from qwendesk.core.clip_sampling import FramePlan
from qwendesk.core.conversation import Answer
from qwendesk.core.file_names import quant_in_name
from qwendesk.core.messages import DocumentPart
from qwendesk.core.model_titles import model_title
from qwendesk.core.number_format import show_count, show_decimal
from qwendesk.core.paths import is_demo
from qwendesk.core.stats import AnswerStats, StopReason
from qwendesk.core.text_decoding import ENCODINGS
from qwendesk.core.translation import tr, tr_n
from qwendesk.core.units import show_duration, show_elapsed, show_rate, show_tokens
from qwendesk.engine.protocol import UNKNOWN_PROGRAM, LoadReport, PictureCost, ServedBy
from qwendesk.engine.state import EngineState, Phase

# Shares of the context. An answer may stop a few tokens before the end of the context.
_FULL, _NEARLY_FULL = 0.98, 0.85


def model_label(state: EngineState, *, is_measuring: bool = False) -> str:
    """Return the text of the model button: "name · quant · 64K", or the current state if no model is loaded.

    `is_measuring` is true while a measurement has the memory of the chat's model.
    """
    if state.is_saving_states:
        return tr("Keeping your chats ready…")
    if state.report is not None:
        n_ctx = show_tokens(state.report.n_ctx) if state.report.n_ctx else ""
        if state.report.served_by is not None:
            parts = (state.report.title, n_ctx, state.report.served_by.name)
        else:
            model = state.report.options.model
            parts = (state.report.title, quant_in_name(model_title(model)) or quant_in_name(model), n_ctx)
        return " · ".join(part for part in parts if part)
    if state.phase in (Phase.STARTING, Phase.LOADING) and state.requested is not None:
        return tr("Loading {0} · {1}%", _name_of(state.requested.model), round(state.load_fraction * 100))
    if state.idle_unloaded is not None:
        model = state.idle_unloaded.model
        name = model_title(model)
        if is_measuring:
            return tr("{0} · loads after the measurement", name)
        if state.questions_held:
            return tr("{0} · unloaded for another program", name)
        return tr("{0} · loads with your next message", name)
    return tr("Choose a model")


def _name_of(model: str) -> str:
    return tr("built-in demo") if is_demo(model) else model_title(model)


def engine_text(state: EngineState, *, is_measuring: bool = False) -> tuple[str, str]:
    """Return the text and tone of the state chip ("good", "info", "accent", "bad" or "plain").

    `is_measuring` is true while a measurement has the memory of the chat's model.
    """
    if state.engine_exit is not None:
        return tr("Engine stopped"), "bad"
    if state.is_silent:
        return tr("Not responding"), "bad"
    match state.phase:
        case Phase.READY:
            return tr("Ready"), "good"
        case Phase.ANSWERING:
            return tr("Answering"), "info"
        case Phase.STARTING:
            return tr("Starting"), "accent"
        case Phase.LOADING:
            return tr("Loading {0}%", round(state.load_fraction * 100)), "accent"
        case _ if is_measuring:
            return tr("Measuring…"), "info"
        case _ if state.idle_unloaded is not None and state.requested is not None:
            return tr("Ejected to free memory"), "plain"
        case _:
            return (tr("Not loaded"), "bad") if state.failure is not None else (tr("No model"), "plain")


def speed_text(stats: AnswerStats) -> str:
    """Return the decode speed, as in "112 tok/s", or "" if too few tokens were generated to measure it."""
    speed = stats.decode_tok_s
    if speed <= 0:
        return ""
    return tr("{0} tok/s", show_rate(speed))


def stats_text(answer: Answer) -> str:
    """Return the decode speed and the time to the first token: "112 tok/s · first word in 0.2 s"."""
    parts = [
        speed_text(answer.stats),
        tr("first word in {0}", show_elapsed(answer.stats.ttft_s)) if answer.stats.ttft_s > 0 else "",
    ]
    text = " · ".join(part for part in parts if part)
    if answer.stop_reason in (None, "eos", "stop_string", "tool_calls", "repetition"):  # a note says the last one
        return text
    ending = tr("stopped") if answer.stop_reason == "cancelled" else stop_text(answer.stop_reason)
    return " · ".join(part for part in (text, ending) if part)


def stats_tooltip(answer: Answer) -> str:
    """Return all statistics of an answer, one per line."""
    stats = answer.stats
    lines = [
        tr_n("Answer: {0} token", "Answer: {0} tokens", stats.answer_tokens),
        tr_n("Thinking: {0} token", "Thinking: {0} tokens", stats.reasoning_tokens) if stats.reasoning_tokens else "",
        tr("First token after {0}", show_elapsed(stats.ttft_s)),
        _prompt_line(stats),
        tr_n(
            "After tools: read {0} token in {1}",
            "After tools: read {0} tokens in {1}",
            stats.after_tools_tokens,
            show_elapsed(stats.after_tools_s),
        )
        if stats.tool_rounds
        else "",
        _drafts_line(stats),
        tr("{0} of {1} threads: other programs are busy", stats.n_threads, stats.most_threads)
        if stats.n_threads < stats.most_threads
        else "",
        tr_n("Pictures: {0} token", "Pictures: {0} tokens", stats.image_tokens) if stats.image_tokens else "",
        stop_text(answer.stop_reason),
        stats.cache_note,
        tr_n(
            "Context full: {0} oldest message wasn't sent",
            "Context full: {0} oldest messages weren't sent",
            stats.dropped_messages,
        )
        if stats.dropped_messages
        else "",
    ]
    return "\n".join(line for line in lines if line)


def _prompt_line(stats: AnswerStats) -> str:
    if not stats.is_reuse_known:
        return tr_n("Prompt: {0} token", "Prompt: {0} tokens", stats.prompt_tokens) if stats.prompt_tokens else ""
    if not (stats.is_follow_up or stats.reused_tokens or stats.cache_note):
        return tr_n("Read {0} prompt token", "Read {0} prompt tokens", stats.prompt_tokens)
    return tr_n(
        "Re-read {1} of {0} prompt token",
        "Re-read {1} of {0} prompt tokens",
        stats.prompt_tokens,
        show_count(stats.reread_tokens),
    )


def _drafts_line(stats: AnswerStats) -> str:
    if stats.acceptance is None:
        return ""
    right = tr(
        "Drafts: {0} of {1} guessed tokens were right ({2}%), so a step gave {3} tokens instead of 1.",
        show_count(stats.accepted_tokens), show_count(stats.drafted_tokens), _share_right(stats),
        show_decimal(stats.tokens_per_step, 1),
    )  # fmt: skip
    meaning = tr("The model checks several guesses at once. The answer stays the same.")
    if stats.draft_speedup:
        meaning += " " + tr("Measured: {0} times as fast.", show_decimal(stats.draft_speedup, 1))
    return f"{right}\n{meaning}"


def _share_right(stats: AnswerStats) -> str:
    return show_decimal(100 * (stats.acceptance or 0.0), 0)


def stop_text(reason: StopReason | None) -> str:
    return {
        "eos": tr("Finished normally"),
        "stop_string": tr("Stopped at a stop text"),
        "max_tokens": tr("Stopped at the maximum length"),
        "context_full": tr("Stopped because the context is full"),
        "repetition": tr("Stopped because it repeated itself"),
        "cancelled": tr("Stopped by you"),
        None: tr("Stopped by an error"),
    }[reason]


def thought_text(seconds: float, tokens: int) -> str:
    """Return "Thought for 12 s · 431 tokens", without the count if `tokens` is 0 (unknown)."""
    duration = show_elapsed(seconds)
    if not tokens:
        return tr("Thought for {0}", duration)
    return tr_n("Thought for {1} · {0} token", "Thought for {1} · {0} tokens", tokens, duration)


def picture_text(cost: PictureCost, n_ctx: int) -> str:
    """Return the size and cost of a picture: "1024×768 → 788 tokens, 1.2% of context"."""
    size = f"{cost.width}×{cost.height}"
    return tr("{0} → {1}", size, share_text(cost.tokens, n_ctx))


def clip_text(plan: FramePlan, duration_s: float, n_ctx: int) -> str:
    """Return what a part of a clip costs: "24 s → 24 frames → 6,200 tokens, 9.0% of context".

    `n_ctx` is 0 if the context isn't known; then the tokens aren't said.
    """
    frames = tr_n("{0} frame", "{0} frames", len(plan.times))
    if not n_ctx:
        return tr("{0} → {1}", show_duration(duration_s), frames)
    return tr("{0} → {1} → {2}", show_duration(duration_s), frames, share_text(plan.tokens, n_ctx))


def share_text(tokens: int, n_ctx: int) -> str:
    """Return a number of tokens and its share of the context: "788 tokens, 1.2% of context"."""
    return tr_n("{0} token, {1}% of context", "{0} tokens, {1}% of context", tokens, _percent(tokens, n_ctx))


def document_text(document: DocumentPart) -> str:
    """Return the length of a document, "12 pages" or "128 lines"."""
    if document.pages:
        return tr_n("{0} page", "{0} pages", document.pages)
    lines = document.text.count("\n") + (not document.text.endswith("\n"))
    return tr_n("{0} line", "{0} lines", lines)


def document_facts(document: DocumentPart) -> str:
    """Return the length of a document, its tokens if known, and its encoding if that was guessed or chosen."""
    tokens = tr_n("{0} token", "{0} tokens", document.tokens) if document.tokens else ""
    return " · ".join(filter(None, (document_text(document), tokens, encoding_text(document))))


def encoding_text(document: DocumentPart) -> str:
    """Return the encoding of a text if it was guessed or chosen, and how much it left unread: "Shift JIS"."""
    _, name = ENCODINGS.get(document.encoding, ("", ""))
    n_lost = document.text.count("\ufffd") if name else 0
    return tr_n("{1}, {0} unreadable character", "{1}, {0} unreadable characters", n_lost, name) if n_lost else name


def _percent(tokens: int, n_ctx: int) -> str:
    percent = 100 * tokens / n_ctx if n_ctx else 0.0
    return show_decimal(percent, 1) if percent >= 0.05 else f"<{show_decimal(0.1, 1)}"


def context_text(used: int, n_ctx: int) -> str:
    """Return how many tokens of the context are used: "Context 1.2K / 32K". `n_ctx` is 0 without a model."""
    return tr("Context {0} / {1}", show_tokens(used), show_tokens(n_ctx)) if n_ctx else tr("Context –")


def context_tone(used: int, n_ctx: int) -> tuple[str, str]:
    """Return the tone ("bad" if the context is full, "warn" if it is nearly full, else "") and the tooltip."""
    if n_ctx and used >= _FULL * n_ctx:
        return "bad", tr("The context is full. Click to see what fills it and to make room.")
    if n_ctx and used >= _NEARLY_FULL * n_ctx:
        return "warn", tr("The context is nearly full. Click to see what fills it.")
    return "", tr("Tokens in the context, and how many fit. Click to see what fills it.")


def device_text(state: EngineState) -> str:
    """Return the devices of the loaded model: "On CPU", "On NVIDIA GeForce RTX 3090 and CPU"; "" without a model."""
    if state.report is None:
        return ""
    names = {device.name: device.description.strip() for device in state.devices if device.kind != "cpu"}
    used = [each.device for each in state.report.allocations if each.weights_bytes]
    counts = Counter(names.get(device, device) for device in used if not _is_host(device))
    gpus = [tr("{0} × {1}", count, name) if count > 1 else name for name, count in counts.items()]
    if not used:
        return ""
    parts = [*gpus, *([tr("CPU")] if any(_is_host(device) for device in used) else [])]
    return tr("On {0}", tr(" and ").join(parts))


def _is_host(device: str) -> bool:
    return device.upper().startswith("CPU") or device.lower().endswith("_host")


def _program(served: ServedBy) -> str:
    """Return the name of a server's program, to begin a sentence; of one that wasn't recognised, "This server"."""
    return tr("This server") if served.program == UNKNOWN_PROGRAM else served.program


def answer_now_reason(report: LoadReport | None) -> str:
    """Return why the thinking of this model can't be ended early; "" if it can."""
    served = report.served_by if report is not None else None
    if served is None or served.can_answer_now:
        return ""
    return tr("{0} can't end the thinking early. Stop the answer instead.", _program(served))


def budget_reason(report: LoadReport | None) -> str:
    """Return why the thinking of this model can't be limited; "" if it can."""
    served = report.served_by if report is not None else None
    if served is None or served.can_limit_thinking:
        return ""
    return tr("{0} can't limit how long the model thinks.", _program(served))


def continue_reason(report: LoadReport | None) -> str:
    """Return why an answer can't be continued by this model; "" if it can."""
    served = report.served_by if report is not None else None
    if served is None or served.can_continue:
        return ""
    return tr("{0} can't continue an answer. Regenerate it instead.", _program(served))


def unused_option_reason(report: LoadReport | None, key: str) -> str:
    """Return why a generation option changes nothing; "" if it does."""
    served = report.served_by if report is not None else None
    if served is None or key not in served.unused_options:
        return ""
    return tr("Not sent: {0} doesn't know this option.", served.program)


def load_options_text(server: str) -> str:
    """Return why the model of a server has no load options here."""
    return tr("This model runs on {0}, which decides how it is loaded. Load options are for models on this PC.", server)


def no_vision_text(report: LoadReport) -> str:
    """Return why no picture can be sent to a model of a server."""
    name = report.served_by.name if report.served_by is not None else ""
    return tr("{0} says that this model can't see pictures. Choose another model.", name)
