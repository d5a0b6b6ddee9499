"""Tells the tabs that offer files what is on this PC and on its way, and joins their buttons to the next step."""

from qwendesk.core.errors import QwenDeskError
from qwendesk.services.models.downloads import DownloadsService
from qwendesk.services.models.service import ModelsService
from qwendesk.ui.bridges.engine import EngineBridge
from qwendesk.ui.bridges.models import ModelsBridge
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.models.for_this_pc import ForThisPc
from qwendesk.ui.models.have import have_of
from qwendesk.ui.models.models_page import ModelsPage
from qwendesk.ui.models.search_tab import SearchTab


def join_have(
    tab: ForThisPc | SearchTab,
    models: ModelsService,
    downloads: DownloadsService,
    library: ModelsBridge,
    engine: EngineBridge,
    page: ModelsPage,
    tasks: Tasks,
) -> None:
    """A flagged file is put right in My models, where it stands first with what is wrong and the button for it."""

    def show(_news: object = None) -> None:
        flagged = (entry.model for entry in library.alerts)
        tab.show_have(have_of(models.library, downloads.state.unfinished, flagged))

    async def resume(identity: str) -> None:
        try:
            await downloads.resume(identity)
            tab.say("")
        except QwenDeskError as trouble:
            tab.say(trouble.sentence)

    models.subscribe_library(show)
    downloads.subscribe(show)
    library.changed.connect(show)
    tab.use_asked.connect(engine.load_model)
    tab.resume_asked.connect(lambda identity: tasks.start(resume(identity)))
    tab.fix_asked.connect(lambda: page.show_tab("mine"))
