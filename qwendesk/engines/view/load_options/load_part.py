"""The Load tab: a few questions about how the model is loaded, the memory that takes, and the way to all options."""

from pathlib import Path

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFrame, QLineEdit, QScrollArea, QWidget

from qwendesk.core.app_options import AppOptions
from qwendesk.core.errors import BadOption
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.observed import Observed
from qwendesk.core.settings import table
from qwendesk.core.translation import mark, tr
from qwendesk.engines.pending_load import PendingLoad
from qwendesk.engines.pending_load_service import PendingLoadService
from qwendesk.engines.view.load_options import load_text
from qwendesk.engines.view.load_options.memory_card import MemoryCard
from qwendesk.engines.view.load_options.options_sheet import OptionsSheet
from qwendesk.engines.view.load_options.panel_control import PanelControl, ReloadButton, VerdictLine
from qwendesk.settings.service import SettingsService
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import ChevronButton, describe
from qwendesk.widgets.display_texts import load_options_text
from qwendesk.widgets.file_dialogs import ask_for_file, ask_where_to_save
from qwendesk.widgets.kit import STRETCH, button, column, paragraph, row, rule
from qwendesk.widgets.layouts import FlowLayout, ResponsivePairLayout, panel_scroll_area, widget_with
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.popups import Menu
from qwendesk.widgets.rows.sliding_row import SlidingRow
from qwendesk.widgets.tasks import window_tasks

# The controls from top to bottom, by the option that each is about.
_KEYS = ("n_ctx", "n_gpu_layers", "type_k", "vision")
_RESERVES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
_ROOM = mark("Room for games")


