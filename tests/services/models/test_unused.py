"""A card that is in the PC and that the engine cannot use."""

import pytest

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.units import GIB
from qwendesk.hardware.snapshot import GpuReading, Snapshot
from qwendesk.services.models.fitting import Pc
from qwendesk.services.models.offers import Offers
from qwendesk.services.models.unused import unused_gpus

CARD = GpuReading(name="GeForce RTX 3090", vendor="nvidia", total_bytes=24 * GIB)
WITHOUT = Offers(state="ready", pc=Pc(ram_bytes=32 * GIB))


def seen(*gpus: GpuReading) -> Snapshot:
    return Snapshot(at_s=1.0, gpus=gpus)


def test_a_card_that_the_engine_does_not_see_is_named() -> None:
    radeon = GpuReading(vendor="amd", total_bytes=16 * GIB)

    assert unused_gpus(WITHOUT, seen(CARD, radeon)) == ("GeForce RTX 3090", "amd")


def test_a_card_in_use_is_not_named() -> None:
    gpu = DeviceInfo("CUDA0", "GeForce RTX 3090", "gpu", "CUDA", 24 * GIB, 22 * GIB)

    assert unused_gpus(Offers(state="ready", pc=Pc(gpus=(gpu,), ram_bytes=32 * GIB)), seen(CARD)) == ()


@pytest.mark.parametrize(
    "gpu",
    [
        GpuReading(name="Radeon 780M", vendor="amd", unified=True, total_bytes=16 * GIB),
        GpuReading(name="GeForce GT 710", vendor="nvidia", total_bytes=GIB),
        GpuReading(name="Iris Xe", vendor="intel", total_bytes=8 * GIB),
    ],
)
def test_what_would_carry_no_model_is_not_named(gpu: GpuReading) -> None:
    assert unused_gpus(WITHOUT, seen(gpu)) == ()


def test_nothing_is_claimed_before_it_is_known() -> None:
    assert unused_gpus(WITHOUT, None) == ()
    assert unused_gpus(Offers(), seen(CARD)) == ()
    broken = Offers(state="ready", pc=Pc(ram_bytes=GIB, is_probed=False, problem="It did not start."))
    assert unused_gpus(broken, seen(CARD)) == ()
