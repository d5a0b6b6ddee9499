"""One row of the list of downloads: its progress, and buttons for what can be done with it."""

from pathlib import PurePath
from typing import Final, Literal

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QLabel, QProgressBar, QSizePolicy, QVBoxLayout, QWidget

from qwendesk.core.translation import tr, tr_n
from qwendesk.core.units import MIB, show_bytes
from qwendesk.hub.download_queue import DownloadItem, SavedDownload
from qwendesk.hub.network import HubErrorKind
from qwendesk.models.downloads import DownloadsState
from qwendesk.widgets.buttons import IconButton, TextButton, describe, restyle
from qwendesk.widgets.layouts import DensitySpacing, FlowLayout, ResponsivePairLayout, horizontal_group
from qwendesk.widgets.text_layout import ElidedLabel

_STEPS = 1000
# Least width in pixels of the file's name, and of a text, next to what is on its right.
_LEAST_NAME, _LEAST_WORDS = 280, 200
# Cancelling a download must be confirmed if more than this is downloaded.
_MUCH_BYTES = 50 * MIB


class DownloadRow(QFrame):
    """Shows one DownloadItem. The object names of its controls contain its place in the list: "downloads.1.pause"."""

    asked = Signal(str)
    """Carries the requested action: "pause", "resume", "cancel", "up", "down", "folder", "load", or a NextStep."""

    def __init__(self) -> None:
        super().__init__()
        self._item: DownloadItem | None = None
        self._named: list[tuple[str, QWidget]] = [("", self)]
        self.setProperty("kind", "modelcard")
        self._name = ElidedLabel("", kind="heading")
        self._details = ElidedLabel("", kind="dim")
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
        DensitySpacing(column)
        column.addLayout(self._first_line())
        column.addWidget(self._bar)
        column.addLayout(self._second_line())
        column.addWidget(self._sentence)
        column.addLayout(self._steps_line())
        column.addWidget(self._question)

    @property
    def identity(self) -> str:
        """Id of the download that is shown."""
        return self._item.saved.id if self._item is not None else ""

    def set_place(self, place: int, count: int) -> None:
        """Set the row's place in the list, counted from 1, and the number of rows."""
        for suffix, widget in self._named:
            widget.setObjectName(f"downloads.{place}.{suffix}".rstrip("."))
        self._up.setEnabled(place > 1)
        self._down.setEnabled(place < count)

    def show_item(self, item: DownloadItem, *, is_offline: bool) -> None:
        self._item = item
        kept, state = item.saved, item.saved.state
        self._name.setText(file_name(kept))
        self._name.setToolTip(kept.files[0].target)
        self._details.setText(contents_text(kept))
        word, tone = state_chip_text(item, is_offline=is_offline)
        self._chip.setText(word)
        self._chip.setAccessibleName(tr("State: {0}", word))
        restyle(self._chip, "chip", tone)
        self._progress.setText(progress_text(item))
        self._bar.setValue(round(_STEPS * item.n_done / max(kept.n_bytes, 1)))
        self._bar.setAccessibleName(tr("Progress of {0}", file_name(kept)))
        self._bar.setVisible(state != "done")
        self._show_sentence(item)
        self._pause.setVisible(state in ("queued", "running"))
        self._resume.setVisible(state == "paused")
        self._up.setVisible(state != "done")
        self._down.setVisible(state != "done")
        for button in (self._load, self._folder):
            button.setVisible(state == "done")
        tip = (
            tr("Remove from the list. The file is kept.")
            if state == "done"
            else tr("Cancel, and delete what was downloaded")
        )
        self._cancel.setToolTip(tip)
        self._cancel.setAccessibleName(tr("Remove from list") if state == "done" else tr("Cancel"))
        if state == "done":
            self._question.hide()

    def _show_sentence(self, item: DownloadItem) -> None:
        failed = item.saved.state == "failed"
        note = tr("{0} Retrying.", item.note) if item.phase == "waiting" and item.note else ""
        text = item.saved.sentence if failed else note
        self._sentence.setText(text)
        self._sentence.setVisible(bool(text))
        restyle(self._sentence, "kind", "error" if failed else "notice")
        wanted = next_steps(item.saved.trouble) if failed else ()
        for step, button in self._steps.items():
            button.setVisible(step in wanted)

    def _first_line(self) -> ResponsivePairLayout:
        self._pause = self._icon("pause", "pause", tr("Pause"), tr("Pause. You can resume later."))
        self._resume = self._icon("resume", "resume", tr("Resume"), tr("Resume the download"))
        self._up = self._icon("up", "up", tr("Move up"), tr("Download this sooner"))
        self._down = self._icon("down", "down", tr("Move down"), tr("Download this later"))
        self._cancel = self._icon(
            "cancel", "close", tr("Cancel"), tr("Cancel, and delete what was downloaded"), ask=False
        )
        self._cancel.clicked.connect(self._on_cancel)
        self._load = self._button("load", tr("Load"), tr("Load this model"))
        self._folder = self._button("folder", tr("Show in folder"), tr("Open the folder with the file"))
        buttons = self._load, self._folder, self._up, self._down, self._pause, self._resume, self._cancel
        return ResponsivePairLayout(self._name, horizontal_group(self._chip, *buttons), least=_LEAST_NAME)

    def _second_line(self) -> ResponsivePairLayout:
        return ResponsivePairLayout(self._details, self._progress, least=_LEAST_WORDS, spacing=16)

    def _steps_line(self) -> FlowLayout:
        steps: tuple[NextStep, ...] = ("retry", "online", "page", "token", "folders")
        self._steps: dict[NextStep, TextButton] = {}
        row = FlowLayout()
        for step in steps:
            self._steps[step] = self._button(step, *step_text(step))
            row.addWidget(self._steps[step])
        return row

    def _make_question(self) -> QWidget:
        box = QWidget()
        self._question_text = self._label("", "question")
        self._question_text.setWordWrap(True)
        keep = self._button("keep", tr("Keep downloading"), tr("Don't cancel"), ask=False)
        keep.clicked.connect(box.hide)
        sure = self._button("discard", tr("Cancel download"), tr("Delete what was downloaded"), ask=False)
        sure.clicked.connect(lambda: self.asked.emit("cancel"))
        column = QVBoxLayout(box)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(ResponsivePairLayout(self._question_text, horizontal_group(keep, sure), least=_LEAST_WORDS))
        box.hide()
        return box

    def _on_cancel(self) -> None:
        item = self._item
        if item is None or item.saved.state == "done" or item.n_done < _MUCH_BYTES:
            self.asked.emit("cancel")
            return
        self._question_text.setText(tr("Cancel and delete the {0} downloaded so far?", show_bytes(item.n_done)))
        self._question.show()

    def _label(self, kind: str, suffix: str) -> QLabel:
        label = QLabel()
        label.setTextFormat(Qt.TextFormat.PlainText)
        if kind:
            label.setProperty("kind", kind)
        self._named.append((suffix, label))
        return label

    def _icon(self, suffix: str, icon_name: str, text: str, tip: str, *, ask: bool = True) -> IconButton:
        button = IconButton(icon_name, size=16, side=30)
        describe(button, f"downloads.{suffix}", text, tip)
        self._named.append((suffix, button))
        if ask:
            button.clicked.connect(lambda: self.asked.emit(suffix))
        return button

    def _button(self, suffix: str, text: str, tip: str, *, ask: bool = True) -> TextButton:
        button = TextButton(text)
        describe(button, f"downloads.{suffix}", text, tip)
        self._named.append((suffix, button))
        if ask:
            button.clicked.connect(lambda: self.asked.emit(suffix))
        return button


