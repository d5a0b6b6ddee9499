"""Frames of clips: which of a message's pictures are one clip, and how a model reads them.

A model reads frames in pairs with their times, or as pictures with their times.

Qwen's video models take two frames as one picture, and before it the mean of their times, as in "<0.5 seconds>". That
is from Qwen3-VL's processor in Hugging Face's transformers: a chat template has only one placeholder for a whole clip.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

from qwendesk.core.messages import ImagePart, Message, Part, TextPart


class ClipChoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the user chose for a clip that is attached."""

    n_frames: int = 0
    """0 for as many as its share of the context allows."""
    begin_s: float = 0.0
    """Beginning of the part that is used, in seconds."""
    end_s: float = 0.0
    """Its end; 0 for the clip's own."""


def with_clips(messages: Sequence[Message], *, in_pairs: bool) -> list[Message]:
    """Return the messages with the times of frames, and with each two frames as one picture if `in_pairs`."""
    return [_with_clips(message, in_pairs=in_pairs) for message in messages]


def _with_clips(message: Message, *, in_pairs: bool) -> Message:
    if not any(image.frame for image in message.images):
        return message
    parts = tuple(part for parts in parts_with_times(message.parts, in_pairs=in_pairs) for part in parts)
    return msgspec.structs.replace(message, parts=parts)


def parts_with_times(parts: Sequence[Part], *, in_pairs: bool) -> list[tuple[Part, ...]]:
    """Return what becomes of each part: a frame gets its time, and the second frame of a pair becomes nothing."""
    found: list[tuple[Part, ...]] = []
    while len(found) < len(parts):
        part, *others = parts[len(found) :]
        following = others[0] if others else None
        if not isinstance(part, ImagePart) or part.frame is None:
            found.append((part,))
        elif not in_pairs:
            found.append((TextPart(f"{show_time(part.frame.time_s)} "), part))
        elif isinstance(following, ImagePart) and _follows(following, part):
            found += [(TextPart(_mean_time(part, following)), msgspec.structs.replace(part, pair=following)), ()]
        else:
            found.append((TextPart(_mean_time(part, part)), part))
    return found


def pictures_and_clips(images: Iterable[ImagePart]) -> list[tuple[ImagePart, ...]]:
    """Return the images in their order: a picture alone, and all frames of a clip together."""
    found: list[tuple[ImagePart, ...]] = []
    for image in images:
        if found and _follows(image, found[-1][-1]):
            found[-1] = (*found[-1], image)
        else:
            found.append((image,))
    return found


def show_time(seconds: float) -> str:
    """Return a time in a clip, such as "0:03" or "1:02:05"."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


_TIME = re.compile(r"(?:(?:(\d{1,3}):)?(\d{1,4}):)?(\d{1,6}(?:[.,]\d{1,3})?)")


def parse_time(text: str) -> float | None:
    """Return the seconds of a time such as "0:03", "1:02:05" or "12.5"; None if it is no time."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        return None
    hours, minutes, seconds = match.groups()
    return int(hours or 0) * 3600 + int(minutes or 0) * 60 + float(seconds.replace(",", "."))


def _follows(image: ImagePart, other: ImagePart) -> bool:
    """Return whether an image is a later frame of the same clip as another."""
    return (
        image.frame is not None
        and other.frame is not None
        and image.frame.clip_sha256 == other.frame.clip_sha256
        and image.frame.time_s > other.frame.time_s
    )


def _mean_time(*frames: ImagePart) -> str:
    times = [image.frame.time_s for image in frames if image.frame is not None]
    return f"<{sum(times) / len(times):.1f} seconds>"
