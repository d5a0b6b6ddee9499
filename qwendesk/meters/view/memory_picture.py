"""The card "Where the model is" of the Engine page: a bar for each memory, and what its colours mean."""

import html
from collections.abc import Sequence

from PySide6.QtWidgets import QFrame, QLabel, QSizePolicy, QWidget

from qwendesk.core.devices import Segment
from qwendesk.core.model_titles import model_title
from qwendesk.core.observed import Observed
from qwendesk.core.translation import join_list, tr
from qwendesk.core.units import show_bytes
from qwendesk.engine.state import EngineState
from qwendesk.meters.meter_state import MeterState
from qwendesk.meters.view.meter_text import named_bars, segments_text
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.kit import PADDING, STRETCH, column, label, paragraph, row
from qwendesk.widgets.layouts import widget_with
from qwendesk.widgets.theme_keeper import app_theme, current_theme
from qwendesk.widgets.vram_bar import SEGMENT_ROLES, VramBar, segment_name


class MemoryPicture(QFrame):
    """Shows where the loaded model is. Hidden while none is loaded on this PC."""

    def __init__(self, engine: Observed[EngineState], meters: Observed[MeterState]) -> None:
        super().__init__()
        self.setProperty("kind", "modelcard")
        self.setObjectName("engine.memory")
        self._shown: tuple[tuple[str, tuple[Segment, ...]], ...] = ()
        self._rows: list[tuple[QWidget, QLabel, QLabel, VramBar]] = []
        self._model = label(kind="dim", name="engine.memory.model")
        self._list = column(spacing=12)
        self._legend = paragraph(name="engine.memory.legend")
        self._legend.setProperty("rich", True)
        head = row(label(tr("Where the model is"), "heading"), self._model, STRETCH, spacing=12)
        self.setLayout(column(head, self._list, self._legend, spacing=12, margins=(PADDING,) * 4))
        app_theme().changed.connect(self._show_legend)
        # The model first: a card that is hidden before it has a parent would stay so until the next sample.
        self._model.setText(_local_title(engine.value))
        bind(self, meters, self._show)
        bind_field(self, engine, _local_title, self._show_model)

    def _show_model(self, title: str) -> None:
        self._model.setText(title)
        self._show_wanted()

    def _show(self, state: MeterState) -> None:
        shown = memories(state)
        if shown == self._shown:
            return
        self._shown = shown
        self._show_wanted()
        while len(self._rows) < len(shown):
            self._add_row()
        for place, (holder, name, amount, bar) in enumerate(self._rows):
            holder.setVisible(place < len(shown))
            if place < len(shown):
                title, segments = shown[place]
                name.setText(title)
                amount.setText(segments_text(segments))
                bar.show_segments(segments)
                bar.setAccessibleName(f"{title}: {amount.text()}")
                bar.setToolTip("\n".join(_segment_texts(segments)))
        self._show_legend()

    def _show_wanted(self) -> None:
        """Show the card only with something to say. Without a parent it would become a window."""
        if not (self._model.text() and self._shown):
            self.hide()
        elif self.parentWidget() is not None:
            self.show()

    def _add_row(self) -> None:
        number = len(self._rows)
        name, amount = label(kind="dim"), label(name=f"engine.memory.{number}.amount")
        bar = VramBar()
        bar.setObjectName(f"engine.memory.{number}.bar")
        bar.unsetCursor()
        bar.setFocusPolicy(self.focusPolicy())
        bar.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        holder = widget_with(column(row(name, STRETCH, amount), bar, spacing=0))
        self._list.addWidget(holder)
        self._rows.append((holder, name, amount, bar))

    def _show_legend(self) -> None:
        theme = current_theme()
        parts = [
            f'<span style="color:{theme[role]}">■</span>&nbsp;{html.escape(text).replace(" ", "&nbsp;")}'
            for role, text in _legend(self._shown)
        ]
        self._legend.setText("&nbsp;&nbsp; ".join(parts))
        self._legend.setAccessibleName(join_list(text for _, text in _legend(self._shown)))


def memories(state: MeterState) -> tuple[tuple[str, tuple[Segment, ...]], ...]:
    """Return the name and the segments of each memory: of the graphics cards, then the RAM."""
    gpus = state.snapshot.gpus if state.snapshot is not None else ()
    bars = [(name, bar.segments) for name, bar in named_bars(state.bars, gpus)]
    if state.shared:
        return (*bars, (tr("Memory of GPU and CPU"), state.shared))
    return (*bars, (tr("RAM"), state.ram)) if state.ram else tuple(bars)


def _legend(shown: Sequence[tuple[str, tuple[Segment, ...]]]) -> list[tuple[str, str]]:
    """Return for each kind of memory in use the role of its colour, and its name with its sizes in all memories."""
    found = []
    for kind, role in SEGMENT_ROLES:
        sizes = [each.n_bytes for _, segments in shown for each in segments if each.kind == kind and each.n_bytes]
        if kind != "free" and sizes:
            found.append((role, tr("{0}: {1}", segment_name(kind), " + ".join(show_bytes(size) for size in sizes))))
    return found


def _segment_texts(segments: Sequence[Segment]) -> list[str]:
    return [tr("{0}: {1}", segment_name(each.kind), show_bytes(each.n_bytes)) for each in segments if each.n_bytes]


def _local_title(state: EngineState) -> str:
    return model_title(state.local_report.options.model) if state.local_report is not None else ""
