"""The words of the window, from values."""

import msgspec
import pytest

from qwendesk.core.conversation import Answer
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.options import LoadOptions
from qwendesk.core.paths import demo_model
from qwendesk.core.stats import AnswerStats
from qwendesk.engine.protocol import Allocation, PictureCost
from qwendesk.engine.state import EngineState, Phase
from qwendesk.ui.kit import labels
from tests.fakes.engine import DEMO_REPORT

REAL = msgspec.structs.replace(
    DEMO_REPORT, name="Qwen3.5-35B-A3B", n_ctx=65536, options=LoadOptions(model="/m/Qwen3.5-35B-A3B-UD-Q4_K_L.gguf")
)


@pytest.mark.parametrize(
    ("file", "quant"),
    [
        ("Qwen3.5-35B-A3B-Q4_K_M.gguf", "Q4_K_M"),
        ("Qwen3.5-35B-A3B-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"),
        ("Qwen3.5-27B-IQ4_XS.gguf", "IQ4_XS"),
        ("model-MXFP4_MOE.gguf", "MXFP4_MOE"),
        ("x-BF16.gguf", "BF16"),
        ("Qwen3.5-9B-Q8_0-00001-of-00002.gguf", "Q8_0"),
        ("anything.gguf", ""),
        ("mmproj-F16.gguf", "F16"),
    ],
)
def test_the_quant_is_read_from_the_file_name(file: str, quant: str) -> None:
    assert labels.quant_of(f"/models/{file}") == quant


def test_the_model_button_says_name_quant_and_context() -> None:
    assert labels.model_label(EngineState(phase=Phase.READY, report=REAL)) == "Qwen3.5-35B-A3B · UD-Q4_K_L · 64K"
    demo = msgspec.structs.replace(DEMO_REPORT, options=LoadOptions(model=str(demo_model())))
    assert labels.model_label(EngineState(phase=Phase.READY, report=demo)) == "Built-in demo · Q8_0 · 32K"
    loading = EngineState(phase=Phase.LOADING, wanted=REAL.options, load_fraction=0.344)
    assert labels.model_label(loading) == "Loading Qwen3.5-35B-A3B-UD-Q4_K_L · 34%"
    assert labels.model_label(EngineState()) == "Choose a model"


def test_the_chip_under_an_answer() -> None:
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
    assert labels.stats_text(answer) == "112 tok/s · 0.2 s"
    tooltip = labels.stats_tooltip(answer)
    assert "Re-read 36 of 12,340 prompt tokens" in tooltip
    assert "A picture was removed from the chat." in tooltip
    assert labels.stats_text(msgspec.structs.replace(answer, stop_reason="context_full")).endswith("context full")


def test_thoughts_and_pictures() -> None:
    assert labels.thought_text(12.2, 431) == "Thought for 12 s · 431 tokens"
    assert labels.thought_text(0.5, 0) == "Thought for 0.5 s"
    assert labels.thought_text(0.01, 9) == "Thought for <0.1 s · 9 tokens"
    assert labels.picture_text(PictureCost("x", 1024, 768, 788), 65_536) == "1024×768 → 788 tokens, 1.2% of context"


def test_the_context_is_what_the_last_answer_left() -> None:
    stats = AnswerStats(prompt_tokens=1000, reasoning_tokens=200, answer_tokens=28)
    assert labels.context_text(stats, 32_768) == "Context 1.2K / 32K"
    assert labels.context_text(None, 32_768) == "Context 0 / 32K"
    assert labels.context_text(None, 0) == "Context –"


def test_where_the_model_is() -> None:
    gpu = DeviceInfo(name="CUDA0", description="NVIDIA GeForce RTX 3090", kind="gpu", backend="CUDA")
    allocations = (Allocation("CUDA0", weights_bytes=9), Allocation("CPU", weights_bytes=1), Allocation("CUDA_Host"))
    state = EngineState(
        phase=Phase.READY, devices=(gpu,), report=msgspec.structs.replace(REAL, allocations=allocations)
    )
    assert labels.device_text(state) == "On NVIDIA GeForce RTX 3090 and CPU"
    only_cpu = msgspec.structs.replace(REAL, allocations=(Allocation("CPU", weights_bytes=1),))
    assert labels.device_text(EngineState(phase=Phase.READY, report=only_cpu)) == "On CPU"
    assert labels.device_text(EngineState()) == ""
