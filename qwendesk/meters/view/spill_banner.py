"""The banner over all pages while a model spills: the problem, its effect on speed, and a button for each remedy."""

from typing import Literal

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.core.number_format import show_count, show_decimal
from qwendesk.core.translation import join_sentences, tr, tr_n
from qwendesk.core.units import GIB, MIB, show_bytes, show_duration, show_expected, show_rate, show_tokens
from qwendesk.hardware.spill import SpillState
from qwendesk.meters.meter_state import MeterState, Spill, VramConsumer
from qwendesk.meters.services import MeterServices
from qwendesk.meters.spill_remedies import RemedyId, RemedyState, SpillRemedy
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import IconButton, TextButton, describe, restyle
from qwendesk.widgets.kit import MARGIN, READING_WIDTH, centred
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.tasks import window_tasks

BannerButton = RemedyId | Literal["load_again", "stop_waiting"]


class RemedyButton(msgspec.Struct, frozen=True):
    """One button of the banner."""

    id: BannerButton
    text: str
    tooltip: str


class SpillStory(msgspec.Struct, frozen=True):
    """Content of the banner. `key` stays the same while only numbers change: a dismissed key is not shown again."""

    key: str
    tone: Literal["bad", "warn"]
    title: str
    sentence: str
    choices: tuple[RemedyButton, ...] = ()
    note: str = ""
    busy: bool = False
    """True if the buttons are disabled because a remedy was chosen."""


def story_of(meters: MeterState, state: RemedyState, *, on_windows: bool) -> SpillStory | None:
    """Return the content of the banner; None if nothing is wrong."""
    if state.failure is not None and meters.spill is None and state.ejected is None:
        return SpillStory("failed", "bad", state.failure.title, state.failure.sentence)
    if state.ejected is not None:
        return _ejected_story(state)
    spill = meters.spill
    if spill is None:
        return None
    title = tr("VRAM spills") if spill.state is SpillState.SPILLING else tr("VRAM probably spills")
    return SpillStory(
        key=str(spill.state.value),
        tone="bad",
        title=title,
        sentence=join_sentences(_cost_text(spill), _consumer_text(spill.consumer)),
        choices=tuple(_choice(remedy, _reread_text(state)) for remedy in state.remedies),
        note=_note(meters, state, on_windows=on_windows),
        busy=state.pending is not None,
    )


def _cost_text(spill: Spill) -> str:
    where = (
        tr("{0} of the model sits in shared memory.", _size(spill.excess_bytes))
        if spill.excess_bytes
        else tr("The GPU is busy at low power and answers are slow, which looks like spilled memory.")
    )
    if spill.best_tok_s is not None and spill.now_tok_s is not None:
        before, now = show_rate(spill.best_tok_s), show_rate(spill.now_tok_s)
        return join_sentences(where, tr("The speed fell from {0} to {1} tok/s.", before, now))
    if spill.slowdown is not None:
        low, high = (show_decimal(factor, 0 if factor >= 3 else 1) for factor in spill.slowdown)
        return join_sentences(where, tr("Answers are {0} to {1} times slower (user reports).", low, high))
    return where


def _consumer_text(consumer: VramConsumer | None) -> str:
    if consumer is None:
        return ""
    if not consumer.name:
        return tr("Other programs have taken {0} since the model was loaded.", _size(consumer.n_bytes))
    return tr("{0} has taken {1} since the model was loaded.", consumer.name, _size(consumer.n_bytes))


def _choice(remedy: SpillRemedy, reread: str) -> RemedyButton:
    text, tip = _words(remedy)
    if remedy.expected_tok_s is not None:
        text = tr("{0}, about {1} tok/s", text, show_expected(remedy.expected_tok_s))
        tip = join_sentences(tip, tr("The speed is an estimate."))
    return RemedyButton(remedy.id, text, f"{tip}\n{reread}")


