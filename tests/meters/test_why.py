"""Why an answer was as fast as it was: the rules on recorded answers, and on values that differ in one thing."""

from pathlib import Path

import msgspec
import pytest

from qwendesk.core.benchmarks import Attention, Matrix, StreamSpeed
from qwendesk.core.option_rules import with_changes
from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.core.stats import AnswerStats, AnswerTiming
from qwendesk.hardware.token_reads import TokenReads
from qwendesk.meters.why import Cause, Circumstances, LostTime, Why, explain
from qwendesk.meters.why_text import option_change, why_rows, why_sentence

RUNS = msgspec.json.decode(Path(__file__).with_name("why_runs.json").read_bytes(), type=dict[str, Circumstances])
"""What the rules saw of real answers: `python -m bench.why causes --record FILE` on a virtual PC with two cores."""


@pytest.mark.parametrize("cause", [cause for cause in RUNS if cause != "healthy"])
def test_a_planted_cause_is_named(cause: str) -> None:
    why = explain(RUNS[cause])

    assert why is not None
    assert cause in [each.cause for each in why.findings]


def test_nothing_is_named_on_a_healthy_run() -> None:
    why = explain(RUNS["healthy"])

    assert why is not None
    assert why.findings == ()
    assert why_sentence(why).startswith("As fast as it should be")


@pytest.mark.parametrize(
    ("cause", "key", "value"),
    [
        ("too_many_threads", "n_threads", 0),
        ("not_in_memory", "load_mode", "mlock"),
        ("drafts_lose", "speculative", "off"),
        ("f32_cache", "type_v", "f16"),
    ],
)
def test_the_option_that_a_sentence_names_can_be_set(cause: Cause, key: str, value: object) -> None:
    why = explain(RUNS[cause])
    assert why is not None

    change = option_change(msgspec.structs.replace(why, findings=(LostTime(cause, 1.0),)))

    assert change is not None
    assert getattr(with_changes(LoadOptions(model="a.gguf"), change.load_options), key) == value


def test_all_planted_causes_were_recorded() -> None:
    assert RUNS.keys() == {
        "healthy", "busy_neighbour", "too_many_threads", "not_in_memory", "memory_limit", "drafts_lose",
        "prompt_reread", "f32_cache", "long_context",
    }  # fmt: skip


# 101 tokens of 10 ms: 8 for the engine, of which the weights need 7 and the KV cache 0.5.
MATRICES = (Matrix("Q4_K", 4096, 4096, 100),)
READS = TokenReads(
    n_tokens=1000, matrices=MATRICES, ram_bytes=100_000_000, cpu_caches=10, cpu_cache_bytes=1_000_000,
    attention=Attention(
        type_k="F16", type_v="F16", key_length=64, value_length=64, n_heads=8, n_heads_kv=2, n_tokens=1000
    ),
)  # fmt: skip
TIMING = AnswerTiming(engine_s=0.9, sampling_s=0.05)
STATS = AnswerStats(
    prompt_tokens=950, reread_tokens=950, answer_tokens=101, prefill_s=2.0, decode_s=1.0, n_threads=4, most_threads=4,
    timing=TIMING,
)  # fmt: skip
STREAM = StreamSpeed(ram_bytes_s=20e9, matrices_s=0.007, step_s=1e-6, attention_s=0.00005)
HEALTHY = Circumstances(
    stats=STATS, options=DecidedOptions(model="a.gguf"), reads=READS, stream=STREAM, stream_tokens=1000, n_cores=4,
    n_logical=8,
)  # fmt: skip


def changed(found: Circumstances = HEALTHY, **changes: object) -> Why:
    why = explain(msgspec.structs.replace(found, **changes))
    assert why is not None
    return why


def with_stats(**changes: object) -> Why:
    return changed(stats=msgspec.structs.replace(STATS, **changes))


def with_timing(**changes: object) -> Why:
    return with_stats(timing=msgspec.structs.replace(TIMING, **changes))


def causes(why: Why) -> list[str]:
    return [each.cause for each in why.findings]


def test_a_token_is_split_by_cause_and_the_parts_add_up() -> None:
    time = changed().time

    parts = (time.ram_s, time.cache_s, time.waits_s, time.sampling_s, time.own_s)
    assert parts == pytest.approx((0.0073, 0.0005, 0.0012, 0.0005, 0.0005))
    assert sum(parts) == pytest.approx(time.total_s) == 0.01
    assert causes(changed()) == []


def test_before_a_measurement_only_what_the_worker_timed_is_shown() -> None:
    why = changed(stream=None)

    assert [row.name for row in why_rows(why)] == ["Engine", "Choosing the token", "QwenDesk's own work", "Together"]
    assert why_sentence(why) == "Nothing unusual. Measure this PC to see how much faster it could be."


def test_rows_of_a_measured_answer() -> None:
    rows = {row.name: (row.ms, row.note) for row in why_rows(changed())}

    assert rows["Weights in RAM"] == ("7.3", "95 MB at 14 GB/s")
    assert rows["KV cache in RAM"] == ("0.50", "1,000 tokens")
    assert rows["Together"] == ("10.0", "100 tok/s")
    assert rows["This PC's limit"] == ("8.3", "120 tok/s")


@pytest.mark.parametrize("stats", [{"answer_tokens": 16}, {"decode_s": 0.0}, {"timing": AnswerTiming()}])
def test_a_short_answer_and_one_of_a_server_are_not_explained(stats: dict[str, object]) -> None:
    assert explain(msgspec.structs.replace(HEALTHY, stats=msgspec.structs.replace(STATS, **stats))) is None


