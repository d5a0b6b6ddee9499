"""Graphics cards that are in this PC and that the engine cannot use. Pure."""

from qwendesk.core.units import GIB
from qwendesk.hardware.snapshot import Snapshot
from qwendesk.services.models.offers import Offers

_SMALLEST_BYTES = 2 * GIB
"""A card with less would carry no model worth the trouble."""


def unused_gpus(offers: Offers, snapshot: Snapshot | None) -> tuple[str, ...]:
    """Names of NVIDIA and AMD cards with memory of their own, when the engine was asked and sees no GPU at all.

    Empty while that is not known. An engine that did not start is another trouble, and said elsewhere.
    """
    if snapshot is None or offers.state != "ready" or not offers.pc.is_probed or offers.pc.gpus:
        return ()
    return tuple(
        gpu.name or str(gpu.vendor)
        for gpu in snapshot.gpus
        if gpu.vendor in ("nvidia", "amd")
        and not gpu.unified
        and (gpu.total_bytes is None or gpu.total_bytes >= _SMALLEST_BYTES)
    )
