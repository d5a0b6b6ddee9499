"""One download of the list: how far it is, and what can be done with it."""

from pathlib import PurePath

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QSizePolicy, QVBoxLayout, QWidget

from qwendesk.core.units import MIB, show_bytes
from qwendesk.hub.queue_state import DownloadItem
from qwendesk.ui.kit.buttons import IconButton, TextButton, describe, restyle
from qwendesk.ui.kit.density import Airy
from qwendesk.ui.kit.shortened_label import ShortenedLabel
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.download_texts import (
    NextStep,
    chip_of,
    name_of,
    next_steps,
    progress_text,
    step_text,
    what_it_brings,
)

_STEPS = 1000
_MUCH_BYTES = 50 * MIB
"""Throwing away more than this is asked about first."""


class DownloadRow(QFrame):
    """Shows one DownloadItem. Its place in the list makes its controls' names: "downloads.1.pause"."""

    asked = Signal(str)
    """pause, resume, cancel, up, down, folder, load, or a NextStep."""

    def __init__(self, keeper: ThemeKeeper) -> None:
        super().__init__()
        self._keeper = keeper
        self._item: DownloadItem | None = None
        self._named: list[tuple[str, QWidget]] = [("", self)]
        self.setProperty("kind", "modelcard")
        self._name = ShortenedLabel("", kind="heading")
        self._details = ShortenedLabel("", kind="dim")
        self._named += [("name", self._name), ("details", self._details)]
        self._chip = self._label("", "state")
        self._chip.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._progress = self._label("small", "progress")
        self._sentence = self._label("", "sentence")
        self._sentence.setWordWrap(True)
        self._sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._bar = QProgressBar()
        self._bar.setRange(0, _STEPS)
        self._bar.setTextVisible(False)
        self._bar.setFixedHeight(6)
        self._named.append(("bar", self._bar))
        self._question = self._make_question()
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 12, 12)
        column.setSpacing(8)
        Airy(keeper, column)
        column.addLayout(self._first_line())
        column.addWidget(self._bar)
        column.addLayout(self._second_line())
        column.addWidget(self._sentence)
        column.addLayout(self._steps_line())
        column.addWidget(self._question)

    @property
    def identity(self) -> str:
        """Id of the download that is shown."""
        return self._item.kept.id if self._item is not None else ""

    def set_place(self, place: int, count: int) -> None:
        """The `place` from 1, of so many."""
        for suffix, widget in self._named:
            widget.setObjectName(f"downloads.{place}.{suffix}".rstrip("."))
        self._up.setEnabled(place > 1)
        self._down.setEnabled(place < count)

    def show_item(self, item: DownloadItem, *, is_offline: bool) -> None:
        self._item = item
        kept, state = item.kept, item.kept.state
        self._name.setText(name_of(kept))
        self._name.setToolTip(kept.files[0].target)
        self._details.setText(what_it_brings(kept))
        word, tone = chip_of(item, is_offline=is_offline)
        self._chip.setText(word)
        self._chip.setAccessibleName(tr("State: {0}", word))
        restyle(self._chip, "chip", tone)
        self._progress.setText(progress_text(item))
        self._bar.setValue(round(_STEPS * item.n_done / max(kept.n_bytes, 1)))
        self._bar.setAccessibleName(tr("Progress of {0}", name_of(kept)))
        self._bar.setVisible(state != "done")
        self._show_sentence(item)
        self._pause.setVisible(state in ("queued", "running"))
        self._resume.setVisible(state == "paused")
        self._up.setVisible(state != "done")
        self._down.setVisible(state != "done")
        for button in (self._load, self._folder):
            button.setVisible(state == "done")
        tip = tr("Take it off the list; the file stays") if state == "done" else tr("Cancel and remove what is there")
        self._cancel.setToolTip(tip)
        self._cancel.setAccessibleName(tr("Off the list") if state == "done" else tr("Cancel"))
        if state == "done":
            self._question.hide()

    def _show_sentence(self, item: DownloadItem) -> None:
        failed = item.kept.state == "failed"
        note = tr("{0} Trying again.", item.note) if item.phase == "waiting" and item.note else ""
        text = item.kept.sentence if failed else note
        self._sentence.setText(text)
        self._sentence.setVisible(bool(text))
        restyle(self._sentence, "kind", "error" if failed else "notice")
        wanted = next_steps(item.kept.trouble) if failed else ()
        for step, button in self._steps.items():
            button.setVisible(step in wanted)

    def _first_line(self) -> QHBoxLayout:
        self._pause = self._icon("pause", "pause", tr("Pause"), tr("Pause; what is there stays"))
        self._resume = self._icon("resume", "resume", tr("Resume"), tr("Go on where it was"))
        self._up = self._icon("up", "up", tr("Earlier"), tr("One place earlier in the order"))
        self._down = self._icon("down", "down", tr("Later"), tr("One place later in the order"))
        self._cancel = self._icon("cancel", "close", tr("Cancel"), tr("Cancel and remove what is there"), ask=False)
        self._cancel.clicked.connect(self._on_cancel)
        self._load = self._button("load", tr("Load"), tr("Load this model"))
        self._folder = self._button("folder", tr("Show in folder"), tr("Open the folder it is in"))
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self._name, 1)
        row.addWidget(self._chip)
        for button in (self._load, self._folder, self._up, self._down, self._pause, self._resume, self._cancel):
            row.addWidget(button)
        return row

    def _second_line(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(16)
        row.addWidget(self._details, 1)
        row.addWidget(self._progress)
        return row

    def _steps_line(self) -> QHBoxLayout:
        steps: tuple[NextStep, ...] = ("retry", "online", "page", "token", "folders")
        self._steps: dict[NextStep, TextButton] = {}
        row = QHBoxLayout()
        row.setSpacing(8)
        for step in steps:
            self._steps[step] = self._button(step, *step_text(step))
            row.addWidget(self._steps[step])
        row.addStretch(1)
        return row

    def _make_question(self) -> QWidget:
        box = QWidget()
        self._question_text = self._label("", "question")
        keep = self._button("keep", tr("Keep it"), tr("Do not cancel"), ask=False)
        keep.clicked.connect(box.hide)
        sure = self._button("discard", tr("Cancel the download"), tr("Remove what was downloaded"), ask=False)
        sure.clicked.connect(lambda: self.asked.emit("cancel"))
        row = QHBoxLayout(box)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self._question_text, 1)
        row.addWidget(keep)
        row.addWidget(sure)
        box.hide()
        return box

    def _on_cancel(self) -> None:
        item = self._item
        if item is None or item.kept.state == "done" or item.n_done < _MUCH_BYTES:
            self.asked.emit("cancel")
            return
        self._question_text.setText(tr("Throw away the {0} that are here?", show_bytes(item.n_done)))
        self._question.show()

    def _label(self, kind: str, suffix: str) -> QLabel:
        label = QLabel()
        label.setTextFormat(Qt.TextFormat.PlainText)
        if kind:
            label.setProperty("kind", kind)
        self._named.append((suffix, label))
        return label

    def _icon(self, suffix: str, icon_name: str, text: str, tip: str, *, ask: bool = True) -> IconButton:
        button = IconButton(self._keeper, icon_name, size=16, side=30)
        describe(button, f"downloads.{suffix}", text, tip)
        self._named.append((suffix, button))
        if ask:
            button.clicked.connect(lambda: self.asked.emit(suffix))
        return button

    def _button(self, suffix: str, text: str, tip: str, *, ask: bool = True) -> TextButton:
        button = TextButton(self._keeper, text)
        describe(button, f"downloads.{suffix}", text, tip)
        self._named.append((suffix, button))
        if ask:
            button.clicked.connect(lambda: self.asked.emit(suffix))
        return button


def folder_of(item: DownloadItem) -> str:
    """The folder that a download is in."""
    return str(PurePath(item.kept.files[0].target).parent)
