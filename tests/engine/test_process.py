"""What a worker is started with."""

from typing import Any

import pytest

from qwendesk.core.options import DecidedOptions
from qwendesk.engine.process import CARD_SPIN, SHORT_SPIN, spin_count, worker_environment


def test_threads_of_the_engine_spin_briefly_by_default(monkeypatch: pytest.MonkeyPatch):
    assert worker_environment({})["GOMP_SPINCOUNT"] == "1000"
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    assert worker_environment({}, spin=CARD_SPIN)["GOMP_SPINCOUNT"] == "7"


@pytest.mark.parametrize(
    ("backends", "options", "spin"),
    [
        (("CUDA", "CPU"), {"n_cpu_moe": 20}, CARD_SPIN),
        (("Vulkan", "CPU"), {"override_tensor": (r"blk\.(30|31)\.ffn_.*_exps=CPU",)}, CARD_SPIN),
        (("Vulkan", "CPU"), {"override_tensor": (r"\.ffn_(up|down)_exps\.=CUDA_Host", "exps=cpu")}, CARD_SPIN),
        (("CUDA", "CPU"), {}, SHORT_SPIN),
        (("CUDA", "CPU"), {"override_tensor": ("exps=CUDA1",)}, SHORT_SPIN),
        (("CUDA", "CPU"), {"override_tensor": ("token_embd=CPU",)}, SHORT_SPIN),
        (("CUDA", "CPU"), {"n_gpu_layers": 0, "n_cpu_moe": 20}, SHORT_SPIN),
        (("CPU",), {"n_cpu_moe": 20}, SHORT_SPIN),
    ],
)
def test_threads_spin_longer_where_experts_in_ram_wait_for_a_card(
    backends: tuple[str, ...], options: dict[str, Any], spin: str
) -> None:
    assert spin_count(DecidedOptions(model="m.gguf", **options), backends) == spin


def test_added_variables_override_defaults() -> None:
    assert worker_environment({"LLAMA_CPP_LIB_PATH": "/engines/cpu"})["LLAMA_CPP_LIB_PATH"] == "/engines/cpu"
