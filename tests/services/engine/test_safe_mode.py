"""Safe mode loads on the processor."""

from qwendesk.core import paths
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.options import LoadOptions
from qwendesk.engine.protocol import Devices
from qwendesk.services.engine.safe_mode import decide_safely

GPU = DeviceInfo(name="CUDA0", description="GPU", kind="gpu", backend="CUDA", total_bytes=2**34, free_bytes=2**34)
CPU = DeviceInfo(name="CPU", description="CPU", kind="cpu", backend="CPU")


def test_a_gpu_is_left_alone() -> None:
    asked = LoadOptions(model=str(paths.demo_model()), mmproj=str(paths.demo_mmproj()))
    decided = decide_safely(asked, Devices(id=1, devices=(GPU, CPU), cpu_features=()))
    assert isinstance(decided, LoadOptions)
    assert decided.devices == ("none",)
    assert decided.n_gpu_layers == 0
    assert decided.vision == "cpu"
