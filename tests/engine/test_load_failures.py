import sys

import pytest

from qwendesk.core.failures import EngineExit
from qwendesk.core.options import LoadOptions
from qwendesk.engine.load_failures import classify_load, count_memory_kills, describe_exit
from qwendesk.engine.protocol import LoadRefused

ABOVE_STORAGE_LIMIT = (
    "ggml-backend.cpp:941: pre-allocated tensor (cache_k_l3 (view)) in a buffer (Vulkan0) that cannot run the "
    "operation (SET_ROWS)"
)
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="the number of a signal that Windows does not have")
ENDED = "The engine was ended by another program, such as Task Manager."
OPTIONS = LoadOptions(model="/models/big.gguf", mmproj="/models/eyes.gguf")


def refused(*lines: str, stage: str = "weights", message: str = "The engine couldn't load the model.") -> LoadRefused:
    return LoadRefused(id=1, stage=stage, message=message, engine_lines=lines)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("llama_model_load: error loading model: unknown model architecture: 'qwen99'", "unsupported_architecture"),
        ("llama_model_load: error loading model: unknown pre-tokenizer type: 'q99'", "unsupported_architecture"),
        ("ggml_backend_cuda_buffer_type_alloc_buffer: allocating 20480.00 MiB on device 0: cudaMalloc failed: "
         "out of memory", "out_of_vram"),
        ("CUDA error: out of memory", "out_of_vram"),
        ("ggml_gallocr_reserve_n_impl: failed to allocate Vulkan0 buffer of size 1234", "out_of_vram"),
        ("llama_model_load: error loading model: unable to allocate CUDA0 buffer", "out_of_vram"),
        ("alloc_tensor_range: failed to allocate CUDA0 buffer of size 99", "out_of_vram"),
        ("vk::Device::allocateMemory: ErrorOutOfDeviceMemory", "out_of_vram"),
        ("ggml_vulkan: Requested buffer size exceeds device buffer size limit: ErrorOutOfDeviceMemory",
         "buffer_too_large"),
        ("llama_model_load: error loading model: unable to allocate CPU buffer", "out_of_ram"),
        ("alloc_tensor_range: failed to allocate CUDA_Host buffer of size 99", "out_of_ram"),
        ("ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 99", "out_of_ram"),
        ("ggml_aligned_malloc: insufficient memory (attempted to allocate 9999.00 MB)", "out_of_ram"),
        ("llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache",
         "out_of_ram"),
        ("gguf_init_from_reader: invalid magic characters: '<htm', expected 'GGUF'", "not_gguf"),
        ("gguf_init_from_reader: failed to read magic", "not_gguf"),
        ("llama_model_load: error loading model: tensor 'blk.3.attn_q.weight' data is not within the file bounds, "
         "model is corrupted or incomplete", "truncated"),
        ("gguf_init_from_reader: failed to read key-value pairs", "truncated"),
        ("gguf_init_from_file: failed to open GGUF file 'x.gguf' (No such file or directory)", "missing_file"),
        ("llama_model_load: error loading model: llama_model_loader: failed to load GGUF split from b-00002-of-3.gguf",
         "missing_file"),
        ("llama_init_from_model: failed to initialize: quantized V cache was requested, but this requires Flash "
         "Attention", "bad_option"),
    ],
)  # fmt: skip
def test_the_engines_lines_decide_the_kind(line, kind):
    failure = classify_load(refused("llama_model_loader: loaded meta data", line), OPTIONS)
    assert failure.kind == kind
    assert line in failure.engine_lines


def test_an_unknown_architecture_is_named_and_an_update_is_not_promised_to_help():
    failure = classify_load(refused("llama_model_load: error: unknown model architecture: 'qwen99'"), OPTIONS)
    assert failure.sentence.startswith('big.gguf needs "qwen99", which this engine doesn\'t know. A newer engine may')
    assert "Update QwenDesk" not in failure.sentence


