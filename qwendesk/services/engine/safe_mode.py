"""The safe mode's way of loading: the processor alone, whatever GPUs there are."""

import msgspec

from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.engine.protocol import Devices
from qwendesk.services.engine.deciding import decide


def decide_safely(options: LoadOptions, devices: Devices) -> LoadOptions | LoadFailure:
    """`decide` without any GPU. Reads headers; blocks."""
    vision = "off" if options.vision == "off" else "cpu"
    return decide(msgspec.structs.replace(options, devices=("none",), n_gpu_layers=0, vision=vision), devices)
