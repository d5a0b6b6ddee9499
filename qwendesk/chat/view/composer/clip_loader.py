"""Reads clips into their cards in the composer: their facts, then the frames that the model gets."""

import asyncio
import math
import threading
from collections.abc import Sequence
from pathlib import Path

from qwendesk.chat.clip_parts import clip_parts
from qwendesk.chat.service import ChatService
from qwendesk.chat.view.composer.attachments import Attachments
from qwendesk.chat.view.composer.clip_card import ClipCard
from qwendesk.chat.view.thread.pictures.thumbnails import PreviewCache
from qwendesk.core.clip_sampling import CONTEXT_SHARE, FramePlan, even_count, plan_frames
from qwendesk.core.clips import ClipChoice
from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import ImagePart
from qwendesk.decoding.clips import clip_facts, clip_frames
from qwendesk.decoding.ffmpeg import find_ffmpeg
from qwendesk.decoding.protocol import ClipFacts
from qwendesk.engine.protocol import LoadReport
from qwendesk.widgets.display_texts import clip_text
from qwendesk.widgets.tasks import window_tasks

# Tokens that are free for clips while no model is loaded, or its context isn't known.
_UNKNOWN_CONTEXT = 16_384
# The share of what is free that the frames of a clip may take if the user wants more of them.
_MOST_SHARE = 0.5


class ClipLoader:
    """Owns the readings of a composer's clips. All methods are called on the event loop's thread."""

    def __init__(self, attachments: Attachments, chat: ChatService, previews: PreviewCache) -> None:
        self._attachments, self._chat, self._previews = attachments, chat, previews
        self._tasks = window_tasks()
        self._report: LoadReport | None = None
        attachments.clip_asked.connect(lambda card: self._tasks.start(self._choose_frames(card), card))

    def show_report(self, report: LoadReport | None) -> None:
        """Plan with the loaded model from now on."""
        self._report = report

    async def read_facts(self, card: ClipCard) -> bool:
        """Read what kind of clip it is. Return False if its card was removed meanwhile.

        Raises BadRequest if it can't be used; its card is removed then.
        """
        ended = card.show_reading()
        try:
            card.facts = await asyncio.to_thread(_facts, card.path, self._chat.ffmpeg_folder, ended)
        except BadRequest:
            if ended.is_set():
                return False
            self._attachments.remove(card)
            raise
        finally:
            ended.set()
        return card in self._attachments.items

    def read_frames(self, card: ClipCard) -> None:
        """Read the frames that the card's choice means, and count them."""
        if card.facts is not None:
            self._tasks.start(self._read_frames(card, card.facts), card)

    async def _read_frames(self, card: ClipCard, facts: ClipFacts) -> None:
        ended = card.show_reading()
        self._attachments.changed.emit()
        card.plan = plan = self._plan(card, facts, card.choice)
        incognito_images, folder = self._chat.active_incognito_images, self._chat.ffmpeg_folder

        def read() -> tuple[ImagePart, ...]:
            return clip_parts(card.path, facts.duration_s, plan, find_ffmpeg(folder), incognito_images, ended.is_set)

        try:
            parts = await asyncio.to_thread(read)
            preview = await self._previews.load_preview(Path(parts[len(parts) // 2].path)) if parts else None
        except BadRequest as error:
            if not ended.is_set():
                card.refuse(error.title, error.sentence)
            return
        except asyncio.CancelledError:
            ended.set()
            raise
        if preview is not None and not ended.is_set():
            self._attachments.show_frames(card, parts, preview, self._n_ctx)

    async def _choose_frames(self, card: ClipCard) -> None:
        facts = card.facts
        if facts is None:
            return
        from qwendesk.chat.view.composer.clip_sheet import THUMBNAIL_PIXELS, ClipSheet  # noqa: PLC0415 - few open it

        ended = threading.Event()

        async def read(times: Sequence[float]) -> tuple[bytes, ...]:
            folder = self._chat.ffmpeg_folder
            return await asyncio.to_thread(_small_frames, card.path, times, THUMBNAIL_PIXELS, folder, ended)

        sheet = ClipSheet(
            card.path, facts, card.choice, self._attachments.window(),
            plan=lambda choice: self._plan(card, facts, choice), read=read,
            cost_text=lambda choice, plan: self._cost_text(facts, choice, plan),
        )  # fmt: skip
        try:
            choice = await sheet.answer()
        finally:
            ended.set()
        if choice is not None and choice != card.choice and card in self._attachments.items:
            card.choice = choice
            self.read_frames(card)

    @property
    def _n_ctx(self) -> int:
        """The context of the loaded model in tokens; 0 if none is loaded, or it isn't known."""
        return self._report.n_ctx if self._report is not None else 0

    def _plan(self, card: ClipCard, facts: ClipFacts, choice: ClipChoice) -> FramePlan:
        """Return the frames for a choice. More of them than automatically cost more, and are smaller only then."""
        part = facts.part(choice.begin_s, choice.end_s)
        in_pairs = self._report is None or self._report.pairs_frames
        free = self._free_tokens(card)
        automatic = plan_frames(part, round(CONTEXT_SHARE * free), in_pairs=in_pairs)
        if not choice.n_frames:
            return automatic
        as_large = math.ceil(automatic.tokens / len(automatic.times) * even_count(part, choice.n_frames))
        budget = min(as_large, round(_MOST_SHARE * free))
        return plan_frames(part, budget, n_frames=choice.n_frames, in_pairs=in_pairs)

    def _free_tokens(self, card: ClipCard) -> int:
        """Return how many tokens of the context neither the chat nor other attachments take."""
        turns = self._chat.conversation.turns
        used = turns[-1].answer.stats.total_tokens if turns else 0
        others = sum(item.tokens for item in self._attachments.items if item is not card)
        return max(0, (self._n_ctx or _UNKNOWN_CONTEXT) - used - others)

    def _cost_text(self, facts: ClipFacts, choice: ClipChoice, plan: FramePlan) -> str:
        return clip_text(plan, facts.part(choice.begin_s, choice.end_s).duration_s, self._n_ctx)


def _facts(path: Path, ffmpeg_folder: str, ended: threading.Event) -> ClipFacts:
    return clip_facts(path, find_ffmpeg(ffmpeg_folder), ended.is_set)


def _small_frames(
    path: Path, times: Sequence[float], longest_side: int, ffmpeg_folder: str, ended: threading.Event
) -> tuple[bytes, ...]:
    return clip_frames(path, times, longest_side, find_ffmpeg(ffmpeg_folder), ended.is_set)
