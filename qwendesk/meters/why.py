"""Why an answer was as fast as it was: a token's time by cause, the limit of this PC, and what to change first.

The worker measures how long the engine, the sampler and the rest took. How much of the engine's time the weights and
the KV cache need is measured by a stream loop that reads exactly that much (worker/stream.py); for a GPU it is
estimated from its bandwidth. What the engine took beyond these are waits.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec

from qwendesk.core.benchmarks import StreamSpeed
from qwendesk.core.options import DecidedOptions
from qwendesk.core.stats import AnswerStats
from qwendesk.hardware.token_reads import TokenReads

Cause = Literal[
    "too_many_threads",
    "busy_neighbour",
    "memory_limit",
    "not_in_memory",
    "drafts_lose",
    "prompt_reread",
    "f32_cache",
    "long_context",
    "sampling",
    "own_work",
    "one_memory_channel",
    "weights_in_ram",
    "unexplained",
]
# A shorter answer says little.
FEWEST_TOKENS = 16
# A cause is named from this share of the answer's time on, and waits without a known cause from that.
_NAMED, _UNEXPLAINED = 0.1, 0.35
_LONG_CONTEXT, _SLOW_PROMPT, _RAM = 0.25, 0.25, 0.5
# Seconds before which nobody notices that a prompt was processed again.
_NOTICED_S = 0.3
# The app's own work for a token is unusual from these seconds on, ten times what it usually takes. Less may be a large
# share of a tiny model's time: 1.4 of 3.4 ms of the built-in demo on a virtual PC with two cores.
_UNUSUAL_OWN_S = 0.004
# Share of the weights that must have come from the drive.
_FROM_DRIVE = 0.05
# Share of the time for the KV cache that F32 costs: llama.cpp casts all of it to F16 for each token.
#
# At 2,048 tokens SmolLM2 took 78 ms with F16 and 98 ms with F32 on one core of a Xeon (llama.cpp of 0.3.36).
_F32_SHARE = 0.2
# Bytes/s of a drive: a fast SATA SSD gives half of it, an NVMe SSD several times as much.
_DRIVE_BYTES_S = 1e9
# Cores that others want before they count: a look in passing finds some program at work.
_BUSY = 0.3
# Small operations (norms, activations) beside each matrix, by the engine's graphs: 2 to 5.
_STEPS_PER_MATRIX = 3
# The CPU waits for the RAM if it reads the weights at no less than this share of the RAM's bandwidth.
_RAM_BOUND = 0.6


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """All that the rules look at."""

    stats: AnswerStats
    options: DecidedOptions
    reads: TokenReads
    gpu_s: float = 0.0
    """Seconds a token for the weights and the KV cache on GPUs, estimated from their bandwidth; 0 without one."""
    gpu_slow_s: float = 0.0
    """The same at the slow end of the estimate."""
    stream: StreamSpeed | None = None
    """None before it was measured."""
    stream_tokens: int = 0
    """Tokens in the KV cache that the stream loop read."""
    n_cores: int = 0
    """Physical cores; 0 if unknown."""
    n_logical: int = 0
    limit_bytes: int | None = None
    """Memory that the engine's process may use; None for no limit but the RAM."""
    needed_bytes: int = 0
    """RAM of the engine's process with the whole model."""
    has_one_channel: bool = False
    """True if the firmware says that the RAM has one channel only."""


class TokenTime(msgspec.Struct, frozen=True, kw_only=True):
    """Where the milliseconds of one token went, in seconds. Parts that aren't known yet are 0."""

    total_s: float
    gpu_s: float = 0.0
    """Weights and cache on GPUs."""
    ram_s: float = 0.0
    """Weights in RAM, with the small operations between them."""
    cache_s: float = 0.0
    """KV cache in RAM."""
    engine_s: float = 0.0
    """All of the engine's time: the parts before and the waits, or the one value while they aren't known."""
    sampling_s: float = 0.0
    own_s: float = 0.0
    """The app's own work: text, tools, the pipe between the processes."""
    is_measured: bool = False
    """True if the parts of the engine's time are known."""

    @property
    def limit_s(self) -> float:
        """The least that this PC needs for a token."""
        return self.gpu_s + self.ram_s + self.cache_s

    @property
    def waits_s(self) -> float:
        return max(self.engine_s - self.limit_s, 0.0) if self.is_measured else 0.0


class LostTime(msgspec.Struct, frozen=True):
    """A cause, and about how many seconds it cost over the whole answer."""

    cause: Cause
    lost_s: float


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """The explanation of one answer."""

    circumstances: Circumstances
    time: TokenTime
    findings: tuple[LostTime, ...] = ()
    """What could be better, the costliest first; empty if the answer was as fast as it should be."""


def explain(found: Circumstances) -> Why | None:
    """Return why an answer was as fast as it was; None if it is too short, or of an engine that measures no times."""
    stats = found.stats
    n_tokens = stats.reasoning_tokens + stats.answer_tokens - 1
    if n_tokens < FEWEST_TOKENS or stats.decode_s <= 0 or stats.timing.engine_s <= 0:
        return None
    time = _token_time(found, n_tokens)
    base_s = stats.decode_s
    findings = [
        each
        for each in _findings(found, time, n_tokens)
        if each.lost_s >= _NAMED * (base_s + (stats.prefill_s if each.cause in _WHOLE_ANSWER else 0.0))
    ]
    findings.sort(key=lambda each: each.lost_s, reverse=True)
    waits_s = time.waits_s - (found.gpu_slow_s - found.gpu_s)
    if not findings and waits_s >= _UNEXPLAINED * time.total_s:
        findings = [LostTime("unexplained", time.waits_s * n_tokens)]
    return Why(circumstances=found, time=time, findings=tuple(findings))


