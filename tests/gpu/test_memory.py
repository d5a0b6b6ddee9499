"""Where the engine puts its buffers, against the plan; unloading gives them back; what is too large is named."""

from pathlib import Path

import psutil
import pytest

from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.core.paths import demo_mmproj, demo_model
from qwendesk.core.units import MIB
from qwendesk.engine import protocol as p
from qwendesk.engine.protocol import Devices, LoadReport
from qwendesk.engines.load_decision import facts_for, machine_now, plan_of
from tests.engine.device import TEST_BACKEND, TEST_DEVICE
from tests.engine.worker.process import demo_options, worker_process
from tests.gpu.clients import ONE_DEVICE, TWO_DEVICES, client_with

on_vulkan = pytest.mark.skipif(TEST_BACKEND != "Vulkan", reason="only Mesa's software driver behaves so")
LONG = 32_768
"""The demo's whole context: its KV cache is then most of what is allocated."""


@pytest.mark.parametrize(
    ("variables", "options", "too_much"),
    [
        (ONE_DEVICE, {}, 0.15),
        (ONE_DEVICE, {"n_cpu_moe": 4}, 0.15),
        (ONE_DEVICE, {"n_gpu_layers": 4}, 0.25),
        (ONE_DEVICE, {"type_k": "q8_0", "type_v": "q8_0"}, 0.5),
        pytest.param(TWO_DEVICES, {}, 0.15, marks=on_vulkan),
        pytest.param(TWO_DEVICES, {"tensor_split": (3.0, 1.0)}, 0.15, marks=on_vulkan),
        pytest.param(TWO_DEVICES, {"tensor_split": (3.0, 1.0), "n_cpu_moe": 8}, 0.15, marks=on_vulkan),
    ],
)
async def test_buffers_land_where_the_plan_says(variables, options, too_much):
    """`too_much` is the share by which the plan may exceed the real compute buffers: never the other way round."""
    wanted = LoadOptions(model=str(demo_model()), mmproj=str(demo_mmproj()), n_ctx=LONG, n_threads=2, **options)
    async with client_with(variables) as client:
        devices = await client.probe()
        assert isinstance(devices, Devices)
        assert [each.name for each in devices.devices if each.kind != "cpu"] == (
            ["Vulkan0", "Vulkan1"] if variables else [TEST_DEVICE]
        )
        plan = plan_of(*facts_for(wanted), machine_now(devices), wanted)
        assert plan.fits, plan
        report = await client.load(plan.options)
        assert isinstance(report, LoadReport), report
    real = {row.device: row for row in report.allocations}
    for planned in (*plan.memory.gpus, plan.memory.ram):
        row = real[planned.name if planned in plan.memory.gpus else "CPU"]
        # The engine logs hundredths of a MiB.
        assert row.weights_bytes == pytest.approx(planned.weights_bytes, rel=0.02, abs=0.02 * MIB), (planned, row)
        assert row.kv_bytes == pytest.approx(planned.kv_bytes, rel=0.02, abs=0.02 * MIB), (planned, row)
        assert row.recurrent_bytes == pytest.approx(planned.recurrent_bytes, rel=0.02, abs=0.02 * MIB), (planned, row)
        assert row.compute_bytes <= 1.15 * planned.compute_bytes + MIB, (planned, row)
        assert planned.compute_bytes <= (1 + too_much) * row.compute_bytes + MIB, (planned, row)
        # In RAM the vision encoder's share is among the plan's other bytes, of which the engine logs nothing.
        assert row.vision_bytes <= planned.vision_bytes + planned.other_bytes, (planned, row)
    assert set(real) == {"CPU", *(gpu.name for gpu in plan.memory.gpus)}


@on_vulkan
def test_unloading_gives_the_device_memory_back_while_the_worker_lives():
    """The software driver takes the device's memory from the worker's own RAM, so its size tells."""
    with worker_process() as worker:
        worker.load(demo_options(n_ctx=4096))  # loads the driver and its shaders
        worker.send(p.Unload)
        worker.expect(p.Unloaded)
        process = psutil.Process(worker.process.pid)
        before = process.memory_info().rss
        report = worker.load(demo_options(n_ctx=LONG))
        (device,) = [row for row in report.allocations if row.device == TEST_DEVICE]
        loaded = process.memory_info().rss
        worker.send(p.Unload)
        worker.expect(p.Unloaded)
        after = process.memory_info().rss
    assert loaded - before >= device.kv_bytes
    assert loaded - after >= device.kv_bytes


def too_long(n_ctx: int, **options: object) -> DecidedOptions:
    return demo_options(n_ctx=n_ctx, rope_scaling="yarn", rope_freq_scale=1 / 32, mmproj="", **options)


@on_vulkan
async def test_buffer_above_the_drivers_limit_is_named():
    """The limit of this driver is gigabytes, so the engine's variable lowers it: what it then does is the same."""
    async with client_with({"GGML_VK_FORCE_MAX_BUFFER_SIZE": str(16 * MIB)}) as client:
        failure = await client.load(demo_options(n_ctx=LONG, mmproj=""))
        assert isinstance(failure, LoadFailure), failure
        assert failure.kind == "buffer_too_large", failure
        assert Path(demo_options().model).name in failure.sentence
        assert isinstance(await client.load(demo_options(n_ctx=4096, mmproj="")), LoadReport), "a shorter context loads"


@on_vulkan
async def test_cache_above_the_devices_storage_limit_is_named():
    """128 MiB for this driver; each K tensor of the demo has 256 bytes for a token."""
    async with client_with(ONE_DEVICE) as client:
        failure = await client.load(too_long(600_000))
        assert isinstance(failure, LoadFailure), failure
        assert failure.kind == "kv_tensor_too_large", failure
        assert "KV cache" in failure.sentence
        assert isinstance(await client.load(demo_options()), LoadReport), "the next load starts a worker of its own"
