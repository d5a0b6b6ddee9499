"""The dialog in which the user chooses a part of a clip, and how many of its frames the model gets."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QImage, QWheelEvent
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QScrollArea,
    QSlider,
    QWidget,
)

from qwendesk.chat.view.thread.pictures.clip_strip import FRAME_SIZE, FrameThumbnail
from qwendesk.chat.view.thread.pictures.thumbnails import ImagePreview
from qwendesk.core.clip_sampling import MOST_FRAMES, FramePlan
from qwendesk.core.clips import ClipChoice, parse_time, show_time
from qwendesk.core.errors import BadRequest
from qwendesk.core.number_format import show_decimal
from qwendesk.core.translation import join_list, tr
from qwendesk.core.units import show_duration
from qwendesk.decoding.protocol import ClipFacts
from qwendesk.widgets import kit
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.question_dialog import Dialog
from qwendesk.widgets.tasks import window_tasks

# A clip has parts to choose from this length on, in seconds: the fields have whole seconds.
_LEAST_PARTED_S = 2.0
# Longer side of the small frames in pixels, which is sharp on a screen with scale 2.
THUMBNAIL_PIXELS = 2 * FRAME_SIZE.width()
# While the slider moves, no frames are read.
_READ_DELAY_MS = 300


# Returns the plan for a choice.
PlanFrames = Callable[[ClipChoice], FramePlan]
# Returns the frames at these times as PNG files, for the strip. Raises BadRequest.
ReadFrames = Callable[[Sequence[float]], Awaitable[tuple[bytes, ...]]]


class ClipSheet(Dialog):
    """The dialog. Use an object only once: `answer` opens it and waits."""

    def __init__(
        self,
        path: Path,
        facts: ClipFacts,
        choice: ClipChoice,
        parent: QWidget,
        *,
        plan: PlanFrames,
        read: ReadFrames,
        cost_text: Callable[[ClipChoice, FramePlan], str],
    ) -> None:
        super().__init__(parent)
        self._path, self._facts, self._choice = path, facts, choice
        self._plan_for, self._read, self._cost_text = plan, read, cost_text
        self._future: asyncio.Future[ClipChoice | None] = asyncio.get_running_loop().create_future()
        self._previews: dict[float, ImagePreview] = {}
        self._cells: dict[float, FrameThumbnail] = {}
        self._reading: asyncio.Task[None] | None = None
        self._timer = QTimer(self, singleShot=True, interval=_READ_DELAY_MS)
        self._timer.timeout.connect(self._start_reading)
        self.setObjectName("clip.sheet")
        self.setWindowTitle(tr("Frames of {0}", path.name))
        self.setMinimumWidth(660)
        self._cost = kit.paragraph(kind="small", name="clip.cost")
        self._problem = kit.paragraph(kind="notice", name="clip.problem")
        self._problem.hide()
        self._begin, self._end = self._part_fields()
        parts = (self._part_row(),) if facts.duration_s >= _LEAST_PARTED_S else ()
        self.setLayout(
            kit.column(
                kit.paragraph(path.name, "heading"),
                kit.paragraph(_about(facts), "small", name="clip.about"),
                self._strip(),
                self._frames_row(),
                self._cost,
                *parts,
                self._problem,
                self._buttons(),
                spacing=10,
                margins=(20, 18, 20, 18),
            )
        )
        self._slider.valueChanged.connect(self._on_number)
        for field in (self._begin, self._end):
            field.textChanged.connect(self._on_part)
        self._show_plan()
        self._start_reading()
        self.finished.connect(self._on_finished)

    async def answer(self) -> ClipChoice | None:
        """Open the dialog and return the choice; None if it was cancelled."""
        self.open()
        self._slider.setFocus()
        try:
            return await self._future
        finally:
            self.hide()
            self.deleteLater()

    def _strip(self) -> QScrollArea:
        inside = QWidget()
        self._row = QHBoxLayout(inside)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(8)
        self._row.addStretch(1)
        self._area = QScrollArea()
        self._area.setObjectName("clip.strip")
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setWidgetResizable(True)
        self._area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._area.setWidget(inside)
        self._area.viewport().setAutoFillBackground(False)
        inside.setAutoFillBackground(False)
        below = self.fontMetrics().height() + 16  # the time and the scroll bar
        self._area.setFixedHeight(FRAME_SIZE.height() + below)
        return self._area

    def _frames_row(self) -> QHBoxLayout:
        self._slider = _FrameSlider(Qt.Orientation.Horizontal)
        self._slider.setPageStep(4)
        describe(
            self._slider,
            "clip.frames",
            tr("Number of frames"),
            tr("More frames show more of what happens, and use more tokens"),
        )
        label = kit.label(tr("Frames"))
        label.setBuddy(self._slider)
        tip = tr("As many frames as fit in a quarter of the free context")
        self._automatic = kit.button(tr("Automatic"), "clip.automatic", kind="quiet", tip=tip)
        self._automatic.clicked.connect(self._choose_automatic)
        return kit.row(label, self._slider, self._automatic, spacing=12)

    def _part_fields(self) -> tuple[QLineEdit, QLineEdit]:
        choice = self._choice
        begin, end = QLineEdit(show_time(choice.begin_s)), QLineEdit(show_time(choice.end_s or self._facts.duration_s))
        tip = tr("Minutes and seconds, such as 0:12")
        describe(begin, "clip.begin", tr("Start of the part"), tip)
        describe(end, "clip.end", tr("End of the part"), tip)
        return begin, end

    def _part_row(self) -> QHBoxLayout:
        items: list[QWidget] = []
        for field in (self._begin, self._end):
            label = kit.label(field.accessibleName())
            label.setBuddy(field)
            field.setMaximumWidth(96)
            items += (label, field)
        return kit.row(*items, kit.STRETCH, spacing=12)

    def _buttons(self) -> QHBoxLayout:
        cancel = TextButton(tr("Cancel"), kind="quiet")
        describe(cancel, "clip.cancel", tr("Cancel"), tr("Keep the frames as they are"), "Esc")
        cancel.clicked.connect(self.reject)
        self._use = TextButton(tr("Use these frames"), kind="primary")
        self._use.setDefault(True)
        describe(self._use, "clip.use", tr("Use these frames"), tr("The model gets these frames"), "Return")
        self._use.clicked.connect(self.accept)
        return kit.row(kit.STRETCH, cancel, self._use)

    def _on_number(self, n_pairs: int) -> None:
        self._choose(ClipChoice(2 * n_pairs, self._choice.begin_s, self._choice.end_s))

    def _choose_automatic(self) -> None:
        self._choose(ClipChoice(0, self._choice.begin_s, self._choice.end_s))

    def _on_part(self) -> None:
        begin_s, end_s = parse_time(self._begin.text()), parse_time(self._end.text())
        problem = ""
        if begin_s is None or end_s is None:
            problem = tr("Write times as minutes and seconds, such as 0:12.")
        elif begin_s >= min(end_s, self._facts.duration_s):
            problem = tr("The part must start before it ends, and within the clip.")
        self._show_problem(problem)
        self._use.setEnabled(not problem)
        if not problem and begin_s is not None and end_s is not None:
            is_whole = end_s >= int(self._facts.duration_s)
            self._choose(ClipChoice(self._choice.n_frames, begin_s, 0.0 if is_whole else end_s))

    def _choose(self, choice: ClipChoice) -> None:
        self._choice = choice
        self._show_plan()
        self._timer.start()

    def _show_problem(self, problem: str) -> None:
        self._problem.setText(problem)
        self._problem.setVisible(bool(problem))

    def _show_plan(self) -> None:
        plan = self._plan_for(self._choice)
        most = self._plan_for(ClipChoice(MOST_FRAMES, self._choice.begin_s, self._choice.end_s))
        self._slider.blockSignals(True)
        # A step is two frames, which models take as one picture.
        self._slider.setRange(1, max(1, len(most.times) // 2))
        self._slider.setValue(len(plan.times) // 2)
        self._slider.blockSignals(False)
        self._automatic.setEnabled(self._choice.n_frames != 0)
        text = self._cost_text(self._choice, plan)
        self._cost.setText(text)
        self._slider.setAccessibleDescription(text)

    def _start_reading(self) -> None:
        """Show the frames of the plan, and read those that weren't read yet."""
        times = self._plan_for(self._choice).times
        for cell in self._cells.values():
            self._row.removeWidget(cell)
            cell.hide()
            cell.deleteLater()
        self._cells = {}
        for number, time_s in enumerate(times, 1):
            cell = FrameThumbnail(self._path, self._path.name, time_s)
            cell.picture.setObjectName(f"clip.frame.{number}")
            cell.picture.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            cell.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            self._cells[time_s] = cell
            self._row.insertWidget(self._row.count() - 1, cell, 0, Qt.AlignmentFlag.AlignTop)
            if time_s in self._previews:
                cell.picture.show_image(self._previews[time_s])
        self._area.setAccessibleName(tr("Frames at {0}", join_list(map(show_time, times))))
        missing = [time_s for time_s in times if time_s not in self._previews]
        if self._reading is not None:
            self._reading.cancel()
        self._reading = window_tasks().start(self._read_frames(missing), self) if missing else None

    async def _read_frames(self, times: Sequence[float]) -> None:
        try:
            frames = await self._read(times)
        except BadRequest as error:
            self._show_problem(error.sentence)
            return
        for time_s, data in zip(times, frames, strict=False):
            image = QImage()
            image.loadFromData(data, "PNG")  # written by our own process, and no other format is tried
            self._previews[time_s] = ImagePreview(self._path, image.width(), image.height(), image)
            if time_s in self._cells:
                self._cells[time_s].picture.show_image(self._previews[time_s])

    def _on_finished(self, result: int) -> None:
        self._timer.stop()
        if self._reading is not None:
            self._reading.cancel()
        if not self._future.done():
            self._future.set_result(self._choice if result == QDialog.DialogCode.Accepted else None)


def _about(facts: ClipFacts) -> str:
    rate = tr("{0} frames per second", show_decimal(facts.frames_per_s, 0)) if facts.frames_per_s else ""
    text = join_list((show_duration(facts.duration_s), f"{facts.width}×{facts.height}", rate))
    sound = tr("The model gets pictures only: the clip's sound isn't used.") if facts.has_sound else ""
    return "\n".join(filter(None, (text, sound)))


class _FrameSlider(QSlider):
    """A slider that leaves the mouse wheel to what is around it."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()
