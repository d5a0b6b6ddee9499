"""Loads the model that was used last when the user asks for it in an empty chat."""

from qwendesk.app.window.main_window import MainWindow
from qwendesk.core.options import LoadOptions
from qwendesk.engines.engine_service import EngineService
from qwendesk.models.services import ModelServices
from qwendesk.widgets.bind import bind
from qwendesk.widgets.tasks import window_tasks


def connect_last_model(window: MainWindow, models: ModelServices, engine: EngineService) -> None:
    """Offer the last model on the chat page while no model is loaded, and load it with its current profile."""
    page, last_model = window.chat_page, models.last_model

    async def load(last: LoadOptions) -> None:
        await engine.load(await models.load_options.options_again(last))

    def load_last() -> None:
        if last_model.last.value is not None:
            window_tasks().start(load(last_model.last.value))

    def show(last: LoadOptions | None) -> None:
        page.show_last_model(last.model if last is not None else "")

    page.last_model_asked.connect(load_last)
    bind(page, last_model.last, show)
