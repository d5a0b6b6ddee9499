"""Frames of clips as a model reads them: in pairs with their times, or as pictures with their times.

Qwen's video models take two frames as one picture, and before it the mean of their times, as in "<0.5 seconds>". That
is from Qwen3-VL's processor in Hugging Face's transformers: a chat template has only one placeholder for a whole clip.
"""

from collections.abc import Sequence

import msgspec

from qwendesk.core.messages import ImagePart, Message, Part, TextPart


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
            minutes, seconds = divmod(int(part.frame.time_s), 60)
            found.append((TextPart(f"{minutes}:{seconds:02} "), part))
        elif isinstance(following, ImagePart) and _follows(following, part):
            found += [(TextPart(_mean_time(part, following)), msgspec.structs.replace(part, pair=following)), ()]
        else:
            found.append((TextPart(_mean_time(part, part)), part))
    return found


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
