"""The engine's log lines become bytes per device; the lines are as llama.cpp writes them."""

import pytest

from qwendesk.engine.worker import devices, estimate
from qwendesk.engine.worker.log import read_allocations, with_vision_weights

MIB = 1024**2
NAMES = {"CPU": "CPU", "CUDA0": "CUDA0", "CUDA1": "CUDA1"}
"""Devices by the names of their buffers."""
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
    rows = {row.device: row for row in read_allocations(CUDA_LOAD, NAMES)}
    assert list(rows) == ["CPU", "CUDA0", "CUDA1"]
    assert rows["CUDA0"].weights_bytes == 20000 * MIB
    assert rows["CUDA0"].kv_bytes == 1280 * MIB
    assert rows["CUDA0"].recurrent_bytes == round(62.81 * MIB)
    assert rows["CUDA0"].compute_bytes == 493 * MIB
    assert rows["CUDA0"].vision_bytes == round(223.25 * MIB)
    assert rows["CUDA1"].weights_bytes == round(100.5 * MIB)


def test_pinned_and_mapped_memory_is_ram() -> None:
    cpu = read_allocations(CUDA_LOAD, NAMES)[0]
    assert cpu.weights_bytes == round(515.31 * MIB)
    assert cpu.compute_bytes == 72 * MIB + round(0.95 * MIB)
    assert cpu.vision_bytes == 9 * MIB


@pytest.mark.parametrize(
    ("lines", "mib"),
    [
        (("CPU_Mapped model buffer size = 416.46 MiB", "CPU_REPACK model buffer size = 378.88 MiB"), 416.46),
        (("CPU_REPACK model buffer size = 378.88 MiB", "CPU_Mapped model buffer size = 416.46 MiB"), 416.46),
        (("CPU model buffer size = 174.00 MiB", "CPU_REPACK model buffer size = 378.88 MiB"), 552.88),
    ],
)
def test_repacked_weights_of_a_mapped_file_count_once(lines: tuple[str, ...], mib: float) -> None:
    (cpu,) = read_allocations([f"load_tensors: {line}" for line in lines], NAMES)
    assert cpu.weights_bytes == pytest.approx(mib * MIB, abs=1)


def test_repacked_weights_beside_a_mapped_table_count() -> None:
    lines = [
        "load_tensors: tensor per_layer_token_embd.weight (size = 28 MiB) lazy read enabled",
        "load_tensors: CPU_Mapped model buffer size = 28.00 MiB",
        "load_tensors: CPU model buffer size = 3.00 MiB",
        "load_tensors: CPU_REPACK model buffer size = 5.50 MiB",
    ]
    (cpu,) = read_allocations(lines, NAMES)
    assert cpu.weights_bytes == 8.5 * MIB


def test_a_buffer_reserved_twice_counts_once() -> None:
    lines = [
        "sched_reserve: CUDA0 compute buffer size = 100.00 MiB",
        "sched_reserve: CUDA0 compute buffer size = 120.00 MiB",
    ]
    assert read_allocations(lines, NAMES)[0].compute_bytes == 120 * MIB


def test_vision_weights_are_added_where_they_are() -> None:
    rows = {row.device: row for row in with_vision_weights(read_allocations(CUDA_LOAD, NAMES), "CUDA0", MIB)}
    assert rows["CUDA0"].vision_bytes == round(223.25 * MIB) + MIB


def test_other_lines_are_ignored() -> None:
    assert read_allocations(["print_info: model size = 1 MiB", "", "buffer size ="], NAMES) == ()


