"""The model picker: the models on this PC with size, fit and state, and those of servers. Typing finds one."""

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt, Signal, SignalInstance
from PySide6.QtWidgets import QHBoxLayout, QLabel, QListWidgetItem, QVBoxLayout, QWidget

from qwendesk.core.model_titles import model_title
from qwendesk.core.observed import Observed
from qwendesk.core.paths import is_demo
from qwendesk.core.served_model import ServedChoice, is_served, served_model
from qwendesk.core.translation import tr
from qwendesk.engine.state import EngineState
from qwendesk.hub.library import LibraryModel
from qwendesk.models.fit import FitLabel
from qwendesk.models.model_list import ModelEntry
from qwendesk.models.view.model_texts import details_text, matches_search, owner_text
from qwendesk.models.view.offer_texts import fit_details, fit_word
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import IconButton, TextButton, describe, restyle
from qwendesk.widgets.layouts import FlowLayout
from qwendesk.widgets.popups import SearchPopover, set_spoken
from qwendesk.widgets.text_layout import ElidedLabel
from qwendesk.widgets.theme_keeper import current_theme

_WIDTH, _MOST_ROWS = 520, 6
# Rows that are built at most; of more models, users find theirs by typing.
_MOST_MATCHES = 50
# Height of a row in addition to its two lines of text.
_ROW_AIR = 30
# Stands for the built-in demo where a row has the path of its model.
_DEMO = ""


class ModelPicker(SearchPopover):
    """Built each time it is opened. Closes when something is chosen. Lists the model that was used last first."""

    load_asked = Signal(str)
    """Path of a model."""
    served_asked = Signal(str)
    """A model of a server."""
    options_asked = Signal(str)
    """Path of a model whose load options the user wants to see, without loading it."""
    demo_asked = Signal()
    offers_asked = Signal()
    """Asks to show the models that fit this PC."""
    file_asked = Signal()
    server_asked = Signal()
    """Asks to add a server."""
    mmproj_asked = Signal()
    cancel_asked = Signal()

    def __init__(
        self,
        entries: Sequence[ModelEntry],
        fits: Observed[Mapping[str, FitLabel]],
        engine: Observed[EngineState],
        last: str,
        parent: QWidget,
        *,
        for_options: bool,
        demo_came_later: bool = False,
    ) -> None:
        """`last` is the path of the model that was used last; "" if there is none, or one before the built-in demo.

        With `for_options`, choosing a model shows its load options instead of loading it.
        """
        height = current_theme().px(13) + current_theme().px(12) + _ROW_AIR
        title = tr("Choose a model to set its load options") if for_options else tr("Choose a model")
        super().__init__("model.picker", title, parent, width=_WIDTH, row_height=height, most_rows=_MOST_ROWS)
        self._for_options = for_options
        self._entries: dict[str, ModelEntry] = {}
        self._engine, self._fits, self._last = engine.value, fits, last
        self._used_last = _DEMO if demo_came_later else last or None
        self._served: tuple[ServedChoice, ...] = ()
        self._rows: dict[str, tuple[PickerRow, QListWidgetItem]] = {}
        self.setAttribute(Qt.WidgetAttribute.WA_NoMouseReplay)  # a click on the button only closes the picker
        self.describe_parts(
            title if for_options else tr("Find a model"), tr("Search by name, quant or app"), tr("Models on this PC")
        )
        self.column.addLayout(self._buttons())
        self.show_entries(entries)
        bind(self, fits, self._show_fits)
        bind(self, engine, self._show_engine)

    def show_entries(self, entries: Sequence[ModelEntry]) -> None:
        """List these models of this PC."""
        usable = [each for each in entries if not (each.is_companion or each.model.problem)]
        usable.sort(key=lambda each: each.model.path != self._last)
        listed = {each.model.path: each for each in usable}
        is_changed = [each.model for each in listed.values()] != [each.model for each in self._entries.values()]
        self._entries = listed
        if is_changed and self.isVisible():
            self.refill()

    def show_served(self, choices: Sequence[ServedChoice]) -> None:
        """List the models of servers too, unless the picker is for load options: those have none."""
        served, last = list(choices), served_model(self._last)
        if last is not None and all(each.model != self._last for each in served):
            served.append(ServedChoice(self._last, model_title(self._last), last.address))
        served.sort(key=lambda each: each.model != self._last)
        self._served = () if self._for_options else tuple(served)
        if self.isVisible():
            self.refill()

    def fill(self, query: str) -> str:
        """Show the models that match `query`, the demo among them."""
        self._rows = {}
        if is_served(self._last):
            self._add_served(query)
        matching = [entry.model for entry in self._entries.values() if matches_search(entry, query)]
        for model in matching[:_MOST_MATCHES]:
            self._add(model.path, self._model_row(model.path, model.name, _details(model)))
        if not is_served(self._last):
            self._add_served(query)
        is_search = bool(query.strip())
        name, about = tr("Built-in demo"), tr("Always available, but knows only a few topics")
        if not self._for_options and all(word in f"{name} {about}".lower() for word in query.lower().split()):
            self._add(_DEMO, PickerRow(name, about))
        self._show_fits(self._fits.value)
        self._show_states()
        if is_search:
            return "" if self._rows else tr("No matching model")
        return "" if self._entries or self._served else tr("No models on this PC yet")

    def choose(self, key: str) -> None:
        if key == _DEMO:
            self.demo_asked.emit()
        elif is_served(key):
            self.served_asked.emit(key)
        elif self._for_options:
            self.options_asked.emit(key)
        else:
            self.load_asked.emit(key)

    def _add_served(self, query: str) -> None:
        for choice in [each for each in self._served if _matches(each, query)][:_MOST_MATCHES]:
            self._add(choice.model, PickerRow(choice.name, choice.details))

    def _model_row(self, path: str, name: str, details: str) -> "PickerRow":
        row = PickerRow(name, details, has_options=not self._for_options)
        row.options_asked.connect(self.close)
        row.options_asked.connect(lambda: self.options_asked.emit(path))
        return row

    def _buttons(self) -> FlowLayout:
        flow = FlowLayout()
        flow.addWidget(self._button("get", tr("Get models"), tr("See which models fit this PC"), self.offers_asked))
        tip = tr("Any Qwen3.5, 3.6 or 3.8 GGUF file on this PC")
        if not self._for_options:
            flow.addWidget(self._button("file", tr("Open a file…"), tip, self.file_asked))
            tip = tr("Use a model that runs on llama-server, Ollama, vLLM or another server")
            flow.addWidget(self._button("server", tr("Add a server…"), tip, self.server_asked))
        tip = tr("The vision file of the loaded model, so that it can see")
        self._mmproj = self._button("mmproj", tr("Add a vision file…"), tip, self.mmproj_asked)
        self._cancel = self._button("cancel", tr("Stop loading"), tr("Stop loading the model"), self.cancel_asked)
        flow.addWidget(self._mmproj)
        flow.addWidget(self._cancel)
        return flow

    def _button(self, name: str, text: str, tip: str, asked: SignalInstance) -> TextButton:
        button = TextButton(text)
        describe(button, f"model.picker.{name}", text, tip)
        button.clicked.connect(self.close)
        button.clicked.connect(asked)
        return button

    def _show_engine(self, engine: EngineState) -> None:
        """Show which model is loaded or being loaded, and the buttons for it."""
        self._engine = engine
        self._mmproj.setVisible(
            not self._for_options and engine.report is not None and _takes_mmproj(engine.report.options.model)
        )
        self._cancel.setVisible(not self._for_options and engine.is_loading)
        self._show_states()
        self.fit_height()

    def _show_states(self) -> None:
        for path, (row, item) in self._rows.items():
            row.show_state(self._state_of(path))
            set_spoken(item, row.accessibleName())

    def _state_of(self, path: str) -> str:
        """Return whether the model is loaded, being loaded or was used last, in a word; "" if none of these."""
        wanted, engine = self._engine.requested, self._engine
        if wanted is not None and (_DEMO if is_demo(wanted.model) else wanted.model) == path:
            if engine.report is not None:
                return tr("Loaded")
            if engine.is_loading:
                return tr("Loading")
        return tr("Used last") if path == self._used_last else ""

    def _add(self, path: str, row: "PickerRow") -> None:
        self._rows[path] = row, self.add_row(path, row, row.accessibleName())

    def _show_fits(self, fits: Mapping[str, FitLabel]) -> None:
        for path, (row, item) in self._rows.items():
            if path in fits:
                row.show_fit(fits[path])
                set_spoken(item, row.accessibleName())