class LoadPart(QWidget):
    """The Load tab. `answer_options` are the generation options of the open chat, for the commands."""

    def __init__(
        self,
        service: PendingLoadService,
        settings: SettingsService,
        answer_options: Observed[GenerationOptions],
        navigation: Navigation,
    ) -> None:
        super().__init__()
        self._service, self._settings, self._answer_options = service, settings, answer_options
        self._navigation, self._tasks = navigation, window_tasks()
        self.setObjectName("inspector.load")
        self._unloaded = paragraph(kind="small", name="inspector.load.unloaded")
        self._show_loaded = button(
            tr("Show the loaded model"), "inspector.load.show_loaded", kind="link",
            tip=tr("Show the options of the model that is loaded now"),
        )  # fmt: skip
        self._show_loaded.clicked.connect(service.show_loaded)
        self._memory_card = MemoryCard()
        self._memory_card.asked.connect(lambda: self._tasks.start(service.ask_engine()))
        self._controls = {key: self._make_control(key) for key in _KEYS}
        self._reserve = self._reserve_row()
        self._nothing = paragraph(kind="dim", name="inspector.load.nothing")
        self._choose = button(
            tr("Choose a model"), "inspector.load.choose", tip=tr("See a model's load options without loading it")
        )
        self._choose.clicked.connect(self._navigation.model_asked)
        self._middle = self._make_middle()
        above = column(self._unloaded, row(self._show_loaded, STRETCH), margins=(16, 0, 16, 4))
        self.setLayout(column(widget_with(above), self._middle, self._make_foot(), spacing=0))
        bind(self, settings.state, lambda options: self._reserve.show_value(options.reserve_gb))
        bind(self, service.state, self.show_pending)

    def show_pending(self, pending: PendingLoad) -> None:
        has_model = pending.requested is not None
        self._nothing.setText(load_options_text(pending.served_by) if pending.served_by else _nothing_text())
        self._nothing.setVisible(not has_model)
        self._choose.setVisible(not has_model)
        self._questions.setVisible(has_model)
        self._unloaded.setText(load_text.unloaded_text(pending))
        self._unloaded.setVisible(bool(self._unloaded.text()))
        self._show_loaded.setVisible(bool(pending.other_loaded))
        shown = {control.key: control for control in load_text.controls(pending)}
        for key, section in self._sections.items():
            section.setVisible(key in shown)
            if key in shown:
                self._controls[key].show_control(shown[key], is_changed=shown[key].is_changed(pending))
        self._room.setVisible(pending.has_gpu)
        self._profiles.show_pending(pending)
        self._show_load(pending)

    def _show_load(self, pending: PendingLoad) -> None:
        """Show the memory needs and what reloading does. Neither is known while a value has to be corrected."""
        to_correct = tr(self._reserve.entry.setting.label) if self._reserve.is_refused else ""
        self._memory_card.show_pending(pending, to_correct)
        verdict = load_text.verdict(pending, to_correct)
        self._verdict.show_verdict(verdict)
        self._reload.show_pending(pending, is_bad=verdict.is_bad)
        self._undo.setVisible(pending.needs_reload and not pending.is_waiting and not pending.is_loading)
        is_needed = verdict.text or not self._reload.isHidden()
        self._foot.setVisible(pending.requested is not None and bool(is_needed))

    def focus_option(self, key: str) -> None:
        """Scroll to the control of an option and focus it; show all options if it has none here."""
        control = self._controls.get(key)
        if control is None or self._sections[key].isHidden():
            self.show_options(key)
            return
        self._middle.ensureWidgetVisible(control, 0, 40)
        control.field.setFocus(Qt.FocusReason.TabFocusReason)

    def show_options(self, key: str = "") -> None:
        """Open the sheet with all options, at the option `key` if it is given. Do nothing without a model."""
        if self._service.pending.requested is not None:
            OptionsSheet(self._service, self._settings, self._answer_options, self.window(), key).open()

    def _make_control(self, key: str) -> PanelControl:
        control = PanelControl(f"inspector.load.{key}")
        control.chosen.connect(self._service.change)
        control.exact_asked.connect(lambda: self.show_options(key))
        return control

    def _reserve_row(self) -> SlidingRow:
        entry = table(AppOptions)["reserve_gb"]
        setting = msgspec.structs.replace(entry.setting, label=_ROOM, help="")
        made = SlidingRow(msgspec.structs.replace(entry, setting=setting), "inspector.load", _RESERVES)
        made.emphasise()
        made.show_remark(tr("Stays free on the GPU for games and other apps."))
        made.chosen.connect(self._change_reserve)
        made.reset_requested.connect(lambda: self._change_reserve(AppOptions().reserve_gb))
        made.refusal_changed.connect(lambda: self._show_load(self._service.pending))
        return made

    def _change_reserve(self, value: float) -> None:
        try:
            self._settings.change({"reserve_gb": float(value)})
        except BadOption as error:
            self._reserve.refuse(error.sentence)

    def _make_middle(self) -> QScrollArea:
        self._sections: dict[str, QWidget] = {}
        for key, control in self._controls.items():
            content = column(control, *([self._memory_card] if key == "n_gpu_layers" else []), rule(), spacing=8)
            self._sections[key] = widget_with(content)
        self._room = widget_with(column(self._reserve, rule(), spacing=0))
        options = button(
            tr("All options…"), "inspector.load.all",
            tip=tr("Search all options by their names, or by the flags of llama.cpp, Ollama or vLLM"),
        )  # fmt: skip
        options.clicked.connect(lambda _checked=False: self.show_options())
        paste = button(
            tr("Paste a command…"), "inspector.paste", kind="quiet",
            tip=tr("See what a command for llama.cpp, Ollama or vLLM means here, and take it over"),
        )  # fmt: skip
        paste.clicked.connect(lambda: self._navigation.command_asked.emit(""))
        self._profiles = ProfileMenu(self._service)
        more = FlowLayout()
        for each in (options, paste, self._profiles.button):
            more.addWidget(each)
        self._questions = widget_with(column(*self._sections.values(), self._room, more, self._profiles, spacing=12))
        content = column(
            self._nothing, row(self._choose, STRETCH), self._questions, STRETCH, margins=(16, 4, 12, 12)
        )  # fmt: skip
        return panel_scroll_area(widget_with(content))

    def _make_foot(self) -> QFrame:
        self._verdict = VerdictLine("inspector.load.sentence")
        self._reload = ReloadButton("inspector.load.reload", self._service)
        self._undo = button(
            tr("Undo"), "inspector.load.undo", kind="quiet", tip=tr("Go back to the options of the loaded model")
        )
        self._undo.clicked.connect(self._service.undo)
        buttons = ResponsivePairLayout(self._reload, self._undo, least=0)
        self._foot = QFrame()
        self._foot.setProperty("kind", "foot")
        self._foot.setLayout(column(self._verdict, buttons, margins=(16, 12, 16, 12)))
        return self._foot


