"""What a column of a comparison answers with: model, preset, thinking, seed and options of its own."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QRegularExpressionValidator
from PySide6.QtWidgets import QGridLayout, QLineEdit, QSizePolicy, QWidget

from qwendesk.bench.comparison import RANDOM_SEED, Column, ModelChoice, PresetChoice, split_changes
from qwendesk.core.chats import ChatSettings
from qwendesk.core.model_titles import model_title
from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import describe
from qwendesk.widgets.controls import ComboBox

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
        self._seed.textChanged.connect(self.changed)
        self._changes.textChanged.connect(self.changed)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(8)
        grid.addWidget(self._model, 0, 0, 1, 2)
        grid.addWidget(self._preset, 1, 0)
        grid.addWidget(self._thinking, 1, 1)
        grid.addWidget(self._changes, 2, 0)
        grid.addWidget(self._seed, 2, 1)
        grid.setColumnStretch(0, 3)
        grid.setColumnStretch(1, 2)
        self.set_choices("", (), ())

    @property
    def model(self) -> str:
        """Path of the model file; "" if none is chosen."""
        return self._model.currentData() or self._chosen

    def column(self) -> Column:
        """Return the column. Raises BadOption for options that don't exist or values that aren't accepted."""
        loading, sampling = split_changes(self._changes.text())
        seed = int(sampling.pop("seed", self._seed.text() or RANDOM_SEED))
        preset = self._preset.currentData()
        settings = ChatSettings(
            preset=preset if isinstance(preset, str) else "custom",
            preset_name=preset.name if isinstance(preset, PresetChoice) else "",
            preset_values=preset.values if isinstance(preset, PresetChoice) else {},
            thinking=self._thinking.currentData(),
            overrides=sampling,
        )
        return Column(model=self.model, load_changes=loading, settings=settings, seed=seed)

    def set_choices(self, chosen: str, models: Sequence[ModelChoice], presets: Sequence[PresetChoice]) -> None:
        """Offer these models and presets. What is selected stays if it is among them."""
        self._chosen, self._models, self._presets = chosen, tuple(models), tuple(presets)
        first = tr("Chosen model: {0}", model_title(chosen)) if chosen else tr("No model chosen")
        others = [(model.name, model.path) for model in models]
        _fill(self._model, [(first, ""), *others])
        styles = [(tr("General"), _STYLES[0]), (tr("Precise"), _STYLES[1])]
        _fill(self._preset, [*styles, *((preset.name, preset) for preset in presets)])

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
