"""The vision encoder is on the GPU where the planner counts it: the first one that the model uses."""

import msgspec
import pytest

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.model_facts import ModelFacts, TensorFacts
from qwendesk.core.options import DecidedOptions
from qwendesk.core.plan import MachineMemory
from qwendesk.core.units import GIB, MIB
from qwendesk.engine.worker import devices, params
from qwendesk.hardware.planner import fixed_plan
from tests.fakes.gaming_pc import OPTIONS
from tests.gguf_files import moe_35b

PC = (
    DeviceInfo("CUDA0", "NVIDIA GeForce RTX 3060", "gpu", "CUDA", 12 * GIB, 11 * GIB),
    DeviceInfo("CUDA1", "NVIDIA GeForce RTX 3090", "gpu", "CUDA", 24 * GIB, 23 * GIB),
    DeviceInfo("Vulkan0", "Radeon 610M", "igpu", "Vulkan", 16 * GIB, 16 * GIB),
    DeviceInfo("CPU", "A CPU", "cpu", "CPU", 64 * GIB, 60 * GIB),
)
HANDLES = {device.name: 1000 + number for number, device in enumerate(PC)}
EYES = ModelFacts(
    path="", file_bytes=GIB, kind="mmproj", architecture="clip", tensors=(TensorFacts("v.x", "", (), 900 * MIB),)
)


@pytest.fixture(autouse=True)
def _made_up_pc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "list_devices", lambda: PC)
    monkeypatch.setattr(devices, "device_handle", HANDLES.__getitem__)


@pytest.mark.parametrize(
    ("changes", "device"),
    [
        ({}, "CUDA0"),
        ({"devices": ("CUDA1",)}, "CUDA1"),
        ({"devices": ("CUDA1", "CUDA0")}, "CUDA1"),
        ({"devices": ("Vulkan0",)}, "Vulkan0"),
        ({"split_mode": "none", "main_gpu": 1}, "CUDA1"),
        ({"split_mode": "none", "main_gpu": 1, "devices": ("CUDA1", "CUDA0")}, "CUDA0"),
    ],
)
def test_the_encoder_is_on_the_first_gpu_of_the_model_as_planned(changes: dict, device: str) -> None:
    """mtmd took the first GPU of the PC, even if the model was to be on another one alone."""
    options: DecidedOptions = msgspec.structs.replace(OPTIONS, **changes)

    assert params.vision_params(options).device == HANDLES[device]
    machine = MachineMemory(devices=PC, ram_total_bytes=64 * GIB, ram_available_bytes=60 * GIB)
    memory = fixed_plan(moe_35b(), EYES, machine, options).memory
    assert [gpu.name for gpu in memory.gpus if gpu.vision_bytes] == [device]


@pytest.mark.parametrize("changes", [{"vision": "cpu"}, {"devices": ("none",)}])
def test_an_encoder_on_the_cpu_has_no_device(changes: dict) -> None:
    made = params.vision_params(msgspec.structs.replace(OPTIONS, **changes))

    assert not made.use_gpu
    assert made.device is None