RPC_LOAD = """
load_tensors:   CPU_Mapped model buffer size =   515.31 MiB
load_tensors: RPC0[127.0.0.1:50952] model buffer size =   300.00 MiB
load_tensors: RPC1[127.0.0.1:50952] model buffer size =   250.00 MiB
load_tensors: RPC0[127.0.0.1:50953] model buffer size =   200.00 MiB
load_tensors:      Vulkan0 model buffer size =   100.00 MiB
llama_kv_cache: RPC0[127.0.0.1:50952] KV buffer size =    12.00 MiB
llama_kv_cache: RPC0[127.0.0.1:50953] KV buffer size =     8.00 MiB
llama_memory_recurrent: RPC0[127.0.0.1:50953] RS buffer size =     3.00 MiB
sched_reserve: RPC0[127.0.0.1:50952] compute buffer size =    30.00 MiB
sched_reserve: RPC0[127.0.0.1:50953] compute buffer size =    20.00 MiB
sched_reserve: RPC0[127.0.0.1:50953] compute buffer size =    25.00 MiB
sched_reserve:  Vulkan_Host compute buffer size =     2.00 MiB
""".strip().splitlines()
RPC_NAMES = {
    "RPC0[127.0.0.1:50952]": "RPC0",
    "RPC1[127.0.0.1:50952]": "RPC1",
    "RPC0[127.0.0.1:50953]": "RPC2",
    "Vulkan0": "Vulkan0",
    "CPU": "CPU",
}


def test_servers_whose_buffers_have_the_same_number_are_devices_of_their_own() -> None:
    rows = {row.device: row for row in read_allocations(RPC_LOAD, RPC_NAMES)}
    assert list(rows) == ["CPU", "RPC0", "RPC1", "RPC2", "Vulkan0"]
    assert {name: row.weights_bytes // MIB for name, row in rows.items()} == {
        "CPU": 515, "RPC0": 300, "RPC1": 250, "RPC2": 200, "Vulkan0": 100,
    }  # fmt: skip
    assert [rows[name].kv_bytes for name in ("RPC0", "RPC1", "RPC2")] == [12 * MIB, 0, 8 * MIB]
    assert [rows[name].recurrent_bytes for name in ("RPC0", "RPC2")] == [0, 3 * MIB]
    assert [rows[name].compute_bytes for name in ("RPC0", "RPC2", "CPU")] == [30 * MIB, 25 * MIB, 2 * MIB]


def test_a_buffer_of_an_unknown_name_counts_under_that_name() -> None:
    rows = {row.device: row for row in read_allocations(RPC_LOAD, {})}
    assert rows["RPC0[127.0.0.1:50953]"].weights_bytes == 200 * MIB
    assert rows["RPC0[127.0.0.1:50952]"].weights_bytes == 300 * MIB


class RpcLibrary:
    """ggml with two RPC servers, of which the first has two devices, one accelerator without buffers, and the CPU."""

    NAMES = ("RPC0", "RPC1", "RPC2", "NPU0", "CPU")
    BUFFERS = ("RPC0[127.0.0.1:50952]", "RPC1[127.0.0.1:50952]", "RPC0[127.0.0.1:50953]", None, "CPU")

    def ggml_backend_dev_count(self) -> int:
        return len(self.NAMES)

    def ggml_backend_dev_get(self, index: int) -> int:
        return index

    def ggml_backend_dev_name(self, handle: int) -> bytes:
        return self.NAMES[handle].encode()

    def ggml_backend_dev_buffer_type(self, handle: int) -> int | None:
        return handle + 1 if self.BUFFERS[handle] is not None else None

    def ggml_backend_buft_name(self, buffers: int) -> bytes:
        return (self.BUFFERS[buffers - 1] or "").encode()


def test_devices_are_known_by_the_names_of_their_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "ggml", RpcLibrary)
    assert devices.buffer_names() == {name: device for name, device in RPC_NAMES.items() if device != "Vulkan0"}


def test_this_engine_tells_the_names_of_its_buffers() -> None:
    assert devices.buffer_names()["CPU"]


def test_dry_run_joins_the_report_and_the_log_of_each_server() -> None:
    reported = {"RPC0": (300 * MIB, 12 * MIB), "RPC2": (200 * MIB, 11 * MIB), "CPU": (500 * MIB, 0)}
    lines = (*RPC_LOAD, "llama_kv_cache: size =   20.00 MiB (  4096 cells)")
    read = tuple(row for row in read_allocations(lines, RPC_NAMES) if row.device in reported)
    rows = {row.device: row for row in estimate._joined(read, lines, 1000 * MIB, reported)}
    assert list(rows) == ["CPU", "RPC0", "RPC2"]
    assert (rows["RPC2"].weights_bytes, rows["RPC2"].compute_bytes) == (200 * MIB, 25 * MIB)
    assert rows["RPC0"].kv_bytes > rows["RPC2"].kv_bytes > 0
