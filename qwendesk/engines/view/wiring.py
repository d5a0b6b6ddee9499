"""Builds the widgets of the engines feature and connects them to its services."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from qwendesk.core.generation_options import GenerationOptions
from qwendesk.engines.command_preview import CommandService
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.load_planner import LoadPlanner
from qwendesk.engines.pc_trial.service import PcTrial
from qwendesk.engines.pending_load import PendingLoadService
from qwendesk.engines.pending_state import PendingLoad
from qwendesk.engines.self_test import SelfTest, SelfTestState, versions
from qwendesk.engines.services import InstalledEngines
from qwendesk.engines.view.engine_page import EnginePage
from qwendesk.engines.view.engines_presenter import EnginesPresenter
from qwendesk.engines.view.gpu_engine_notices import GpuEngineNotices
from qwendesk.engines.view.load_options.command_card import engine_card
from qwendesk.engines.view.load_options.command_dialog import CommandDialog
from qwendesk.engines.view.load_options.load_part import LoadPart
from qwendesk.engines.view.pc_trial_presenter import PcTrialPresenter
from qwendesk.hardware.snapshot import Snapshot
from qwendesk.settings.service import SettingsService
from qwendesk.widgets.bind import bind
from qwendesk.widgets.layouts import LazyPage
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.tasks import window_tasks


class EnginesView(QObject):
    """The engines feature in the window: the Engine page and the Load tab of the inspector.

    The page has a list of engines if the user can choose one.
    """

    answer_options_pasted = Signal(object)
    """Generation options of a pasted command by key, to be set for the open chat."""
    command_applied = Signal(str)
    """The text of a pasted command whose options were set."""

    def __init__(
        self,
        engine: EngineService,
        planner: LoadPlanner,
        self_test: SelfTest,
        installed: InstalledEngines | None,
        pending_load: PendingLoadService,
        commands: CommandService,
        settings: SettingsService,
        pc_trial: PcTrial,
        answer_options: Callable[[], GenerationOptions],
        navigation: Navigation,
    ) -> None:
        """`installed` is None if the window uses one given engine, without a choice.

        `answer_options` returns the generation options of the open chat, for the commands.
        """
        page = EnginePage(versions)
        super().__init__(page)
        self.page = page
        self._tasks, self.self_test = window_tasks(), self_test
        self._pending_load, self._settings, self._answer_options = pending_load, settings, answer_options
        self._navigation = navigation
        self._commands, self._last_of_loaded = commands, PendingLoad()
        self._command_dialog: CommandDialog | None = None
        self.presenter: EnginesPresenter | None = None
        self._gpu_engine = installed.gpu_engine if installed is not None else None
        self._is_begun = False
        self._snapshot: Snapshot | None = None
        self.load_tab = LazyPage(self._build_load_tab)
        page.test_asked.connect(self._run_test)
        page.measure_asked.connect(PcTrialPresenter(page, pc_trial, engine).open)
        bind(page, engine.observed, page.show_state)
        bind(page, engine.observed, lambda _state: page.show_plan(planner.latest))
        bind(page, self_test.state, self._show_test)
        if installed is not None:
            self.presenter = EnginesPresenter(installed, engine)
            page.put_list(self.presenter.list)
            bind(page, installed.engines.observed, page.show_engines)
            GpuEngineNotices(self, installed, navigation)
        frame, self._command_card = engine_card()
        page.add_card(frame)
        bind(frame, pending_load.state, lambda _pending: self._show_command())
        bind(page, pending_load.state, self._show_measured)

    def _show_measured(self, pending: PendingLoad) -> None:
        """Show the measured speed, unless it is of options that aren't loaded."""
        is_of_loaded = pending.is_loaded and not pending.needs_reload
        self.page.show_measured(pending.measured_tok_s if is_of_loaded else None)

    def begin(self) -> None:
        """Get or offer an engine for the GPU once the meters have found one. An engine is chosen by then."""
        self._is_begun = True
        self.show_snapshot(self._snapshot)

    def set_metered(self, is_metered: bool) -> None:
        """Set whether the connection is metered."""
        if self._gpu_engine is not None:
            self._gpu_engine.set_metered(is_metered)

    def show_snapshot(self, snapshot: Snapshot | None) -> None:
        """Show the hardware that the meters found."""
        self._snapshot = snapshot
        self.page.show_snapshot(snapshot)
        if self.presenter is not None:
            self.presenter.show_snapshot(snapshot)
        if self._gpu_engine is not None and self._is_begun and snapshot is not None and snapshot.gpus:
            self._is_begun = False
            self._tasks.start(self._gpu_engine.begin(snapshot.gpus))

    def update_commands(self) -> None:
        """Update the commands after the generation options have changed."""
        self._show_command()
        if self.load_tab.is_built:
            self.load_tab.page().show_commands()

    def test(self) -> None:
        """Show the page and test the engine."""
        self._navigation.page_asked.emit("engine")
        self._run_test()

    def show_vllm_command(self) -> None:
        """Show vLLM's command on the Engine page."""
        self._command_card.show_kind("vllm")
        self._navigation.page_asked.emit("engine")
        self.page.ensureWidgetVisible(self._command_card)

    def _run_test(self) -> None:
        self._tasks.start(self.self_test.run())

    def _build_load_tab(self) -> LoadPart:
        tab = LoadPart(self._pending_load, self._settings, self._answer_options)
        tab.model_asked.connect(self._navigation.model_asked)
        tab.paste_asked.connect(self.show_command)
        return tab

    def show_command(self, text: str = "") -> None:
        """Open the dialog that shows what a command of another program means here."""
        if self._command_dialog is None:
            self._command_dialog = dialog = CommandDialog(self._commands, self.page.window())
            dialog.answer_options_pasted.connect(self.answer_options_pasted)
            dialog.model_asked.connect(self._navigation.model_search_asked)
            dialog.applied.connect(self.command_applied)
        self._command_dialog.show_text(text)

    def _show_command(self) -> None:
        """Show the command of the loaded model, also while the inspector shows the options of another one."""
        shown = self._pending_load.pending
        if shown.is_loaded:
            self._last_of_loaded = shown
        last = self._last_of_loaded
        if shown.other_loaded and last.requested is not None and last.requested.model == shown.other_loaded:
            shown = last
        self._command_card.show_pending(shown, self._answer_options())

    def _show_test(self, state: SelfTestState) -> None:
        self.page.show_test(state.diagnosis, running=state.is_running)
