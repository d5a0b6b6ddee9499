"""The Server page: the models that this PC serves, the programs that use them, and the models of other servers."""

import asyncio
from typing import Final

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from qwendesk.commands.outgrown import NextStep
from qwendesk.core.app_options import AppOptions
from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.engine.state import EngineState
from qwendesk.engines.view.next_step_card import NextStepCard
from qwendesk.server.service import ServerState
from qwendesk.server.setups.programs import BY_ID, Target
from qwendesk.server.setups.service import SetupService
from qwendesk.server.switch import ServerSwitch
from qwendesk.server.view.address_card import AddressCard, usual_address
from qwendesk.server.view.programs_card import ProgramsCard, SetupDialog
from qwendesk.server.view.requests_card import RequestsCard
from qwendesk.server.view.try_card import TryCard
from qwendesk.widgets.bind import REPAINT_EVERY_MS, bind, bind_field
from qwendesk.widgets.kit import GAP, STRETCH, column
from qwendesk.widgets.layouts import EqualColumnsLayout
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.question_dialog import DialogButton, QuestionDialog
from qwendesk.widgets.tabbed_page import TabbedPage
from qwendesk.widgets.tasks import window_tasks

_NARROWEST_CARD = 440


class ServeTab(QWidget):
    def __init__(
        self,
        switch: ServerSwitch,
        setups: SetupService,
        settings: Observed[AppOptions],
        engine: Observed[EngineState],
        navigation: Navigation,
    ) -> None:
        super().__init__()
        self._switch, self._setups, self._settings, self._model = switch, setups, settings, ""
        self._tasks = window_tasks()
        self.setObjectName("serve.tab")
        self.address, self.requests, self.trial = AddressCard(), RequestsCard(), TryCard(self._turn_on)
        self.programs = ProgramsCard(setups.observed.value)
        self.address.origins_asked.connect(lambda: navigation.settings_asked.emit("server"))
        cards = EqualColumnsLayout(least=_NARROWEST_CARD, spacing=GAP)
        cards.addWidget(self.address)
        cards.addWidget(self.trial)
        self.setLayout(column(cards, self.requests, self.programs, STRETCH, spacing=GAP))
        bind_field(self, engine, _loaded_model, self._show_model)
        self._connect()

    def _connect(self) -> None:
        switch, setups, start = self._switch, self._setups, self._tasks.start
        self.address.switched.connect(lambda on: start(switch.set_on(on=on)))
        self.address.port_entered.connect(lambda port: start(switch.set_port(port)))
        self.address.free_port_asked.connect(lambda: start(switch.take_free_port()))
        self.address.network_asked.connect(self._on_network)
        self.address.new_key_asked.connect(self._ask_for_new_key)
        self.programs.setup_asked.connect(self._show_setup)
        self.programs.trial_asked.connect(self._try_program)
        self.programs.stop_asked.connect(setups.stop_trial)
        self.requests.stop_asked.connect(switch.server.requests.stop)
        self.requests.clear_asked.connect(switch.server.requests.clear_ended)
        bind(self, switch.observed, lambda _state: self._show_server())
        bind(self, self._settings, lambda _options: self._show_server())
        bind(self, switch.server.observed, self._on_server)
        bind(self, setups.observed, lambda _states: self._show_programs())
        bind(self, switch.server.requests.observed, self.requests.show_requests, every_ms=REPAINT_EVERY_MS)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._look_at_programs()

    async def _turn_on(self) -> Target | None:
        """Turn the server on if it is off, which goes on if the test that asked for it is stopped."""
        if not self._switch.server.state.is_on:
            await asyncio.shield(self._tasks.start(self._switch.set_on(on=True)))
        return self._switch.target()

    def _show_model(self, name: str) -> None:
        self._model = name
        self._show_server()

    def _show_server(self) -> None:
        options, state = self._settings.value, self._switch.server.state
        self.address.show_state(
            state,
            self._switch.observed.value,
            is_wanted=options.serve,
            port=options.server_port,
            lets_in=options.serve_network,
            model=self._model,
        )
        key = state.keys[0].key if state.keys else ""
        self.trial.show_server(state.address or usual_address(options.server_port), key)
        self.requests.show_state(is_on=state.is_on)
        self._show_programs()

    def _on_server(self, state: ServerState) -> None:
        self._show_server()
        if state.is_on:  # it also goes off while the app closes, when nothing may be started
            self._look_at_programs()

    def _show_programs(self) -> None:
        self.programs.show_states(self._setups.observed.value, is_on=self._switch.server.state.is_on)

    def _look_at_programs(self) -> None:
        if self._tasks.can_start:
            self._tasks.start(self._setups.refresh())

    def _on_network(self, is_wanted: bool) -> None:
        if not is_wanted:
            self._let_network_in(allowed=False)
            return
        QuestionDialog(
            self.window(),
            "serve.network.question",
            tr("Let other PCs in your network in?"),
            tr(
                "Whoever has the key can then use the loaded model from another PC. The connection is encrypted with a "
                "certificate made on this PC, which the other PC has to trust. Your firewall may ask you once."
            ),
            (
                DialogButton("yes", tr("Let them in"), lambda: self._let_network_in(allowed=True)),
                DialogButton("no", tr("Cancel")),
            ),
            default="no",
        ).open()

    def _let_network_in(self, *, allowed: bool) -> None:
        self._tasks.start(self._switch.let_network_in(allowed=allowed))

    def _ask_for_new_key(self) -> None:
        QuestionDialog(
            self.window(),
            "serve.key.question",
            tr("Make a new key?"),
            tr("Programs that have the old one are refused until you start them again. Running answers are stopped."),
            (
                DialogButton("yes", tr("Make a new key"), self._renew_key),
                DialogButton("no", tr("Cancel")),
            ),
            default="no",
        ).open()

    def _renew_key(self) -> None:
        self._tasks.start(self._switch.renew_key())

    def _show_setup(self, program_id: str) -> None:
        target, program = self._switch.target(), BY_ID[program_id]
        if target is not None:
            SetupDialog(self.window(), program, self._setups.settings_file(program), target).open()

    def _try_program(self, program_id: str) -> None:
        target = self._switch.target()
        if target is not None:
            self._tasks.start(self._setups.try_program(program_id, target))


def _loaded_model(state: EngineState) -> str:
    """Return the name of the loaded model; "" if there is none."""
    return state.report.title if state.report is not None else ""


# Tabs by key, left to right: Share this model, Other engines.
ORDER: Final = ("serve", "engines")


class ServerPage(TabbedPage):
    """The Server page, to which its two tabs are added: "serve" and "engines"."""

    def __init__(self, next_step: Observed[NextStep | None], navigation: Navigation) -> None:
        """`next_step` is what suits the user better now, if anything. vLLM may be."""
        super().__init__("server", tr("Server"), tr("Sections of the Server page"), ORDER, QWidget())
        self.setObjectName("server.page")
        card = NextStepCard()
        card.command_asked.connect(navigation.vllm_command_asked)
        bind(card, next_step, card.show_step)
        self.set_alerts(card)
