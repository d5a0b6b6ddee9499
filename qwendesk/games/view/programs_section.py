"""The programs with a rule of their own on the settings page."""

from functools import partial

from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from qwendesk.core.app_options import AppOptions, GameAction, ProgramRule
from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.engine.state import EngineState
from qwendesk.games.rules import programs_on_gpus
from qwendesk.games.service import GameMode
from qwendesk.meters.meter_state import MeterState
from qwendesk.widgets.bind import bind_field
from qwendesk.widgets.buttons import IconButton, TextButton, describe
from qwendesk.widgets.controls import ComboBox
from qwendesk.widgets.layouts import FlowLayout
from qwendesk.widgets.popups import Menu
from qwendesk.widgets.rows.option_texts import choice_text
from qwendesk.widgets.rows.titled_card import TitledCard
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.text_layout import ElidedLabel

_WORDS = "games programs game mode list rules unload experts keep vram full screen steam"
_NAME = "settings.programs"


class ProgramsSection(TitledCard):
    """Shows and changes the rules of game mode for single programs."""

    def __init__(
        self,
        game: GameMode,
        options: Observed[AppOptions],
        engine: Observed[EngineState],
        meters: Observed[MeterState],
    ) -> None:
        super().__init__(_NAME, tr("Programs with a rule of their own"), _WORDS)
        self._game, self._engine, self._meters, self._tasks = game, engine, meters, window_tasks()
        self._lines: list[QFrame] = []
        self._choices: list[ComboBox] = []
        self._shown: tuple[tuple[str, tuple[GameAction, ...]], ...] = ()
        """The names of the lines and what they offer."""
        note = QLabel(tr("What the model does while one of these runs, however much memory is free."))
        note.setProperty("kind", "small")
        note.setWordWrap(True)
        note.setContentsMargins(16, 8, 16, 4)
        self._list = QVBoxLayout()
        self._list.setSpacing(0)
        self._list.setContentsMargins(0, 0, 0, 0)
        box = QWidget()
        box.setLayout(self._list)
        self.add(note)
        self.add(box)
        self.add(self._make_adding())
        bind_field(self, options, lambda each: each.game_programs, self._show)
        bind_field(self, engine, _may_have_gpu, lambda _may: self._show(options.value.game_programs))

    def _show(self, rules: tuple[ProgramRule, ...]) -> None:
        shown = tuple((rule.name, self._actions(rule)) for rule in rules)
        if shown != self._shown:  # otherwise the keyboard's focus stays where it is
            self._make_lines(rules)
            self._shown = shown
        for rule, choice in zip(rules, self._choices, strict=True):
            choice.setCurrentIndex(self._actions(rule).index(rule.action))

    def _make_lines(self, rules: tuple[ProgramRule, ...]) -> None:
        self._choices = []
        for line in self._lines:
            self._list.removeWidget(line)
            line.setParent(None)
            line.deleteLater()
        self._lines = [self._line(f"{_NAME}.{place}", rule) for place, rule in enumerate(rules, 1)]
        for line in self._lines:
            self._list.addWidget(line)

    def _line(self, name: str, rule: ProgramRule) -> QFrame:
        line = QFrame()
        line.setObjectName(name)
        program = ElidedLabel(f"{name}.program")
        program.setText(rule.name)
        program.setToolTip(rule.name)
        choice = ComboBox()
        actions = self._actions(rule)
        for action in actions:
            choice.addItem(choice_text(action))
        self._choices.append(choice)
        describe(choice, f"{name}.action", tr("While {0} runs", rule.name), tr("What the model does meanwhile"))
        choice.activated.connect(lambda index: self._game.set_rule(rule.name, actions[index]))
        remove = IconButton("close", size=16, side=28)
        describe(remove, f"{name}.remove", tr("Remove {0}", rule.name), tr("Remove this program from the list"))
        remove.clicked.connect(lambda: self._game.set_rule(rule.name, None))
        row = QHBoxLayout(line)
        row.setContentsMargins(16, 6, 8, 6)
        row.setSpacing(8)
        row.addWidget(program, 1)
        row.addWidget(choice)
        row.addWidget(remove)
        return line

    def _actions(self, rule: ProgramRule) -> tuple[GameAction, ...]:
        """Return what can be chosen: experts can only move where there is a GPU that they are on."""
        may_move = _may_have_gpu(self._engine.value) or rule.action == "experts"
        return ("unload", "experts", "keep") if may_move else ("unload", "keep")

    def _make_adding(self) -> QWidget:
        self._field = QLineEdit()
        self._field.setPlaceholderText(tr("Program name"))
        describe(
            self._field,
            f"{_NAME}.field",
            tr("Program name"),
            tr("The program's file name, as the task manager shows it"),
        )
        add = TextButton(tr("Add"))
        describe(add, f"{_NAME}.add", tr("Add"), tr("Add this program to the list"))
        add.setEnabled(False)
        choose = TextButton(tr("Choose a running program…"))
        describe(
            choose,
            f"{_NAME}.choose",
            tr("Choose a running program…"),
            tr("Programs that use the GPU now. Where that isn't known, those started last."),
        )
        self._field.textChanged.connect(lambda text: add.setEnabled(bool(text.strip())))
        self._field.returnPressed.connect(self._add_typed)
        add.clicked.connect(self._add_typed)
        choose.clicked.connect(lambda: self._tasks.start(self._choose(choose), self))
        box = QWidget()
        typing = QHBoxLayout()
        typing.setSpacing(8)
        typing.addWidget(self._field, 1)
        typing.addWidget(add)
        choosing = FlowLayout()
        choosing.addWidget(choose)
        column = QVBoxLayout(box)
        column.setContentsMargins(16, 6, 16, 8)
        column.setSpacing(6)
        column.addLayout(typing)
        column.addLayout(choosing)
        return box

    def _add_typed(self) -> None:
        name = self._field.text().strip()
        if name:
            self._field.clear()
            self._game.set_rule(name, "unload")

    async def _choose(self, button: TextButton) -> None:
        """Open a menu of the programs that use a GPU; of those started last if the system doesn't tell which do."""
        names = programs_on_gpus(self._meters.value) or await self._game.started_names()
        menu = Menu(self)
        menu.setObjectName(f"{_NAME}.menu")
        for name in names:
            action = menu.addAction(name)
            action.triggered.connect(partial(self._game.set_rule, name, "unload"))
        menu.aboutToHide.connect(menu.deleteLater)
        menu.open_at(button)


def _may_have_gpu(state: EngineState) -> bool:
    """Return False if the engine knows no GPU with memory of its own."""
    return not state.devices or any(device.kind == "gpu" and not device.shares_ram for device in state.devices)
