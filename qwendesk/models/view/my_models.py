"""The tab "My models": every model file on this PC, its state, and its actions."""

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QAction, QDesktopServices, QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QScrollArea, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes
from qwendesk.engine.state import EngineState
from qwendesk.hub.library import LibraryModel
from qwendesk.hub.library_places import SearchFolder
from qwendesk.hub.model_deletion import ModelDeletion
from qwendesk.hub.model_import import How
from qwendesk.models.library_service import LibraryState
from qwendesk.models.model_list import ModelEntry
from qwendesk.models.services import ModelServices
from qwendesk.models.view.model_actions import ModelActions, ask_deletion
from qwendesk.models.view.model_row import ModelRow
from qwendesk.models.view.model_texts import matches_search, total_text
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.buttons import IconButton, TextButton, describe
from qwendesk.widgets.controls import add_clear_button
from qwendesk.widgets.file_dialogs import ask_for_folder
from qwendesk.widgets.layouts import SCROLL_BAR, DensitySpacing, FlowLayout, ResponsivePairLayout, steady_scroll_area
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.popups import Menu
from qwendesk.widgets.tabbed_page import BELOW, OWN_SCROLL
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.text_layout import ElidedLabel

# Rows created at a time. More are created while scrolling, so that hundreds of models open quickly.
_ROWS_AT_ONCE = 16
_NEAR_END_PX = 600
_MIN_SEARCH_WIDTH = 180


