"""What the options leave to "auto", decided: by the model file's header and the memory that is free now."""

from pathlib import Path

import msgspec
import psutil

from qwendesk.core.errors import BadModelFile
from qwendesk.core.failures import LoadFailure, LoadFailureKind
from qwendesk.core.options import LoadOptions
from qwendesk.engine.protocol import Devices
from qwendesk.hardware.fit import fit
from qwendesk.hub.gguf import read_facts
from qwendesk.hub.pairing import mmproj_mismatch


def decide(options: LoadOptions, devices: Devices) -> LoadOptions | LoadFailure:
    """`options` without an "auto" that the fit decides, or why they cannot be loaded. Reads file headers; blocks."""
    try:
        model = read_facts(Path(options.model))
        mmproj = read_facts(Path(options.mmproj)) if options.mmproj and options.vision != "off" else None
    except BadModelFile as error:
        return LoadFailure(msgspec.convert(error.kind, LoadFailureKind), error.title, error.sentence)
    if mmproj is not None and (sentence := mmproj_mismatch(model, mmproj)):
        return LoadFailure("mmproj_mismatch", "The picture file does not fit", sentence)
    return fit(
        model,
        mmproj,
        devices.devices,
        psutil.virtual_memory().available,
        options,
        psutil.cpu_count(logical=False) or 0,
    )
