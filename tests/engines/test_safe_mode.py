"""Safe mode loads on the processor."""

from qwendesk.core import paths
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.engine.protocol import Devices
from qwendesk.engines.load_decision import decide_on_cpu

GPU = DeviceInfo(name="CUDA0", description="GPU", kind="gpu", backend="CUDA", total_bytes=2**34, free_bytes=2**34)
CPU = DeviceInfo(name="CPU", description="CPU", kind="cpu", backend="CPU")


def test_safe_mode_does_not_use_the_gpu() -> None:
    asked = LoadOptions(model=str(paths.demo_model()), mmproj=str(paths.demo_mmproj()))
    decided = decide_on_cpu(asked, Devices(id=1, devices=(GPU, CPU), cpu_features=()))
    assert isinstance(decided, DecidedOptions)
    assert decided.devices == ("none",)
    assert decided.n_gpu_layers == 0
    assert decided.vision == "cpu"
