"""The Load tab: memory needs and profiles at the top, the options below, and the reload button at the bottom."""

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QScrollArea, QVBoxLayout, QWidget

from qwendesk.core.flags import flag_note
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.engines.pending_load import PendingLoad, PendingLoadService
from qwendesk.engines.view.load_options import load_text
from qwendesk.engines.view.load_options.command_card import CommandCard
from qwendesk.engines.view.load_options.load_rows import LoadRows
from qwendesk.engines.view.load_options.memory_card import MemoryCard
from qwendesk.settings.service import SettingsService
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import ChevronButton, TextButton, describe, restyle
from qwendesk.widgets.controls import add_clear_button
from qwendesk.widgets.display_texts import load_options_text
from qwendesk.widgets.file_dialogs import ask_for_file, ask_where_to_save
from qwendesk.widgets.layouts import panel_scroll_area
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.popups import Menu
from qwendesk.widgets.tasks import window_tasks


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
        self._service, self._answer_options, self._tasks = service, answer_options, window_tasks()
        self._navigation = navigation
        self.setObjectName("inspector.load")
        self._memory_card = MemoryCard()
        self._memory_card.asked.connect(lambda: self._tasks.start(service.ask_engine()))
        self._unloaded = QLabel()
        self._unloaded.setProperty("kind", "small")
        self._unloaded.setWordWrap(True)
        self._unloaded.setTextFormat(Qt.TextFormat.PlainText)
        self._unloaded.setObjectName("inspector.load.unloaded")
        self._show_loaded = TextButton(tr("Show the loaded model"), kind="link")
        describe(
            self._show_loaded, "inspector.load.show_loaded", tr("Show the loaded model"),
            tr("Show the options of the model that is loaded now"),
        )  # fmt: skip
        self._show_loaded.clicked.connect(service.show_loaded)
        self._rows = LoadRows(service, settings)
        self._rows.refusal_changed.connect(lambda: self._show_load(service.pending))
        self._command = CommandCard("inspector.command")
        self._search = QLineEdit()
        self._search.setPlaceholderText(tr("Search options"))
        add_clear_button(self._search)
        describe(
            self._search,
            "inspector.load.search",
            tr("Search options"),
            tr("By name, help, or flag of llama.cpp, Ollama or vLLM"),
        )
        self._search.textChanged.connect(self._filter)
        self._flag_note = QLabel()
        self._flag_note.setProperty("kind", "small")
        self._flag_note.setWordWrap(True)
        self._flag_note.setObjectName("inspector.load.search.note")
        self._flag_note.hide()
        self._advanced = TextButton(tr("Advanced: all {0} flags", self._rows.n_advanced), kind="pill")
        self._advanced.setCheckable(True)
        describe(self._advanced, "inspector.load.advanced", tr("Advanced"), tr("Show all load options"))
        self._advanced.toggled.connect(self._filter)
        self._profiles = ProfileMenu(service)
        self._paste = TextButton(tr("Paste a command…"), kind="pill")
        describe(
            self._paste, "inspector.paste", tr("Paste a command…"),
            tr("See what a command for llama.cpp, Ollama or vLLM means here, and take it over"),
        )  # fmt: skip
        self._paste.clicked.connect(lambda: self._navigation.command_asked.emit(""))
        self._nothing = QLabel()
        self._nothing.setProperty("kind", "dim")
        self._nothing.setWordWrap(True)
        self._nothing.setObjectName("inspector.load.nothing")
        self._choose = TextButton(tr("Choose a model"))
        describe(
            self._choose,
            "inspector.load.choose",
            tr("Choose a model"),
            tr("See a model's load options without loading it"),
        )
        self._choose.clicked.connect(self._navigation.model_asked)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(_padded(self._unloaded))
        column.addWidget(_padded(self._show_loaded, stretches=False))
        column.addWidget(_padded(self._memory_card))
        column.addWidget(self._middle(), 1)
        column.addWidget(self._foot())
        bind(self, service.state, self.show_pending)
        bind(self, answer_options, self._show_command)
        self._filter()

    def show_pending(self, pending: PendingLoad) -> None:
        has_model = pending.requested is not None
        for widget in (self._memory_card, self._rows, self._command, self._search, self._advanced, self._foot_frame):
            widget.setVisible(has_model)
        self._profiles.setVisible(has_model)
        self._nothing.setText(load_options_text(pending.served_by) if pending.served_by else _nothing_text())
        self._nothing.setVisible(not has_model)
        self._choose.setVisible(not has_model)
        self._unloaded.setText(load_text.unloaded_text(pending))
        self._unloaded.setVisible(bool(self._unloaded.text()))
        self._show_loaded.setVisible(bool(pending.other_loaded))
        if not has_model:
            return
        self._rows.show_pending(pending)
        self._command.show_pending(pending, self._answer_options.value)
        self._profiles.show_pending(pending)
        self._show_load(pending)

    def _show_load(self, pending: PendingLoad) -> None:
        """Show the memory needs and what reloading does. Neither is known while an option has to be corrected."""
        to_correct = self._rows.to_correct
        self._memory_card.show_pending(pending, to_correct)
        text, sentence = load_text.reload_text(pending)
        is_bad = bool(to_correct or pending.conflicts or pending.refusal)
        self._reload.setText(text)
        self._reload.setVisible(pending.needs_reload or not pending.is_loaded or pending.is_waiting)
        self._reload.setEnabled(not is_bad and not pending.is_waiting)
        restyle(self._sentence, "kind", "error" if is_bad else "small")
        self._sentence.setText(pending.problem or sentence)
        self._sentence.setVisible(bool(self._sentence.text()))
        self._reset.setVisible(bool(pending.changed))
        self._foot_frame.setVisible(any(not each.isHidden() for each in (self._reload, self._sentence, self._reset)))

    def _show_command(self, options: GenerationOptions) -> None:
        if self._service.pending.requested is not None:
            self._command.show_pending(self._service.pending, options)

    def focus_option(self, key: str) -> None:
        """Scroll to the row of a basic option and focus its editor."""
        self._search.clear()
        row = self._rows.row(key)
        self._scrolled.ensureWidgetVisible(row, 0, 40)
        row.setFocus(Qt.FocusReason.TabFocusReason)

    def _middle(self) -> QScrollArea:
        inner = QWidget()
        column = QVBoxLayout(inner)
        column.setContentsMargins(16, 0, 12, 12)
        column.setSpacing(8)
        for widget in (self._nothing, self._choose, self._search, self._flag_note, self._rows):
            column.addWidget(widget)
        column.addWidget(self._advanced, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self._paste, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self._profiles)
        column.addWidget(self._command)
        column.addStretch(1)
        self._scrolled = panel_scroll_area(inner)
        return self._scrolled

    def _foot(self) -> QFrame:
        self._sentence = QLabel()
        self._sentence.setWordWrap(True)
        self._sentence.setObjectName("inspector.load.sentence")
        self._reload = TextButton(tr("Reload to apply"), kind="primary")
        describe(
            self._reload, "inspector.load.reload", tr("Reload to apply"),
            tr("Load the model again with these options, after the current answer"),
        )  # fmt: skip
        self._reload.clicked.connect(lambda: self._tasks.start(self._service.reload()))
        self._reset = TextButton(tr("Reset all"), kind="quiet")
        describe(self._reset, "inspector.load.reset", tr("Reset all"), tr("Set every option to its default"))
        self._reset.clicked.connect(self._rows.reset_all)
        buttons = QHBoxLayout()
        buttons.addWidget(self._reset)
        buttons.addStretch(1)
        buttons.addWidget(self._reload)
        self._foot_frame = QFrame()
        self._foot_frame.setProperty("kind", "foot")
        column = QVBoxLayout(self._foot_frame)
        column.setContentsMargins(16, 8, 16, 12)
        column.setSpacing(6)
        column.addWidget(self._sentence)
        column.addLayout(buttons)
        return self._foot_frame

    def _filter(self) -> None:
        query = self._search.text().strip()
        self._rows.filter(query, shows_advanced=self._advanced.isChecked())
        note = flag_note(query)
        if query and not note and not self._rows.shows_any:
            note = tr("No option found for “{0}”.", query)
        self._flag_note.setText(note)
        self._flag_note.setVisible(bool(note))


