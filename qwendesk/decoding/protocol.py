"""Requests to a decoding process, its replies, and the limits of what it reads.

The request is the last command-line argument; the file is standard input. The reply is one line of JSON on standard
output, followed by the bytes that it announces.
"""

import itertools
from typing import Literal

import msgspec

from qwendesk.core.clip_sampling import ClipPart
from qwendesk.core.units import MIB


class InspectImage(msgspec.Struct, frozen=True, tag="inspect_image"):
    """Asks for the facts of a picture, without its pixels."""


class DecodeImage(msgspec.Struct, frozen=True, tag="decode_image"):
    """Asks for a picture's first frame, upright and reduced to both limits (0: no limit)."""

    longest_side: int = 0
    max_pixels: int = 0


class ReadPdfText(msgspec.Struct, frozen=True, tag="read_pdf_text"):
    """Asks for the text of these pages (from 1), or of all."""

    pages: tuple[int, ...] = ()
    max_pages: int = 0
    max_characters: int = 0


class ReadOfficeText(msgspec.Struct, frozen=True, tag="read_office_text"):
    """Asks for the text of a document of this format: a file extension without its dot."""

    format: str
    max_characters: int


class ReadPage(msgspec.Struct, frozen=True, tag="read_page"):
    """Asks for title and text of a web page in UTF-8."""

    max_characters: int


class RenderPdfPages(msgspec.Struct, frozen=True, tag="render_pdf_pages"):
    """Asks for these pages (from 1) as PNG files whose longer side has `longest_side` pixels."""

    pages: tuple[int, ...]
    longest_side: int


class ClipSource(msgspec.Struct, frozen=True):
    """A clip, and the programs that read those which Pillow can't. Paths as the bytes of `os.fsencode`."""

    path: bytes
    """The file that is also standard input."""
    ffmpeg: bytes = b""
    """Empty if it isn't installed; so is the next."""
    ffprobe: bytes = b""


class InspectClip(msgspec.Struct, frozen=True, tag="inspect_clip"):
    """Asks for the facts of a clip."""

    source: ClipSource


class DecodeClip(msgspec.Struct, frozen=True, tag="decode_clip"):
    """Asks for frames of a clip as PNG files: those shown at these times, in seconds and in ascending order."""

    source: ClipSource
    times: tuple[float, ...]
    width: int = 0
    """Of a frame in pixels; 0 to keep the clip's shape, with `longest_side`. So is the next."""
    height: int = 0
    longest_side: int = 0


DecodeRequest = (
    InspectImage | DecodeImage | ReadPdfText | ReadOfficeText | ReadPage | RenderPdfPages | InspectClip | DecodeClip
)


class ImageFacts(msgspec.Struct, frozen=True, tag="image"):
    """A picture. Its pixels follow, unless it was only inspected: `mode` "RGB" or "RGBA", rows from the top."""

    format: str
    """Pillow's name, such as "PNG"."""
    width: int
    """Of the upright picture in the file, in pixels."""
    height: int
    mode: str = ""
    pixel_width: int = 0
    pixel_height: int = 0


class DocumentText(msgspec.Struct, frozen=True, tag="document_text"):
    """Texts of these lengths in bytes follow as UTF-8, one for each page, slide, sheet or chapter."""

    lengths: tuple[int, ...]
    names: tuple[str, ...] = ()
    """Of each part, "" if it has none; empty if no part has one."""
    damaged: tuple[int, ...] = ()
    """Which parts, counted from 0, can't be read. They have no text."""

    def split(self, payload: bytes) -> tuple[str | None, ...]:
        """Return the texts from the bytes that follow the reply, None for a damaged part."""
        ends = tuple(itertools.accumulate(self.lengths))
        texts = (payload[end - length : end] for length, end in zip(self.lengths, ends, strict=True))
        damaged = frozenset(self.damaged)
        return tuple(
            None if number in damaged else text.decode("utf-8", "replace") for number, text in enumerate(texts)
        )


class PageText(msgspec.Struct, frozen=True, tag="page_text"):
    """A web page, whose text follows as UTF-8."""

    title: str


class PngFiles(msgspec.Struct, frozen=True, tag="png_files"):
    """PNG files of these lengths follow, one after the other."""

    lengths: tuple[int, ...]

    def split(self, payload: bytes) -> tuple[bytes, ...]:
        """Return each of the files in `payload`."""
        ends = tuple(itertools.accumulate(self.lengths))
        return tuple(payload[end - length : end] for length, end in zip(self.lengths, ends, strict=True))


