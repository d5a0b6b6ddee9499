"""Reads one clip: animated pictures with Pillow, video files with ffmpeg. Runs in the decoding process only."""

import io
from typing import BinaryIO

from PIL import Image

from qwendesk.decoding.animation_decoder import Animation
from qwendesk.decoding.ffmpeg_decoder import Video
from qwendesk.decoding.protocol import (
    ClipFacts,
    DecodeClip,
    DecodeRefusal,
    DecodeRefused,
    InspectClip,
    PngFiles,
    fit_longest_side,
)

_HEAD_BYTES = 1024
_ANIMATION = "animation"
# What a file of ffmpeg's demuxer "mov" begins with, after the four bytes of a length.
_MOV_BOXES = (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot")
_AVIF_BRANDS = (b"avif", b"avis")
_TS_PACKET, _M2TS_PACKET = 188, 192


def decode_clip(
    file: BinaryIO, request: InspectClip | DecodeClip
) -> tuple[ClipFacts | PngFiles | DecodeRefusal, bytes]:
    """Return the facts of a clip, or frames of it. Raises what Pillow raises for damaged files."""
    head = file.read(_HEAD_BYTES)
    file.seek(0)
    demuxer, name = clip_format(head)
    try:
        if not demuxer:
            return DecodeRefusal(reason="not_a_clip"), b""
        clip = Animation(file) if demuxer == _ANIMATION else Video(request.source, demuxer, name)
        if isinstance(request, InspectClip):
            return clip.facts(), b""
        files = [_png(frame) for frame in clip.frames(request.times, _frame_size(clip.size, request))]
    except DecodeRefused as error:
        return error.refusal, b""
    return PngFiles(tuple(map(len, files))), b"".join(files)


def clip_format(head: bytes) -> tuple[str, str]:
    """Return ffmpeg's demuxer for a file that begins so, "animation" if Pillow reads it, and the name of its format.

    Both are "" for a file that is no clip. The file's own name doesn't count, so that nothing makes ffmpeg read one of
    its formats that name other files, such as playlists.
    """
    box, brand = head[4:8], head[8:12]
    if head.startswith((b"GIF87a", b"GIF89a", b"\x89PNG\r\n\x1a\n")) or (head[:4] == b"RIFF" and brand == b"WEBP"):
        return _ANIMATION, ""
    if box == b"ftyp" and brand in _AVIF_BRANDS:
        return _ANIMATION, ""
    if box in _MOV_BOXES:
        return "mov", "MP4" if box == b"ftyp" and brand != b"qt  " else "MOV"
    if head.startswith(b"\x1a\x45\xdf\xa3"):
        return "matroska", "WebM" if b"webm" in head[:64] else "MKV"
    if head[:4] == b"RIFF" and brand == b"AVI ":
        return "avi", "AVI"
    if head.startswith(b"\0\0\1\xba"):
        return "mpeg", "MPEG"
    for first, length in ((0, _TS_PACKET), (4, _M2TS_PACKET)):
        if head[first : first + 3 * length : length] == b"GGG":
            return "mpegts", "MPEG-TS"
    return "", ""


def _frame_size(size: tuple[int, int], request: DecodeClip) -> tuple[int, int]:
    if request.width and request.height:
        return request.width, request.height
    width, height = size
    if request.longest_side:
        width, height = fit_longest_side(width, height, request.longest_side)
    return max(2, round(width / 2) * 2), max(2, round(height / 2) * 2)


def _png(frame: Image.Image) -> bytes:
    data = io.BytesIO()
    frame.save(data, "PNG")
    return data.getvalue()
