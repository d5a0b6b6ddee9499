"""A column of a comparison: what it answers with, its answer, and what differs from the first column's."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QRegularExpressionValidator, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QGridLayout, QLineEdit, QSizePolicy, QWidget

from qwendesk.bench.comparison import (
    RANDOM_SEED,
    Column,
    ColumnResult,
    Differences,
    ModelChoice,
    PresetChoice,
    difference_text,
    figures,
    split_changes,
)
from qwendesk.core.chats import ChatSettings
from qwendesk.core.model_titles import model_title
from qwendesk.core.translation import tr, tr_n
from qwendesk.widgets.buttons import ChevronButton, describe, restyle
from qwendesk.widgets.controls import ComboBox
from qwendesk.widgets.display_texts import stop_text
from qwendesk.widgets.kit import STRETCH, column, paragraph, row
from qwendesk.widgets.text_pane import TextPane, reading_line_format
from qwendesk.widgets.theme_keeper import app_theme, current_theme


class AnswerPane(TextPane):
    """A plain text that grows at its end, with the differing words highlighted when it is complete."""

    def __init__(self) -> None:
        super().__init__()
        self._text = ""
        self._differences: Differences | None = None
        app_theme().follow(self, self._draw_again)
        self._draw_again()

    @property
    def text(self) -> str:
        return self._text

    def show_text(self, text: str, found: Differences | None = None) -> None:
        """Show `text`, or what it has beyond the shown one. `found` are the differences of the whole text."""
        if (text, found) == (self._text, self._differences):
            return
        grows = found is None and self._differences is None and bool(self._text) and text.startswith(self._text)
        added, self._text, self._differences = text[len(self._text) :], text, found
        if grows:
            cursor = QTextCursor(self.document())
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(added)
            self.fit_height()
        else:
            self._draw_again()

    def _draw_again(self) -> None:
        theme = current_theme()
        plain, different = QTextCharFormat(), QTextCharFormat()
        for form in (plain, different):
            form.setFont(theme.font(14))
            form.setForeground(theme.color("text"))
        different.setBackground(theme.color("chip_accent"))
        different.setForeground(theme.color("text_link"))
        self.clear()
        cursor = QTextCursor(self.document())
        cursor.setBlockFormat(reading_line_format())
        cursor.setCharFormat(plain)
        if self._differences is None:
            cursor.insertText(self._text, plain)
        else:
            for run in self._differences.runs:
                cursor.insertText(run.text, different if run.differs else plain)
        self.fit_height()


class ColumnAnswer(QWidget):
    """State, figures, thinking and text of one column's answer."""

    def __init__(self, letter: str) -> None:
        super().__init__()
        self._letter = letter
        self._shows_thinking = False
        self._result = ColumnResult()
        name = f"compare.{letter}"
        self._status = paragraph(kind="small", name=f"{name}.status")
        self._difference = paragraph(kind="small", name=f"{name}.difference")
        self._failure = paragraph(kind="error", name=f"{name}.failure")
        self._toggle = ChevronButton(kind="link")
        self._toggle.clicked.connect(self._on_toggle)
        self._thinking, self._text = AnswerPane(), AnswerPane()
        self._thinking.setAccessibleName(tr("Thinking of column {0}", letter))
        self._thinking.setObjectName(f"{name}.reasoning")
        self._text.setAccessibleName(tr("Answer of column {0}", letter))
        self._text.setObjectName(f"{name}.text")
        self.setLayout(
            column(
                self._status, self._difference, self._failure, row(self._toggle, STRETCH), self._thinking, self._text,
                STRETCH,
            )
        )  # fmt: skip
        self.show_result(None)

    def show_result(self, result: ColumnResult | None) -> None:
        """Show a result; None hides everything."""
        self.setVisible(result is not None)
        if result is None:
            return
        self._result = result
        self._status.setText(status_text(result))
        found = result.differences
        self._difference.setVisible(found is not None)
        if found is not None:
            self._difference.setText(difference_text(found))
            restyle(self._difference, "kind", "good" if found.are_none else "small")
        self._failure.setVisible(bool(result.failure))
        self._failure.setText(result.failure)
        self._text.setVisible(bool(result.text))
        self._text.show_text(result.text.strip(), found)
        self._show_thinking()

    def _on_toggle(self) -> None:
        self._shows_thinking = not self._shows_thinking
        self._show_thinking()

    def _show_thinking(self) -> None:
        reasoning, stats = self._result.reasoning.strip(), self._result.stats
        self._toggle.setVisible(bool(reasoning))
        self._thinking.setVisible(bool(reasoning) and self._shows_thinking)
        n_tokens = stats.reasoning_tokens
        text = tr_n("Thinking · {0} token", "Thinking · {0} tokens", n_tokens) if n_tokens else tr("Thinking")
        self._toggle.setText(text)
        describe(self._toggle, f"compare.{self._letter}.toggle", text, tr("Show or hide the thinking"))
        self._toggle.show_chevron("down" if self._shows_thinking else "right")
        if self._shows_thinking:
            self._thinking.show_text(reasoning)


def status_text(result: ColumnResult) -> str:
    """Return what a column does, or its figures."""
    match result.phase:
        case "waiting":
            return tr("Waits for the columns before it")
        case "loading":
            return tr("Loading the model…")
        case "processing":
            return tr("Processing the prompt · {0}%", round(100 * result.fraction))
        case "answering":
            return tr("Answering…")
        case "failed":
            return tr("Failed")
        case "stopped":
            return tr("Stopped")
    ended = stop_text(result.stop_reason) if result.stop_reason not in ("eos", "stop_string") else ""
    return " · ".join(part for part in (*figures(result), ended) if part)