class MyModels(QWidget):
    """The tab "My models", with its own scroll area."""

    def __init__(self, services: ModelServices, actions: ModelActions, navigation: Navigation) -> None:
        super().__init__()
        self._services, self._actions, self._navigation = services, actions, navigation
        self._entries: tuple[ModelEntry, ...] = ()
        self._rows: dict[str, ModelRow] = {}
        self._n_created = 0
        self._n_wanted = _ROWS_AT_ONCE
        self.setObjectName("models.my")
        self._empty = NoModels()
        self._empty.folder_asked.connect(self.choose_folder)
        self._empty.file_asked.connect(navigation.model_file_asked)
        self._empty.offers_asked.connect(lambda: navigation.models_tab_asked.emit("pc"))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        top = QVBoxLayout()
        top.setContentsMargins(0, 0, OWN_SCROLL, 0)
        top.setSpacing(12)
        top.addLayout(self._tools())
        top.addWidget(self._notice_line())
        column.addLayout(top)
        column.addWidget(self._empty, 1)
        column.addWidget(self._list(), 1)
        self._loaded = ""
        actions.noticed.connect(self._show_notice)
        actions.deletion_asked.connect(self._ask_deletion)
        bind_field(self, services.engine.observed, _loaded_file, self._show_loaded)
        bind(self, services.library.state, self._show_library)
        bind_field(self, services.list.state, lambda state: state.entries, self._show_entries)
        bind_field(self, services.library.state, lambda state: state.library.models, lambda _: self._update_fits())
        bind_field(self, services.offers.state, lambda state: state.pc, lambda _: self._update_fits())
        bind(self, services.fits.state, lambda _: self._show_fits())
        bind(self, services.speeds, lambda _: self._show_fits())

    @property
    def rows(self) -> dict[int, ModelEntry]:
        """Return the entries that are shown, by the number in the object names of their controls."""
        return {row.number: row.entry for row in self._rows.values() if row.entry is not None}

    def choose_folder(self) -> None:
        choose_folder(self, tr("Choose a folder with models"), self._actions.use_in_place)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not event.spontaneous():
            self._actions.refresh()
            self._update_fits()

    def _tools(self) -> ResponsivePairLayout:
        self._search = QLineEdit()
        describe(self._search, "models.my.search", tr("Find a model"), tr("Search by name, quant or app"))
        self._search.setPlaceholderText(tr("Find a model"))
        add_clear_button(self._search)
        self._search.setMinimumWidth(_MIN_SEARCH_WIDTH)
        self._search.setMaximumWidth(260)
        self._search.textChanged.connect(self._on_search)
        self._total = QLabel()
        self._total.setObjectName("models.my.total")
        self._total.setProperty("kind", "dim")
        self._apps = TextButton(tr("Include other apps"), kind="pill")
        self._apps.setCheckable(True)
        describe(
            self._apps, "models.my.apps", tr("Include other apps"),
            tr("Also show models from LM Studio, Ollama, Open WebUI, Jan, llama.cpp and the Hugging Face cache"),
        )  # fmt: skip
        self._apps.clicked.connect(self._actions.include_other_apps)
        compare = TextButton(tr("Check for updates"), icon_name="again")
        describe(
            compare, "models.my.compare", tr("Check for updates"), tr("Check Hugging Face for newer files"),
        )  # fmt: skip
        compare.clicked.connect(self._actions.check_for_updates)
        folder = TextButton(tr("Add folder…"), icon_name="folder")
        describe(folder, "models.my.folder", tr("Add folder…"), tr("Use the models in a folder without copying them"))
        folder.clicked.connect(self.choose_folder)
        search_row, tools = QWidget(), QWidget()
        row = QHBoxLayout(search_row)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self._search, 1)
        row.addWidget(self._total)
        row.addStretch(1)
        flow = FlowLayout(tools)
        for button in (folder, self._apps, compare):
            flow.addWidget(button)
        return ResponsivePairLayout(search_row, tools, least=0)

    def _notice_line(self) -> QWidget:
        self._notice_text = QLabel()
        self._notice_text.setObjectName("models.my.notice")
        self._notice_text.setTextFormat(Qt.TextFormat.PlainText)
        self._notice_text.setWordWrap(True)
        close = IconButton("close", size=16, side=28)
        describe(close, "models.my.notice.dismiss", tr("Dismiss"))
        self._notice = QFrame()
        self._notice.setProperty("kind", "attachment")
        close.clicked.connect(self._notice.hide)
        row = QHBoxLayout(self._notice)
        row.setContentsMargins(14, 6, 8, 6)
        row.addWidget(self._notice_text, 1)
        row.addWidget(close)
        self._notice.hide()
        return self._notice

    def _list(self) -> QScrollArea:
        inner = QWidget()
        inner.setProperty("kind", "column")
        self._column = QVBoxLayout(inner)
        self._column.setContentsMargins(0, 0, OWN_SCROLL - SCROLL_BAR, BELOW)
        self._column.setSpacing(10)
        DensitySpacing(self._column)
        self._column.addStretch(1)
        self._area = steady_scroll_area(inner)
        bar = self._area.verticalScrollBar()
        bar.valueChanged.connect(self._on_scroll)
        bar.rangeChanged.connect(self._on_scroll)
        return self._area

    def _show_loaded(self, path: str) -> None:
        self._loaded = path
        self._refresh()

    def _show_library(self, state: LibraryState) -> None:
        self._apps.setChecked(state.folders.other_apps)
        self._empty.show_looking(is_looking=not state.is_scanned)
        self._empty.show_searched(state.searched)

    def _show_entries(self, entries: tuple[ModelEntry, ...]) -> None:
        self._entries = entries
        self._total.setText(total_text(entries))
        self._empty.setVisible(not entries)
        self._area.setVisible(bool(entries))
        self._search.setEnabled(bool(entries))
        self._refresh()

    def _refresh(self) -> None:
        self._show_rows([entry for entry in self._entries if matches_search(entry, self._search.text())])

    def _show_rows(self, entries: list[ModelEntry]) -> None:
        """Show rows for the first entries. A row that stays keeps its widgets and the keyboard focus."""
        shown = {entry.model.path: entry for entry in entries[: self._n_wanted]}
        for path in [path for path in self._rows if path not in shown]:
            row = self._rows.pop(path)
            self._column.removeWidget(row)
            row.deleteLater()
        for index, (path, entry) in enumerate(shown.items()):
            row = self._rows.get(path) or self._new_row(path)
            if self._column.indexOf(row) != index:
                self._column.insertWidget(index, row)
            row.show_entry(entry, is_loaded=path == self._loaded)
        self._show_fits()
        self._has_more = len(entries) > len(shown)

    def _update_fits(self) -> None:
        if self.isVisible():
            window_tasks().start(self._services.fits.update())

    def _show_fits(self) -> None:
        """Show on each row how the model would run, and its measured speed."""
        fits, speeds = self._services.fits.state.value, self._services.speeds.value
        for path, row in self._rows.items():
            row.show_speed(speeds.get(Path(path).name))
            is_model = row.entry is not None and not row.entry.is_companion and not row.entry.model.problem
            row.show_fit(fits.get(path) if is_model else None)

    def _new_row(self, path: str) -> ModelRow:
        self._n_created += 1
        row = self._rows[path] = ModelRow(self._n_created)
        row.load_asked.connect(lambda: self._actions.load(path))
        row.chat_asked.connect(self._navigation.chat_asked)
        row.verify_asked.connect(lambda: self._actions.verify(path))
        row.cancel_asked.connect(lambda: self._actions.cancel(path))
        row.fix_asked.connect(lambda fix: self._actions.fix(path, fix))
        row.menu_asked.connect(lambda button: self._open_menu(path, button))
        return row

    def _open_menu(self, path: str, button: QWidget) -> None:
        entry = self._rows[path].entry
        if entry is not None:
            menu = RowMenu(self._actions, entry, self._services.library.state.value, self)
            menu.open_at(button, is_right_aligned=True)

    def _on_search(self, _text: str) -> None:
        self._n_wanted = _ROWS_AT_ONCE
        self._refresh()

    def _on_scroll(self) -> None:
        bar = self._area.verticalScrollBar()
        if self._has_more and bar.maximum() - bar.value() < _NEAR_END_PX:
            self._has_more = False
            self._n_wanted += _ROWS_AT_ONCE
            QTimer.singleShot(0, self, self._refresh)

    def _show_notice(self, sentence: str) -> None:
        self._notice_text.setText(sentence)
        self._notice.show()

    def _ask_deletion(self, deletion: ModelDeletion, trash_refused: str) -> None:
        ask_deletion(self._actions, deletion, self, trash_refused=trash_refused)