def _nothing_text() -> str:
    return tr("Choose a model to see the memory it needs and set how it loads. You can do that before you load it.")


class ProfileMenu(QWidget):
    """The menu of `button`, and a text field that appears when the user has to enter a name."""

    def __init__(self, service: PendingLoadService) -> None:
        super().__init__()
        self._service, self._tasks = service, window_tasks()
        self._names: tuple[str, ...] | None = None
        self.button = ChevronButton(tr("Profiles"), kind="quiet")
        describe(
            self.button, "inspector.profiles", tr("Profiles"),
            tr("Your changes are saved for this model. Save them under a name, or share them as a file."),
        )  # fmt: skip
        self._menu = Menu(self)
        self.button.setMenu(self._menu)
        self._name = QLineEdit()
        self._name.setPlaceholderText(tr("Name of the profile"))
        describe(self._name, "inspector.profiles.name", tr("Name of the profile"), tr("Enter saves it"))
        self._name.returnPressed.connect(self._save)
        save = button(tr("Save"), "inspector.profiles.save", tip=tr("Save the profile under this name"))
        save.clicked.connect(self._save)
        self.setLayout(row(self._name, save))
        self.hide()

    def show_pending(self, pending: PendingLoad) -> None:
        if pending.profiles != self._names:
            self._names = pending.profiles
            self._fill(pending.profiles)

    def _fill(self, names: tuple[str, ...]) -> None:
        menu, service = self._menu, self._service
        menu.clear()
        for name in names:
            self._action(name, f"use.{name}").triggered.connect(lambda _c=False, name=name: service.use(name))
        if names:
            menu.addSeparator()
        self._action(tr("Save as…"), "saveas").triggered.connect(self._begin_naming)
        for name in names:
            action = self._action(tr("Delete {0}", name), f"delete.{name}")
            action.triggered.connect(lambda _c=False, name=name: service.delete(name))
        menu.addSeparator()
        self._action(tr("Export to a file…"), "export").triggered.connect(self._export)
        self._action(tr("Import a file…"), "import").triggered.connect(self._import)

    def _action(self, text: str, name: str) -> QAction:
        action = self._menu.addAction(text)
        action.setObjectName(f"inspector.profiles.{name}")
        return action

    def _begin_naming(self) -> None:
        self.show()
        self._name.setFocus()

    def _save(self) -> None:
        self._service.save_as(self._name.text())
        if not self._service.pending.problem:
            self._name.clear()
            self.hide()

    def _export(self) -> None:
        def export(file: str) -> None:
            self._tasks.start(self._service.export(Path(file)))

        title = tr("Export the profile")
        ask_where_to_save(self, "inspector.profiles.export_dialog", title, "profile.json", export)

    def _import(self) -> None:
        def import_from(file: str) -> None:
            self._tasks.start(self._service.import_file(Path(file)))

        filters = [tr("Profiles (*.json)"), tr("All files (*)")]
        ask_for_file(self, "inspector.profiles.import_dialog", tr("Import a profile"), filters, import_from)
