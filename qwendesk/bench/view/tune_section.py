"""Make it faster: finds faster load options, and shows what they gain, what they change, and what was tried."""

from PySide6.QtWidgets import QFrame, QWidget

from qwendesk.bench.auto_tune import LONGEST_S, AutoTune, TuneState
from qwendesk.bench.bench_engine import BenchFailure
from qwendesk.bench.bench_runs import chosen_file
from qwendesk.bench.tune_text import (
    changes_sentence,
    main_gain,
    other_sentence,
    progress_text,
    result_sentence,
    tune_lines,
)
from qwendesk.bench.view.result_table import TextTable
from qwendesk.bench.view.run_parts import BusyCard, ComparedBars, RunStatus
from qwendesk.core.model_titles import model_title
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.translation import join_sentences, tr
from qwendesk.engine.state import EngineState
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.buttons import TextButton, describe, restyle
from qwendesk.widgets.controls import Switch
from qwendesk.widgets.kit import GAP, STRETCH, Fold, button, card, column, label, paragraph, row
from qwendesk.widgets.layouts import FlowLayout, horizontal_group, widget_with
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.text_layout import ElidedLabel

_GAIN = 3


class TuneSection(QWidget):
    """Tunes the chosen model and shows what was tried and found."""

    def __init__(self, tune: AutoTune, engine: Observed[EngineState]) -> None:
        super().__init__()
        self._tune, self._tasks = tune, window_tasks()
        self.setObjectName("tune")
        self._state = TuneState()
        self._chosen: LoadOptions | None = None
        self._loaded_cache = ""
        """Type of the loaded model's KV cache; "" while none is loaded."""
        self._is_kept = False
        """Whether the user keeps their own settings instead of what was found."""
        self.note = ElidedLabel("tune.note", kind="dim")
        self._run = TextButton()
        self._run.clicked.connect(self.begin)
        self.corner = horizontal_group(self._run)
        self._words = paragraph(kind="lead", name="tune.words")
        self._status = RunStatus("tune")
        self._busy = BusyCard("tune", tr("Stop and show the best so far"))
        self._busy.stop_asked.connect(tune.stop)
        self._busy.ended.connect(self._show_all)
        self._result_card = self._make_result()
        self._choice = self._make_choice()
        self._table = TextTable("tune.table", (tr("Setting"), tr("Answers, tok/s"), tr("Prompts, tok/s"), tr("Result")))
        self._tried = Fold("tune.tried", tr("What was tried"), self._table)
        self.setLayout(
            column(
                self._words, self._status, self._busy, self._result_card, self._choice, self._tried, STRETCH,
                spacing=GAP,
            )
        )  # fmt: skip
        bind(self, tune.state, self.show_state, every_ms=60)
        bind_field(self, engine, chosen_file, self.set_model)
        bind_field(self, engine, _cache_type, self._show_cache)

    @property
    def state(self) -> TuneState:
        """The state that is shown."""
        return self._state

    @property
    def _is_in_use(self) -> bool:
        """Whether the chosen model has the options that the user chose to use."""
        chosen, state = self._chosen, self._state
        if state.used is None or state.options is None or chosen is None or chosen.model != state.options.model:
            return False
        return all(getattr(chosen, key) == value for key, value in state.used.changes.items())

    @property
    def _has_small_cache(self) -> bool:
        """Whether the chat memory is small already, by the user's choice or by the plan."""
        chosen, state = self._chosen, self._state
        types = {self._loaded_cache, chosen.type_k if chosen is not None else ""}
        if chosen is not None and state.plan is not None and state.options == chosen:
            types.add(state.plan.options.type_k)
        return any(each.startswith("q") for each in types)

    def _show_cache(self, cache_type: str) -> None:
        self._loaded_cache = cache_type
        self._show_all()

    def set_model(self, chosen: LoadOptions | None) -> None:
        """Show which model the next run tunes; None if none is chosen."""
        self._chosen = chosen
        self._show_all()

    def begin(self) -> None:
        """Tune the chosen model."""
        if self._chosen is not None:
            may_change_answers = self._switch.isChecked() and not self._has_small_cache
            self._tasks.start(self._tune.run(self._chosen, may_change_answers=may_change_answers))

    def show_state(self, state: TuneState) -> None:
        self._is_kept = self._is_kept and not state.is_running
        has_begun = state.is_running and not self._busy.is_wanted
        self._state = state
        self._busy.show_running(is_running=state.is_running)
        self._show_all()
        if has_begun and self.isVisible():
            self._busy.focus_stop()

    def _make_result(self) -> QFrame:
        self._result = paragraph(kind="result", name="tune.result", selectable=True)
        self._bars = ComparedBars("tune")
        self._changes = paragraph(kind="body", name="tune.changes", selectable=True)
        self._use = button(tr("Use these"), "tune.use", kind="primary", tip=tr("Save them as the profile “Auto-tuned”"))
        self._use.clicked.connect(lambda: self._on_use(0))
        self._other = paragraph(kind="body", name="tune.other", selectable=True)
        self._use_other = button(
            tr("Use faster answers"), "tune.use_other", tip=tr("Save them as the profile “Auto-tuned”")
        )
        self._use_other.clicked.connect(lambda: self._on_use(1))
        self._keep = button(tr("Keep mine"), "tune.keep", tip=tr("Change nothing"))
        self._keep.clicked.connect(self._on_keep)
        buttons = FlowLayout()
        for each in (self._use, self._use_other, self._keep):
            restyle(each, "big", "true")
            buttons.addWidget(each)
        self._buttons = widget_with(buttons)
        parts = (self._result, self._bars, self._changes, self._other, self._buttons)
        return card(column(*parts, spacing=12), "hero")

    def _make_choice(self) -> QWidget:
        self._switch = Switch()
        text = tr("Also try a smaller chat memory (q8_0)")
        describe(self._switch, "tune.cache", text, tr("Answers change a little, and formulas in long chats may suffer"))
        words = label(text)
        words.setBuddy(self._switch)
        return widget_with(row(self._switch, words, STRETCH))

    def _on_use(self, place: int) -> None:
        self._run.setFocus()
        self._use.setEnabled(False)
        self._use_other.setEnabled(False)
        self._tasks.start(self._tune.use(self._state.offers[place]))

    def _on_keep(self) -> None:
        self._run.setFocus()
        self._is_kept = True
        self._show_all()

    def _show_all(self) -> None:
        state, is_busy = self._state, self._busy.is_wanted
        model = state.options.model if state.options is not None and (is_busy or state.trials) else ""
        chosen = self._chosen.model if self._chosen is not None else ""
        self.note.setText(model_title(model or chosen) if model or chosen else "")
        self._words.setText(_words(self._chosen))
        self._words.setVisible(state.options is None and not is_busy)
        self._choice.setVisible(not is_busy and not self._has_small_cache)
        self._run.setVisible(not is_busy)
        text = tr("Tune again") if state.options is not None else tr("Tune")
        self._run.setText(text)
        self._run.setEnabled(self._chosen is not None)
        describe(self._run, "tune.run", text, tr("Find faster load options for the chosen model"))
        restyle(self._run, "kind", "" if state.options is not None else "primary")
        if state.is_running:
            fraction = 1 - state.left_s / LONGEST_S
            self._busy.show_progress(tr("Tuning: {0}", progress_text(state)), fraction)
        if state.failure and not is_busy:
            self._status.show_failure(BenchFailure("", state.failure))
        else:
            self._status.show_nothing()
        self._show_result(is_busy=is_busy)
        self._show_tried()
        if not is_busy and self._busy.has_focus:
            (self._run if self._buttons.isHidden() else self._use).setFocus()
        self._busy.setVisible(is_busy)

    def _show_result(self, *, is_busy: bool) -> None:
        state = self._state
        is_in_use = self._is_in_use
        sentence, gain = result_sentence(state, is_in_use=is_in_use), main_gain(state)
        self._result_card.setVisible(bool(sentence) and not is_busy)
        self._result.setText(sentence)
        if gain is not None:
            old = tr("Now") if state.used is None else tr("Before")
            new = tr("Now") if is_in_use else tr("Found")
            self._bars.show_pairs((old, gain.old.median, gain.before), (new, gain.new.median, gain.after))
        self._bars.setVisible(gain is not None)
        changes = changes_sentence(state)
        if self._is_kept:
            changes = join_sentences(changes, tr("You kept your settings."))
        self._changes.setText(changes)
        self._changes.setVisible(bool(changes))
        is_open = bool(sentence) and bool(state.offers) and state.used is None and not self._is_kept
        other = other_sentence(state) if is_open else ""
        self._other.setText(other)
        self._other.setVisible(bool(other))
        self._use_other.setVisible(bool(other))
        self._use_other.setEnabled(bool(other))
        self._buttons.setVisible(is_open)
        self._use.setEnabled(is_open)

    def _show_tried(self) -> None:
        lines = tune_lines(self._state)
        self._tried.setVisible(bool(lines))
        numbered = enumerate(lines, 1)
        self._table.show_lines([(f"{number}. {x.name}", x.answer, x.prompt, x.remark) for number, x in numbered])
        for place, line in enumerate(lines):
            self._table.set_tip(place, 0, line.code)
            self._table.set_kind(place, _GAIN, "good" if line.is_found else "dim")


def _cache_type(state: EngineState) -> str:
    return state.report.options.type_k if state.report is not None else ""


def _words(chosen: LoadOptions | None) -> str:
    if chosen is None:
        return tr(
            "Choose a model on this PC at the top of the window. The fastest load options for it are found here. Of a "
            "model on a server, the server decides them."
        )
    return tr(
        "Tries settings of {0} one by one, and shows what is faster. Nothing changes until you choose. What doesn't "
        "fit into memory isn't tried, and chats stay as long as they are. The model is unloaded from the chat "
        "meanwhile.",
        model_title(chosen.model),
    )
