"""The words of the window, from values."""

import msgspec

from qwendesk.core.clip_sampling import FramePlan
from qwendesk.core.conversation import Answer
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.options import LoadOptions
from qwendesk.core.paths import demo_model
from qwendesk.core.stats import AnswerStats
from qwendesk.engine.protocol import UNKNOWN_PROGRAM, Allocation, PictureCost, ServedBy
from qwendesk.engine.state import EngineState, Phase
from qwendesk.widgets import display_texts
from tests.fakes.engine import DEMO_REPORT

REAL = msgspec.structs.replace(
    DEMO_REPORT, name="Qwen3.5-35B-A3B", n_ctx=65536, options=LoadOptions(model="/m/Qwen3.5-35B-A3B-UD-Q4_K_L.gguf")
)


def test_model_button_shows_name_quant_and_context() -> None:
    assert display_texts.model_label(EngineState(phase=Phase.READY, report=REAL)) == "Qwen3.5-35B-A3B · UD-Q4_K_L · 64K"
    demo = msgspec.structs.replace(DEMO_REPORT, options=LoadOptions(model=str(demo_model())))
    assert display_texts.model_label(EngineState(phase=Phase.READY, report=demo)) == "Built-in demo · Q8_0 · 32K"
    loading = EngineState(phase=Phase.LOADING, requested=REAL.options, load_fraction=0.344)
    assert display_texts.model_label(loading) == "Loading Qwen3.5-35B-A3B-UD-Q4_K_L · 34%"
    assert display_texts.model_label(EngineState()) == "Choose a model"


def test_model_button_says_when_an_unloaded_model_loads_again() -> None:
    state = EngineState(idle_unloaded=REAL.options)
    assert display_texts.model_label(state).endswith(" · loads with your next message")
    assert display_texts.model_label(state, is_measuring=True).endswith(" · loads after the measurement")


def test_stats_of_an_answer() -> None:
    stats = AnswerStats(
        prompt_tokens=12_340,
        reread_tokens=36,
        reasoning_tokens=431,
        answer_tokens=130,
        ttft_s=0.21,
        decode_s=5.0,
        cache_note="A picture was removed from the chat.",
    )
    answer = Answer(stats=stats, stop_reason="eos")
    assert display_texts.stats_text(answer) == "112 tok/s · first word in 0.2 s"
    tooltip = display_texts.stats_tooltip(answer)
    assert "Re-read 36 of 12,340 prompt tokens" in tooltip
    assert "A picture was removed from the chat." in tooltip
    drafted = msgspec.structs.replace(stats, drafted_tokens=420, accepted_tokens=252)
    with_drafts = msgspec.structs.replace(answer, stats=drafted)
    assert display_texts.stats_text(with_drafts) == display_texts.stats_text(answer), "drafts are in the details"
    tooltip = display_texts.stats_tooltip(with_drafts)
    assert "252 of 420 guessed tokens were right (60%), so a step gave 1.8 tokens instead of 1." in tooltip
    assert "times as fast" not in tooltip
    faster = msgspec.structs.replace(answer, stats=msgspec.structs.replace(drafted, draft_speedup=1.42))
    assert "Measured: 1.4 times as fast." in display_texts.stats_tooltip(faster)
    assert "threads" not in tooltip
    first = AnswerStats(prompt_tokens=160, reread_tokens=160)
    assert "\nRead 160 prompt tokens\n" in display_texts.stats_tooltip(Answer(stats=first, stop_reason="eos"))
    again = msgspec.structs.replace(first, is_follow_up=True)
    assert "Re-read 160 of 160 prompt tokens" in display_texts.stats_tooltip(Answer(stats=again))
    crowded = msgspec.structs.replace(answer, stats=msgspec.structs.replace(stats, n_threads=1, most_threads=2))
    assert "1 of 2 threads: other programs are busy" in display_texts.stats_tooltip(crowded)
    full = msgspec.structs.replace(answer, stop_reason="context_full")
    assert display_texts.stats_text(full).endswith("Stopped because the context is full")


def test_texts_about_thinking_and_pictures() -> None:
    assert display_texts.thought_text(12.2, 431) == "Thought for 12 s · 431 tokens"
    assert display_texts.thought_text(0.5, 0) == "Thought for 0.5 s"
    assert display_texts.thought_text(0.01, 9) == "Thought for <0.1 s · 9 tokens"
    assert (
        display_texts.picture_text(PictureCost("x", 1024, 768, 788), 65_536) == "1024×768 → 788 tokens, 1.2% of context"
    )


def test_a_clip_says_what_it_costs() -> None:
    plan = FramePlan(tuple(second + 0.5 for second in range(24)), 928, 512, 6_200)
    assert display_texts.clip_text(plan, 24.0, 68_000) == "24 s → 24 frames → 6,200 tokens, 9.1% of context"


def test_context_is_that_of_the_last_answer() -> None:
    stats = AnswerStats(prompt_tokens=1000, reasoning_tokens=200, answer_tokens=28)
    assert display_texts.context_text(stats.total_tokens, 32_768) == "Context 1.2K / 32K"
    assert display_texts.context_text(0, 32_768) == "Context 0 / 32K"
    assert display_texts.context_text(0, 0) == "Context –"


def test_full_context_has_the_tone_of_a_problem() -> None:
    tones = [display_texts.context_tone(used, 10_000)[0] for used in (0, 8_000, 9_000, 9_990, 10_001)]
    assert tones == ["", "", "warn", "bad", "bad"]
    assert display_texts.context_tone(500, 0)[0] == "", "no model is loaded"


def test_where_the_model_is() -> None:
    gpu = DeviceInfo(name="CUDA0", description="NVIDIA GeForce RTX 3090", kind="gpu", backend="CUDA")
    allocations = (Allocation("CUDA0", weights_bytes=9), Allocation("CPU", weights_bytes=1), Allocation("CUDA_Host"))
    state = EngineState(
        phase=Phase.READY, devices=(gpu,), report=msgspec.structs.replace(REAL, allocations=allocations)
    )
    assert display_texts.device_text(state) == "On NVIDIA GeForce RTX 3090 and CPU"
    only_cpu = msgspec.structs.replace(REAL, allocations=(Allocation("CPU", weights_bytes=1),))
    assert display_texts.device_text(EngineState(phase=Phase.READY, report=only_cpu)) == "On CPU"
    assert display_texts.device_text(EngineState()) == ""


def test_a_server_is_named_by_its_program_or_called_this_server() -> None:
    def reason(program: str) -> str:
        served = ServedBy(name="Mine", address="http://a", program=program)
        return display_texts.answer_now_reason(msgspec.structs.replace(DEMO_REPORT, served_by=served))

    assert reason("Ollama").startswith("Ollama can't end")
    assert reason(UNKNOWN_PROGRAM).startswith("This server can't end")
