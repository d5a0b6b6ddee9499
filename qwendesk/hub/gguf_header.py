"""Reads a GGUF header into plain values: metadata, token count and tensor infos, without the large arrays."""

import math
import struct
from collections.abc import Mapping

import msgspec

from qwendesk.core.engine_knowledge import SeenRelease, read_knowledge
from qwendesk.core.model_facts import TensorFacts
from qwendesk.core.number_format import show_count
from qwendesk.core.translation import tr
from qwendesk.hub.finding_texts import FindingCode, Value
from qwendesk.hub.gguf_source import (
    BadHeader,
    ByteSource,
    Cursor,
    Number,
    damaged_header,
    truncated_header,
    truncated_tensors,
)
from qwendesk.hub.gguf_types import (
    FORK_TYPES,
    LIST_VALUE,
    PRISM_ML,
    REMOVED_TYPES,
    TENSOR_TYPES,
    TEXT_VALUE,
    VALUE_LAYOUTS,
    program_for_type,
)

MAGIC = b"GGUF"
# Limit of metadata entries; real files have 20 to 60.
MAX_VALUES = 4096
# Limit of tensors; the 397B model has about 1,200.
MAX_TENSORS = 8_192
# Limit of texts in all arrays of one header. The largest vocabularies have 262,144 tokens and 514,906 merges.
MAX_TEXTS = 800_000
# Length of the longest list of numbers that is kept; llama.cpp supports at most 512 layers.
MAX_LIST = 1024
_KEY_LIMIT = 65_535
# ggml's own limit for tensor names.
_NAME_LIMIT = 63
_MAX_ELEMENTS = 2**62
# Higher numbers are taken for damage, not for a future format.
_MAX_VERSION, _MAX_TYPE = 99, FORK_TYPES.stop - 1
# Keys of files whose weights are rotated, whatever their type. llama.cpp would load those in its own types, such as
# Q2_0, and answer nonsense, because it doesn't rotate what it multiplies them with (PrismML-Eng/llama.cpp#242).
_ROTATION = "prism.hadamard."
# How many characters of a key a message shows.
_SHOWN = 80
_DEFAULT_ALIGNMENT = 32
# Stands for the bytes of a tensor whose type only a newer engine knows, until its room is known.
_UNKNOWN_SIZE = -1
_MAX_ALIGNMENT = 2**20

_TOKENS = "tokenizer.ggml.tokens"
_THINK_TOKENS = frozenset({b"<think>", b"</think>"})
_KEPT_TEXTS = frozenset(
    {
        "general.architecture",
        "general.type",
        "general.name",
        "general.basename",
        "general.alignment",  # kept even if it is a text, which is then refused
        "tokenizer.ggml.model",
        "tokenizer.ggml.pre",
        "tokenizer.chat_template",
        "quantize.imatrix.file",
        "general.quantized_by",
        "clip.projector_type",
        "clip.vision.projector_type",
    }
)
_KEPT_LISTS = (
    ".attention.head_count",
    ".attention.head_count_kv",
    ".attention.recurrent_layers",
    ".attention.sliding_window_pattern",
    ".expert_used_count",
    ".rope.dimension_sections",
)

# Shape, type and data offset of a tensor with 0 to 4 dimensions (ggml's most).
_TENSOR_INFOS = tuple(struct.Struct(f"<{n_dimensions}QIQ") for n_dimensions in range(5))

HeaderValue = Number | str | tuple[Number, ...]


class GgufHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The header of one file."""

    values: dict[str, HeaderValue]
    """All single numbers, and the texts and number lists that ModelFacts needs."""
    token_count: int
    has_think_tokens: bool
    """True if both `<think>` and `</think>` are single tokens."""
    tensors: tuple[TensorFacts, ...]
    needed_bytes: int
    """Length of the file up to the end of the last tensor's data."""

    def number(self, key: str) -> int:
        """Return the value of `key` as a whole number of 0 or more; of a list, the largest; 0 if there is none."""
        value = self.values.get(key, 0)
        if isinstance(value, tuple):
            value = max(value, default=0)
        return max(int(value), 0) if isinstance(value, int | float) and math.isfinite(value) else 0

    def text(self, key: str) -> str:
        value = self.values.get(key, "")
        return value if isinstance(value, str) else ""