class ClipFacts(msgspec.Struct, frozen=True, tag="clip"):
    """A video file or an animated picture. A picture that isn't animated is a clip of one frame."""

    format: str
    """"MP4", "MKV", "AVI", "MPEG", or Pillow's name, such as "GIF"."""
    duration_s: float
    """As the file says it; 0 for one frame that stays."""
    width: int
    """Of an upright frame with square pixels; so is the next."""
    height: int
    frames_per_s: float
    """On average; 0 if unknown."""
    n_frames: int = 0
    """0 if unknown."""
    has_sound: bool = False

    def part(self, begin_s: float = 0.0, end_s: float = 0.0) -> ClipPart:
        """Return the part between two times in seconds; an `end_s` of 0 is the clip's own end."""
        end_s = min(end_s or self.duration_s, self.duration_s)
        return ClipPart(self.width, self.height, begin_s, end_s, self.frames_per_s)


RefusalReason = Literal[
    "not_an_image", "too_many_pixels", "damaged", "out_of_memory", "no_such_page", "too_many_pages", "too_much_text",
    "too_large", "locked", "not_a_pdf", "not_a_document", "not_a_clip", "no_ffmpeg", "ffmpeg_failed", "no_video",
    "unknown_codec", "time_limit", "crashed", "failed",
]  # fmt: skip


class DecodeRefusal(msgspec.Struct, frozen=True, tag="refusal", kw_only=True):
    """Why a file was not decoded."""

    reason: RefusalReason
    detail: str = ""
    width: int = 0
    height: int = 0
    decoded_bytes: int = 0
    pages: int = 0


class DecodeRefused(Exception):
    """Raised in the decoding process where the reply will be this refusal."""

    def __init__(self, refusal: DecodeRefusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


DecodeReply = ImageFacts | DocumentText | PageText | PngFiles | ClipFacts | DecodeRefusal


# Larger picture and PDF files are refused before they are read.
MAX_FILE_BYTES = 256 * MIB
# Larger pictures are refused before decoding: above 134 megapixels of 4 bytes, or 67 of 16-bit RGBA.
MAX_DECODED_BYTES = 512 * MIB
# Memory of the decoding process. A picture at the limit takes two to three times its size.
MAX_PROCESS_BYTES = 2048 * MIB
# Memory of a decoding process that reads texts. A PDF of 2,000 pages takes less than 300 MB.
MAX_TEXT_PROCESS_BYTES = 1024 * MIB
# A PDF of 2,000 pages takes about 20 s.
TIME_LIMIT_S = 120.0
# Frames of clips. A minute of 4K at 60 frames a second takes two cores about 100 s.
CLIP_TIME_LIMIT_S = 300.0
# Of a clip's frame in its file: 8K, upright or not.
MAX_CLIP_SIDE = 8192
MAX_CLIP_PIXELS = 8192 * 4608


def memory_limit(request: DecodeRequest) -> int:
    """Return how many bytes of memory the process may have that serves a request."""
    is_text = isinstance(request, ReadPdfText | ReadOfficeText | ReadPage)
    return MAX_TEXT_PROCESS_BYTES if is_text else MAX_PROCESS_BYTES


def check_clip_size(width: int, height: int) -> None:
    """Raise DecodeRefused for a frame that is larger than 8K."""
    if max(width, height) > MAX_CLIP_SIDE or width * height > MAX_CLIP_PIXELS:
        raise DecodeRefused(DecodeRefusal(reason="too_many_pixels", width=width, height=height))


def time_limit_s(request: DecodeRequest) -> float:
    """Return how many seconds the process may take that serves a request."""
    return CLIP_TIME_LIMIT_S if isinstance(request, InspectClip | DecodeClip) else TIME_LIMIT_S


def fit_longest_side(width: int, height: int, longest_side: int) -> tuple[int, int]:
    """Return the size of the same shape with at most `longest_side` pixels a side, and no side less than 1."""
    scale = longest_side / max(width, height)
    return (width, height) if scale >= 1 else (max(1, round(width * scale)), max(1, round(height * scale)))


def fit_pixels(width: int, height: int, max_pixels: int) -> tuple[int, int]:
    """Return the size of the same shape with at most `max_pixels` pixels, and no side less than 1."""
    scale = (max_pixels / (width * height)) ** 0.5
    return (width, height) if scale >= 1 else (max(1, int(width * scale)), max(1, int(height * scale)))
