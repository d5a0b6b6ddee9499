"""The explanation of an answer's speed in words. No Qt."""

import msgspec

from qwendesk.core.number_format import show_count, show_decimal
from qwendesk.core.translation import tr, tr_n
from qwendesk.core.units import show_bytes, show_duration, show_rate
from qwendesk.meters.why import LostTime, Why, waits_for_ram


class WhyRow(msgspec.Struct, frozen=True):
    """A part of a token's time."""

    name: str
    ms: str
    note: str = ""


class OptionChange(msgspec.Struct, frozen=True):
    """What the sentence of `why_sentence` tells the user to set."""

    text: str
    """The text of the button that does it."""
    load_options: dict[str, int | str] = {}
    """New values by the key of the load option; empty if it is about options of sampling."""


def option_change(why: Why) -> OptionChange | None:
    """Return the options to change against the costliest cause; None if no option helps."""
    match why.findings[0].cause if why.findings else "":
        case "too_many_threads":
            return OptionChange(tr("Set to 0"), {"n_threads": 0})
        case "not_in_memory":
            return OptionChange(tr("Set to mlock"), {"load_mode": "mlock"})
        case "drafts_lose":
            return OptionChange(tr("Turn off"), {"speculative": "off"})
        case "f32_cache":
            return OptionChange(tr("Set to F16"), {"type_k": "f16", "type_v": "f16"})
        case "sampling":
            return OptionChange(tr("Show options"))
    return None


def why_sentence(why: Why) -> str:
    """Return the costliest cause with what to change, or that the answer was as fast as it should be."""
    if why.findings:
        return _sentence(why, why.findings[0])
    if not why.time.is_measured:
        return tr("Nothing unusual. Measure this PC to see how much faster it could be.")
    time, found = why.time, why.circumstances
    if time.gpu_s >= time.ram_s:
        return tr("As fast as it should be: the GPU needs most of the time. Only a smaller file would be faster.")
    if waits_for_ram(found):
        return tr(
            "As fast as it should be: {0}% of the time is waiting for RAM, which gives {1} GB/s. Only a smaller file "
            "would be faster.",
            _percent(time.ram_s, time.total_s), _gb_s(_ram_bytes_s(why)),
        )  # fmt: skip
    return tr(
        "As fast as it should be: the CPU computes for {0}% of the time. Only a smaller model would be faster.",
        _percent(time.limit_s, time.total_s),
    )  # fmt: skip


def other_answer_note(model: str, loaded: str, *, has_shown: bool) -> str:
    """Return why the answer that the user asked about isn't explained.

    `model` gave that answer ("" if unknown), `loaded` is the loaded model ("" if there is none), and `has_shown` tells
    whether an answer of it is explained in place of the other one.
    """
    if model in ("", loaded):
        if has_shown:
            return tr("This is another answer. The one you clicked is too short, or older than the last load.")
        return tr("The answer you clicked is too short to be explained, or older than the last load.")
    if has_shown:
        return tr("This is the last answer of {0}. Load {1} and ask again to see why it has its speed.", loaded, model)
    return tr("The answer you clicked is from {0}. Load it and ask again to see why it has its speed.", model)


def why_rows(why: Why) -> tuple[WhyRow, ...]:
    """Return a token's time by cause, then its sum, then the limit of this PC if that was measured."""
    time, reads, stream = why.time, why.circumstances.reads, why.circumstances.stream
    rows = []
    if time.is_measured:
        if time.gpu_s:
            n_bytes = show_bytes(reads.gpu_bytes + reads.gpu_cache_bytes)
            rows.append(WhyRow(tr("Weights and cache on the GPU"), _ms(time.gpu_s), tr("{0}, estimated", n_bytes)))
        if time.ram_s and stream is not None:
            speed = tr("{0} at {1} GB/s", show_bytes(reads.ram_bytes), _gb_s(reads.ram_bytes / stream.matrices_s))
            rows.append(WhyRow(tr("Weights in RAM"), _ms(time.ram_s), speed))
        if reads.cpu_caches:
            note = tr_n("{0} token", "{0} tokens", reads.n_tokens)
            rows.append(WhyRow(tr("KV cache in RAM"), _ms(time.cache_s), note))
        rows.append(WhyRow(tr("Waits"), _ms(time.waits_s), tr("what the engine took beyond that")))
    else:
        rows.append(WhyRow(tr("Engine"), _ms(time.engine_s), tr("weights, KV cache and waits")))
    rows += [
        WhyRow(tr("Choosing the token"), _ms(time.sampling_s), tr("sampling, penalties, grammar")),
        WhyRow(tr("QwenDesk's own work"), _ms(time.own_s)),
        WhyRow(tr("Together"), _ms(time.total_s), tr("{0} tok/s", show_rate(1 / time.total_s))),
    ]
    if time.is_measured and time.limit_s > 0:
        limit_s = time.limit_s + time.sampling_s
        rows.append(WhyRow(tr("This PC's limit"), _ms(limit_s), tr("{0} tok/s", show_rate(1 / limit_s))))
    return tuple(rows)


