"""Loading through a real worker: what it reports, and how it fails on broken files."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest

from qwendesk.core import paths
from qwendesk.engine import protocol as p
from qwendesk.hub.gguf import read_facts
from tests.engine.worker.process import WorkerProcess, demo_options, greedy, user, worker_process
from tests.gguf_files import F32, write_model
from tools.gguf_writer import Tensor

SPILL = "What is VRAM spill?"


@pytest.fixture
def worker() -> "WorkerProcess":  # type: ignore[misc]
    with worker_process() as process:
        yield process


def test_load_report_describes_the_model(worker: WorkerProcess) -> None:
    report = worker.load(demo_options())
    assert report.architecture == "qwen35moe"
    assert (report.n_ctx, report.n_layers, report.n_vocab) == (4096, 8, 2048)
    assert (report.is_hybrid, report.can_think, report.can_see) == (True, True, True)
    assert report.template.source == "model"
    assert report.template.enable_thinking
    (cpu,) = report.allocations
    assert cpu.device == "CPU"
    assert abs(cpu.weights_bytes - report.weights_bytes) < 0.05 * report.weights_bytes
    assert cpu.kv_bytes == 4 * 1024**2
    assert min(cpu.recurrent_bytes, cpu.compute_bytes) > 0
    assert cpu.vision_bytes > paths.demo_mmproj().stat().st_size
    assert set(report.end_tokens) == {2016, 2018}


def test_progress_reaches_the_end_in_order(worker: WorkerProcess) -> None:
    worker.send(p.Load, options=demo_options())
    events = [event for event in worker.until(p.Loaded) if isinstance(event, p.LoadProgress)]
    fractions = [event.fraction for event in events]
    assert fractions == sorted(fractions)
    assert list(dict.fromkeys(event.stage for event in events)) == [
        "weights",
        "context",
        "vision",
        "template",
    ]


def test_context_of_zero_is_the_models_context(worker: WorkerProcess) -> None:
    report = worker.load(demo_options(n_ctx=0, vision="off"))
    assert report.n_ctx == report.n_ctx_train
    assert not report.can_see


@pytest.mark.parametrize(
    "changes",
    [
        {"type_k": "q8_0", "type_v": "q8_0"},
        {"type_k": "q4_0", "type_v": "q4_0", "flash_attn": "on"},
        {"flash_attn": "off"},
        {"n_ubatch": 16},
        {"n_batch": 64, "n_ubatch": 64},
        {"n_threads": 1, "n_threads_batch": 2},
        {"load_mode": "none"},
        {"load_mode": "mlock"},
        {"n_cpu_moe": 8},
        {"override_tensor": (r"blk\.0\.attn_qkv=CPU",)},
        {"devices": ("none",)},
        {"split_mode": "none"},
        {"offload_kqv": False, "op_offload": False},
        {"swa_full": True, "numa": "distribute"},
        {"check_tensors": True},
        {"vision": "cpu", "image_max_tokens": 64},
        {"rope_scaling": "yarn", "yarn_orig_ctx": 32768, "rope_freq_scale": 0.5},
        {"kv_overrides": ("general.name=str:Renamed",)},
        {"cache_budget_mib": 0},
    ],
    ids=str,
)
def test_every_option_loads_and_answers(worker: WorkerProcess, changes: dict[str, object]) -> None:
    worker.load(demo_options(**changes))
    answer = worker.ask([user(SPILL)], greedy(enable_thinking=False))
    assert answer.text, changes
    if "rope_scaling" not in changes:
        assert answer.text.startswith("VRAM spill happens")


def test_second_load_replaces_the_first_model(worker: WorkerProcess) -> None:
    worker.load(demo_options(n_ctx=1024))
    assert worker.load(demo_options(n_ctx=2048)).n_ctx == 2048
    worker.send(p.Unload)
    worker.expect(p.Unloaded)
    assert "No model" in worker.refuse([user("Hello")]).title


def test_a_cancelled_load_ends_as_cancelled_and_the_next_one_works(worker: WorkerProcess) -> None:
    request = worker.send(p.Load, options=demo_options())
    worker.send(p.Cancel, target=request)
    last = worker.until(p.LoadRefused, p.Loaded)[-1]
    assert isinstance(last, p.Loaded) or last.stage == "cancelled"  # a 3 MB model can be faster than the request
    assert worker.load(demo_options()).n_ctx == 4096


@pytest.mark.parametrize(
    ("changes", "stage"),
    [
        ({"devices": ("CUDA7",)}, "options"),
        ({"override_tensor": ("nonsense",)}, "options"),
        ({"kv_overrides": ("a=b",)}, "options"),
        ({"type_v": "q8_0", "flash_attn": "off"}, "options"),
        ({"n_ctx": 4_000_000}, "options"),
        ({"chat_template_file": "nowhere.jinja"}, "options"),
        ({"lora": ("nowhere.gguf",)}, "lora"),
        ({"mmproj": "nowhere.gguf"}, "vision"),
        ({"model": "nowhere.gguf"}, "weights"),
    ],
    ids=str,
)
def test_impossible_options_are_refused_by_stage(worker: WorkerProcess, changes: dict[str, object], stage: str) -> None:
    refused = worker.refuse_load(demo_options(**changes))
    assert refused.stage == stage
    assert refused.message
    assert worker.load(demo_options()).n_ctx == 4096, "the worker goes on"


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes of POSIX")
@pytest.mark.parametrize("option", ["model", "mmproj", "chat_template_file", "lora"])
def test_a_pipe_is_refused_before_native_code_opens_it(worker: WorkerProcess, tmp_path: Path, option: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    path = str(tmp_path / "pipe")
    refused = worker.refuse_load(demo_options(**{option: (f"{path}=0.5",) if option == "lora" else path}))
    assert refused.sentence == "pipe can't be used: it is a pipe, not a file."


def test_broken_files_are_refused_with_the_engines_own_lines(worker: WorkerProcess, tmp_path: Path) -> None:
    whole = paths.demo_model().read_bytes()
    broken = {
        "empty.gguf": b"",
        "text.gguf": b"version https://git-lfs.github.com/spec/v1\n" * 20,
        "cut-header.gguf": whole[:5000],
        "cut-data.gguf": whole[: len(whole) // 2],
        "unknown-arch.gguf": whole.replace(b"qwen35moe", b"qwen99moe"),
    }
    for name, content in broken.items():
        (tmp_path / name).write_bytes(content)
        refused = worker.refuse_load(demo_options(model=str(tmp_path / name)))
        assert refused.stage == "weights", name
        assert refused.engine_lines, name
    lines = "\n".join(worker.refuse_load(demo_options(model=str(tmp_path / "unknown-arch.gguf"))).engine_lines)
    assert "qwen99moe" in lines


def test_model_and_mmproj_cannot_be_swapped(worker: WorkerProcess) -> None:
    assert worker.refuse_load(demo_options(mmproj=str(paths.demo_model()))).stage == "vision"
    assert worker.refuse_load(demo_options(model=str(paths.demo_mmproj()))).stage == "weights"


def test_a_template_file_replaces_the_models(worker: WorkerProcess, tmp_path: Path) -> None:
    template = tmp_path / "plain.jinja"
    template.write_text(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "<|im_start|>assistant\n"
    )
    report = worker.load(demo_options(chat_template_file=str(template), vision="off"))
    assert report.template.source == "file"
    assert not report.template.enable_thinking
    assert not report.can_think
    assert worker.ask([user("Hello")], greedy()).stop_reason == "eos"


def test_a_broken_template_file_is_refused(worker: WorkerProcess, tmp_path: Path) -> None:
    template = tmp_path / "broken.jinja"
    template.write_text("{% for m in messages %}")
    assert worker.refuse_load(demo_options(chat_template_file=str(template))).stage == "template"


def test_a_path_with_spaces_and_umlauts_loads(worker: WorkerProcess, tmp_path: Path) -> None:
    folder = tmp_path / "Modelle für Spiele 模型"
    folder.mkdir()
    shutil.copy(paths.demo_model(), folder / "ä b.gguf")
    shutil.copy(paths.demo_mmproj(), folder / "mm ß.gguf")
    assert worker.load(demo_options(model=str(folder / "ä b.gguf"), mmproj=str(folder / "mm ß.gguf"))).can_see


def test_worker_opens_no_connection_and_has_its_own_process_name(worker: WorkerProcess) -> None:
    worker.load(demo_options())
    worker.ask([user("Hello")])
    process = psutil.Process(worker.process.pid)
    assert process.net_connections(kind="inet") == []
    # Windows names a process after its program, which is another one only in a bundle.
    name = "--worker" if sys.platform == "win32" else "qwendesk-engine"
    assert name in " ".join(process.cmdline())


def test_picture_limits_change_the_tokens_of_a_picture(
    worker: WorkerProcess, shape_picture: Callable[..., Path]
) -> None:
    question = user("What is in this picture?", shape_picture("red", "circle"))
    tokens = []
    for changes in ({}, {"image_max_tokens": 9}, {"image_min_tokens": 100}):
        worker.load(demo_options(**changes))
        worker.send(p.Measure, pictures=question.images)
        tokens.append(worker.expect(p.Measured).pictures[0].tokens)
    plain, fewer, more = tokens
    assert fewer < plain < more


def test_a_lora_adapter_acts_by_its_scale(worker: WorkerProcess, tmp_path: Path) -> None:
    """An adapter of large random numbers on one layer garbles the answer; at scale 0 it changes nothing."""
    adapter = tmp_path / "noise=loud.gguf"
    write_lora(adapter)
    question = [user(SPILL)]
    worker.load(demo_options())
    plain = worker.ask(question, greedy(enable_thinking=False, max_tokens=40)).text
    worker.load(demo_options(lora=(f"{adapter}=0",)))
    assert worker.ask(question, greedy(enable_thinking=False, max_tokens=40)).text == plain
    worker.load(demo_options(lora=(str(adapter),)))
    assert worker.ask(question, greedy(enable_thinking=False, max_tokens=40)).text != plain


def write_lora(path: Path) -> None:
    """Rank 2 on the output projection of layer 3, 128 wide; the numbers are large on purpose."""
    rng = np.random.default_rng(7)
    values = {
        "general.architecture": "qwen35moe",
        "general.type": "adapter",
        "adapter.type": "lora",
        "adapter.lora.alpha": 2.0,
    }
    facts = {tensor.name: tensor.shape for tensor in read_facts(paths.demo_model()).tensors}
    n_in, n_out = facts["blk.3.attn_output.weight"]
    shapes = {"lora_a": (n_in, 2), "lora_b": (2, n_out)}
    tensors = [
        Tensor(f"blk.3.attn_output.weight.{part}", shape, F32, (rng.normal(0, 3, shape).astype(np.float32).tobytes(),))
        for part, shape in shapes.items()
    ]
    write_model(path, values, tensors)
