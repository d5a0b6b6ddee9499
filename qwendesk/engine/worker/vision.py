"""The vision encoder (mtmd): pictures to embeddings, kept by content, and embeddings into memory."""

from __future__ import annotations

import collections
import ctypes
from collections.abc import Sequence

import llama_cpp.llama_cpp as C
import msgspec
import numpy as np
from llama_cpp import mtmd_cpp as M

from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import ImagePart
from qwendesk.engine.worker import pictures
from qwendesk.engine.worker.cache import ImageItem, Item
from qwendesk.engine.worker.model import SEQUENCE, EngineFault, Model, check

Embeddings = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


class Tile(msgspec.Struct, frozen=True, eq=False):
    """One image chunk of mtmd. `handle` carries the pixels until it is encoded."""

    item: ImageItem
    handle: int


Chunk = tuple[int, ...] | Tile
"""What mtmd makes of a picture: its marker tokens, and the image itself (one tile for Qwen)."""


class PreparedPicture(msgspec.Struct, frozen=True, eq=False):
    chunks: tuple[Chunk, ...]

    @property
    def items(self) -> tuple[Item, ...]:
        return tuple(item for chunk in self.chunks for item in ((chunk.item,) if isinstance(chunk, Tile) else chunk))

    @property
    def n_tokens(self) -> int:
        return sum(chunk.item.n_tokens if isinstance(chunk, Tile) else len(chunk) for chunk in self.chunks)


class Vision:
    """Owns the mtmd context. Scaled pixels and embeddings are kept up to `budget_bytes` each, the least recently used
    dropped first; the pictures of the current conversation always stay."""

    def __init__(self, handle: M.mtmd_context_p, model: Model, budget_bytes: int) -> None:
        self._handle = handle
        self._model = model
        self._budget_bytes = budget_bytes
        self._width = C.llama_model_n_embd_inp(model.handle)
        self._marker = M.mtmd_default_marker()
        self._prepared: collections.OrderedDict[str, PreparedPicture] = collections.OrderedDict()
        self._embeddings: collections.OrderedDict[str, Embeddings] = collections.OrderedDict()

    def close(self) -> None:
        for picture in self._prepared.values():
            _free(picture)
        self._prepared.clear()
        M.mtmd_free(self._handle)

    def prepare(self, parts: Sequence[ImagePart]) -> dict[str, PreparedPicture]:
        """The pictures cut and scaled for the encoder, by file hash. Raises BadRequest for a bad file."""
        wanted = {part.sha256: part for part in parts}
        for sha256, part in wanted.items():
            if sha256 not in self._prepared:
                picture = pictures.read(part)
                self._prepared[sha256] = self._chunked(picture.pixels, picture.pixels.shape[1::-1], picture.key)
            self._prepared.move_to_end(sha256)
        while len(self._prepared) > len(wanted) and self._prepared_bytes() > self._budget_bytes:
            _, oldest = self._prepared.popitem(last=False)
            _free(oldest)
        return {sha256: self._prepared[sha256] for sha256 in wanted}

    def _prepared_bytes(self) -> int:
        return _PREPARED_TOKEN_BYTES * sum(picture.n_tokens for picture in self._prepared.values())

    def count(self, part: ImagePart) -> tuple[int, int, int]:
        """Width, height and tokens of a picture without decoding its pixels."""
        width, height = pictures.size_of(part)
        picture = self._chunked(None, pictures.reduced(width, height), part.sha256)
        _free(picture)
        return width, height, picture.n_tokens

    def feed(self, tile: Tile, position: int) -> None:
        """Encode `tile` unless its embeddings are kept, and put them into memory at `position`.

        Raises Aborted or EngineFault as Model.decode does. Encoding cannot be interrupted.
        """
        embeddings = self._encoded(tile)
        new_position = C.llama_pos(0)
        data = embeddings.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        no_callback = M.mtmd_helper_post_decode_callback()
        check(
            M.mtmd_helper_decode_image_chunk(
                self._handle, self._model.ctx, tile.handle, data, position, SEQUENCE, self._model.n_ubatch,
                ctypes.byref(new_position), no_callback, ctypes.c_void_p(0),
            )
        )  # fmt: skip
        if new_position.value != position + tile.item.n_positions:
            raise EngineFault("a picture took another number of positions than announced")

    def _encoded(self, tile: Tile) -> Embeddings:
        known = self._embeddings.get(tile.item.key)
        if known is None:
            status = M.mtmd_encode_chunk(self._handle, tile.handle)
            output = M.mtmd_get_output_embd(self._handle) if status == 0 else None
            if not output:
                raise EngineFault(f"the vision encoder failed with status {status}")
            known = np.ctypeslib.as_array(output, (tile.item.n_tokens * self._width,)).copy()
            self._embeddings[tile.item.key] = known
        self._embeddings.move_to_end(tile.item.key)
        while len(self._embeddings) > 1 and sum(each.nbytes for each in self._embeddings.values()) > self._budget_bytes:
            self._embeddings.popitem(last=False)
        return known

    def _chunked(self, pixels: pictures.Pixels | None, size: tuple[int, int], key: str) -> PreparedPicture:
        data = pixels.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8)) if pixels is not None else None
        bitmap = M.mtmd_bitmap_init(size[0], size[1], data)
        chunks = M.mtmd_input_chunks_init()
        if bitmap is None or chunks is None:
            raise EngineFault("mtmd could not take the picture")
        try:
            M.mtmd_bitmap_set_id(bitmap, key.encode())
            text = M.mtmd_input_text(self._marker, len(self._marker), False, True)
            bitmaps = (M.mtmd_bitmap_p_ctypes * 1)(bitmap)
            status = M.mtmd_tokenize(self._handle, chunks, ctypes.byref(text), bitmaps, 1)
            if status != 0:
                raise BadRequest(
                    "Picture not accepted", f"The vision encoder refused a picture of {size[0]}x{size[1]} pixels."
                )
            return PreparedPicture(tuple(_copied(chunks, i, key) for i in range(M.mtmd_input_chunks_size(chunks))))
        finally:
            M.mtmd_input_chunks_free(chunks)
            M.mtmd_bitmap_free(bitmap)


_PREPARED_TOKEN_BYTES = 32 * 32 * 3 * 4
"""What a picture's scaled pixels take in memory per token: 32 x 32 pixels of three floats."""


def _copied(chunks: M.mtmd_input_chunks_p, index: int, key: str) -> Chunk:
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
    return Tile(item, handle)


def _free(picture: PreparedPicture) -> None:
    for chunk in picture.chunks:
        if isinstance(chunk, Tile):
            M.mtmd_input_chunk_free(chunk.handle)