class NoModels(QWidget):
    """Shown instead of the list while there are no models."""

    folder_asked = Signal()
    file_asked = Signal()
    offers_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("models.my.empty")
        self._title = QLabel()
        self._title.setProperty("kind", "heading")
        self._title.setObjectName("models.my.empty.title")
        self._text = QLabel(
            tr(
                "Models from LM Studio, Jan and others are found automatically and used in place. If you keep models "
                "elsewhere, add their folder."
            )
        )
        self._text.setProperty("kind", "lead")
        self._text.setWordWrap(True)
        offers = TextButton(tr("Show what fits this PC"))
        describe(offers, "models.my.empty.offers", tr("Show what fits this PC"))
        offers.clicked.connect(self.offers_asked)
        folder = TextButton(tr("Add folder…"), kind="primary")
        describe(
            folder, "models.my.empty.folder", tr("Add folder…"), tr("Use the models in a folder without copying them")
        )
        folder.clicked.connect(self.folder_asked)
        file = TextButton(tr("Open a file…"))
        describe(file, "models.my.empty.file", tr("Open a file…"), tr("Any Qwen3.5, 3.6 or 3.8 GGUF file on this PC"))
        file.clicked.connect(self.file_asked)
        buttons = FlowLayout()
        buttons.addWidget(folder)
        buttons.addWidget(file)
        buttons.addWidget(offers)
        searched = QWidget()
        searched.setObjectName("models.my.empty.searched")
        self._searched = QVBoxLayout(searched)
        self._searched.setContentsMargins(0, 12, 0, 0)
        self._searched.setSpacing(4)
        heading = QLabel(tr("Searched folders"))
        heading.setProperty("kind", "small")
        self._searched.addWidget(heading)
        self._places: list[ElidedLabel] = []
        column = QVBoxLayout()
        column.setSpacing(12)
        column.addStretch(2)
        column.addWidget(self._title)
        column.addWidget(self._text)
        column.addLayout(buttons)
        column.addWidget(searched)
        column.addStretch(5)
        holder = QWidget()
        holder.setMaximumWidth(560)
        holder.setLayout(column)
        row = QHBoxLayout(self)
        row.addStretch(1)
        row.addWidget(holder, 1000)
        row.addStretch(1)
        self._actions_shown = (self._text, offers, folder, file, searched)

    def show_looking(self, *, is_looking: bool) -> None:
        self._title.setText(tr("Searching for models…") if is_looking else tr("No models on this PC yet"))
        for each in self._actions_shown:
            each.setVisible(not is_looking)

    def show_searched(self, places: Sequence[SearchFolder]) -> None:
        """Show the folders in which no model was found."""
        for label in self._places:
            self._searched.removeWidget(label)
            label.deleteLater()
        self._places = [ElidedLabel(f"models.my.empty.place.{number}", kind="dim") for number in range(len(places))]
        for label, place in zip(self._places, places, strict=True):
            label.setText(tr("{0} ({1})", place.path, place.app))
            label.setToolTip(label.text())
            self._searched.addWidget(label)


