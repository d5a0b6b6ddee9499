"""Opens the model picker below the model button, and does what is chosen in it."""

from PySide6.QtWidgets import QWidget

from qwendesk.core.options import LoadOptions
from qwendesk.engines.engine_service import EngineService
from qwendesk.models.services import ModelServices
from qwendesk.models.view.model_actions import ModelActions
from qwendesk.remote.server_texts import served_choices
from qwendesk.remote.service import RemoteService
from qwendesk.widgets.bind import bind_field
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.tasks import window_tasks


class PickerOpener:
    """Shows the picker below `button` when a view asks for it."""

    def __init__(
        self,
        services: ModelServices,
        engine: EngineService,
        remote: RemoteService,
        *,
        actions: ModelActions,
        navigation: Navigation,
        button: QWidget,
    ) -> None:
        self._services, self._engine, self._remote = services, engine, remote
        self._actions, self._navigation, self._button = actions, navigation, button
        navigation.picker_asked.connect(self.open)
        navigation.model_asked.connect(lambda: self.open(for_options=True))

    def open(self, *, for_options: bool = False) -> None:
        """Show the picker. `for_options` shows the options of what is chosen, without loading it."""
        # Imported only now, because many sessions never open it.
        from qwendesk.models.view.model_picker import ModelPicker  # noqa: PLC0415

        services, engine, navigation, start = self._services, self._engine, self._navigation, window_tasks().start
        entries, last = services.list.state.value.entries, services.last_model.last.value
        last_path = last.model if last is not None else ""
        picker = ModelPicker(
            entries, services.fits.state, engine.observed, last_path, self._button.window(), for_options=for_options,
            demo_came_later=services.last_model.demo_came_later,
        )  # fmt: skip
        bind_field(picker, services.list.state, lambda state: state.entries, picker.show_entries)
        picker.load_asked.connect(self._actions.load)
        picker.options_asked.connect(self._actions.show_options)
        picker.file_asked.connect(navigation.model_file_asked)
        picker.mmproj_asked.connect(navigation.mmproj_file_asked)
        picker.demo_asked.connect(navigation.demo_asked)
        picker.served_asked.connect(lambda model: navigation.load_asked.emit(LoadOptions(model=model)))
        picker.server_asked.connect(navigation.servers_asked)
        picker.offers_asked.connect(lambda: navigation.models_tab_asked.emit("pc"))
        picker.cancel_asked.connect(lambda: start(engine.cancel_load()))
        bind_field(picker, self._remote.state, served_choices, picker.show_served)
        picker.open_at(self._button, self._button.height() + 6)
        start(services.library.refresh())
        start(services.fits.update())
        start(self._remote.refresh_all())
