"""Opens the model picker below the model button, and does what is chosen in it."""

from collections.abc import Callable
from functools import partial

from qwendesk.app.window.main_window import MainWindow
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.view.wiring import EnginesView
from qwendesk.models.view.model_picker import ModelPicker
from qwendesk.models.view.wiring import ModelsView
from qwendesk.widgets.tasks import window_tasks


def connect_picker(
    window: MainWindow,
    models: ModelsView,
    engine: EngineService,
    engines_view: EnginesView,
    show_offers: Callable[[], None],
) -> None:
    """Open the picker when the user asks to choose a model. `show_offers` shows the models that fit this PC."""

    def open_picker(*, for_options: bool = False) -> None:
        services = models.services
        entries, last = services.list.state.value.entries, services.last_model.last.value
        last_path = last.model if last is not None else ""
        picker = ModelPicker(entries, services.fits.state, engine.observed, last_path, window, for_options=for_options)
        picker.load_asked.connect(models.actions.load)
        picker.options_asked.connect(models.actions.show_options)
        picker.demo_asked.connect(window.load_demo)
        picker.offers_asked.connect(show_offers)
        picker.file_asked.connect(window.choose_model)
        picker.mmproj_asked.connect(window.choose_mmproj)
        picker.cancel_asked.connect(lambda: window_tasks().start(engine.cancel_load()))
        picker.open_at(window.top_bar.model, window.top_bar.model.height() + 6)
        window_tasks().start(services.fits.update())

    window.top_bar.picker_asked.connect(open_picker)
    window.chat_page.picker_asked.connect(open_picker)
    engines_view.model_asked.connect(partial(open_picker, for_options=True))
    window.top_bar.offers_asked.connect(show_offers)
    window.chat_page.offers_asked.connect(show_offers)
