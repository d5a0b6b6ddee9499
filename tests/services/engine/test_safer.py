"""Steps down after a load that failed."""

import msgspec
import pytest

from qwendesk.core.failures import LoadFailure, LoadFailureKind
from qwendesk.core.options import LoadOptions
from qwendesk.services.engine.safer import Safer, safer

FULL = LoadOptions(model="m.gguf", mmproj="p.gguf", vision="gpu", n_ctx=65_536, n_gpu_layers="all", n_cpu_moe=0)


def failure(kind: LoadFailureKind) -> LoadFailure:
    return LoadFailure(kind, "It failed", "It failed.")


def steps(options: LoadOptions, kind: LoadFailureKind, n_experts: int) -> list[Safer]:
    """All steps down, one after the other, until nothing is left to try."""
    found: list[Safer] = []
    while step := safer(found[-1].options if found else options, failure(kind), 40, n_experts):
        found.append(step)
        assert len(found) < 100, "the steps never end"
    return found


def test_a_mixture_of_experts_gives_up_what_costs_least_first() -> None:
    kinds = [step.kind for step in steps(FULL, "out_of_vram", n_experts=256)]
    assert kinds[:5] == ["pictures_on_cpu", *["experts_on_cpu"] * 4]
    assert kinds[5] == "fewer_layers"
    assert kinds[-1] == "shorter_context"


def test_the_last_step_is_the_smallest_that_is_any_use() -> None:
    last = steps(FULL, "out_of_vram", n_experts=0)[-1].options
    assert (last.n_ctx, last.n_gpu_layers, last.vision) == (4_096, 0, "cpu")


def test_without_pictures_layers_go_first() -> None:
    plain = msgspec.structs.replace(FULL, mmproj="")
    first = safer(plain, failure("out_of_vram"), 40, 0)
    assert first is not None
    assert (first.kind, first.amount) == ("fewer_layers", 30)


def test_too_little_ram_is_helped_by_a_shorter_context_alone() -> None:
    assert [step.amount for step in steps(FULL, "out_of_ram", 256)] == [32_768, 16_384, 8_192, 4_096]


def test_an_engine_that_died_for_no_known_reason_tries_the_processor_once() -> None:
    (only,) = steps(FULL, "engine_died", 0)
    assert only.kind == "cpu_only"
    assert (only.options.devices, only.options.vision) == (("none",), "cpu")


@pytest.mark.parametrize("kind", ["not_gguf", "truncated", "unsupported_architecture", "missing_file", "other"])
def test_what_less_memory_cannot_mend_offers_nothing(kind: LoadFailureKind) -> None:
    assert safer(FULL, failure(kind), 40, 256) is None