def _words(remedy: SpillRemedy) -> tuple[str, str]:
    """Return the text and the tooltip of a button."""
    layers = remedy.expert_layers
    if remedy.id == "drafts":
        return tr("Token drafts off"), tr("Answers say the same, but may be slower. Everything stays on the GPU.")
    if remedy.id == "experts":
        text = tr_n("{0} expert layer to CPU", "{0} expert layers to CPU", layers)
        return text, tr("Everything else stays on the GPU, and your chat is kept.")
    if remedy.id == "both":
        text = tr_n("Pictures + {0} expert layer to CPU", "Pictures + {0} expert layers to CPU", layers)
        return text, tr("Neither is enough alone. Everything else stays on the GPU, and your chat is kept.")
    if remedy.id == "layers":
        text = tr_n("{0} layer to CPU", "{0} layers to CPU", remedy.cpu_layers)
        return text, tr("Smaller changes aren't enough. Your chat is kept.")
    if remedy.id == "context":
        n_ctx = remedy.options.n_ctx if remedy.options is not None else 0
        return tr("Shorter context ({0})", show_tokens(n_ctx)), tr("Your chat is kept and has room to continue.")
    if remedy.id == "vision":
        return tr("Pictures to CPU"), tr("Pictures take seconds to process. Text is as fast as before the spill.")
    if remedy.id == "kv":
        tip = tr("Halves the memory of the chat. Small mistakes in formulas were reported in long chats.")
        return tr("Smaller cache (q8_0)"), tip
    name = remedy.consumer.name if remedy.consumer is not None else ""
    text = tr("Eject until {0} closes", name) if name else tr("Eject until the memory is free")
    return text, tr("Frees all video memory. The model is reloaded when enough memory is free again.")


def _note(meters: MeterState, state: RemedyState, *, on_windows: bool) -> str:
    parts = [_reread_text(state)] if state.remedies else []
    if state.pending is not None:
        parts = [tr("Applies when this answer is finished.") if meters.answering else tr("Applying…")]
    if state.failure is not None:
        parts.insert(0, tr("The last change failed: {0}", state.failure.sentence))
    nvidia = any(bar.gpu.vendor == "nvidia" for bar in meters.bars)
    if on_windows and nvidia:
        parts.append(
            tr(
                "To make a model that is too large fail to load instead of running slowly, set “CUDA - Sysmem Fallback "
                "Policy” to “Prefer No Sysmem Fallback” in the NVIDIA Control Panel."
            )
        )
    return join_sentences(*parts)


def _reread_text(state: RemedyState) -> str:
    if state.reread_s is not None:
        took = show_duration(state.reread_s)
        return tr("Applies after this answer. Processing the chat again takes about {0}.", took)
    if state.reread_tokens:
        tokens = show_count(state.reread_tokens)
        return tr("Applies after this answer. Then the {0} tokens of the chat are processed again.", tokens)
    return tr("Applies after this answer. Your chat is kept.")


def _ejected_story(state: RemedyState) -> SpillStory:
    ejected = state.ejected
    name = ejected.consumer.name if ejected is not None and ejected.consumer is not None else ""
    sentence = tr("It is reloaded with this chat when enough video memory is free.")
    if name:
        sentence = tr("All its video memory is free for {0}. It is reloaded when enough memory is free again.", name)
    return SpillStory(
        key="waiting",
        tone="warn",
        title=tr("Model ejected for now"),
        sentence=sentence,
        choices=(
            RemedyButton("load_again", tr("Load now"), tr("Load the model even if too little memory is free")),
            RemedyButton("stop_waiting", tr("Keep ejected"), tr("Don't reload it automatically")),
        ),
    )


def _size(n_bytes: int) -> str:
    return show_bytes(n_bytes) if n_bytes >= GIB else tr("{0} MB", show_decimal(n_bytes / MIB, 0))


