"""The vision encoder (mtmd): read images, encode them, cache their embeddings, and decode them into memory."""

from __future__ import annotations

import collections
import ctypes
import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

import llama_cpp.llama_cpp as C
import msgspec
import numpy as np
from llama_cpp import mtmd_cpp as M
from PIL import Image

from qwendesk.core.errors import BadRequest
from qwendesk.core.files import file_stamp
from qwendesk.core.messages import ImagePart
from qwendesk.core.translation import mark
from qwendesk.decoding.images import decode_image, hash_image, inspect_image, open_image
from qwendesk.decoding.protocol import ImageFacts, fit_pixels
from qwendesk.engine.worker.cache import ImageItem, Item
from qwendesk.engine.worker.engine_calls import SEQUENCE, EngineFault, check
from qwendesk.engine.worker.model import LoadedModel

# Larger images are scaled down to this. llama.cpp uses at most 4,096 tokens of 32x32 pixels, a quarter of this.
_KEPT_PIXELS = 16_777_216
# Qwen's own image processor refuses images whose long side is more than this many times the short side.
_LONGEST_RATIO = 200
# Pictures whose sizes are remembered, in 2 MB.
_MOST_SIZES = 10_000

Pixels = np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]


class ImagePixels(msgspec.Struct, frozen=True, eq=False):
    """Decoded pixels (height x width x RGB), and a key that identifies them: a hash of pixels and size."""

    pixels: Pixels
    key: str


def picture_size(part: ImagePart) -> tuple[int, int]:
    """Return the width and height in pixels of the upright image, without decoding it.

    Raise BadRequest if the image cannot be read, was changed since it was attached, or is too narrow.
    """
    with _source(part) as source:
        facts = inspect_image(Path(part.path), source)
    _check_shape(part, facts)
    return facts.width, facts.height


class PictureSizes:
    """Sizes of pictures that were asked for before: each frame of a clip is counted with every message."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, int]] = {}

    def size(self, part: ImagePart) -> tuple[int, int]:
        """Return what `picture_size` does, without a decoding process if it is known. Raise BadRequest as that does."""
        if part.sha256 in self._known:
            with _source(part):
                return self._known[part.sha256]
        size = picture_size(part)
        if part.sha256 and len(self._known) < _MOST_SIZES:
            self._known[part.sha256] = size
        return size


def read_picture(part: ImagePart) -> ImagePixels:
    """Return the first frame of the image, upright and on a white background. Raise BadRequest as `size_of` does."""
    with _source(part) as source:
        decoded = decode_image(Path(part.path), source, max_pixels=_KEPT_PIXELS)
    facts = decoded.facts
    _check_shape(part, facts)
    image = Image.frombytes(facts.mode, (facts.pixel_width, facts.pixel_height), decoded.pixels)
    if image.mode == "RGBA":
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    pixels = np.ascontiguousarray(np.asarray(image, dtype=np.uint8))
    digest = hashlib.sha256(pixels.tobytes())
    digest.update(f"{image.width}x{image.height}".encode())
    return ImagePixels(pixels, digest.hexdigest())


def reduced_size(width: int, height: int) -> tuple[int, int]:
    """Return the size after scaling down to at most 16 megapixels: same aspect ratio, each side at least 1 pixel."""
    return fit_pixels(width, height, _KEPT_PIXELS)


@contextmanager
def _source(part: ImagePart) -> Iterator[FileIO | bytes]:
    """Yield the image's data, or its open file. Raise BadRequest if the file was changed since it was attached."""
    if part.data:
        yield part.data
        return
    with open_image(Path(part.path)) as file:
        if part.file_stamp is not None:
            is_same = file_stamp(os.fstat(file.fileno())) == part.file_stamp
        else:
            is_same = hash_image(Path(part.path), file) == part.sha256
        if not is_same:
            raise BadRequest(
                mark("Picture changed"), mark("{0} has changed since it was attached. Attach it again."), _name(part)
            )
        yield file


def _check_shape(part: ImagePart, facts: ImageFacts) -> None:
    if max(facts.width, facts.height) > _LONGEST_RATIO * min(facts.width, facts.height):
        raise BadRequest(
            mark("Picture too narrow"),
            mark("{0} has {1}×{2} pixels: its long side is more than {3} times its short side. Crop it."),
            _name(part),
            facts.width,
            facts.height,
            _LONGEST_RATIO,
        )


def _name(part: ImagePart) -> str:
    return Path(part.path).name


Embeddings = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