def folder_of(item: DownloadItem) -> str:
    """Return the folder that the download is saved in."""
    return str(PurePath(item.saved.files[0].target).parent)


NextStep = Literal["retry", "page", "token", "folders", "online"]

_NEXT_STEPS: Final[dict[HubErrorKind, tuple[NextStep, ...]]] = {
    "gated": ("page", "token", "retry"),
    "denied": ("token", "page", "retry"),
    "not_found": ("page", "retry"),
    "no_space": ("retry", "folders"),
    "disk": ("retry", "folders"),
    "offline": ("online",),
}


def next_steps(trouble: HubErrorKind | None) -> tuple[NextStep, ...]:
    """Return the steps that may solve a failure, most likely first."""
    return _NEXT_STEPS.get(trouble, ("retry",)) if trouble is not None else ("retry",)


def step_text(step: NextStep) -> tuple[str, str]:
    """Return a button's text and tooltip."""
    return {
        "retry": (tr("Try again"), tr("Continue with what was downloaded")),
        "page": (tr("Open web page"), tr("Open the repository in your browser")),
        "token": (tr("Access token…"), tr("Enter your access token in the settings")),
        "folders": (tr("Model folders…"), tr("Choose another folder in the settings")),
        "online": (tr("Go online"), tr("Allow connections")),
    }[step]


