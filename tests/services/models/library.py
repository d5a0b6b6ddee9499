"""A models folder of ours, another app's folder, and the services that look at them."""

from pathlib import Path

import msgspec

from qwendesk.core import paths
from qwendesk.hub.folders import ModelFolders, write_folders
from qwendesk.hub.library_places import Machine
from qwendesk.services.models.checks import ChecksService
from qwendesk.services.models.service import ModelsService
from qwendesk.services.models.states import ModelState, state_of
from qwendesk.services.models.templates import TemplatesService
from qwendesk.services.settings import SettingsService


class Shelf(msgspec.Struct):
    """One home folder with what lies in it."""

    root: Path
    models: ModelsService
    settings: SettingsService

    @property
    def ours(self) -> Path:
        return self.root / "ours"

    @property
    def lm_studio(self) -> Path:
        return self.root / "home" / ".lmstudio" / "models"

    def checks(self, connect=None) -> ChecksService:
        return ChecksService(self.models, self.settings, connect)

    async def looked(self, checks: ChecksService) -> None:
        """Every file has had its quick look."""
        await self.models.refresh()
        await checks.settled()

    def state(self, checks: ChecksService, path: Path, templates: TemplatesService | None = None) -> ModelState:
        model = self.models.find(str(path))
        repos = templates.repos if templates is not None else ()
        return state_of(model, self.models.library, checks.checks, templates=repos)


def make_shelf(root: Path, monkeypatch) -> Shelf:
    """Needs a running event loop."""
    for name in ("config", "cache", "data"):
        monkeypatch.setattr(paths, f"{name}_folder", lambda name=name: root / name)
    (root / "ours").mkdir()
    write_folders(ModelFolders((str(root / "ours"),)))
    return Shelf(root, ModelsService(Machine("linux", root / "home", {})), SettingsService())
