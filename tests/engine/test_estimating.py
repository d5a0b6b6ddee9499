"""The engine asked without loading: hollow files of real dimensions, the true numbers, and what goes wrong."""

import sys
from pathlib import Path

import pytest

from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Machine
from qwendesk.core.units import GIB, MIB
from qwendesk.engine.estimating import ask_engine
from qwendesk.hardware.planner import solve
from qwendesk.hub.gguf import read_facts
from tools.hollow_model import write_hollow

DECIDED = {"n_gpu_layers": 0, "n_cpu_moe": 0, "load_mode": "mmap", "devices": ("none",)}


def decided(model: Path, **values: object) -> LoadOptions:
    return LoadOptions(model=str(model), **(DECIDED | values))  # type: ignore[arg-type]


@pytest.mark.asyncio
@pytest.mark.parametrize("size", ["35b", "122b", "27b", "9b"])
async def test_a_plan_in_ram_is_what_the_engine_says(size: str, tmp_path: Path) -> None:
    """The same sizes that a download of 5 to 70 GB would need, from a file of a few KB."""
    model = write_hollow(tmp_path / f"{size}.gguf", size)
    pc = Machine(ram_total_bytes=256 * GIB, ram_available_bytes=256 * GIB)
    plan = solve(read_facts(model), None, pc, LoadOptions(model=str(model), devices=("none",)))

    answer = await ask_engine(plan.options)

    assert answer.problem == ""
    (engine,) = answer.allocations
    ours = plan.prices.ram
    assert ours.kv_bytes == pytest.approx(engine.kv_bytes, rel=0.02)
    assert ours.recurrent_bytes == pytest.approx(engine.recurrent_bytes, rel=0.02)
    assert ours.compute_bytes == pytest.approx(engine.compute_bytes, rel=0.15)
    assert engine.weights_bytes in (0, pytest.approx(ours.weights_bytes, rel=0.01))


@pytest.mark.asyncio
@pytest.mark.parametrize("values", [{"n_ubatch": 2048}, {"flash_attn": "off"}, {"type_k": "q8_0", "type_v": "q8_0"}])
async def test_other_options_are_asked_for_too(values: dict[str, object], tmp_path: Path) -> None:
    model = write_hollow(tmp_path / "4b.gguf", "4b")
    asked = decided(model, n_ctx=16_384, **values)
    pc = Machine(ram_total_bytes=256 * GIB, ram_available_bytes=256 * GIB)
    plan = solve(read_facts(model), None, pc, asked)

    (engine,) = (await ask_engine(asked)).allocations

    assert plan.prices.ram.kv_bytes == pytest.approx(engine.kv_bytes, rel=0.02)
    assert plan.prices.ram.compute_bytes == pytest.approx(engine.compute_bytes, rel=0.15)
    assert engine.kv_bytes > 100 * MIB


@pytest.mark.asyncio
async def test_a_file_the_engine_refuses_is_a_problem_in_words(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(100))

    answer = await ask_engine(decided(broken, n_ctx=512))

    assert answer.allocations == ()
    assert answer.problem


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("code", "said"),
    [("import sys; sys.exit(7)", "exit code 7"), ("print('no json', flush=True)", "without an answer")],
)
async def test_a_helper_that_dies_is_a_problem_in_words(code: str, said: str, tmp_path: Path) -> None:
    answer = await ask_engine(decided(tmp_path / "m.gguf"), command=(sys.executable, "-c", code))

    assert said in answer.problem


@pytest.mark.asyncio
async def test_a_helper_that_hangs_is_ended(tmp_path: Path) -> None:
    forever = (sys.executable, "-c", "import threading; threading.Event().wait()")

    answer = await ask_engine(decided(tmp_path / "m.gguf"), command=forever, longest_s=0.2)

    assert "did not answer" in answer.problem


@pytest.mark.asyncio
async def test_no_engine_to_start_is_a_problem_in_words(tmp_path: Path) -> None:
    answer = await ask_engine(decided(tmp_path / "m.gguf"), command=(str(tmp_path / "nothing"),))

    assert "could not be started" in answer.problem