# Assumed before the first image: two seconds for a small picture of 100 tokens, as on a slow CPU.
_UNKNOWN_S_PER_TOKEN = 0.02


class ImageChunk(msgspec.Struct, frozen=True, eq=False):
    """One image chunk of mtmd. `handle` owns the scaled pixels, which are needed to encode it."""

    item: ImageItem
    handle: int


# A part of what mtmd makes of an image: marker tokens, or the image itself (one chunk for Qwen).
Chunk = tuple[int, ...] | ImageChunk


class PreparedImage(msgspec.Struct, frozen=True, eq=False):
    chunks: tuple[Chunk, ...]

    @property
    def items(self) -> tuple[Item, ...]:
        return tuple(
            item for chunk in self.chunks for item in ((chunk.item,) if isinstance(chunk, ImageChunk) else chunk)
        )

    @property
    def n_tokens(self) -> int:
        return sum(chunk.item.n_tokens if isinstance(chunk, ImageChunk) else len(chunk) for chunk in self.chunks)


class Vision:
    """Owns the mtmd context, and caches scaled pixels and embeddings, each up to `budget_bytes`.

    The least recently used are dropped first. The scaled pixels of the current conversation are always kept.
    """

    def __init__(self, handle: M.mtmd_context_p, model: LoadedModel, budget_bytes: int) -> None:
        self._handle = handle
        self._model = model
        self._budget_bytes = budget_bytes
        self._seconds_per_token = _UNKNOWN_S_PER_TOKEN
        self._sizes = PictureSizes()
        self._width = C.llama_model_n_embd_inp(model.handle)
        self._marker = M.mtmd_default_marker()
        self._prepared: collections.OrderedDict[str, PreparedImage] = collections.OrderedDict()
        self._embeddings: collections.OrderedDict[str, Embeddings] = collections.OrderedDict()

    def close(self) -> None:
        for picture in self._prepared.values():
            _free(picture)
        self._prepared.clear()
        M.mtmd_free(self._handle)

    def pairs_frames(self) -> bool:
        """Return whether the encoder takes two frames of a clip as one picture."""
        pair = self._tokenize_images((None, None), (_PROBED_SIDE, _PROBED_SIDE), "")
        _free(pair)
        return sum(isinstance(chunk, ImageChunk) for chunk in pair.chunks) == 1

    def prepare(self, parts: Sequence[ImagePart], client: str) -> dict[str, PreparedImage]:
        """Return the images, scaled for the encoder, by their keys. Raise BadRequest for a file that cannot be used.

        The cached image of one client is not used for another.
        """
        wanted = {f"{client}{part.key}": part for part in parts}
        for key, part in wanted.items():
            if key not in self._prepared:
                self._prepared[key] = self._prepare(part, client)
            self._prepared.move_to_end(key)
        while len(self._prepared) > len(wanted) and self._prepared_bytes() > self._budget_bytes:
            _, oldest = self._prepared.popitem(last=False)
            _free(oldest)
        return {part.key: self._prepared[key] for key, part in wanted.items()}

    def _prepare(self, part: ImagePart, client: str) -> PreparedImage:
        pictures = [read_picture(each) for each in (part, part.pair) if each is not None]
        size = pictures[0].pixels.shape[1::-1]
        pixels = [picture.pixels for picture in pictures]
        return self._tokenize_images(pixels, size, client + "+".join(picture.key for picture in pictures))

    def _prepared_bytes(self) -> int:
        return _PREPARED_TOKEN_BYTES * sum(picture.n_tokens for picture in self._prepared.values())

    def count(self, part: ImagePart) -> tuple[int, int, int]:
        """Return the width, height (in pixels) and number of tokens of an image or pair without decoding it."""
        width, height = self._sizes.size(part)
        unread = (None,) if part.pair is None else (None, None)
        picture = self._tokenize_images(unread, reduced_size(width, height), part.key)
        _free(picture)
        return width, height, picture.n_tokens

    def expected_s(self, image_chunk: ImageChunk) -> float:
        """Return how many seconds encoding should take, by the speed of the last image; 0 if it is cached."""
        is_cached = image_chunk.item.key in self._embeddings
        return 0.0 if is_cached else self._seconds_per_token * image_chunk.item.n_tokens

    def decode(self, image_chunk: ImageChunk, position: int) -> None:
        """Encode `image_chunk`, unless its embeddings are cached, and decode them into memory at `position`.

        Raise Aborted or EngineFault like LoadedModel.decode. Encoding cannot be interrupted.
        """
        embeddings = self._encode(image_chunk)
        new_position = C.llama_pos(0)
        data = embeddings.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        no_callback = M.mtmd_helper_post_decode_callback()
        check(
            M.mtmd_helper_decode_image_chunk(
                self._handle, self._model.ctx, image_chunk.handle, data, position, SEQUENCE, self._model.n_ubatch,
                ctypes.byref(new_position), no_callback, ctypes.c_void_p(0),
            )
        )  # fmt: skip
        if self._model.head is not None:
            self._model.head.follow_image(image_chunk.item.n_tokens, self._model.n_ubatch)
        if new_position.value != position + image_chunk.item.n_positions:
            raise EngineFault("a picture took another number of positions than announced")

    def _encode(self, image_chunk: ImageChunk) -> Embeddings:
        known = self._embeddings.get(image_chunk.item.key)
        if known is None:
            began = time.monotonic()
            status = M.mtmd_encode_chunk(self._handle, image_chunk.handle)
            output = M.mtmd_get_output_embd(self._handle) if status == 0 else None
            if not output:
                raise EngineFault(f"the vision encoder failed with status {status}")
            self._seconds_per_token = (time.monotonic() - began) / image_chunk.item.n_tokens
            known = np.ctypeslib.as_array(output, (image_chunk.item.n_tokens * self._width,)).copy()
            self._embeddings[image_chunk.item.key] = known
        self._embeddings.move_to_end(image_chunk.item.key)
        while len(self._embeddings) > 1 and sum(each.nbytes for each in self._embeddings.values()) > self._budget_bytes:
            self._embeddings.popitem(last=False)
        return known

    def _tokenize_images(self, images: Sequence[Pixels | None], size: tuple[int, int], key: str) -> PreparedImage:
        """Return what mtmd makes of an image, or of two frames of a clip, of `size`: of no pixels, it only counts."""
        marker = self._marker * len(images)
        chunks = M.mtmd_input_chunks_init()
        if chunks is None:
            raise EngineFault("mtmd could not take the picture")
        bitmaps = (M.mtmd_bitmap_p_ctypes * len(images))()
        try:
            for number, pixels in enumerate(images):
                data = pixels.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8)) if pixels is not None else None
                bitmap = bitmaps[number] = M.mtmd_bitmap_init(*size, data)
                if bitmap is None:
                    raise EngineFault("mtmd could not take the picture")
                M.mtmd_bitmap_set_id(bitmap, key.encode())
                M.mtmd_bitmap_set_mergeable(bitmap, len(images) > 1)
            text = M.mtmd_input_text(marker, len(marker), False, True)
            status = M.mtmd_tokenize(self._handle, chunks, ctypes.byref(text), bitmaps, len(images))
            if status != 0:
                raise BadRequest(
                    mark("Picture refused"), mark("The vision encoder refused a picture of {0}×{1} pixels."), *size
                )
            return PreparedImage(tuple(_copy_chunk(chunks, i, key) for i in range(M.mtmd_input_chunks_size(chunks))))
        finally:
            M.mtmd_input_chunks_free(chunks)
            for bitmap in bitmaps:
                if bitmap is not None:
                    M.mtmd_bitmap_free(bitmap)


