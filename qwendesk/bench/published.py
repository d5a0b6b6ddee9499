"""Chooses the published speeds of a model that are shown beside what was measured here."""

from collections import Counter
from collections.abc import Sequence

from qwendesk.core.devices import DeviceInfo, default_gpus
from qwendesk.core.failures import LoadFailure
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB
from qwendesk.engines.engine_service import EngineService
from qwendesk.hardware.gpu_cards import find_card
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.catalog_schema import SpeedReport
from qwendesk.models.catalog_service import CatalogService

# Files whose sizes differ by less than this factor have about the same speed.
_LIKE_SIZE = 1.15


def find_published(options: LoadOptions, *, engine: EngineService, catalog: CatalogService) -> Sequence[SpeedReport]:
    """Return what others reported of this model on cards like those of the engine. Blocks."""
    files = engine.read_files(options)
    if isinstance(files, LoadFailure):
        return ()
    return published_speeds(catalog.store.catalog, files[0], options.model, engine.state.devices)


def published_speeds(
    catalog: Catalog, facts: ModelFacts, file_name: str, devices: Sequence[DeviceInfo]
) -> tuple[SpeedReport, ...]:
    """Return the reports of a file of this model and about this size, those of the shortest chats first.

    They are all from the same graphics cards: from those of this PC if there are any, else from those with the most
    reports. Reports of older engines never count.
    """
    model = catalog.model_of(facts.name, facts.basename, file_name)
    if model is None:
        return ()
    found = [
        report
        for report in catalog.contents.speeds
        if not report.has_old_engine and report.model == model.id and _is_like(report.n_bytes, facts.file_bytes)
    ]
    cards = Counter((report.gpus, report.gpu_gb) for report in found)
    if not cards:
        return ()
    own = [each for each in cards if _is_of(*each, devices)]
    chosen = own[0] if own else cards.most_common(1)[0][0]
    of_them = (each for each in found if (each.gpus, each.gpu_gb) == chosen)
    return tuple(sorted(of_them, key=lambda each: (each.depth, each.tok_s)))


def _is_like(one: int, other: int) -> bool:
    low, high = sorted((one, other))
    return high <= _LIKE_SIZE * low


def _is_of(names: Sequence[str], gib: float, devices: Sequence[DeviceInfo]) -> bool:
    """Return whether these cards with this much memory each are those of this PC."""
    reported = [find_card(name, round(gib * GIB)) for name in names]
    here = [find_card(device.description or device.name, device.total_bytes) for device in default_gpus(devices)]
    return len(reported) == len(here) and all(
        one is not None and other is not None and one.is_like(other) for one, other in zip(reported, here, strict=True)
    )
