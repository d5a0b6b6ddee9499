"""Clips that clients send: their frames, in place of the clips."""

import asyncio
import hashlib
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import msgspec

from qwendesk.chat.request import MAX_BYTES_IN_REQUEST
from qwendesk.core.clip_sampling import CONTEXT_SHARE, plan_frames
from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import ClipFrame, ImagePart, Message, Part
from qwendesk.core.units import show_bytes
from qwendesk.engine.protocol import LoadReport
from qwendesk.server.refusals import BAD_PICTURE, Refused, bad_field

# Programs send the whole conversation again with each question. Bytes of frames that are kept for that.
_KEPT_BYTES = 64 << 20


class UnreadClip(ImagePart, frozen=True):
    """The bytes of a clip, in place of its frames until they are read. `path` is the field of the request."""


class ServedClips:
    """Reads the frames of clips, and keeps those of the last ones. Call its methods on the event loop's thread."""

    def __init__(self, ffmpeg_folder: str = "") -> None:
        self._ffmpeg_folder = ffmpeg_folder
        self._kept: OrderedDict[tuple[str, int, bool], tuple[ImagePart, ...]] = OrderedDict()

    async def with_frames(self, messages: Sequence[Message], report: LoadReport) -> tuple[Message, ...]:
        """Return the messages with frames in place of clips. Raise Refused for a clip that can't be read."""
        n_clips = sum(isinstance(image, UnreadClip) for message in messages for image in message.images)
        if not n_clips:
            return tuple(messages)
        budget = int(CONTEXT_SHARE * report.n_ctx) // n_clips
        read = tuple([await self._with_frames(message, budget, in_pairs=report.pairs_frames) for message in messages])
        n_bytes = sum(len(image.data) for message in read for image in message.images)
        if n_bytes > MAX_BYTES_IN_REQUEST:
            sentence = "The frames take {0}, but a request can have {1}. Send shorter or smaller clips."
            sizes = show_bytes(n_bytes), show_bytes(MAX_BYTES_IN_REQUEST)
            raise Refused(400, sentence.format(*sizes), code=BAD_PICTURE)
        return read

    async def _with_frames(self, message: Message, budget: int, *, in_pairs: bool) -> Message:
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, UnreadClip):
                parts += await self._frames(part, budget, in_pairs=in_pairs)
            else:
                parts.append(part)
        return msgspec.structs.replace(message, parts=tuple(parts))

    async def _frames(self, clip: UnreadClip, budget: int, *, in_pairs: bool) -> tuple[ImagePart, ...]:
        key = clip.sha256, budget, in_pairs
        if key not in self._kept:
            is_cancelled = threading.Event()
            try:
                self._kept[key] = await asyncio.to_thread(
                    _read_frames, clip, budget, self._ffmpeg_folder, is_cancelled, in_pairs=in_pairs
                )
            except BadRequest as error:
                raise bad_field(clip.path, error.sentence, code=BAD_PICTURE) from error
            finally:
                is_cancelled.set()
        self._kept.move_to_end(key)
        while len(self._kept) > 1 and self._kept_bytes() > _KEPT_BYTES:
            self._kept.popitem(last=False)
        return self._kept[key]

    def _kept_bytes(self) -> int:
        return sum(len(frame.data) for frames in self._kept.values() for frame in frames)


def _read_frames(
    clip: UnreadClip, budget: int, ffmpeg_folder: str, is_cancelled: threading.Event, *, in_pairs: bool
) -> tuple[ImagePart, ...]:
    """Return the frames of a clip as parts with their bytes. ffmpeg needs a file, which is deleted at once. Blocks."""
    from qwendesk.decoding.clips import clip_facts, clip_frames  # noqa: PLC0415 - few programs send clips
    from qwendesk.decoding.ffmpeg import find_ffmpeg  # noqa: PLC0415

    ffmpeg = find_ffmpeg(ffmpeg_folder)
    with tempfile.TemporaryDirectory(prefix="qwendesk-clip-") as folder:
        file = Path(folder, "clip")
        file.write_bytes(clip.data)
        facts = clip_facts(file, ffmpeg, is_cancelled.is_set)
        plan = plan_frames(facts.part(), budget, in_pairs=in_pairs)
        frames = clip_frames(file, plan.times, (plan.width, plan.height), ffmpeg, is_cancelled.is_set)
    found = [ClipFrame(clip.path, clip.sha256, time_s, facts.duration_s) for time_s in plan.times]
    return tuple(
        ImagePart(clip.path, hashlib.sha256(data).hexdigest(), data=data, frame=frame)
        for data, frame in zip(frames, found, strict=True)
    )
