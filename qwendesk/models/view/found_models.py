"""The models that other programs left on this PC, with a button to load each, and why others can't be used."""

from collections.abc import Iterator

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from qwendesk.core.translation import join_sentences, tr, tr_n
from qwendesk.core.units import show_bytes
from qwendesk.hub.library import LibraryModel
from qwendesk.models.other_apps import AppModels
from qwendesk.widgets.buttons import describe
from qwendesk.widgets.kit import GAP, LIST_PADDING, IconLabel, button, column, label, paragraph, row
from qwendesk.widgets.layouts import widget_with
from qwendesk.widgets.text_layout import ElidedLabel

# Models of one program that are shown, and sentences about what it can't share.
_MOST_MODELS, _MOST_REFUSALS = 5, 3
_NAME = "start.found"


class FoundModels(QFrame):
    """A list by program. What is left out is on the page Models, which a link opens."""

    load_asked = Signal(str)
    """The path of a model."""
    all_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName(_NAME)
        self.setProperty("kind", "modelcard")
        self._apps: tuple[AppModels, ...] = ()
        self._content: QWidget | None = None
        every = button(tr("Show all models"), f"{_NAME}.all", kind="link", tip=tr("Show the models on this PC"))
        every.clicked.connect(self.all_asked)
        note = paragraph(tr("They are used where they are. QwenDesk never changes files of other programs."), "small")
        foot = row(note, every)
        foot.setStretch(0, 1)
        self._column: QVBoxLayout = column(foot, spacing=GAP, margins=(LIST_PADDING,) * 4)
        self.setLayout(self._column)

    def show_apps(self, apps: tuple[AppModels, ...]) -> None:
        """Show these programs. What is unchanged keeps its widgets and the keyboard's focus."""
        if apps == self._apps:
            return
        self._apps = apps
        if self._content is not None:
            self._column.removeWidget(self._content)
            self._content.setParent(None)
            self._content.deleteLater()
        groups = (widget_with(column(*self._widgets_of(app))) for app in apps)
        self._content = widget_with(column(*groups, spacing=GAP))
        self._column.insertWidget(0, self._content)

    def _widgets_of(self, app: AppModels) -> Iterator[QWidget]:
        name = f"{_NAME}.{app.origin}"
        yield label(app.app or tr("Your folders"), "strong", name=name)
        for place, model in enumerate(app.usable[:_MOST_MODELS], 1):
            yield self._row_of(model, f"{name}.{place}")
        refusals = app.refusals[:_MOST_REFUSALS]
        for place, sentence in enumerate(refusals, 1):
            words = paragraph(sentence, "dim", name=f"{name}.why.{place}")
            line = row(IconLabel("info"), words)
            line.setStretch(1, 1)
            yield widget_with(line)
        left_out = _left_out_text(app)
        if left_out:
            yield paragraph(left_out, "small", name=f"{name}.more")

    def _row_of(self, model: LibraryModel, name: str) -> QWidget:
        title = ElidedLabel(f"{name}.name")
        title.setText(model.name)
        title.setToolTip(model.path)
        size = label(show_bytes(model.n_bytes), "dim")
        load = button(tr("Load"), f"{name}.load")
        describe(load, f"{name}.load", tr("Load {0}", model.name), model.path)
        load.clicked.connect(lambda: self.load_asked.emit(model.path))
        line = row(title, size, load, spacing=12)
        line.setStretch(0, 1)
        return widget_with(line)


def _left_out_text(app: AppModels) -> str:
    """Return how many models, and how many that can't be used, are not shown; "" if all are."""
    n_models, n_refusals = len(app.usable) - _MOST_MODELS, len(app.refusals) - _MOST_REFUSALS
    return join_sentences(
        tr_n("And {0} more model.", "And {0} more models.", n_models) if n_models > 0 else "",
        tr_n("{0} more can't be used.", "{0} more can't be used.", n_refusals) if n_refusals > 0 else "",
    )