# The size of a frame with which the encoder is asked whether it takes pairs, in pixels.
_PROBED_SIDE = 64
# The memory of an image's scaled pixels per token: 32 x 32 pixels of three 4-byte floats.
_PREPARED_TOKEN_BYTES = 32 * 32 * 3 * 4


def _copy_chunk(chunks: M.mtmd_input_chunks_p, index: int, key: str) -> Chunk:
    chunk = M.mtmd_input_chunks_get(chunks, index)
    if chunk is None:
        raise EngineFault("mtmd lost a chunk")
    if M.mtmd_input_chunk_get_type(chunk) == M.MTMD_INPUT_CHUNK_TYPE_TEXT:
        length = ctypes.c_size_t()
        tokens = M.mtmd_input_chunk_get_tokens_text(chunk, ctypes.byref(length))
        return tuple(tokens[: length.value]) if tokens else ()
    handle = M.mtmd_input_chunk_copy(chunk)
    if handle is None:
        raise EngineFault("mtmd could not copy a chunk")
    item = ImageItem(f"{key}/{index}", M.mtmd_input_chunk_get_n_tokens(chunk), M.mtmd_input_chunk_get_n_pos(chunk))
    return ImageChunk(item, handle)


def _free(picture: PreparedImage) -> None:
    for chunk in picture.chunks:
        if isinstance(chunk, ImageChunk):
            M.mtmd_input_chunk_free(chunk.handle)