class PickerRow(QWidget):
    """One model: its name and what it is, chips for its state and fit, and a button for its load options."""

    options_asked = Signal()

    def __init__(self, name: str, details: str, *, has_options: bool = False) -> None:
        super().__init__()
        self._name, self._details = name, details
        title = ElidedLabel("model.picker.name")
        title.setText(name)
        title.setToolTip(name)
        about = ElidedLabel("model.picker.details", kind="small")
        about.setText(details)
        about.setToolTip(details)
        self._state = _chip("state", "info")
        self._fit = _chip("fit", "plain")
        self._fit.setProperty("kind", "fit")
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(title)
        words.addWidget(about)
        line = QHBoxLayout(self)
        line.setContentsMargins(12, 4, 12, 4)
        line.setSpacing(8)
        line.addLayout(words, 1)
        for chip in (self._state, self._fit):
            line.addWidget(chip, 0, Qt.AlignmentFlag.AlignVCenter)
        if has_options:
            options = IconButton("settings", size=16, side=28)
            describe(
                options, f"model.picker.options.{name}", tr("Load options… {0}", name),
                tr("Set how this model loads, and see the memory it needs, without loading it"),
            )  # fmt: skip
            options.clicked.connect(self.options_asked)
            line.addWidget(options, 0, Qt.AlignmentFlag.AlignVCenter)
        self._update_name()

    def show_state(self, state: str) -> None:
        """Show whether the model is loaded; "" hides the chip."""
        self._state.setText(state)
        self._state.setVisible(bool(state))
        self._update_name()

    def show_fit(self, fit: FitLabel) -> None:
        text, tone = fit_word(fit)
        restyle(self._fit, "chip", tone)
        self._fit.setText(text)
        self._fit.setToolTip(fit_details(fit))
        self._fit.show()
        self._update_name()

    def _update_name(self) -> None:
        texts = (self._name, self._details, self._state.text(), self._fit.text())
        self.setAccessibleName(", ".join(text for text in texts if text))


def _matches(choice: ServedChoice, query: str) -> bool:
    text = f"{choice.name} {choice.details}".lower()
    return all(word in text for word in query.lower().split())


def _takes_mmproj(model: str) -> bool:
    return not (is_demo(model) or is_served(model))


def _chip(name: str, tone: str) -> QLabel:
    """Return a label of a row, hidden until it has a text."""
    chip = QLabel()
    chip.setObjectName(f"model.picker.{name}")
    chip.setProperty("chip", tone)
    chip.hide()
    return chip


def _details(model: LibraryModel) -> str:
    """Return "Q4_K_M · 20.5 GB · sees pictures · LM Studio"."""
    owner = model.place if model.origin == "opened" else owner_text(model)
    return tr("{0} · {1}", details_text(model), owner) if owner else details_text(model)