class SpillBanner(QWidget):
    """Shows a SpillStory, or nothing. Once dismissed, it is shown again only when the story's key changes."""

    def __init__(self, services: MeterServices, navigation: Navigation) -> None:
        super().__init__()
        self._services, self._navigation, self._tasks = services, navigation, window_tasks()
        self._story: SpillStory | None = None
        self._dismissed = ""
        self.setObjectName("spill")
        self._card = QFrame()
        self._card.setProperty("kind", "banner")
        self._title = QLabel()
        self._title.setProperty("kind", "heading")
        self._title.setObjectName("spill.title")
        self._sentence = QLabel()
        self._sentence.setWordWrap(True)
        self._sentence.setObjectName("spill.sentence")
        self._sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._note = QLabel()
        self._note.setWordWrap(True)
        self._note.setObjectName("spill.note")
        self._note.setProperty("kind", "small")
        self._row = QHBoxLayout()
        self._row.setSpacing(8)
        self._row.addStretch(1)
        self._buttons: dict[BannerButton, TextButton] = {}
        around = QVBoxLayout(self)
        around.setContentsMargins(0, 14, 0, 12)
        around.addLayout(centred(self._card, READING_WIDTH, margin=MARGIN))
        column = QVBoxLayout(self._card)
        column.setContentsMargins(16, 10, 10, 12)
        column.setSpacing(6)
        column.addLayout(self._first_row())
        column.addWidget(self._sentence)
        column.addLayout(self._row)
        column.addWidget(self._note)
        self.hide()
        bind(self, services.service.state, self._on_change)
        bind(self, services.remedies.state, self._on_change)

    def _on_change(self, _change: object) -> None:
        meters, remedies = self._services.service.state.value, self._services.remedies.state.value
        self.show_story(story_of(meters, remedies, on_windows=self._services.platform == "win32"))

    def _choose(self, button: BannerButton) -> None:
        remedies = self._services.remedies
        match button:
            case "load_again":
                self._tasks.start(remedies.load_again())
            case "stop_waiting":
                remedies.stop_waiting()
            case _:
                self._tasks.start(remedies.apply(button, self._services.service.state.value))

    @property
    def story(self) -> SpillStory | None:
        """The current story, even if it was dismissed."""
        return self._story

    def show_story(self, story: SpillStory | None) -> None:
        if story is None or story.key != self._dismissed:
            self._dismissed = ""
        if story != self._story and story is not None:
            self._fill(story)
        self._story = story
        self.setVisible(story is not None and not self._dismissed)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange_buttons()

    def _arrange_buttons(self) -> None:
        """Lay out the buttons in a row if they fit, else in a column."""
        wanted = sum(button.sizeHint().width() + self._row.spacing() for button in self._buttons.values())
        beside = wanted <= self.width() - 80
        way = QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom
        if self._row.direction() is not way:
            self._row.setDirection(way)

    def _fill(self, story: SpillStory) -> None:
        restyle(self._card, "tone", story.tone)
        self._title.setText(story.title)
        self._sentence.setText(story.sentence)
        self._note.setText(story.note)
        self._note.setVisible(bool(story.note))
        wanted = [choice.id for choice in story.choices]
        for gone in [each for each in self._buttons if each not in wanted]:
            button = self._buttons.pop(gone)
            self._row.removeWidget(button)
            button.deleteLater()
            button.setObjectName("")
            button.hide()
        for place, choice in enumerate(story.choices):
            button = self._buttons.get(choice.id) or self._make(choice.id, place)
            button.setText(choice.text)
            describe(button, f"spill.{choice.id}", choice.text, choice.tooltip)
            button.setEnabled(not story.busy)
            restyle(button, "kind", "primary" if place == 0 else "")
        self._arrange_buttons()

    def _make(self, choice: BannerButton, place: int) -> TextButton:
        button = TextButton()
        button.clicked.connect(lambda _checked=False: self._choose(choice))
        self._buttons[choice] = button
        self._row.insertWidget(place, button)
        return button

    def _first_row(self) -> QHBoxLayout:
        close = IconButton("close", size=16, side=28)
        describe(close, "spill.dismiss", tr("Dismiss"), tr("Hide this until the state changes"))
        close.clicked.connect(self._dismiss)
        more = TextButton(tr("Help"), kind="link")
        describe(more, "spill.help", tr("Help"), tr("Read about spilled memory in the guide"))
        more.clicked.connect(lambda: self._navigation.help_asked.emit("spill", ""))
        row = QHBoxLayout()
        row.addWidget(self._title, 1)
        row.addWidget(more)
        row.addWidget(close)
        return row

    def _dismiss(self) -> None:
        if self._story is not None:
            self._dismissed = self._story.key
            self.hide()