def file_name(kept: SavedDownload) -> str:
    """Return the model's file name."""
    return PurePath(kept.files[0].target).name


def contents_text(kept: SavedDownload) -> str:
    """Return what a download contains: "unsloth/Qwen3.5-4B-GGUF · 2 shards · with vision file"."""
    first = kept.files[0].file
    names = [PurePath(each.target).name.lower() for each in kept.files]
    n_projectors = sum("mmproj" in name for name in names[1:])
    n_shards = len(names) - n_projectors
    parts = [
        first.repo,
        tr_n("{0} shard", "{0} shards", n_shards) if n_shards > 1 else "",
        tr("with vision file") if n_projectors else "",
    ]
    return " · ".join(part for part in parts if part)


def state_chip_text(item: DownloadItem, *, is_offline: bool) -> tuple[str, str]:
    """Return the state in one word, and its tone."""
    match item.saved.state:
        case "done":
            return tr("Finished"), "good"
        case "failed":
            return tr("Failed"), "bad"
        case "paused":
            return tr("Paused"), "plain"
        case "queued":
            return (tr("Offline"), "warn") if is_offline else (tr("Waiting"), "plain")
        case _:
            words = {"checking": tr("Checking"), "waiting": tr("Retrying")}
            return words.get(item.phase, tr("Downloading")), "warn" if item.phase == "waiting" else "info"


def progress_text(item: DownloadItem) -> str:
    """Return "3.2 GB of 19.7 GB · 48 MB/s · 5 min left", without the parts that aren't known."""
    whole = show_bytes(item.saved.n_bytes)
    if item.saved.state == "done":
        return whole
    parts = [tr("{0} of {1}", show_bytes(item.n_done), whole)]
    if item.saved.state == "running" and item.phase == "downloading":
        parts += _speed_texts(item.bytes_per_s, item.seconds_left)
    return " · ".join(parts)


def total_text(state: DownloadsState) -> str:
    """Return "3 downloads · 12.4 GB of 45.0 GB · 48 MB/s · 12 min left", without the parts that aren't known."""
    total, unfinished = state.total, len(state.unfinished)
    if not unfinished:
        return tr("All downloads are finished")
    parts = [tr_n("{0} download", "{0} downloads", unfinished)]
    parts.append(tr("{0} of {1}", show_bytes(total.n_done), show_bytes(total.n_bytes)))
    parts += _speed_texts(total.bytes_per_s, total.seconds_left)
    return " · ".join(parts)


def time_left_text(seconds: float) -> str:
    """Return "under a minute left", "5 min left" or "2 h 5 min left"."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return tr("under a minute left")
    hours, rest = divmod(minutes, 60)
    return tr("{0} h {1} min left", hours, rest) if hours else tr("{0} min left", minutes)


def _speed_texts(bytes_per_s: float, seconds_left: float | None) -> list[str]:
    if bytes_per_s < 1 or seconds_left is None:
        return []
    return [tr("{0}/s", show_bytes(int(bytes_per_s))), time_left_text(seconds_left)]
