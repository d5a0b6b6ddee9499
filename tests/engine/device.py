"""The device on which the tests of the engine compute: the CPU, or what QWENDESK_TEST_DEVICE names.

`make gpu-test` sets the variable, to run tests of the CPU engine on a Vulkan device too.
"""

import os
from typing import Any

TEST_DEVICE = os.environ.get("QWENDESK_TEST_DEVICE", "")
TEST_BACKEND = TEST_DEVICE.rstrip("0123456789")
"""Such as "Vulkan" or "CUDA"; "" for the CPU."""


def placement() -> dict[str, Any]:
    """Return the load options that put everything on that device."""
    if TEST_DEVICE:
        return {"devices": (TEST_DEVICE,), "n_gpu_layers": "all"}
    return {"n_gpu_layers": 0}
