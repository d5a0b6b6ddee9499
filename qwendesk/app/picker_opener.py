"""Opens the model picker below the model button, and does what is chosen in it."""

from collections.abc import Callable
from functools import partial

from qwendesk.app.window.main_window import MainWindow
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.view.wiring import EnginesView
from qwendesk.models.view.model_picker import ModelPicker
from qwendesk.models.view.wiring import ModelsView
from qwendesk.remote.server_texts import served_choices
from qwendesk.remote.service import RemoteService
from qwendesk.widgets.bind import bind_field
from qwendesk.widgets.tasks import window_tasks


def connect_picker(
    window: MainWindow,
    models: ModelsView,
    engine: EngineService,
    engines_view: EnginesView,
    remote: RemoteService,
    show_servers: Callable[[], None],
) -> None:
    """Open the picker when the user asks to choose a model. `show_servers` shows where servers are added."""

    def show_offers() -> None:
        window.show_page("models")
        models.page.show_tab("pc")

    def open_picker(*, for_options: bool = False) -> None:
        services = models.services
        entries, last = services.list.state.value.entries, services.last_model.last.value
        last_path = last.model if last is not None else ""
        picker = ModelPicker(entries, services.fits.state, engine.observed, last_path, window, for_options=for_options)
        picker.load_asked.connect(models.actions.load)
        picker.options_asked.connect(models.actions.show_options)
        picker.demo_asked.connect(window.load_demo)
        picker.served_asked.connect(window.load_served)
        picker.server_asked.connect(show_servers)
        picker.offers_asked.connect(show_offers)
        picker.file_asked.connect(window.choose_model)
        picker.mmproj_asked.connect(window.choose_mmproj)
        picker.cancel_asked.connect(lambda: window_tasks().start(engine.cancel_load()))
        bind_field(picker, remote.state, served_choices, picker.show_served)
        picker.open_at(window.top_bar.model, window.top_bar.model.height() + 6)
        window_tasks().start(services.fits.update())
        window_tasks().start(remote.refresh_all())

    window.top_bar.picker_asked.connect(open_picker)
    window.chat_page.picker_asked.connect(open_picker)
    engines_view.model_asked.connect(partial(open_picker, for_options=True))
    window.top_bar.offers_asked.connect(show_offers)
    window.chat_page.offers_asked.connect(show_offers)
