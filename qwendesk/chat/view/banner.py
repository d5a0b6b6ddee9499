"""The banner at the top of the chat page: a problem, buttons that help, and the engine's output as details."""

from functools import cached_property
from typing import Literal

import msgspec
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from qwendesk.core.failures import EngineExit, LoadFailureKind
from qwendesk.core.options import LoadOptions
from qwendesk.core.paths import is_demo
from qwendesk.core.redaction import redact_user_paths
from qwendesk.core.served_model import is_served
from qwendesk.core.translation import tr
from qwendesk.engine.state import EngineState, Phase
from qwendesk.hardware.ladder import StepDown
from qwendesk.widgets.buttons import IconButton, TextButton, describe, restyle
from qwendesk.widgets.layouts import DensitySpacing, FlowLayout

BannerAction = Literal["retry", "restart", "again", "engine", "demo", "choose"]
# Failures that another engine, or this one with its libraries, would not have.
_OF_THE_ENGINE: frozenset[LoadFailureKind] = frozenset(
    {"unsupported_architecture", "missing_library", "illegal_instruction", "engine_crashed"}
)


class BannerContent(msgspec.Struct, frozen=True):
    """Content of the banner. `details` are lines of engine output. The banner decides the order of the buttons."""

    tone: Literal["bad", "warn"]
    title: str
    sentence: str
    details: tuple[str, ...] = ()
    actions: tuple[BannerAction, ...] = ()
    retry: str = ""
    """Text of the button "retry"."""


class BannerState(msgspec.Struct, frozen=True):
    content: BannerContent | None = None
    crash: EngineExit | None = None
    """Last exit of the engine, as long as the user should know of it."""
    crashed_with: LoadOptions | None = None
    """The load options that were requested then."""


def next_banner(banner: BannerState, state: EngineState, retry: StepDown | None = None) -> BannerState:
    """Return the banner for the engine's new `state`; `retry` is the step to offer after a failed load."""
    if state.failure is not None:
        return BannerState() if state.failure.kind == "cancelled" else BannerState(_failed(state, retry))
    if state.engine_exit is not None and state.phase is Phase.OFF:
        content = BannerContent(
            "bad",
            tr("The engine stopped"),
            state.engine_exit.sentence,
            state.engine_exit.engine_lines,
            ("restart", "engine"),
        )
        return BannerState(content, state.engine_exit, state.requested)
    if banner.crash is None or state.requested != banner.crashed_with:
        return BannerState()
    return msgspec.structs.replace(banner, content=_after_crash(banner.crash, state.phase))


def _failed(state: EngineState, retry: StepDown | None) -> BannerContent | None:
    failure = state.failure
    if failure is None:
        return None
    model = state.requested.model if state.requested is not None else ""
    engine: tuple[BannerAction, ...] = ("engine",) if failure.kind in _OF_THE_ENGINE else ()
    actions: tuple[BannerAction, ...] = ("restart", *engine) if is_demo(model) else (*engine, "choose", "demo")
    if state.report is not None:  # the file was refused before the loaded model was unloaded for it
        sentence = f"{failure.sentence}\n{tr('The loaded model stays.')}"
        return BannerContent("bad", failure.title, sentence, actions=(*engine, "choose"))
    if is_served(model):
        actions = ("again", "demo")
    if retry is None:
        return BannerContent("bad", failure.title, failure.sentence, failure.engine_lines, actions)
    sentence = f"{failure.sentence}\n{tr('{0}: {1}', retry.label, retry.cost)}"
    return BannerContent("bad", failure.title, sentence, failure.engine_lines, ("retry", *actions), retry.label)


def _after_crash(crash: EngineExit, phase: Phase) -> BannerContent:
    if phase in (Phase.READY, Phase.ANSWERING):
        sentence = tr(
            "{0} It has been restarted. The model has been reloaded. Ask again if an answer was cut off.",
            crash.sentence,
        )
        return BannerContent("warn", tr("The engine stopped and was restarted"), sentence, crash.engine_lines)
    if phase is Phase.OFF:
        return BannerContent("bad", tr("The engine stopped"), crash.sentence, crash.engine_lines, ("restart", "engine"))
    return BannerContent("warn", tr("The engine stopped"), tr("{0} Restarting…", crash.sentence), crash.engine_lines)


_MAX_LINES = 12