def read_header(source: ByteSource) -> GgufHeader:
    """Return the header of `source`, and check that the file contains the data of every tensor.

    Raises BadModelFile (not_gguf, truncated, unsupported_architecture, other), and OSError if it can't be read.
    """
    _check_magic(source)
    cursor = Cursor(source)
    cursor.skip(len(MAGIC))
    _check_version(cursor.name, cursor.u32())
    n_tensors, n_values = cursor.u64(), cursor.u64()
    if n_tensors > MAX_TENSORS or n_values > MAX_VALUES:
        claim = tr("Its header claims {0} tensors and {1} values.", show_count(n_tensors), show_count(n_values))
        raise damaged_header(cursor.name, claim)
    metadata = _Metadata(cursor)
    for _ in range(n_values):
        metadata.read_entry()
    tensors, offsets = _read_tensors(cursor, n_tensors)
    if any(key.startswith(_ROTATION) for key in metadata.values):
        values: Mapping[str, Value] = {"name": cursor.name, "program": PRISM_ML}
        raise _unsupported(tr("Made for another program"), "rotated", values)
    alignment = _alignment(cursor.name, metadata.values)
    tensors = _with_sizes(tensors, offsets, cursor.size - _round_up(cursor.position, alignment))
    needed_bytes = _check_data(cursor, alignment, tensors, offsets)
    return GgufHeader(
        values=metadata.values,
        token_count=metadata.token_count,
        has_think_tokens=metadata.found == _THINK_TOKENS,
        tensors=tensors,
        needed_bytes=needed_bytes,
    )


def _check_magic(source: ByteSource) -> None:
    start = source.read(0, 64)
    if start.startswith(MAGIC):
        return
    if start and MAGIC.startswith(start):
        raise truncated_header(source.name)
    code, case = finding_of_start(start)
    values: Mapping[str, Value] = {"name": source.name, "size": source.size}
    raise BadHeader(tr("Not a model file"), "not_gguf", code, case, values)


def finding_of_start(start: bytes) -> tuple[FindingCode, str]:
    """Return the code and the case of the finding about a file that begins with `start`, which is not GGUF."""
    lowered = start.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if not start:
        return "truncated", "empty"
    if lowered.startswith(b"version https://git-lfs"):
        return "lfs-pointer", ""
    if lowered.startswith((b"<!doctype", b"<html", b"<?xml", b"<head", b"<!--")):
        return "html-instead-of-model", ""
    if start[8:9] == b"{":
        return "not-gguf", "safetensors"
    if start.startswith((b"PK\x03\x04", b"\x1f\x8b", b"7z\xbc\xaf")):
        return "not-gguf", "archive"
    if start[:4] in (b"tjgg", b"lmgg", b"fmgg"):
        return "not-gguf", "old-ggml"
    return "not-gguf", "other"


def _check_version(name: str, version: int) -> None:
    if version in (2, 3):
        return
    if version and version & 0xFFFF == 0:
        raise _unsupported(tr("Model file for another kind of CPU"), "big-endian", {"name": name})
    if version > _MAX_VERSION:
        raise damaged_header(name, tr("Its header claims version {0}.", show_count(version)))
    case = "old-version" if version < 2 else "new-version"
    raise _unsupported(tr("GGUF version not supported"), case, {"name": name, "version": version})


def _unsupported(title: str, case: str, values: Mapping[str, Value]) -> BadHeader:
    return BadHeader(title, "unsupported_architecture", "unsupported-arch", case, values)


class _Metadata:
    """Reads the metadata and keeps the values that are needed."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._keys: set[str] = set()
        self._texts_left = MAX_TEXTS
        self.values: dict[str, HeaderValue] = {}
        self.found: set[bytes] = set()
        self.token_count = 0

    def read_entry(self) -> None:
        cursor = self._cursor
        key = cursor.text(_KEY_LIMIT)
        if not key or key in self._keys:
            twice, empty = tr('Its header has the key "{0}" twice.', key[:_SHOWN]), tr("Its header has an empty key.")
            raise damaged_header(cursor.name, twice if key else empty)
        self._keys.add(key)
        kind = cursor.u32()
        if kind == LIST_VALUE:
            self._read_list(key, cursor.u32(), cursor.u64())
        elif kind == TEXT_VALUE:
            if key in _KEPT_TEXTS:
                self.values[key] = cursor.text()
            else:
                cursor.skip_texts(1)
        elif layout := VALUE_LAYOUTS.get(kind):
            self.values[key] = cursor.numbers(layout)[0]
        else:
            raise damaged_header(cursor.name, tr('The value of "{0}" has the unknown type {1}.', key[:_SHOWN], kind))

    def _read_list(self, key: str, kind: int, count: int) -> None:
        cursor = self._cursor
        if kind == TEXT_VALUE:
            self._texts_left -= count
            if self._texts_left < 0:
                claim = tr('"{0}" claims to hold {1} texts.', key[:_SHOWN], show_count(count))
                raise damaged_header(cursor.name, claim)
            found = cursor.skip_texts(count, _THINK_TOKENS if key == _TOKENS else ())
            if key == _TOKENS:
                self.token_count, self.found = count, found
            return
        layout = VALUE_LAYOUTS.get(kind)
        if layout is None:
            raise damaged_header(cursor.name, tr('The list "{0}" has the unknown type {1}.', key[:_SHOWN], kind))
        if key.endswith(_KEPT_LISTS) and count <= MAX_LIST:
            self.values[key] = cursor.numbers(struct.Struct(f"<{count}{layout.format[1:]}"))
        else:
            cursor.skip(count * layout.size)


def _read_tensors(cursor: Cursor, count: int) -> tuple[tuple[TensorFacts, ...], list[int]]:
    """Return all tensor infos, and the offset of each tensor's data in the data section."""
    tensors: dict[str, TensorFacts] = {}
    offsets: list[int] = []
    for _ in range(count):
        name = cursor.text(_NAME_LIMIT)
        if name in tensors:
            raise damaged_header(cursor.name, tr('It has the tensor "{0}" twice.', name))
        n_dimensions = cursor.u32()
        if n_dimensions >= len(_TENSOR_INFOS):
            reason = tr('Its tensor "{0}" has {1} dimensions.', name, show_count(n_dimensions))
            raise damaged_header(cursor.name, reason)
        *shape, type_number, offset = map(int, cursor.numbers(_TENSOR_INFOS[n_dimensions]))
        tensors[name] = _tensor(cursor.name, name, tuple(shape), type_number)
        offsets.append(offset)
    return tuple(tensors.values()), offsets


