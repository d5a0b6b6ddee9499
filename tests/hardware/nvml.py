"""A stand-in for the module pynvml: GPUs as dictionaries, where an exception as a value is raised.

A tuple has a value for each NVLink link.
"""

from types import SimpleNamespace
from typing import Any


class NVMLError(Exception):
    pass


class NVMLErrorNotSupported(NVMLError):
    pass


class NVMLErrorNoPermission(NVMLError):
    pass


class NVMLErrorInvalidArgument(NVMLError):
    pass


class NVMLErrorGpuIsLost(NVMLError):
    pass


class NVMLErrorLibraryNotFound(NVMLError):
    pass


def rtx_3090(**changes: Any) -> dict[str, Any]:
    """What a 24 GB card says while it writes an answer."""
    values = {
        "nvmlDeviceGetPciInfo": SimpleNamespace(busId=b"00000000:01:00.0"),
        "nvmlDeviceGetName": "NVIDIA GeForce RTX 3090",
        "nvmlDeviceGetCudaComputeCapability": [8, 6],
        "nvmlDeviceGetMemoryInfo": SimpleNamespace(
            total=25_769_803_776, reserved=402_653_184, used=23_000_000_000, free=2_367_150_592
        ),
        "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=97, memory=60),
        "nvmlDeviceGetPowerUsage": 312_400,
        "nvmlDeviceGetEnforcedPowerLimit": 350_000,
        "nvmlDeviceGetTemperature": 71,
        "nvmlDeviceGetClockInfo": 1_695,
        "nvmlDeviceGetCurrentClocksThrottleReasons": 0x4,
        "nvmlDeviceGetCurrPcieLinkGeneration": 4,
        "nvmlDeviceGetCurrPcieLinkWidth": 16,
        "nvmlDeviceGetPcieThroughput": 2_048,
        "nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=4711, usedGpuMemory=22_000_000_000)],
        "nvmlDeviceGetGraphicsRunningProcesses": [
            SimpleNamespace(pid=900, usedGpuMemory=500_000_000),
            SimpleNamespace(pid=4711, usedGpuMemory=None),
        ],
    }
    return values | changes


class FakeNvml:
    """`gpus` may be changed between looks; `fault` is raised by nvmlInit."""

    NVMLError = NVMLError
    NVML_NVLINK_MAX_LINKS = 36
    nvmlMemory_v2 = 0x2000028  # noqa: N815 - as pynvml spells it

    def __init__(self, *gpus: dict[str, Any], fault: NVMLError | None = None) -> None:
        self.gpus = list(gpus)
        self.fault = fault
        self.driver: Any = "575.64"
        self.calls: list[str] = []
        self.running = False

    def nvmlInit(self) -> None:  # noqa: N802
        if self.fault is not None:
            raise self.fault
        self.running = True

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.running = False

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        if self.fault is not None:
            raise self.fault
        return len(self.gpus)

    def nvmlSystemGetDriverVersion(self) -> Any:  # noqa: N802
        return self.driver

    def nvmlDeviceGetHandleByIndex(self, index: int) -> dict[str, Any]:  # noqa: N802
        lost = self.gpus[index].get("lost")
        if lost is not None:
            raise lost
        return self.gpus[index]

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvmlDeviceGet"):
            raise AttributeError(name)

        def call(handle: dict[str, Any], *arguments: Any) -> Any:
            self.calls.append(name)
            value = handle.get(name, NVMLErrorNotSupported("Not Supported"))
            if isinstance(value, tuple):  # one value for each link
                number = arguments[0]
                value = value[number] if number < len(value) else NVMLErrorInvalidArgument("Invalid Argument")
            if isinstance(value, Exception):
                raise value
            return value

        return call