def _nothing_text() -> str:
    return tr("Choose a model to see the memory it needs and set how it loads. You can do that before you load it.")


def _padded(widget: QWidget, *, stretches: bool = True) -> QWidget:
    holder = QWidget()
    row = QHBoxLayout(holder)
    row.setContentsMargins(16, 0, 16, 0)
    row.addWidget(widget)
    if not stretches:
        row.addStretch(1)
    return holder


class ProfileMenu(QWidget):
    """A button with a menu. A text field appears when the user has to enter a name."""

    def __init__(self, service: PendingLoadService) -> None:
        super().__init__()
        self._service, self._tasks = service, window_tasks()
        self._names: tuple[str, ...] | None = None
        self._button = ChevronButton(tr("Profiles"), kind="quiet")
        describe(
            self._button, "inspector.profiles", tr("Profiles"),
            tr("Your changes are saved for this model. Save them under a name, or share them as a file."),
        )  # fmt: skip
        self._menu = Menu(self)
        self._button.setMenu(self._menu)
        self._name = QLineEdit()
        self._name.setPlaceholderText(tr("Name of the profile"))
        describe(self._name, "inspector.profiles.name", tr("Name of the profile"), tr("Enter saves it"))
        self._name.returnPressed.connect(self._save)
        self._save_button = TextButton(tr("Save"))
        describe(self._save_button, "inspector.profiles.save", tr("Save"), tr("Save the profile under this name"))
        self._save_button.clicked.connect(self._save)
        self._naming = QWidget()
        row = QHBoxLayout(self._naming)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._name, 1)
        row.addWidget(self._save_button)
        self._naming.hide()
        head = QHBoxLayout()
        head.addWidget(self._button)
        head.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(head)
        column.addWidget(self._naming)

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
        self._naming.show()
        self._name.setFocus()

    def _save(self) -> None:
        self._service.save_as(self._name.text())
        if not self._service.pending.problem:
            self._name.clear()
            self._naming.hide()

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
