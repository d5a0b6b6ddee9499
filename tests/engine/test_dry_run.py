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
from tests.gguf_files import F16, F32
from tools.gguf_writer import ALIGNMENT, Tensor, Value, header_bytes
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


def write_gemma4(path: Path, heads_kv: list[int], n_shared: int) -> Path:
    """A hollow gemma 4 with the caches of a real one, and little else: five of six layers have a window of 512."""
    n_layers, hidden, heads, width = len(heads_kv), 256, 4, 512
    slides = [(layer + 1) % 6 > 0 for layer in range(n_layers)]
    tensors = [Tensor("token_embd.weight", (hidden, 1000), F16, ()), Tensor("output_norm.weight", (hidden,), F32, ())]
    tensors.append(Tensor("rope_freqs.weight", (256,), F32, ()))
    for layer, (slides_here, kv) in enumerate(zip(slides, heads_kv, strict=True)):
        length = 256 if slides_here else 512
        shapes = {
            "attn_norm": (hidden,), "attn_q": (hidden, heads * length), "attn_output": (heads * length, hidden),
            "attn_q_norm": (length,), "post_attention_norm": (hidden,), "ffn_norm": (hidden,),
            "ffn_gate": (hidden, width), "ffn_up": (hidden, width), "ffn_down": (width, hidden),
            "post_ffw_norm": (hidden,), "attn_k": (hidden, kv * length), "attn_k_norm": (length,),
            "attn_v": (hidden, kv * length),
        }  # fmt: skip
        tensors.extend(
            Tensor(f"blk.{layer}.{name}.weight", shape, F16 if len(shape) > 1 else F32, ())
            for name, shape in shapes.items()
        )
    numbers: dict[str, Value] = {
        "block_count": n_layers, "context_length": 131_072, "embedding_length": hidden,
        "embedding_length_per_layer_input": 0, "feed_forward_length": width, "vocab_size": 1000,
        "attention.head_count": heads, "attention.head_count_kv": heads_kv, "attention.shared_kv_layers": n_shared,
        "attention.key_length": 512, "attention.value_length": 512, "attention.key_length_swa": 256,
        "attention.value_length_swa": 256, "attention.sliding_window": 512, "rope.dimension_count": 512,
        "attention.sliding_window_pattern": slides, "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.dimension_count_swa": 256,
    }  # fmt: skip
    values: dict[str, Value] = {"general.architecture": "gemma4", "tokenizer.ggml.model": "no_vocab"}
    header = header_bytes(values | {f"gemma4.{name}": value for name, value in numbers.items()}, tensors)
    with path.open("wb") as file:
        file.write(header)
        file.truncate(len(header) + ALIGNMENT + sum(-(-each.n_bytes // ALIGNMENT) * ALIGNMENT for each in tensors))
    return path


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
