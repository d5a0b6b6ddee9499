"""The engine asked without loading: hollow files of real dimensions, the true numbers, and what goes wrong."""

import sys
from pathlib import Path

import pytest

from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.core.plan import MachineMemory
from qwendesk.core.units import GIB, MIB
from qwendesk.engine.dry_run import ask_engine
from qwendesk.hardware.model_memory import kv_bytes
from qwendesk.hardware.planner import best_plan
from qwendesk.hub.gguf import read_facts
from tests.gguf_files import write_gemma4
from tools.hollow_model import write_hollow

DECIDED = {"n_gpu_layers": 0, "n_cpu_moe": 0, "load_mode": "mmap", "devices": ("none",)}


def decided(model: Path, **values: object) -> DecidedOptions:
    return DecidedOptions(model=str(model), **(DECIDED | values))  # type: ignore[arg-type]


@pytest.mark.parametrize("size", ["35b", "122b", "27b", "9b", "flash-next"])
async def test_dry_run_in_ram_returns_the_engines_numbers(size: str, tmp_path: Path) -> None:
    """The same sizes that a download of 5 to 70 GB would need, from a file of a few KB."""
    model = write_hollow(tmp_path / f"{size}.gguf", size)
    pc = MachineMemory(ram_total_bytes=256 * GIB, ram_available_bytes=256 * GIB)
    plan = best_plan(read_facts(model), None, pc, LoadOptions(model=str(model), devices=("none",)))

    answer = await ask_engine(plan.options)

    assert answer.problem == ""
    (engine,) = answer.allocations
    ours = plan.memory.ram
    assert ours.kv_bytes == pytest.approx(engine.kv_bytes, rel=0.02)
    assert ours.recurrent_bytes == pytest.approx(engine.recurrent_bytes, rel=0.02)
    assert ours.compute_bytes == pytest.approx(engine.compute_bytes, rel=0.15)
    assert engine.weights_bytes in (0, pytest.approx(ours.weights_bytes + plan.memory.lazy_bytes, rel=0.01))


@pytest.mark.parametrize("values", [{"n_ubatch": 2048}, {"flash_attn": "off"}, {"type_k": "q8_0", "type_v": "q8_0"}])
async def test_dry_run_passes_other_options(values: dict[str, object], tmp_path: Path) -> None:
    model = write_hollow(tmp_path / "4b.gguf", "4b")
    asked = decided(model, n_ctx=16_384, **values)
    pc = MachineMemory(ram_total_bytes=256 * GIB, ram_available_bytes=256 * GIB)
    plan = best_plan(read_facts(model), None, pc, asked)

    (engine,) = (await ask_engine(asked)).allocations

    assert plan.memory.ram.kv_bytes == pytest.approx(engine.kv_bytes, rel=0.02)
    assert plan.memory.ram.compute_bytes == pytest.approx(engine.compute_bytes, rel=0.15)
    assert engine.kv_bytes > 100 * MIB


@pytest.mark.parametrize(
    ("heads_kv", "n_shared"), [([4, 4, 4, 4, 4, 1] * 2, 0), ([2] * 12, 6)], ids=("heads", "shared")
)
@pytest.mark.parametrize("values", [{}, {"type_k": "q8_0", "type_v": "q8_0"}])
async def test_caches_of_layers_with_a_window_are_as_planned(
    heads_kv: list[int], n_shared: int, values: dict[str, object], tmp_path: Path
) -> None:
    model = write_gemma4(tmp_path / "gemma4.gguf", heads_kv, n_shared)
    asked = decided(model, n_ctx=32_768, **values)

    answer = await ask_engine(asked)

    assert answer.problem == ""
    (engine,) = answer.allocations
    assert engine.kv_bytes == pytest.approx(kv_bytes(read_facts(model), asked, 32_768), rel=0.02)


@pytest.mark.parametrize("values", [{"n_ctx": 262_144}, {"flash_attn": "off"}, {"n_ubatch": 2048, "type_k": "q8_0"}])
async def test_dry_run_of_sparse_attention_is_as_planned(values: dict[str, object], tmp_path: Path) -> None:
    model = write_hollow(tmp_path / "flash-next.gguf", "flash-next")
    asked = decided(model, **({"n_ctx": 8192} | values))
    pc = MachineMemory(ram_total_bytes=256 * GIB, ram_available_bytes=256 * GIB)
    plan = best_plan(read_facts(model), None, pc, asked)

    (engine,) = (await ask_engine(asked)).allocations

    assert plan.memory.ram.kv_bytes == pytest.approx(engine.kv_bytes, rel=0.02)
    assert plan.memory.ram.recurrent_bytes == pytest.approx(engine.recurrent_bytes, rel=0.02)
    assert plan.memory.ram.compute_bytes == pytest.approx(engine.compute_bytes, rel=0.1)


async def test_refused_file_is_a_problem_with_a_sentence(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(100))

    answer = await ask_engine(decided(broken, n_ctx=512))

    assert answer.allocations == ()
    assert answer.problem


@pytest.mark.parametrize(
    ("code", "said"),
    [("import sys; sys.exit(7)", "exit code 7"), ("print('no json', flush=True)", "without an answer")],
)
async def test_crashed_worker_is_a_problem_with_a_sentence(code: str, said: str, tmp_path: Path) -> None:
    answer = await ask_engine(decided(tmp_path / "m.gguf"), command=(sys.executable, "-c", code))

    assert said in answer.problem


async def test_hung_worker_is_killed(tmp_path: Path) -> None:
    forever = (sys.executable, "-c", "import threading; threading.Event().wait()")

    answer = await ask_engine(decided(tmp_path / "m.gguf"), command=forever, timeout_s=0.2)

    assert "didn't respond" in answer.problem


async def test_missing_worker_is_a_problem_with_a_sentence(tmp_path: Path) -> None:
    answer = await ask_engine(decided(tmp_path / "m.gguf"), command=(str(tmp_path / "nothing"),))

    assert "couldn't be started" in answer.problem