# These cost time before the first token, too.
_WHOLE_ANSWER = ("prompt_reread", "not_in_memory", "memory_limit")


def _token_time(found: Circumstances, n_tokens: int) -> TokenTime:
    stats, timing, stream = found.stats, found.stats.timing, found.stream
    total, engine, sampling = (each / n_tokens for each in (stats.decode_s, timing.engine_s, timing.sampling_s))
    engine = min(engine, total)
    time = TokenTime(total_s=total, engine_s=engine, sampling_s=sampling, own_s=max(total - engine - sampling, 0.0))
    is_measured = not found.reads.n_matrices or stream is not None
    if not is_measured:
        return time
    per_step = stats.tokens_per_step
    ram_s = cache_s = 0.0
    if stream is not None:
        state_s = 2 * found.reads.cpu_state_bytes / stream.ram_bytes_s
        steps_s = _STEPS_PER_MATRIX * found.reads.n_matrices * stream.step_s
        ram_s = (stream.matrices_s + steps_s + state_s) / per_step
        depth = found.reads.n_tokens / max(found.stream_tokens, 1)
        cache_s = found.reads.cpu_caches * stream.attention_s * depth / per_step
    gpu_s = found.gpu_s / per_step
    # Where the measurement found less speed than the answer had, all of the engine's time was needed.
    share = min(1.0, engine / max(gpu_s + ram_s + cache_s, 1e-9))
    return msgspec.structs.replace(
        time, gpu_s=share * gpu_s, ram_s=share * ram_s, cache_s=share * cache_s, is_measured=True
    )


def _findings(found: Circumstances, time: TokenTime, n_tokens: int) -> Iterator[LostTime]:
    stats, timing, options = found.stats, found.stats.timing, found.options
    # What only the processor is to blame for counts where it computes.
    cpu_s = stats.decode_s if found.reads.n_matrices else 0.0
    if 0 < found.n_cores < stats.most_threads:
        yield LostTime("too_many_threads", cpu_s * (1 - found.n_cores / stats.most_threads))
    if timing.wanted_cores >= _BUSY:
        yield LostTime("busy_neighbour", min(_lost_to_others(found), cpu_s))
    if timing.drive_bytes >= _FROM_DRIVE * max(found.reads.ram_bytes, 1):
        is_limited = found.limit_bytes is not None and found.limit_bytes < found.needed_bytes
        lost_s = max(time.waits_s * n_tokens, timing.drive_bytes / _DRIVE_BYTES_S)
        yield LostTime("memory_limit" if is_limited else "not_in_memory", lost_s)
    if timing.drafts_lost_s > 0:
        yield LostTime("drafts_lose", timing.drafts_lost_s)
    if _was_reread(stats):
        yield LostTime("prompt_reread", stats.prefill_s)
    cache_s = time.cache_s * n_tokens
    if "f32" in (options.type_k, options.type_v):
        yield LostTime("f32_cache", _F32_SHARE * cache_s)
        cache_s *= 1 - _F32_SHARE
    if cache_s >= _LONG_CONTEXT * stats.decode_s:
        yield LostTime("long_context", cache_s)
    yield LostTime("sampling", timing.sampling_s)
    if time.own_s >= _UNUSUAL_OWN_S and timing.wanted_cores < _BUSY:  # others delay it, too
        yield LostTime("own_work", time.own_s * n_tokens)
    if time.ram_s >= _RAM * time.total_s:
        if found.has_one_channel and waits_for_ram(found):
            yield LostTime("one_memory_channel", time.ram_s * n_tokens / 2)
        if found.reads.gpu_bytes:
            yield LostTime("weights_in_ram", time.ram_s * n_tokens)


def _lost_to_others(found: Circumstances) -> float:
    """Return the seconds for which the engine's threads had to wait for a core, or made room for other programs."""
    stats, timing = found.stats, found.stats.timing
    made_room_s = stats.decode_s * (1 - stats.n_threads / stats.most_threads) if stats.n_threads else 0.0
    if timing.delayed_s:
        return timing.delayed_s + made_room_s
    # Everyone who wants a core gets the same share of them.
    n_wanting = timing.wanted_cores + min(stats.most_threads, found.n_logical)
    return max(stats.decode_s * (1 - found.n_logical / n_wanting), made_room_s)


def _was_reread(stats: AnswerStats) -> bool:
    """Return whether much of a prompt was processed that an earlier answer of this chat had in memory."""
    again = stats.is_follow_up and stats.is_reuse_known and stats.reread_tokens > stats.prompt_tokens / 2
    slow = stats.prefill_s >= max(_NOTICED_S, _SLOW_PROMPT * (stats.prefill_s + stats.decode_s))
    return (again or bool(stats.cache_note)) and slow


def waits_for_ram(found: Circumstances) -> bool:
    """Return whether the CPU reads the weights about as fast as the RAM gives them: then computing isn't the limit."""
    stream = found.stream
    if stream is None or stream.matrices_s <= 0:
        return False
    return found.reads.ram_bytes / stream.matrices_s >= _RAM_BOUND * stream.ram_bytes_s