def test_an_unknown_architecture_is_named():
    failure = classify_load(refused("error loading model: unknown model architecture: 'qwen99'"), OPTIONS)
    assert "qwen99" in failure.sentence
    assert "big.gguf" in failure.sentence


def test_full_gpu_is_not_reported_as_full_ram():
    lines = (
        "allocating 900.00 MiB on device 0: cudaMalloc failed: out of memory",
        "llama_init_from_model: failed to allocate compute pp buffers",
    )
    assert classify_load(refused(*lines, stage="context"), OPTIONS).kind == "out_of_vram"


def test_too_large_buffer_is_not_reported_as_full_memory():
    lines = (
        "ggml_vulkan: Device memory allocation of size 5368709120 failed.",
        "ggml_vulkan: Requested buffer size exceeds device buffer size limit: ErrorOutOfDeviceMemory",
        "alloc_tensor_range: failed to allocate Vulkan0 buffer of size 5368709120",
        "llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache",
    )
    failure = classify_load(refused(*lines, stage="context"), OPTIONS)
    assert failure.kind == "buffer_too_large"
    assert "even if enough is free. Use a shorter context or fewer layers" in failure.sentence


def test_kv_cache_above_the_storage_limit_names_what_helps():
    failure = classify_load(EngineExit(-6, describe_exit(-6), (ABOVE_STORAGE_LIMIT,)), OPTIONS)
    assert failure.title == "The KV cache is too large for the GPU"
    assert "big.gguf" in failure.sentence
    assert "Use a shorter context, a quantized KV cache, or the CPU." in failure.sentence


@pytest.mark.parametrize("library", ["libcuda.so.1", "nvcuda.dll"])
def test_missing_nvidia_driver_is_named(library):
    line = f"RuntimeError: Failed to load shared library 'libllama.so': {library}: cannot open shared object file"
    failure = classify_load(EngineExit(1, describe_exit(1), (line,)), OPTIONS)
    assert (failure.kind, failure.title) == ("missing_library", "No NVIDIA driver")
    assert "Install the driver, or choose another engine" in failure.sentence


@pytest.mark.parametrize(
    "warning",
    [
        "ggml_vulkan: Failed to allocate pinned memory (Requested buffer size exceeds device buffer size limit: "
        "ErrorOutOfDeviceMemory)",
        "WARNING: failed to allocate 512.00 MB of pinned memory",
    ],
)
def test_warning_about_pinned_memory_is_not_the_failure(warning):
    last = "llama_model_load: error loading model: unknown model architecture: 'qwen99'"
    assert classify_load(refused(warning, last), OPTIONS).kind == "unsupported_architecture"
    assert classify_load(refused(warning, "something new"), OPTIONS).kind == "other"


def test_a_missing_shard_or_adapter_is_named():
    line = "gguf_init_from_file: failed to open GGUF file '/models/b-00002-of-00003.gguf' (No such file or directory)"
    failure = classify_load(refused(line), OPTIONS)
    assert failure.kind == "missing_file"
    assert failure.sentence.startswith("b-00002-of-00003.gguf ")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("error loading model: CLIP cannot be used as main model, use it with --mmproj instead", "not a model"),
        ("error loading model: check_tensor_dims: tensor 'output_norm.weight' not found", "converted by"),
        ("error loading model: tensor 'a' has invalid data", "Download it again"),
    ],
)
def test_some_unclassified_failures_have_a_hint(line, words):
    failure = classify_load(refused(line), OPTIONS)
    assert failure.kind == "other"
    assert words in failure.sentence


def test_vision_failures_name_the_mmproj():
    line = "mtmd_init_from_file: error: mismatch between text model (n_embd = 128) and mmproj (n_embd = 2048)"
    failure = classify_load(refused(line, stage="vision", message="could not load the mmproj"), OPTIONS)
    assert failure.kind == "mmproj_mismatch"
    assert "eyes.gguf" in failure.sentence


def test_a_bad_option_keeps_its_own_sentence():
    failure = classify_load(refused(stage="options", message="A V cache of type q8_0 needs flash attention."), OPTIONS)
    assert (failure.kind, failure.sentence) == ("bad_option", "A V cache of type q8_0 needs flash attention.")


