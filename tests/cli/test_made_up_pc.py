"""The PCs that the options of `qwendesk plan` describe."""

import argparse

import pytest

from qwendesk.cli.made_up_pc import SYSTEM_RAM_BYTES, add_made_up_pc_options, made_up_machine
from qwendesk.core.errors import BadOption
from qwendesk.core.plan import MachineMemory
from qwendesk.core.units import GIB


def machine(*arguments: str) -> MachineMemory:
    parser = argparse.ArgumentParser()
    add_made_up_pc_options(parser)
    return made_up_machine(parser.parse_args(arguments), GIB)


@pytest.mark.parametrize(
    ("arguments", "name", "description", "limit"),
    [
        (("Strix Halo:128",), "Vulkan0", "Strix Halo", 128),
        (("Strix Halo:128:62.5",), "Vulkan0", "Strix Halo", 62.5),
        (("DGX Spark:119",), "CUDA0", "DGX Spark", 119),
        (("M4 Pro:48",), "MTL0", "Apple M4 Pro", 36),
        (("Apple M4:24",), "MTL0", "Apple M4", 16),
        (("M4 Pro:48:40",), "MTL0", "Apple M4 Pro", 40),
        (("64", "--backend", "metal"), "MTL0", "Apple GPU", 48),
        (("128:96", "--backend", "rocm"), "ROCm0", "GPU with 128.0 GB of shared memory", 96),
    ],
)
def test_unified_memory_with_a_name_and_a_limit(
    arguments: tuple[str, ...], name: str, description: str, limit: float
) -> None:
    made = machine("--unified", *arguments)

    (gpu,) = made.devices
    assert (gpu.name, gpu.description, gpu.total_bytes) == (name, description, limit * GIB)
    assert made.is_unified
    assert made.ram_available_bytes == made.ram_total_bytes - SYSTEM_RAM_BYTES


@pytest.mark.parametrize("text", ["Strix Halo", "Strix Halo:much", "128:64:32", "A:B:1:2"])
def test_a_size_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(BadOption):
        machine("--unified", text)