class RowMenu(Menu):
    """The menu of one model, created each time it opens. A file of another app can only be copied."""

    def __init__(self, actions: ModelActions, entry: ModelEntry, library: LibraryState, parent: QWidget) -> None:
        super().__init__(parent)
        self._actions, self._entry, self._library, self._page = actions, entry, library, parent
        self.setObjectName("models.my.menu")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setToolTipsVisible(True)
        model, is_idle = entry.model, entry.progress is None
        if not entry.is_companion and not model.problem:
            options = self._add("options", tr("Load options…"), lambda: actions.show_options(model.path))
            options.setToolTip(tr("Set how this model loads, and see the memory it needs, without loading it"))
            self.addSeparator()
        verify = self._add("verify", tr("Verify whole file"), lambda: actions.verify(model.path))
        verify.setToolTip(tr("Compute the SHA-256 and compare it with Hugging Face"))
        verify.setEnabled(is_idle)
        self._add("show", tr("Show in folder"), self._show_in_folder)
        self._add_move(model, is_enabled=is_idle and not model.problem)
        self.addSeparator()
        if model.path in library.folders.opened:
            forget = self._add("forget", tr("Remove from this list"), lambda: actions.forget_opened(model.path))
            forget.setToolTip(tr("The file stays where it is."))
        delete = self._add("delete", tr("Delete…"), lambda: actions.ask_to_delete(model.path))
        delete.setEnabled(is_idle and model.writable)
        if not model.writable:
            delete.setToolTip(tr("This file belongs to another app. Delete it there."))

    def _add(self, name: str, text: str, run: Callable[[], None]) -> QAction:
        action = QAction(text, self)
        action.setObjectName(f"models.my.menu.{name}")
        action.triggered.connect(lambda _checked=False: run())
        self.addAction(action)
        return action

    def _add_move(self, model: LibraryModel, *, is_enabled: bool) -> None:
        how: How = "move" if model.writable else "copy"
        title = tr("Move to") if how == "move" else tr("Copy to QwenDesk's folder")
        menu = self.add_submenu(title, "models.my.menu.bring")
        menu.setEnabled(is_enabled)
        menu.setToolTipsVisible(True)
        for index, folder in enumerate(self._library.folders.models, 1):
            if folder == model.place:
                continue
            free = self._library.free_bytes.get(folder)
            name = folder.replace("&", "&&")
            action = menu.addAction(name if free is None else tr("{0} ({1} free)", name, show_bytes(free)))
            action.setObjectName(f"models.my.menu.bring.{index}")
            if free is not None and free < model.n_bytes:
                action.setEnabled(False)
                action.setToolTip(tr("Not enough space: {0} more needed", show_bytes(model.n_bytes - free)))
            action.triggered.connect(lambda _checked=False, to=folder: self._actions.move(model.path, to, how))
        other = menu.addAction(tr("Another folder…"))
        other.setObjectName("models.my.menu.bring.other")
        other.triggered.connect(
            lambda: choose_folder(
                self._page,
                tr("Choose a models folder"),
                lambda to: self._actions.move(model.path, to, how),
            )
        )

    def _show_in_folder(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(Path(self._entry.model.path).parent)))


def choose_folder(parent: QWidget, title: str, chosen: Callable[[str], None]) -> None:
    """Open a folder dialog. `chosen` is called with the path, or not at all if the user cancels."""
    ask_for_folder(parent, "models.folder.dialog", title, chosen, kind="models")


def _loaded_file(state: EngineState) -> str:
    return state.report.options.model if state.report is not None else ""