def test_cancelled_load_ignores_the_log():
    failure = classify_load(refused("cudaMalloc failed: out of memory", stage="cancelled"), OPTIONS)
    assert failure.kind == "cancelled"


def test_unknown_failure_shows_the_engines_message():
    failure = classify_load(refused("something new", message="the moon is in the wrong house"), OPTIONS)
    assert failure.kind == "other"
    assert "moon is in the wrong house" in failure.sentence


@pytest.mark.parametrize(
    ("exit_code", "lines", "kind"),
    [
        (-4, (), "illegal_instruction"),
        (0xC000001D, (), "illegal_instruction"),
        (0xC000001D - 2**32, (), "illegal_instruction"),
        (-9, (), "other"),
        (0xC0000017, (), "out_of_ram"),
        (-6, ("CUDA error: out of memory",), "out_of_vram"),
        (-6, (ABOVE_STORAGE_LIMIT,), "kv_tensor_too_large"),
        (3, (ABOVE_STORAGE_LIMIT,), "kv_tensor_too_large"),
        (-6, ("ggml-backend.cpp:941: pre-allocated tensor (output.weight) in a buffer (Vulkan0) that cannot run the "
              "operation (NONE)",), "engine_crashed"),
        (-11, (), "engine_crashed"),
        (0xC0000135, (), "missing_library"),
        (1, ("RuntimeError: Failed to load shared library 'libllama.so': libcudart.so.12: cannot open shared object "
             "file: No such file or directory",), "missing_library"),
        (None, ("cudaMalloc failed: out of memory",), "other"),
    ],
)  # fmt: skip
def test_exit_while_loading_is_classified_by_code_and_log(exit_code, lines, kind):
    engine_exit = EngineExit(exit_code, describe_exit(exit_code), lines)
    assert classify_load(engine_exit, OPTIONS).kind == kind


@pytest.mark.parametrize(
    ("platform", "exit_code", "lines", "sentence"),
    [
        ("win32", 1, ("llama_kv_cache: size = 12 MiB",), ENDED),
        ("win32", 15, (), ENDED),
        ("win32", 1, ('File "service.py", line 3, in run', "ValueError: 7"), "The engine stopped with exit code 1."),
        ("linux", 1, (), "The engine stopped with exit code 1."),
    ],
)
def test_a_worker_that_task_manager_ended_is_told_from_one_that_failed(
    monkeypatch, platform, exit_code, lines, sentence
):
    monkeypatch.setattr(sys, "platform", platform)
    assert describe_exit(exit_code, lines) == sentence


def test_signal_9_is_blamed_on_memory_only_where_the_kernel_says_so(tmp_path):
    counters = tmp_path / "vmstat"
    counters.write_text("pgpgin 12\noom_kill 3\noom_kill_other 9\n")
    assert count_memory_kills(counters) == 3
    counters.write_text("pgpgin 12\n")
    assert count_memory_kills(counters) is count_memory_kills(tmp_path / "none") is None
    assert "memory ran out" in describe_exit(-9, is_memory_kill=True)
    assert "memory" not in describe_exit(-9)
    killed = EngineExit(-9, describe_exit(-9, is_memory_kill=True), is_memory_kill=True)
    assert classify_load(killed, OPTIONS).kind == "out_of_ram"


@pytest.mark.parametrize(
    ("exit_code", "words"),
    [
        pytest.param(-9, "was killed, by another program or by your system", marks=POSIX),
        (-4, "CPU doesn't have"),
        (-11, "invalid memory access"),
        pytest.param(-6, "internal error", marks=POSIX),
        (0xC0000005, "invalid memory access"),
        (0xC0000005 - 2**32, "invalid memory access"),
        (-60, "signal 60"),
        (7, "exit code 7"),
        (None, "The engine stopped."),
    ],
)
def test_exit_statuses_become_sentences(exit_code, words):
    sentence = describe_exit(exit_code)
    assert words in sentence
    assert sentence.endswith(".")
