"""Clips, video files and animated pictures, inspected and decoded in a process with limits. Blocking functions."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from io import FileIO
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from qwendesk.core.errors import BadRequest
from qwendesk.core.files import file_stamp
from qwendesk.core.input_files import open_local
from qwendesk.core.translation import mark, tr
from qwendesk.core.units import show_bytes, show_duration
from qwendesk.decoding.ffmpeg import Ffmpeg, install_line
from qwendesk.decoding.process import run_decoder
from qwendesk.decoding.protocol import (
    CLIP_TIME_LIMIT_S,
    MAX_PROCESS_BYTES,
    ClipFacts,
    ClipSource,
    DecodeClip,
    DecodeRefusal,
    DecodeReply,
    InspectClip,
    PngFiles,
)

ClipErrorKind = Literal[
    "missing", "unreadable", "changed", "not_a_clip", "no_ffmpeg", "ffmpeg_failed", "no_video", "unknown_codec",
    "too_many_pixels", "damaged", "out_of_memory", "time_limit", "crashed", "failed",
]  # fmt: skip
# Title and sentence.
_TEXTS: Mapping[ClipErrorKind, tuple[str, str]] = MappingProxyType(
    {
        "missing": (mark("File not found"), mark('"{0}" could not be found. Attach it again.')),
        "unreadable": (mark("Clip not readable"), mark('"{0}" can\'t be read: {1}. Attach it again.')),
        "changed": (mark("Clip not readable"), mark('"{0}" was changed while it was read. Attach it again.')),
        "not_a_clip": (
            mark("Unknown clip format"),
            mark(
                "QwenDesk can't open \"{0}\": it isn't an MP4, MOV, WebM, MKV, AVI or MPEG video, or a GIF, WebP, PNG "
                "or AVIF animation. Convert it to MP4."
            ),
        ),
        "no_ffmpeg": (
            mark("ffmpeg is missing"),
            mark('Opening "{0}" needs the free program ffmpeg. Install it with {1} and attach the clip again.'),
        ),
        "ffmpeg_failed": (
            mark("ffmpeg doesn't start"),
            mark('Opening "{0}" needs ffmpeg, which couldn\'t be started: {1}. Install it again.'),
        ),
        "no_video": (mark("No video"), mark('"{0}" contains no video. Choose another clip.')),
        "unknown_codec": (
            mark("Unknown codec"),
            mark('QwenDesk can\'t read the codec of "{0}", {1}. Convert the clip to H.264.'),
        ),
        "too_many_pixels": (
            mark("Clip too large"),
            mark('"{0}" has {1} pixels, which is more than 8K. Choose a smaller clip.'),
        ),
        "damaged": (mark("Clip not readable"), mark('"{0}" is damaged: {1}. Choose another clip.')),
        "out_of_memory": (
            mark("Clip too large"),
            mark('Opening "{0}" needs more than {1} of memory. Choose a smaller clip.'),
        ),
        "time_limit": (
            mark("Clip takes too long"),
            mark('Reading "{0}" took longer than {1}. Choose a shorter part of it, or a smaller clip.'),
        ),
        "crashed": (
            mark("Clip not readable"),
            mark('ffmpeg stopped while reading "{0}" ({1}). Try again, or choose another clip.'),
        ),
        "failed": (mark("Clip not readable"), mark('"{0}" couldn\'t be opened: {1}. Choose another clip.')),
    }
)
_HASHED_BYTES = 1 << 20


class ClipError(BadRequest):
    """A clip that can't be used."""

    def __init__(self, kind: ClipErrorKind, name: str, *details: str) -> None:
        title, sentence = _TEXTS[kind]
        super().__init__(tr(title), tr(sentence, name, *details))
        self.kind = kind


def clip_facts(path: Path, ffmpeg: Ffmpeg | None, is_cancelled: Callable[[], bool] = lambda: False) -> ClipFacts:
    """Return the facts of a clip. Raises ClipError.

    What kind a file is comes from its bytes. Without `ffmpeg` (see `find_ffmpeg`) only animated pictures can be read.
    """
    reply, _ = _run(path, InspectClip(_source(path, ffmpeg)), is_cancelled)
    if isinstance(reply, ClipFacts):
        return reply
    raise _error_for(path.name, reply)


def clip_frames(
    path: Path,
    times: Sequence[float],
    size: tuple[int, int] | int,
    ffmpeg: Ffmpeg | None,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> tuple[bytes, ...]:
    """Return the frames that are shown at `times`, in seconds and in ascending order, as the contents of PNG files.

    They are upright, opaque and have `size` in pixels, (width, height); a number limits the longer side and keeps the
    shape, with even sides. A time after the end gives the last frame. Raises ClipError.
    """
    width, height, longest_side = (*size, 0) if isinstance(size, tuple) else (0, 0, size)
    request = DecodeClip(_source(path, ffmpeg), tuple(times), width, height, longest_side)
    reply, payload = _run(path, request, is_cancelled)
    if isinstance(reply, PngFiles):
        return reply.split(payload)
    raise _error_for(path.name, reply)


def hash_clip(path: Path, is_cancelled: Callable[[], bool] = lambda: False) -> str:
    """Return the SHA-256 of a clip's file as hex digits; "" if it was cancelled. Raises ClipError."""
    digest = hashlib.sha256()
    with _opened(path) as file:
        try:
            while piece := file.read(_HASHED_BYTES):
                if is_cancelled():
                    return ""
                digest.update(piece)
        except OSError as error:
            raise ClipError("unreadable", path.name, error.strerror or str(error)) from error
    return digest.hexdigest()


def _source(path: Path, ffmpeg: Ffmpeg | None) -> ClipSource:
    if ffmpeg is None:
        return ClipSource(os.fsencode(path))
    return ClipSource(os.fsencode(path), os.fsencode(ffmpeg.ffmpeg), os.fsencode(ffmpeg.ffprobe))


def _run(path: Path, request: InspectClip | DecodeClip, is_cancelled: Callable[[], bool]) -> tuple[DecodeReply, bytes]:
    with _opened(path) as file:
        before = file_stamp(os.fstat(file.fileno()))
        answer = run_decoder(file, request, is_cancelled)
    try:
        is_same = file_stamp(path.stat()) == before
    except OSError:
        is_same = False
    if not is_same:
        raise ClipError("changed", path.name)
    return answer


def _opened(path: Path) -> FileIO:
    try:
        return open_local(path)
    except FileNotFoundError as error:
        raise ClipError("missing", path.name) from error
    except OSError as error:
        raise ClipError("unreadable", path.name, error.strerror or str(error)) from error


def _error_for(name: str, reply: DecodeReply) -> ClipError:
    if not isinstance(reply, DecodeRefusal):
        return ClipError("failed", name, tr("unexpected answer"))
    match reply.reason:
        case "not_a_clip" | "no_video":
            return ClipError(reply.reason, name)
        case "no_ffmpeg":
            return ClipError("no_ffmpeg", name, install_line() or "https://ffmpeg.org/download.html")
        case "too_many_pixels":
            return ClipError("too_many_pixels", name, f"{reply.width}x{reply.height}")
        case "out_of_memory":
            return ClipError("out_of_memory", name, show_bytes(MAX_PROCESS_BYTES))
        case "time_limit":
            return ClipError("time_limit", name, show_duration(CLIP_TIME_LIMIT_S))
        case "damaged" | "crashed" | "unknown_codec" | "ffmpeg_failed":
            return ClipError(reply.reason, name, reply.detail)
        case reason:
            return ClipError("failed", name, reply.detail or reason)
