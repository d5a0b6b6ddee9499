"""A models folder of ours, another app's folder, and the services that look at them."""

from pathlib import Path
from typing import NoReturn

import msgspec

from qwendesk.core import paths
from qwendesk.hub.catalog_updates import CatalogStore
from qwendesk.hub.library_places import HostEnvironment
from qwendesk.hub.model_folders import ModelFolders, write_folders
from qwendesk.models.catalog_service import CatalogService
from qwendesk.models.checks import ChecksService
from qwendesk.models.library_service import LibraryService
from qwendesk.models.model_state import ModelState, state_of
from qwendesk.models.templates import TemplatesService
from qwendesk.settings.service import SettingsService


class ModelHome(msgspec.Struct):
    """A home folder with a models folder, and the services that read it."""

    root: Path
    models: LibraryService
    settings: SettingsService
    catalog: CatalogService

    @property
    def ours(self) -> Path:
        return self.root / "ours"

    @property
    def lm_studio(self) -> Path:
        return self.root / "home" / ".lmstudio" / "models"

    def checks(self, connect=None) -> ChecksService:
        return ChecksService(self.models, self.settings, self.catalog, connect)

    async def wait_for_checks(self, checks: ChecksService) -> None:
        """Wait until every file has had its quick check."""
        await self.models.refresh()
        await checks.wait_until_settled()

    def state(self, checks: ChecksService, path: Path, templates: TemplatesService | None = None) -> ModelState:
        model = self.models.find(str(path))
        repos = templates.repos.value if templates is not None else ()
        return state_of(model, self.models.current, checks.state.value.checks, templates=repos)


def make_model_home(root: Path, monkeypatch) -> ModelHome:
    """Create the folders in `root`. Needs a running event loop."""
    for name in ("config", "cache", "data"):
        monkeypatch.setattr(paths, f"{name}_folder", lambda name=name: root / name)
    (root / "ours").mkdir()
    write_folders(ModelFolders((str(root / "ours"),)))
    library, settings = LibraryService(HostEnvironment("linux", root / "home", {})), SettingsService()
    return ModelHome(root, library, settings, CatalogService(CatalogStore(), settings, never_connected))


def never_connected() -> NoReturn:
    raise AssertionError("nothing was to be looked up")
