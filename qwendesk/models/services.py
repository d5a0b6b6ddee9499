"""The services of the models feature, for the window and the command line."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from qwendesk.core.observed import Observed
from qwendesk.core.owner import Owner
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.measurements import Measurements
from qwendesk.hardware.drives import drive_of
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
from qwendesk.models.opened_files import OpenedFiles
from qwendesk.models.templates import TemplatesService
from qwendesk.settings.profiles import ProfilesService
from qwendesk.settings.service import SettingsService

if TYPE_CHECKING:
    from qwendesk.models.search import ModelSearch


class ModelFiles(Owner):
    """The models on this PC, the catalog and the connection to the Hub: what the engine needs to load a file."""

    def __init__(self, settings: SettingsService, profiles: ProfilesService, library: LibraryService) -> None:
        super().__init__()
        self.settings, self.library = settings, library
        self.network = self.own(NetworkService(settings))
        self.catalog = self.own(CatalogService(CatalogStore(), settings, self.network.hub))
        self.templates = TemplatesService(self.network.hub)
        self.load_options = LoadOptionsService(library, self.templates, profiles, self.catalog.load)


class ModelServices(Owner):
    """The services of this feature. Nothing runs yet. Needs a running event loop."""

    def __init__(self, files: ModelFiles, engine: EngineService, measured: Measurements) -> None:
        super().__init__()
        library, settings = files.library, files.settings
        self.engine = engine
        self.library, self.network, self.catalog = library, files.network, files.catalog
        self.templates, self.load_options = files.templates, files.load_options
        self.token = TokenService(self.network)
        self.offers = self.own(
            OffersService(engine, settings, self.catalog, measured, drive=lambda: drive_of(Path(_folder(library))))
        )
        self.at_close(library.state.subscribe_field(_download_folder, lambda _folder: self.offers.plan_again()))
        self.fits = LibraryFits(library, self.offers.state)
        self.checks = self.own(ChecksService(library, settings, self.catalog, self.network.hub))
        self.downloads = self.own(DownloadsService(self.network, library, remember_hashes=self.checks.remember))
        self.fixes = FixesService(library, self.templates, self.downloads)
        self.moves = self.own(MovesService(library, self.checks))
        self.list = self.own(ModelList(library, self.checks, self.moves, self.templates, self.downloads))
        self.first_start = self.own(
            FirstStartService(engine, library, self.offers, self.downloads, self.load_options.options_for)
        )
        self.last_model = self.own(LastModel(engine, self.load_options))
        self.own(OpenedFiles(library, self.last_model))
        self.speeds: Observed[Mapping[str, float]] = measured.speeds.by_file
        """The speed that was measured on this PC, in tokens per second, by the name of the model's file."""

    @cached_property
    def search(self) -> "ModelSearch":
        """The search on Hugging Face. Imported when the Models page is first shown."""
        from qwendesk.models.search import ModelSearch  # noqa: PLC0415

        return ModelSearch(self.network, self.offers.state, self.catalog.store)

    def start(self) -> None:
        """Resume downloads, and read the catalog."""
        self.downloads.start()
        self.catalog.start()


def _folder(library: LibraryService) -> str:
    return library.folders.models[0]


def _download_folder(library: LibraryState) -> str:
    return library.folders.models[0]
