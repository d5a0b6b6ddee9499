"""Tells whether llama.cpp reads the table of a model row by row from the file, so that it takes no RAM."""

from collections.abc import Sequence

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB

AUTO_ABOVE_BYTES = 4 * GIB
"""llama.cpp's auto_min_size: by default, it reads only larger tables from the file."""


def is_read_lazily(table_bytes: int, options: LoadOptions, gpus: Sequence[DeviceInfo]) -> bool:
    """Return whether a table of that size stays on the drive, with a load that uses `gpus`.

    By default it doesn't if any GPU can't work with mapped files (llama_model_base::load_tensors and
    llama_model_loader::lazy_read in llama.cpp).
    """
    if options.lazy_mode == "auto":
        return table_bytes > AUTO_ABOVE_BYTES and all(gpu.supports_mmap for gpu in gpus)
    return options.lazy_mode == "on" and table_bytes > 0
