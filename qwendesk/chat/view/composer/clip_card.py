"""The card of a clip in the composer: a frame of it, how many frames the model gets, and what they cost."""

import threading
from pathlib import Path

import msgspec
from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from qwendesk.chat.view.composer.attachment_cards import AttachmentCard
from qwendesk.chat.view.thread.pictures.thumbnails import ImagePreview, Thumbnail
from qwendesk.core.chats import DraftFile
from qwendesk.core.clip_sampling import FramePlan
from qwendesk.core.clips import ClipChoice
from qwendesk.core.messages import ImagePart
from qwendesk.core.translation import tr
from qwendesk.decoding.protocol import ClipFacts
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.display_texts import clip_text
from qwendesk.widgets.text_layout import ElidedLabel


class ClipCard(AttachmentCard):
    """A clip that is being read, and then has frames. Its owner reads it."""

    asked = Signal()
    """The user wants to choose the frames."""
    opened = Signal(str, object)
    """Path and ClipFrame of a frame that the user wants to see."""

    def __init__(self, path: Path, number: int, choice: ClipChoice) -> None:
        super().__init__(path, path.name, number)
        self.choice = choice
        self.facts: ClipFacts | None = None
        self.plan: FramePlan | None = None
        self.parts: tuple[ImagePart, ...] = ()
        """The frames; empty while they are being read."""
        self.reading = threading.Event()
        """Ends the current reading once it is set."""
        self.cost = ElidedLabel(f"{self.name}.cost", kind="small")
        self._thumbnail = Thumbnail(path, QSize(60, 40))
        self._thumbnail.setObjectName(f"{self.name}.picture")
        self._thumbnail.clicked.connect(self._open_middle)
        title = ElidedLabel(f"{self.name}.title", kind="filename")
        title.setText(path.name)
        title.setToolTip(path.name)
        self._frames = TextButton(tr("Frames…"), kind="quiet")
        describe(
            self._frames,
            f"{self.name}.frames",
            tr("Frames of {0}", path.name),
            tr("Choose a part of the clip, and how many of its frames the model gets"),
        )
        self._frames.clicked.connect(self.asked)
        labels = QVBoxLayout()
        labels.setSpacing(1)
        labels.addWidget(title)
        labels.addWidget(self.cost)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 5, 6, 5)
        row.setSpacing(10)
        row.addWidget(self._thumbnail)
        row.addLayout(labels, 1)
        row.addWidget(self._frames)
        row.addWidget(self._remove, 0, Qt.AlignmentFlag.AlignTop)
        self._watch_controls(self._thumbnail, self._frames, self._remove)
        self.show_reading()

    @property
    def handle(self) -> QWidget:
        return self._thumbnail

    @property
    def draft(self) -> str | DraftFile:
        return DraftFile(str(self.path), clip=self.choice) if self.choice != ClipChoice() else str(self.path)

    def withdraw(self) -> None:
        self.reading.set()

    def show_reading(self) -> threading.Event:
        """Say that the clip is being read, and end an earlier reading. Return the event that ends this one."""
        self.reading.set()
        self.reading = threading.Event()
        self.parts = ()
        self.refuse(
            tr("Reading the clip…"), tr("{0} is still being read. Send the message in a moment.", self.path.name)
        )
        self._frames.setEnabled(self.facts is not None)
        return self.reading

    def show_frames(self, parts: tuple[ImagePart, ...], preview: ImagePreview, n_ctx: int) -> None:
        """Show that the clip has been read: its frames, a picture of the middle one, and what the plan says they cost.

        `n_ctx` is 0 if the context isn't known.
        """
        self.parts = parts
        self._thumbnail.show_image(preview)
        self._frames.setEnabled(True)
        self.show_cost(self.plan.tokens if self.plan is not None and n_ctx else 0, n_ctx)

    def show_cost(self, tokens: int, n_ctx: int) -> None:
        """Show how many tokens the frames take."""
        self.accept_count(tokens, self._words(tokens, n_ctx))

    def accept_count(self, tokens: int, text: str) -> None:
        super().accept_count(tokens, text)
        self.cost.setToolTip(text)

    def _words(self, tokens: int, n_ctx: int) -> str:
        facts, plan = self.facts, self.plan
        if facts is None or plan is None:
            return ""
        counted = msgspec.structs.replace(plan, tokens=tokens)
        return clip_text(counted, facts.part(self.choice.begin_s, self.choice.end_s).duration_s, n_ctx)

    def _open_middle(self) -> None:
        if self.parts:
            middle = self.parts[len(self.parts) // 2]
            self.opened.emit(middle.path, middle.frame)
