"""Message parts made from the frames of a clip, which are pictures from then on."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from qwendesk.chat.chat_state import IncognitoImages
from qwendesk.chat.image_parts import image_part
from qwendesk.core.clip_sampling import FramePlan
from qwendesk.core.errors import BadRequest
from qwendesk.core.files import write_whole
from qwendesk.core.input_files import open_local
from qwendesk.core.messages import ClipFrame, ImagePart
from qwendesk.core.paths import cache_folder
from qwendesk.core.translation import tr
from qwendesk.decoding.clips import clip_facts, clip_frames, hash_clip
from qwendesk.decoding.ffmpeg import Ffmpeg

# For the file dialog; what a file is, its bytes tell.
CLIP_SUFFIXES: Final = ("mp4", "mov", "m4v", "webm", "mkv", "avi", "mpg", "mpeg")
# Bytes in which the mark of an animated PNG is: it stands before the pixels, after a colour profile.
_HEAD_BYTES = 1 << 16


def clip_kind(path: Path) -> Literal["", "clip", "animation"]:
    """Return "clip" for a video file, "animation" for a picture that may be animated, "" for others. Blocks."""
    from qwendesk.decoding.clip_decoder import clip_format  # noqa: PLC0415 - with Pillow, which few sessions need here

    try:
        with open_local(path) as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return ""
    demuxer, _ = clip_format(head)
    if demuxer != "animation":
        return "clip" if demuxer else ""
    if head.startswith(b"RIFF"):
        return "animation" if head[12:16] == b"VP8X" and head[20:21] and head[20] & 2 else ""
    return "animation" if head.startswith(b"GIF") or b"acTL" in head or head[8:12] == b"avis" else ""


def is_animated(path: Path) -> bool:
    """Return whether a picture has more than one frame. Decodes all of them; blocks."""
    try:
        return clip_facts(path, None).n_frames > 1
    except BadRequest:
        return False  # what is wrong with it, the attempt to attach a picture tells


def clip_parts(
    path: Path,
    clip_s: float,
    plan: FramePlan,
    ffmpeg: Ffmpeg | None,
    in_memory: IncognitoImages | None,
    is_cancelled: Callable[[], bool],
) -> tuple[ImagePart, ...]:
    """Return the parts for the planned frames of a clip that takes `clip_s` seconds. Blocks; () if it was cancelled.

    Frames are files in the cache, where those of an earlier plan are found again, or are in `in_memory` if that is
    given. Raises BadRequest if the clip can't be read or the files can't be written.
    """
    sha256 = hash_clip(path, is_cancelled)
    if not sha256:
        return ()
    names = [f"{round(time_s * 1000)}-{plan.width}x{plan.height}.png" for time_s in plan.times]
    if in_memory is None:
        images = _frame_files(path, plan, cache_folder() / "clips" / sha256[:32], names, ffmpeg, is_cancelled)
    else:
        frames = clip_frames(path, plan.times, (plan.width, plan.height), ffmpeg, is_cancelled)
        images = [in_memory.add(data, name) for data, name in zip(frames, names, strict=True)]
    return tuple(
        msgspec.structs.replace(image, frame=ClipFrame(path.name, sha256, time_s, clip_s))
        for image, time_s in zip(images, plan.times, strict=True)
    )


def _frame_files(
    path: Path,
    plan: FramePlan,
    folder: Path,
    names: Sequence[str],
    ffmpeg: Ffmpeg | None,
    is_cancelled: Callable[[], bool],
) -> list[ImagePart]:
    missing = {name: time_s for name, time_s in zip(names, plan.times, strict=True) if not (folder / name).exists()}
    if missing:
        frames = clip_frames(path, tuple(missing.values()), (plan.width, plan.height), ffmpeg, is_cancelled)
        try:
            for name, data in zip(missing, frames, strict=True):
                write_whole(folder / name, data)
        except OSError as error:
            sentence = tr(
                "The frames of {0} couldn't be saved: {1}. Free some disk space, then attach it again.",
                path.name,
                error.strerror or error,
            )
            raise BadRequest(tr("Clip not saved"), sentence) from error
    return [image_part(folder / name) for name in names]