_STYLES = ("general", "precise")
_LONGEST_CHANGES = 2000


class ColumnSetup(QWidget):
    """The fields of one column. Its first model is the one that is chosen at the top of the window."""

    changed = Signal()

    def __init__(self, letter: str) -> None:
        super().__init__()
        self._chosen = ""
        self._models: tuple[ModelChoice, ...] = ()
        self._presets: tuple[PresetChoice, ...] = ()
        self._model, self._preset, self._thinking = ComboBox(), ComboBox(), ComboBox()
        self._seed, self._changes = QLineEdit(), QLineEdit()
        for field in (self._model, self._preset, self._thinking):
            field.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
            field.currentIndexChanged.connect(lambda _index: self.changed.emit())
        self._thinking.addItem(tr("Thinking"), True)
        self._thinking.addItem(tr("No thinking"), False)
        self._seed.setPlaceholderText(tr("Random seed"))
        self._seed.setValidator(QRegularExpressionValidator(r"\d{0,9}", self._seed))
        self._changes.setPlaceholderText(tr("Options, such as temperature=0.2"))
        self._changes.setMaxLength(_LONGEST_CHANGES)
        name = f"compare.{letter}"
        describe(self._model, f"{name}.model", tr("Model of column {0}", letter))
        describe(self._preset, f"{name}.preset", tr("Preset of column {0}", letter))
        describe(self._thinking, f"{name}.thinking", tr("Thinking in column {0}", letter))
        tip = tr("With the same seed and settings, a model gives the same answer again")
        describe(self._seed, f"{name}.seed", tr("Seed of column {0}", letter), tip)
        tip = tr("Load and sampling options, separated by semicolons: n_ubatch=1024; top_p=0.9")
        describe(self._changes, f"{name}.options", tr("Options of column {0}", letter), tip)
        self._model.currentIndexChanged.connect(lambda _index: self._show_thinking())
        self._seed.textChanged.connect(self.changed)
        self._changes.textChanged.connect(self.changed)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(8)
        grid.addWidget(self._model, 0, 0, 1, 2)
        grid.addWidget(self._preset, 1, 0)
        grid.addWidget(self._thinking, 1, 1)
        grid.addWidget(self._changes, 2, 0, 1, 2)
        grid.addWidget(self._seed, 3, 0, 1, 2)
        grid.setColumnStretch(0, 3)
        grid.setColumnStretch(1, 2)
        self.set_choices("", (), ())

    @property
    def model(self) -> str:
        """Path of the model file; "" if none is chosen."""
        return self._model.currentData() or self._chosen

    @property
    def _can_think(self) -> bool:
        return next((each.can_think for each in self._models if each.path == self.model), True)

    def _show_thinking(self) -> None:
        """Offer thinking only of a model that can."""
        self._thinking.setVisible(self._can_think)

    def column(self) -> Column:
        """Return the column. Raises BadOption for options that don't exist or values that aren't accepted."""
        loading, sampling = split_changes(self._changes.text())
        seed = int(sampling.pop("seed", self._seed.text() or RANDOM_SEED))
        preset = self._preset.currentData()
        settings = ChatSettings(
            preset=preset if isinstance(preset, str) else "custom",
            preset_name=preset.name if isinstance(preset, PresetChoice) else "",
            preset_values=preset.values if isinstance(preset, PresetChoice) else {},
            thinking=self._thinking.currentData() if self._can_think else None,
            overrides=sampling,
        )
        return Column(model=self.model, load_changes=loading, settings=settings, seed=seed, can_think=self._can_think)

    def set_choices(self, chosen: str, models: Sequence[ModelChoice], presets: Sequence[PresetChoice]) -> None:
        """Offer these models and presets. What is selected stays if it is among them."""
        self._chosen, self._models, self._presets = chosen, tuple(models), tuple(presets)
        first = tr("Chosen model: {0}", model_title(chosen)) if chosen else tr("No model chosen")
        others = [(model.name, model.path) for model in models]
        _fill(self._model, [(first, ""), *others])
        styles = [(tr("General"), _STYLES[0]), (tr("Precise"), _STYLES[1])]
        _fill(self._preset, [*styles, *((preset.name, preset) for preset in presets)])
        self._show_thinking()

    def copy_from(self, other: "ColumnSetup") -> None:
        """Take over what another column has."""
        self.set_choices(other._chosen, other._models, other._presets)
        self._model.setCurrentIndex(other._model.currentIndex())
        self._preset.setCurrentIndex(other._preset.currentIndex())
        self._thinking.setCurrentIndex(other._thinking.currentIndex())
        self._seed.setText(other._seed.text())
        self._changes.setText(other._changes.text())


def _fill(field: ComboBox, entries: Sequence[tuple[str, object]]) -> None:
    """Replace the entries of a field, and select what was selected."""
    selected = field.currentData()
    field.blockSignals(True)
    field.clear()
    for text, data in entries:
        field.addItem(text, data)
    field.setCurrentIndex(max(0, next((row for row, (_, data) in enumerate(entries) if data == selected), 0)))
    field.blockSignals(False)