def test_other_programs_count_only_where_they_take_cores_from_the_answer() -> None:
    assert causes(with_timing(wanted_cores=6.0)) == ["busy_neighbour"]
    assert causes(with_timing(wanted_cores=3.9)) == [], "four threads on eight cores leave them room"
    assert why_sentence(with_timing(wanted_cores=6.0)) == (
        "Other programs slow this PC down: they want 6.0 of its 8 cores. Close what you don't need."
    )


def test_more_threads_than_cores() -> None:
    assert causes(with_stats(most_threads=16)) == ["too_many_threads"]
    assert causes(changed(n_cores=0)) == [], "the number of cores isn't known"


def test_a_drive_is_blamed_from_a_twentieth_of_the_weights_on_and_a_limit_where_it_is_too_low() -> None:
    timing = msgspec.structs.replace(TIMING, drive_bytes=400_000_000)
    stats = msgspec.structs.replace(STATS, timing=timing)

    assert causes(changed(stats=stats)) == ["not_in_memory"]
    assert causes(changed(stats=stats, limit_bytes=120_000_000, needed_bytes=400_000_000)) == ["memory_limit"]
    assert causes(changed(stats=stats, limit_bytes=8_000_000_000, needed_bytes=400_000_000)) == ["not_in_memory"]
    assert causes(with_timing(drive_bytes=4_000_000)) == []


def test_drafts_that_lose_less_than_a_tenth_are_not_blamed() -> None:
    assert causes(with_timing(drafts_lost_s=0.2)) == ["drafts_lose"]
    assert causes(with_timing(drafts_lost_s=0.05)) == causes(with_timing(drafts_lost_s=-0.5)) == []


def test_a_prompt_is_blamed_if_it_was_in_memory_before() -> None:
    assert causes(with_stats(is_follow_up=True)) == ["prompt_reread"]
    assert causes(with_stats(cache_note="no checkpoint was kept nearer")) == ["prompt_reread"]
    assert causes(with_stats()) == [], "the first question of a chat has to be read"
    assert causes(with_stats(is_follow_up=True, reread_tokens=60)) == []
    assert causes(with_stats(is_follow_up=True, prefill_s=0.1)) == []


def test_the_kv_cache_by_its_type_and_by_its_length() -> None:
    slow = msgspec.structs.replace(STREAM, matrices_s=0.004, attention_s=0.0004)
    f32 = DecidedOptions(model="a.gguf", type_k="f32", type_v="f32")

    assert causes(changed(stream=slow)) == ["long_context"]
    assert causes(changed(stream=slow, options=f32)) == ["long_context"], "0.8 of 10 ms aren't a tenth"
    longer = msgspec.structs.replace(slow, matrices_s=0.002, attention_s=0.0006)
    assert causes(changed(stream=longer, options=f32)) == ["long_context", "f32_cache"]
    assert causes(changed(options=f32)) == []


def test_twice_as_many_tokens_as_were_streamed_take_twice_as_long() -> None:
    reads = msgspec.structs.replace(READS, n_tokens=2000)

    assert changed(reads=reads).time.cache_s == pytest.approx(0.001)


def test_sampling_and_own_work() -> None:
    assert causes(with_timing(engine_s=0.7, sampling_s=0.25)) == ["sampling"]
    assert causes(with_timing(engine_s=0.5)) == ["own_work"]


def test_own_work_that_is_short_is_not_called_unusual() -> None:
    tiny = AnswerTiming(engine_s=0.19, sampling_s=0.004)
    why = with_stats(decode_s=0.34, timing=tiny)

    assert why.time.own_s == pytest.approx(0.00146), "a large share of the 3.4 ms of a tiny model"
    assert causes(why) == []
    assert causes(with_timing(engine_s=0.6)) == [], "3.5 of 10 ms"
    assert causes(with_timing(engine_s=0.5, wanted_cores=3.9)) == [], "other programs delay it, too"


def test_one_memory_channel_counts_only_if_the_cpu_waits_for_ram() -> None:
    waiting = changed(has_one_channel=True)

    assert causes(waiting) == ["one_memory_channel"]
    assert why_sentence(waiting) == (
        "73% of the time is waiting for RAM: 20 GB/s measured, about 40 usual with two sticks. Add a second stick."
    )
    fast = msgspec.structs.replace(STREAM, ram_bytes_s=60e9)
    assert causes(changed(has_one_channel=True, stream=fast)) == []
    assert "the CPU computes" in why_sentence(changed(stream=fast))


def test_experts_in_ram_beside_a_gpu_are_the_costliest_part() -> None:
    why = changed(reads=msgspec.structs.replace(READS, gpu_bytes=10**9, gpu_layers=40), gpu_s=0.001, gpu_slow_s=0.0015)

    assert causes(why) == ["weights_in_ram"]
    assert why.time.gpu_s == 0.001


def test_a_model_on_a_gpu_is_not_blamed_for_the_range_of_its_estimate() -> None:
    reads = TokenReads(n_tokens=1000, gpu_bytes=10**9, gpu_layers=40)

    assert causes(changed(reads=reads, gpu_s=0.004, gpu_slow_s=0.008, stream=None)) == []
    assert causes(changed(reads=reads, gpu_s=0.003, gpu_slow_s=0.004, stream=None)) == ["unexplained"]


def test_drafts_that_are_right_lower_the_limit_of_a_token() -> None:
    why = with_stats(drafted_tokens=60, accepted_tokens=50)

    assert why.time.limit_s == pytest.approx(0.0078 * 51 / 101)


def test_waits_without_a_cause_are_said() -> None:
    why = changed(stream=msgspec.structs.replace(STREAM, matrices_s=0.004))

    assert causes(why) == ["unexplained"]