def _with_sizes(tensors: tuple[TensorFacts, ...], offsets: list[int], data_bytes: int) -> tuple[TensorFacts, ...]:
    """Return the tensors, with the room that those have of types whose size isn't known here."""
    ends = [*offsets[1:], data_bytes]
    return tuple(
        tensor if tensor.n_bytes >= 0 else msgspec.structs.replace(tensor, n_bytes=max(end - offset, 0))
        for tensor, offset, end in zip(tensors, offsets, ends, strict=False)
    )


def _tensor(file_name: str, name: str, shape: tuple[int, ...], type_number: int) -> TensorFacts:
    kind = TENSOR_TYPES.get(type_number)
    if kind is None and type_number > _MAX_TYPE:
        raise damaged_header(file_name, tr('Its tensor "{0}" has the unknown type {1}.', name, show_count(type_number)))
    if kind is None:
        if type_number in REMOVED_TYPES or type_number >= FORK_TYPES.start:
            raise _unknown_type(file_name, name, type_number)
        engines = read_knowledge()
        if type_number < engines.n_types:
            return TensorFacts(name=name, type=tr("type {0}", type_number), shape=shape, n_bytes=_UNKNOWN_SIZE)
        raise _newer_type(file_name, name, type_number, engines.newest)
    elements = math.prod(shape)
    row = shape[0] if shape else 1
    if elements > _MAX_ELEMENTS or row % kind.block:
        impossible = tr('Its tensor "{0}" can\'t have the shape {1} with type {2}.', name, shape, kind.name)
        raise damaged_header(file_name, impossible)
    return TensorFacts(name=name, type=kind.name, shape=shape, n_bytes=elements // kind.block * kind.n_bytes)


def _unknown_type(file_name: str, tensor_name: str, type_number: int) -> BadHeader:
    """Return the error for a type that llama.cpp doesn't know, by who else does."""
    values: Mapping[str, Value] = {"name": file_name, "tensor": tensor_name, "tensor_type": type_number}
    if program := program_for_type(type_number):
        return _unsupported(tr("Made for another program"), "fork-type", {**values, "program": program})
    return _unsupported(
        tr("Tensor type not supported"), "removed-type" if type_number in REMOVED_TYPES else "unknown-fork", values
    )


def _alignment(file_name: str, values: Mapping[str, HeaderValue]) -> int:
    """Return the number of bytes at whose multiples the data of tensors begins."""
    alignment = values.get("general.alignment", _DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or not 0 < alignment <= _MAX_ALIGNMENT or alignment & (alignment - 1):
        raise damaged_header(file_name, tr("Its data alignment {0} isn't a power of two.", alignment))
    return alignment


def _newer_type(file_name: str, tensor_name: str, type_number: int, newest: SeenRelease | None) -> BadHeader:
    """Return the error for a type that no engine on this PC knows, with the release that does, if one was seen."""
    has_it = newest is not None and type_number < newest.n_types
    values: Mapping[str, Value] = {
        "name": file_name, "tensor": tensor_name, "tensor_type": type_number,
        "engine": newest.tag if newest is not None else "",
    }  # fmt: skip
    return _unsupported(tr("Tensor type not supported"), "newer-type" if has_it else "tensor-type", values)


def _check_data(cursor: Cursor, alignment: int, tensors: tuple[TensorFacts, ...], offsets: list[int]) -> int:
    """Return the offset at which the tensors' data ends, and check that it is laid out correctly.

    The data follows the header, tensor after tensor, with each start rounded up to the alignment.
    """
    start = _round_up(cursor.position, alignment)
    end = 0
    for tensor, offset in zip(tensors, offsets, strict=True):
        if offset != _round_up(end, alignment):
            misplaced = tr('The data of its tensor "{0}" isn\'t where it should be.', tensor.name)
            raise damaged_header(cursor.name, misplaced)
        end = offset + tensor.n_bytes
    missing = start + end - cursor.size
    if tensors and missing > 0:
        raise truncated_tensors(cursor.name, missing, start + end)
    return start + end if tensors else cursor.position


def _round_up(number: int, step: int) -> int:
    return -(-number // step) * step
