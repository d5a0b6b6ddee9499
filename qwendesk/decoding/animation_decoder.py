"""Reads the frames of an animated GIF, WebP, PNG or AVIF picture with Pillow. Runs in the decoding process only."""

import itertools
import warnings
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from PIL import Image, UnidentifiedImageError

from qwendesk.decoding.protocol import ClipFacts, DecodeRefusal, DecodeRefused, check_clip_size

_FORMATS = ("GIF", "WEBP", "PNG", "AVIF")
# As in Chrome, Firefox and Safari, frames of at most 10 ms stay for 100 ms.
_LEAST_MS, _DEFAULT_MS = 10, 100


class Animation:
    """An animated picture, or a still one as a clip of one frame. Raises DecodeRefused, and what Pillow raises."""

    def __init__(self, file: BinaryIO) -> None:
        Image.MAX_IMAGE_PIXELS = None  # our own limits count
        warnings.simplefilter("ignore")
        try:
            self._image = Image.open(file, formats=_FORMATS)
        except UnidentifiedImageError as error:
            raise DecodeRefused(DecodeRefusal(reason="damaged", detail="its header can't be read")) from error
        self.size = self._image.size
        if not self.size[0] * self.size[1]:
            raise DecodeRefused(DecodeRefusal(reason="damaged", detail="it has no pixels"))
        check_clip_size(*self.size)

    def facts(self) -> ClipFacts:
        """Decode all frames, and return the facts."""
        durations = [duration_s for _, duration_s in self._decoded()]
        total_s = sum(durations) if len(durations) > 1 else 0.0
        rate = len(durations) / total_s if total_s else 0.0
        return ClipFacts(str(self._image.format), total_s, *self.size, rate, len(durations))

    def frames(self, times: Sequence[float], size: tuple[int, int]) -> Iterator[Image.Image]:
        """Yield the frame that is shown at each of `times`, without alpha and in this size."""
        wanted = list(times)
        end_s, shown = 0.0, None
        for frame, duration_s in self._decoded():
            end_s += duration_s
            if not wanted:
                return
            if wanted[0] >= end_s:
                shown = frame.copy()  # perhaps the last one: an image whose next frame is damaged has none
                continue
            picture = _opaque(frame, size)
            while wanted and wanted[0] < end_s:
                del wanted[0]
                yield picture
            shown = picture
        if shown is not None and wanted:
            yield from itertools.repeat(_opaque(shown, size), len(wanted))

    def _decoded(self) -> Iterator[tuple[Image.Image, float]]:
        """Yield each frame, which is valid until the next, and its duration in s. A cut-off file has fewer frames."""
        # The first picture of an animated PNG may be one for programs that can't show the others.
        first = int(bool(self._image.info.get("default_image")))
        for number in itertools.count(first):
            try:
                self._image.seek(number)
                self._image.load()
            except EOFError:
                return
            except MemoryError:
                raise
            except Exception:
                if number == first:
                    raise
                return
            duration_ms = float(self._image.info.get("duration") or 0)
            yield self._image, (duration_ms if duration_ms > _LEAST_MS else _DEFAULT_MS) / 1000


def _opaque(frame: Image.Image, size: tuple[int, int]) -> Image.Image:
    """Return a copy of a frame on white, as the engine shows transparent pictures, in this size."""
    if frame.has_transparency_data:
        frame = frame.convert("RGBA")
        frame = Image.alpha_composite(Image.new("RGBA", frame.size, "white"), frame)
    return frame.convert("RGB").resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)
