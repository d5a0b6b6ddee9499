"""The Server page: the models that this PC serves, the programs that use them, and the models of other servers."""

from typing import Final

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from qwendesk.commands.outgrown import NextStep
from qwendesk.core.app_options import AppOptions
from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.engines.view.next_step_card import NextStepCard
from qwendesk.remote.view.engines_tab import EnginesTab
from qwendesk.server.service import ServerState
from qwendesk.server.setups.programs import BY_ID
from qwendesk.server.setups.service import SetupService
from qwendesk.server.switch import ServerSwitch
from qwendesk.server.view.address_card import AddressCard
from qwendesk.server.view.programs_card import ProgramsCard, SetupDialog
from qwendesk.server.view.requests_card import RequestsCard
from qwendesk.widgets.bind import REPAINT_EVERY_MS, bind
from qwendesk.widgets.layouts import EqualColumnsLayout
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.question_dialog import DialogButton, QuestionDialog
from qwendesk.widgets.tabbed_page import TabbedPage
from qwendesk.widgets.tasks import window_tasks

_NARROWEST_CARD = 420


class ServeTab(QWidget):
    def __init__(self, switch: ServerSwitch, setups: SetupService, settings: Observed[AppOptions]) -> None:
        super().__init__()
        self._switch, self._setups, self._settings = switch, setups, settings
        self._tasks = window_tasks()
        self.setObjectName("serve.tab")
        self.address, self.requests = AddressCard(), RequestsCard()
        self.programs = ProgramsCard(setups.observed.value)
        cards = EqualColumnsLayout(least=_NARROWEST_CARD)
        cards.addWidget(self.address)
        cards.addWidget(self.programs)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(14)
        column.addLayout(cards)
        column.addWidget(self.requests)
        column.addStretch(1)
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
        bind(self, switch.observed, lambda _state: self._show_server())
        bind(self, self._settings, lambda _options: self._show_server())
        bind(self, switch.server.observed, self._on_server)
        bind(self, setups.observed, lambda _states: self._show_programs())
        bind(self, switch.server.requests.observed, self.requests.show_requests, every_ms=REPAINT_EVERY_MS)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._look_at_programs()

    def _show_server(self) -> None:
        options = self._settings.value
        self.address.show_state(
            self._switch.server.state,
            self._switch.observed.value,
            is_wanted=options.serve,
            port=options.server_port,
            lets_in=options.serve_network,
        )
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


# Tabs by key, left to right: This PC serves, Other engines.
ORDER: Final = ("serve", "engines")


class ServerPage(TabbedPage):
    """The Server page."""

    def __init__(
        self, serve: ServeTab, engines: EnginesTab, next_step: Observed[NextStep | None], navigation: Navigation
    ) -> None:
        """`next_step` is what suits the user better now, if anything. vLLM may be."""
        super().__init__("server", tr("Server"), tr("Sections of the Server page"), ORDER, QWidget())
        self.setObjectName("server.page")
        card = NextStepCard()
        card.command_asked.connect(navigation.vllm_command_asked)
        bind(card, next_step, card.show_step)
        self.set_alerts(card)
        self.add_tab("serve", tr("This PC serves"), serve)
        self.add_tab("engines", tr("Other engines"), engines)
