"""Builds what the Models page is made of: services, bridges, the page with its tabs; starts and ends them."""

import msgspec

from qwendesk.services.models.service import ModelsService
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.models_page import ModelsPage


class ModelsPart(msgspec.Struct):
    """The Models page with what stands behind it."""

    page: ModelsPage
    models: ModelsService

    def start(self) -> None:
        """Begin to look at the disk and at this PC. The app does this once its window is shown."""
        self.models.watch()

    async def close(self) -> None:
        """End everything; nothing runs afterwards."""
        await self.models.close()


def build_models(keeper: ThemeKeeper, tasks: Tasks) -> ModelsPart:
    """Services, bridges and the page, joined; nothing runs yet. Needs a running event loop."""
    models = ModelsService()
    page = ModelsPage()
    return ModelsPart(page, models)
