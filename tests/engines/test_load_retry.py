"""Steps down after a load that failed."""

import msgspec
import pytest

from qwendesk.core.failures import LoadFailure, LoadFailureKind
from qwendesk.core.options import LoadOptions
from qwendesk.engines.load_decision import next_step
from qwendesk.hardware.expert_layers import cpu_expert_layers
from qwendesk.hardware.ladder import STEPS, ModelShape, StepDown

FULL = LoadOptions(
    model="m.gguf", mmproj="p.gguf", vision="gpu", n_ctx=65_536, n_gpu_layers="all", n_cpu_moe=0, type_k="f16",
    type_v="f16",
)  # fmt: skip
DENSE = ModelShape(layers=40, expert_layers=0, has_vision=True)
MIXTURE = ModelShape(layers=40, expert_layers=40, has_vision=True)


def failure(kind: LoadFailureKind) -> LoadFailure:
    return LoadFailure(kind, "It failed", "It failed.")


def steps(options: LoadOptions, kind: LoadFailureKind, model: ModelShape) -> list[StepDown]:
    """All steps down, one after the other, until nothing is left to try."""
    found: list[StepDown] = []
    while step := next_step(found[-1].options if found else options, failure(kind), model):
        found.append(step)
        assert len(found) < 100, "the steps never end"
    return found


def test_the_steps_are_taken_in_the_order_of_the_ladder() -> None:
    drafting = msgspec.structs.replace(FULL, speculative="mtp")
    ids = [step.id for step in steps(drafting, "out_of_vram", MIXTURE)]
    assert ids[:7] == ["drafts", "kv", *["experts"] * 4, "vision"]
    assert list(dict.fromkeys(ids)) == [step.id for step in STEPS if step.id != "cpu"]


def test_last_step_needs_the_least_memory() -> None:
    last = steps(FULL, "out_of_vram", DENSE)[-1].options
    assert (last.n_ctx, last.n_gpu_layers, last.vision, last.type_k) == (4_096, 0, "cpu", "q8_0")


def test_a_quarter_of_the_layers_moves_at_a_time() -> None:
    short = msgspec.structs.replace(FULL, type_k="q8_0", vision="cpu", n_ctx=4_096)
    assert [step.options.n_gpu_layers for step in steps(short, "out_of_vram", DENSE)][:3] == [30, 22, 16]
    assert [step.options.n_cpu_moe for step in steps(short, "out_of_vram", MIXTURE)][:4] == [10, 20, 30, 40]


def test_too_little_ram_offers_only_a_shorter_context() -> None:
    found = steps(FULL, "out_of_ram", MIXTURE)
    assert [(step.id, step.options.n_ctx) for step in found] == [
        ("context", n_ctx) for n_ctx in (32_768, 16_384, 8_192, 4_096)
    ]


def test_too_large_buffer_offers_what_makes_buffers_smaller() -> None:
    found = steps(FULL, "buffer_too_large", MIXTURE)
    assert list(dict.fromkeys(step.id for step in found)) == ["kv", "context", "layers"]


def test_too_large_kv_cache_offers_a_smaller_one_and_then_the_cpu() -> None:
    found = steps(FULL, "kv_tensor_too_large", MIXTURE)
    assert list(dict.fromkeys(step.id for step in found)) == ["kv", "context", "cpu"]
    assert found[-1].options.devices == ("none",)


def test_unexplained_crash_offers_the_cpu_once() -> None:
    (only,) = steps(FULL, "engine_crashed", DENSE)
    assert only.id == "cpu"
    assert (only.options.devices, only.options.vision) == (("none",), "cpu")


@pytest.mark.parametrize("kind", ["not_gguf", "truncated", "unsupported_architecture", "missing_file", "other"])
def test_failures_unrelated_to_memory_offer_no_step(kind: LoadFailureKind) -> None:
    assert next_step(FULL, failure(kind), MIXTURE) is None


def test_experts_move_off_the_gpu_that_the_engine_names() -> None:
    split = msgspec.structs.replace(FULL, type_k="q8_0", n_cpu_moe=2, tensor_split=(50.0, 50.0))
    lines = (
        "load_tensors: CUDA0 model buffer size = 9000.00 MiB",
        "alloc_tensor_range: failed to allocate CUDA1 buffer of size 9663676416",
    )
    failed = msgspec.structs.replace(failure("out_of_vram"), engine_lines=lines)

    step = next_step(split, failed, MIXTURE, ("CUDA0", "CUDA1"))

    assert step is not None
    assert step.id == "experts"
    assert cpu_expert_layers(step.options, 40) == (0, 1, *range(21, 31))
    assert step.options.n_cpu_moe == 2
    assert step.label == "12 expert layers on the CPU"
    assert step.assignment == f"override_tensor={step.options.override_tensor[0]}"
    again = next_step(step.options, failed, MIXTURE, ("CUDA0", "CUDA1"))
    assert again is not None
    assert cpu_expert_layers(again.options, 40) == (0, 1, *range(21, 40))


def test_without_a_named_gpu_experts_are_counted_from_the_first_layer() -> None:
    split = msgspec.structs.replace(FULL, type_k="q8_0", tensor_split=(50.0, 50.0))

    step = next_step(split, failure("out_of_vram"), MIXTURE, ("CUDA0", "CUDA1"))

    assert step is not None
    assert (step.options.n_cpu_moe, step.options.override_tensor) == (10, ())