class Banner(QWidget):
    """Shows one BannerContent, or is hidden. After it is dismissed, it stays hidden until its content changes."""

    chosen = Signal(str)
    """A BannerAction's name."""
    content_shown = Signal(str)
    """The title and sentence that are now shown."""

    def __init__(self) -> None:
        super().__init__()
        self._content: BannerContent | None = None
        self.setObjectName("banner")
        self._around = QVBoxLayout(self)
        self._around.setContentsMargins(0, 14, 0, 6)
        self.hide()

    @property
    def content(self) -> BannerContent | None:
        return self._content

    def show_content(self, content: BannerContent | None) -> None:
        if content == self._content:
            return
        self._content = content
        if content is None:
            self.hide()
            return
        self._card.show_content(content)
        self.show()
        self.content_shown.emit(f"{content.title}. {content.sentence}")

    @cached_property
    def _card(self) -> "_BannerCard":
        """The banner's content, which is built when there is something to show for the first time."""
        card = _BannerCard()
        card.close_button.clicked.connect(self.hide)
        card.copy_button.clicked.connect(self._copy_all)
        for action, button in card.action_buttons.items():
            button.clicked.connect(lambda _checked=False, action=action: self.chosen.emit(action))
        self._around.addWidget(card)
        return card

    def _copy_all(self) -> None:
        if self._content is not None:
            lines = (self._content.title, self._content.sentence, "", *self._content.details)
            QGuiApplication.clipboard().setText(redact_user_paths("\n".join(lines)))


class _BannerCard(QFrame):
    """What a banner shows. Built with the first content: few starts have one."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "banner")
        self._title = QLabel()
        self._title.setProperty("kind", "heading")
        self._title.setWordWrap(True)
        self._title.setObjectName("banner.title")
        self._sentence = QLabel()
        self._sentence.setWordWrap(True)
        self._sentence.setObjectName("banner.sentence")
        self._sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._details = QPlainTextEdit()
        self._details.setProperty("kind", "details")
        self._details.setObjectName("banner.lines")
        self._details.setAccessibleName(tr("Engine output"))
        self._details.setToolTip(tr("Engine output"))
        self._details.setReadOnly(True)
        self._details.setTabChangesFocus(True)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 10, 12)
        column.setSpacing(8)
        DensitySpacing(column)
        column.addLayout(self._first_row())
        column.addWidget(self._sentence)
        column.addLayout(self._buttons())
        column.addWidget(self._details)

    def show_content(self, content: BannerContent) -> None:
        restyle(self, "tone", content.tone)
        self._title.setText(content.title)
        self._sentence.setText(content.sentence)
        for action, button in self.action_buttons.items():
            button.setVisible(action in content.actions)
        if content.retry:
            retry = self.action_buttons["retry"]
            describe(retry, "banner.retry", content.retry, tr("Reload the model with this change"))
            retry.setText(content.retry)
        self._more.setVisible(bool(content.details))
        self.copy_button.setVisible(bool(content.details))
        self._more.setChecked(False)
        self._details.setPlainText("\n".join(content.details))
        self._details.ensurePolished()
        lines = min(_MAX_LINES, max(2, len(content.details)) + 1)
        self._details.setFixedHeight(lines * self._details.fontMetrics().lineSpacing() + 28)
        self._details.hide()

    def _first_row(self) -> QHBoxLayout:
        self.close_button = IconButton("close", size=16, side=28)
        describe(self.close_button, "banner.dismiss", tr("Dismiss"))
        row = QHBoxLayout()
        row.addWidget(self._title, 1)
        row.addWidget(self.close_button)
        return row

    def _buttons(self) -> FlowLayout:
        texts: tuple[tuple[BannerAction, str, str], ...] = (
            ("retry", tr("Try again"), tr("Reload the model with this change")),
            ("restart", tr("Restart the engine"), tr("Restart the engine and reload the model")),
            ("again", tr("Try again"), tr("Ask the server once more")),
            ("engine", tr("Open the Engine page"), tr("Choose another engine, look for a newer one, or test this one")),
            ("choose", tr("Choose another file…"), tr("Choose another GGUF file")),
            ("demo", tr("Use the built-in demo"), tr("Load the built-in demo model. It knows only a few topics.")),
        )
        self.action_buttons: dict[BannerAction, TextButton] = {}
        row = FlowLayout()
        for action, text, tip in texts:
            button = TextButton(text)
            describe(button, f"banner.{action}", text, tip)
            self.action_buttons[action] = button
            row.addWidget(button)
        self._more = TextButton(tr("Details"), kind="quiet")
        self._more.setCheckable(True)
        describe(self._more, "banner.details", tr("Details"), tr("Show the engine's output"))
        self._more.toggled.connect(self._details.setVisible)
        self.copy_button = TextButton(tr("Copy"), kind="quiet", icon_name="copy")
        describe(self.copy_button, "banner.copy", tr("Copy"), tr("Copy this message with its details"))
        row.addWidget(self._more)
        row.addWidget(self.copy_button)
        return row
