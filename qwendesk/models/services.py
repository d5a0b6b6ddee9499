"""Builds the services of this feature, for the window and the command line."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from qwendesk.core.observed import Observed
from qwendesk.engines.engine_service import EngineService
from qwendesk.hardware.drives import drive_of
from qwendesk.hardware.snapshot import GpuReading
from qwendesk.hub.catalog_updates import CatalogStore
from qwendesk.models.catalog_service import CatalogService
from qwendesk.models.checks import ChecksService
from qwendesk.models.downloads import DownloadsService
from qwendesk.models.first_start import FirstStartService
from qwendesk.models.fixes import FixesService
from qwendesk.models.last_model import LastModel
from qwendesk.models.library_fits import LibraryFits
from qwendesk.models.library_service import LibraryService, LibraryState
from qwendesk.models.load_options import LoadOptionsService
from qwendesk.models.model_list import ModelList
from qwendesk.models.moves import MovesService
from qwendesk.models.network import NetworkService, TokenService
from qwendesk.models.offers import OffersService
from qwendesk.models.search import ModelSearch
from qwendesk.models.templates import TemplatesService
from qwendesk.settings.profiles import ProfilesService
from qwendesk.settings.service import SettingsService


class ModelServices(msgspec.Struct, frozen=True):
    """The services of this feature."""

    library: LibraryService
    fits: LibraryFits
    network: NetworkService
    catalog: CatalogService
    token: TokenService
    downloads: DownloadsService
    offers: OffersService
    search: ModelSearch
    checks: ChecksService
    templates: TemplatesService
    fixes: FixesService
    moves: MovesService
    load_options: LoadOptionsService
    list: ModelList
    first_start: FirstStartService
    last_model: LastModel
    speeds: Observed[Mapping[str, float]]
    """The speed that was measured on this PC, in tokens per second, by the name of the model's file."""


def build_model_services(
    settings: SettingsService,
    profiles: ProfilesService,
    engine: EngineService,
    library: LibraryService,
    closing: AsyncExitStack,
    *,
    speeds: Observed[Mapping[str, float]],
    gpu_factor: Callable[[], float] = lambda: 1.0,
    readings: Callable[[], Sequence[GpuReading]] = tuple,
) -> ModelServices:
    """Build the services, and push on `closing` how each is closed. Needs a running event loop; starts nothing."""
    network = NetworkService(settings)
    closing.callback(network.close)
    catalog = CatalogService(CatalogStore(), settings, network.hub)
    closing.push_async_callback(catalog.close)
    offers = OffersService(
        engine,
        settings,
        catalog,
        gpu_factor=gpu_factor,
        readings=readings,
        drive=lambda: drive_of(Path(library.folders.models[0])),
    )
    closing.push_async_callback(offers.close)
    closing.callback(library.state.subscribe_field(_download_folder, lambda _folder: offers.plan_again()))
    checks = ChecksService(library, settings, catalog, network.hub)
    closing.push_async_callback(checks.close)
    downloads = DownloadsService(network, library, remember_hashes=checks.remember)
    closing.push_async_callback(downloads.close)
    templates = TemplatesService(network.hub)
    moves = MovesService(library, checks)
    closing.push_async_callback(moves.close)
    load_options = LoadOptionsService(library, templates, profiles, catalog.load)
    models = ModelList(library, checks, moves, templates, downloads)
    closing.callback(models.close)
    first_start = FirstStartService(engine, library, offers, downloads, load_options.options_for)
    closing.push_async_callback(first_start.close)
    last_model = LastModel(engine)
    closing.push_async_callback(last_model.close)
    return ModelServices(
        library=library,
        fits=LibraryFits(library, lambda: offers.state.value.pc),
        network=network,
        catalog=catalog,
        token=TokenService(network),
        downloads=downloads,
        offers=offers,
        search=ModelSearch(network, lambda: offers.state.value.pc, catalog.store),
        checks=checks,
        templates=templates,
        fixes=FixesService(library, templates, downloads),
        moves=moves,
        load_options=load_options,
        list=models,
        first_start=first_start,
        last_model=last_model,
        speeds=speeds,
    )


def _download_folder(library: LibraryState) -> str:
    return library.folders.models[0]
