"""What the options leave to "auto", decided: by the model file's header and the memory that is free now."""

from pathlib import Path

import psutil

from qwendesk.core.options import LoadOptions
from qwendesk.engine.protocol import Devices


def decide(options: LoadOptions, devices: Devices) -> LoadOptions:
    """`options` without an "auto" that the fit decides. Reads file headers; blocks.

    Raises BadModelFile when a file is missing or no GGUF, BadOption when a value cannot be used.
    """
    from qwendesk.hardware.fit import decide_autos  # type: ignore[import-not-found]
    from qwendesk.hub.gguf import read_facts

    model = read_facts(Path(options.model))
    mmproj = read_facts(Path(options.mmproj)) if options.mmproj and options.vision != "off" else None
    return decide_autos(options, model, mmproj, devices.devices, psutil.virtual_memory().available)
