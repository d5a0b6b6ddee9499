"""The engine's log lines become bytes per device; the lines are as llama.cpp writes them."""

from qwendesk.engine.worker.allocations import read_allocations, with_vision_weights

MIB = 1024**2
CUDA_LOAD = """
load_tensors: offloaded 41/41 layers to GPU
load_tensors:   CPU_Mapped model buffer size =   515.31 MiB
load_tensors:        CUDA0 model buffer size = 20000.00 MiB
load_tensors:        CUDA1 model buffer size =   100.50 MiB
llama_context:  CUDA_Host  output buffer size =     0.95 MiB
llama_kv_cache:      CUDA0 KV buffer size =  1280.00 MiB
llama_memory_recurrent:      CUDA0 RS buffer size =    62.81 MiB
sched_reserve:      CUDA0 compute buffer size =   493.00 MiB
sched_reserve:  CUDA_Host compute buffer size =    72.00 MiB
reserve_compute_meta:      CUDA0 compute buffer size =   223.25 MiB
reserve_compute_meta:        CPU compute buffer size =     9.00 MiB
""".strip().splitlines()


def test_every_kind_of_buffer_is_read_per_device() -> None:
    rows = {row.device: row for row in read_allocations(CUDA_LOAD)}
    assert list(rows) == ["CPU", "CUDA0", "CUDA1"]
    assert rows["CUDA0"].weights_bytes == 20000 * MIB
    assert rows["CUDA0"].kv_bytes == 1280 * MIB
    assert rows["CUDA0"].recurrent_bytes == round(62.81 * MIB)
    assert rows["CUDA0"].compute_bytes == 493 * MIB
    assert rows["CUDA0"].vision_bytes == round(223.25 * MIB)
    assert rows["CUDA1"].weights_bytes == round(100.5 * MIB)


def test_pinned_and_mapped_memory_is_ram() -> None:
    cpu = read_allocations(CUDA_LOAD)[0]
    assert cpu.weights_bytes == round(515.31 * MIB)
    assert cpu.compute_bytes == 72 * MIB + round(0.95 * MIB)
    assert cpu.vision_bytes == 9 * MIB


def test_a_buffer_reserved_twice_counts_once() -> None:
    lines = [
        "sched_reserve: CUDA0 compute buffer size = 100.00 MiB",
        "sched_reserve: CUDA0 compute buffer size = 120.00 MiB",
    ]
    assert read_allocations(lines)[0].compute_bytes == 120 * MIB


def test_vision_weights_are_added_where_they_are() -> None:
    rows = {row.device: row for row in with_vision_weights(read_allocations(CUDA_LOAD), "CUDA0", MIB)}
    assert rows["CUDA0"].vision_bytes == round(223.25 * MIB) + MIB


def test_other_lines_are_ignored() -> None:
    assert read_allocations(["print_info: model size = 1 MiB", "", "buffer size ="]) == ()