def _sentence(why: Why, finding: LostTime) -> str:
    found, time = why.circumstances, why.time
    stats, reads = found.stats, found.reads
    n_tokens = max(stats.reasoning_tokens + stats.answer_tokens - 1, 1)
    lost = _percent(finding.lost_s / n_tokens, time.total_s)
    match finding.cause:
        case "too_many_threads":
            return tr(
                "About {0}% of the time is lost because {1} threads share {2} cores. Set CPU threads to 0, which takes "
                "one for each core.",
                lost, stats.most_threads, found.n_cores,
            )  # fmt: skip
        case "busy_neighbour":
            return tr(
                "Other programs slow this PC down: they want {0} of its {1} cores. Close what you don't need.",
                show_decimal(stats.timing.wanted_cores, 1), found.n_logical,
            )  # fmt: skip
        case "memory_limit":
            return tr(
                "The engine may use only {0} of RAM and needs {1}, so it reads parts of the model from the drive again "
                "and again. Raise the limit of the container or service.",
                show_bytes(found.limit_bytes or 0), show_bytes(found.needed_bytes),
            )  # fmt: skip
        case "not_in_memory":
            return tr(
                "{0} were read from the drive during this answer, because the model's file wasn't in RAM. Free some "
                "RAM, or load with Load mode: mlock.",
                show_bytes(stats.timing.drive_bytes),
            )  # fmt: skip
        case "drafts_lose":
            return tr(
                "{0}% of the time is lost by token drafts: too few guesses are right. Turn Token drafts off for this "
                "model.",
                lost,
            )  # fmt: skip
        case "prompt_reread":
            return tr(
                "The first word waited {0}, because {1} of {2} tokens of this chat were read again. Change only the "
                "end of a chat, and keep the prompt cache on.",
                show_duration(stats.prefill_s), show_count(stats.reread_tokens), show_count(stats.prompt_tokens),
            )  # fmt: skip
        case "f32_cache":
            return tr("About {0}% of the time is lost by a KV cache in F32. Set K and V cache type to F16.", lost)
        case "long_context":
            return tr(
                "{0}% of the time goes into the {1} tokens of this chat. A new chat is faster.",
                lost, show_count(reads.n_tokens),
            )  # fmt: skip
        case "sampling":
            return tr(
                "{0}% of the time goes into choosing the next token. Set Top-k to 20 to 100, and turn off DRY and "
                "grammars that you don't need.",
                lost,
            )  # fmt: skip
        case "own_work":
            return tr("{0}% of the time is QwenDesk's own work, which is unusual. Please report it.", lost)
        case "one_memory_channel":
            speed = _ram_bytes_s(why)
            return tr(
                "{0}% of the time is waiting for RAM: {1} GB/s measured, about {2} usual with two sticks. Add a second "
                "stick.",
                _percent(time.ram_s, time.total_s), _gb_s(speed), _gb_s(2 * speed),
            )  # fmt: skip
        case "weights_in_ram":
            return tr(
                "{0}% of the time goes into weights in RAM, which gives {1} GB/s, because they don't fit on the GPU. A "
                "smaller file is faster.",
                lost, _gb_s(_ram_bytes_s(why)),
            )  # fmt: skip
        case "unexplained":
            return tr(
                "{0}% of the time is waiting without a known cause. Look at power saving, heat and what else runs.",
                lost,
            )  # fmt: skip


def _ram_bytes_s(why: Why) -> float:
    return why.circumstances.stream.ram_bytes_s if why.circumstances.stream is not None else 0.0


def _gb_s(bytes_s: float) -> str:
    return show_decimal(bytes_s / 1e9, 0 if bytes_s >= 10e9 else 1)


def _percent(part_s: float, total_s: float) -> int:
    return round(100 * part_s / total_s)


def _ms(seconds: float) -> str:
    ms = 1000 * seconds
    return show_decimal(ms, 0 if ms >= 20 else 1 if ms >= 1 else 2)
