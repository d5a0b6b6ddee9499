"""The chat service for widgets: its news become signals, intents become coroutines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from qwendesk.core.chats import ChatSettings
from qwendesk.core.conversation import Conversation, Turn
from qwendesk.core.messages import DocumentPart, ImagePart
from qwendesk.core.options import GenerationOptions
from qwendesk.core.presets import Style
from qwendesk.core.settings import parse, table
from qwendesk.engine.protocol import PictureCost
from qwendesk.services.chat.chat import Part
from qwendesk.services.chat.counting import Room, Uncounted
from qwendesk.services.chat.held import HeldPictures
from qwendesk.services.chat.preset_file import PRESET_KEYS
from qwendesk.services.chat.presets import is_changed
from qwendesk.services.chat.service import (
    ChatNews,
    ChatService,
    ConversationReplaced,
    Deleted,
    PromptRead,
    SettingsChanged,
    TurnEnded,
    TurnsReplaced,
    TurnStarted,
    Wrote,
)
from qwendesk.ui.bridges.repaint import REPAINT_EVERY_MS
from qwendesk.ui.kit.tasks import Tasks

_BUDGET = "thinking_budget"


class ChatBridge(QObject):
    """The chat service for widgets."""

    turn_started = Signal(int)
    prompt_read = Signal(int, int, int)
    """Turn, prompt tokens read, of how many."""
    wrote = Signal(int, str, str)
    """Turn, "reasoning" or "answer", new text; several pieces at once, every 30 ms at most."""
    turn_ended = Signal(int)
    replaced = Signal()
    """Another conversation is shown now."""
    turns_replaced = Signal(int)
    """So many of the first turns stand as they were; what follows them is other now."""
    deleted = Signal(int)
    """Messages that were taken away; `undo_delete` brings them back."""
    options_changed = Signal()
    """Thinking, style, system prompt or anything else the chat has of its own."""

    def __init__(self, service: ChatService, tasks: Tasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._service = service
        self._tasks = tasks
        self._written: list[Wrote] = []
        self._timer = QTimer(self, singleShot=True, interval=REPAINT_EVERY_MS)
        self._timer.timeout.connect(self._flush)
        self._unsubscribe = service.subscribe(self._on_news)

    @property
    def conversation(self) -> Conversation:
        return self._service.conversation

    @property
    def held(self) -> HeldPictures:
        """The pictures of an incognito chat that are no files."""
        return self._service.held

    @property
    def held_only(self) -> HeldPictures | None:
        """`held` while no picture may become a file, else None."""
        return self._service.held_only

    @property
    def busy(self) -> bool:
        return self._service.busy

    @property
    def thinking(self) -> bool:
        return self._service.thinking

    @property
    def style(self) -> Style:
        return self._service.style

    def turn(self, turn_id: int) -> Turn | None:
        """The turn as it is now; None when it belongs to another conversation."""
        return next((turn for turn in self._service.conversation.turns if turn.id == turn_id), None)

    def send(self, text: str, pictures: Sequence[ImagePart] = (), documents: Sequence[DocumentPart] = ()) -> None:
        self._tasks.start(self._service.send(text, pictures, documents))

    def stop(self) -> None:
        self._tasks.start(self._service.stop())

    def answer_now(self) -> None:
        self._tasks.start(self._service.answer_now())

    def edit_question(self, turn_id: int, text: str) -> None:
        self._tasks.start(self._service.edit_question(turn_id, text))

    def edit_answer(self, turn_id: int, text: str, reasoning: str) -> None:
        self._tasks.run(lambda: self._service.edit_answer(turn_id, text=text, reasoning=reasoning))

    def regenerate(self, turn_id: int) -> None:
        self._tasks.start(self._service.regenerate(turn_id))

    def resume(self, turn_id: int) -> None:
        """Go on with an answer that was stopped or cut."""
        self._tasks.start(self._service.resume(turn_id))

    def branch(self, turn_id: int) -> None:
        self._tasks.run(lambda: self._service.branch(turn_id))

    def delete(self, turn_id: int, part: Part) -> None:
        self._tasks.run(lambda: self._service.delete(turn_id, part))

    def undo_delete(self) -> None:
        self._tasks.run(self._service.undo_delete)

    def show_version(self, turn_id: int, part: Part, step: Literal[-1, 1]) -> None:
        self._tasks.run(lambda: self._service.show_version(turn_id, part, step))

    def new_chat(self) -> None:
        self._service.new_chat()

    def toggle_thinking(self) -> None:
        self._service.set_thinking(not self._service.thinking)

    def choose_style(self, style: Style) -> None:
        """One of the model card's; what was set by hand is dropped, but for the thinking budget and a grammar."""
        settings = self._service.settings
        kept = {key: text for key, text in settings.overrides.items() if key not in PRESET_KEYS}
        self._service.change_settings(
            msgspec.structs.replace(settings, preset=style, preset_name="", preset_values={}, overrides=kept)
        )

    def choose_custom(self, assignments: dict[str, str]) -> None:
        """Sampling values set by hand, as option name to text, on top of those that hold. An own preset stays chosen.

        Raises BadOption for a value that cannot be used.
        """
        settings, base, rows = self._service.settings, self._service.preset_options(), table(GenerationOptions)
        overrides = {**settings.overrides, **assignments}
        if settings.preset_name:
            overrides = {
                key: text for key, text in overrides.items() if parse(rows[key], text) != getattr(base, key)
            }  # fmt: skip
        elif settings.preset != "custom":
            overrides = {"min_p": str(base.min_p), "repeat_penalty": str(base.repeat_penalty), **overrides}
        self._service.change_settings(msgspec.structs.replace(settings, preset="custom", overrides=overrides))

    @property
    def preset_name(self) -> str:
        """The person's own preset that this chat uses; "" for none."""
        return self._service.settings.preset_name

    @property
    def is_preset_changed(self) -> bool:
        """Whether something was set by hand on top of it."""
        return is_changed(self._service.settings)

    @property
    def settings(self) -> ChatSettings:
        return self._service.settings

    def change_settings(self, settings: ChatSettings) -> None:
        """All that the chat has of its own. Raises BadOption or BadRequest for what cannot be used."""
        self._service.change_settings(settings)

    @property
    def options(self) -> GenerationOptions:
        """How the next answer will be made."""
        return self._service.options()

    @property
    def preset_options(self) -> GenerationOptions:
        """How it would be made without anything set by hand."""
        return self._service.preset_options()

    def sampling(self) -> dict[str, float]:
        """The sampling values the next answer will use, by option name."""
        options = self._service.options()
        return {key: float(getattr(options, key)) for key in ("temperature", "top_p", "top_k", "presence_penalty")}

    async def picture_cost(self, path: Path, longest_side: int = 0) -> PictureCost | Uncounted:
        """Raises BadRequest when its file cannot be read."""
        return await self._service.picture_cost(path, longest_side)

    async def document_cost(self, document: DocumentPart) -> Room | Uncounted:
        return await self._service.document_cost(document)

    async def question_cost(
        self, text: str, pictures: Sequence[ImagePart], documents: Sequence[DocumentPart]
    ) -> Room | Uncounted:
        """Of the whole next request. Raises BadRequest when a picture cannot be read."""
        return await self._service.question_cost(text, pictures, documents)

    @property
    def thinking_budget(self) -> int:
        """Tokens of thought before it must answer; -1 is unlimited."""
        return int(self._service.settings.overrides.get(_BUDGET, "-1"))

    def choose_budget(self, tokens: int) -> None:
        """-1 is unlimited."""
        rest = {key: text for key, text in self._service.settings.overrides.items() if key != _BUDGET}
        self._service.set_overrides(rest if tokens < 0 else {**rest, _BUDGET: str(tokens)})

    async def close(self) -> None:
        self._unsubscribe()
        self._timer.stop()
        await self._service.stop()

    def _on_news(self, news: ChatNews) -> None:
        match news:
            case Wrote():
                self._written.append(news)
                if not self._timer.isActive():
                    self._timer.start()
            case TurnStarted(turn_id=turn_id):
                self.turn_started.emit(turn_id)
            case PromptRead(turn_id=turn_id, done=done, total=total):
                self.prompt_read.emit(turn_id, done, total)
            case TurnEnded(turn_id=turn_id):
                self._flush()
                self.turn_ended.emit(turn_id)
            case ConversationReplaced():
                self._written.clear()
                self.replaced.emit()
                self.options_changed.emit()
            case TurnsReplaced(kept=kept):
                self._flush()
                self.turns_replaced.emit(kept)
            case Deleted(messages=messages):
                self.deleted.emit(messages)
            case SettingsChanged():
                self.options_changed.emit()

    def _flush(self) -> None:
        """Hand on what was written, joined per kind; a thought always comes before its answer."""
        self._timer.stop()
        joined: dict[tuple[int, str], list[str]] = {}
        for piece in self._written:
            joined.setdefault((piece.turn_id, piece.kind), []).append(piece.text)
        self._written.clear()
        for (turn_id, kind), texts in joined.items():
            self.wrote.emit(turn_id, kind, "".join(texts))
