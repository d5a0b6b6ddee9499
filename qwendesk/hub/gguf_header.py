"""The parts of a GGUF header as plain values: metadata, token counts and tensor infos, without the big arrays."""

import math
import struct

import msgspec

from qwendesk.core.errors import BadModelFile
from qwendesk.core.model_facts import TensorFacts
from qwendesk.core.units import show_bytes
from qwendesk.hub.gguf_source import ByteSource, Cursor, Number, cut_short, damaged
from qwendesk.hub.gguf_types import LIST_VALUE, TENSOR_TYPES, TEXT_VALUE, VALUE_LAYOUTS

MAGIC = b"GGUF"
MAX_VALUES = 4096
"""Metadata entries; real files have 20 to 60."""
MAX_TENSORS = 8_192
"""The 397B model has about 1,200."""
MAX_TEXTS = 800_000
"""Texts in all arrays of one header. The largest vocabularies in use hold 262,144 tokens and 514,906 merges."""
MAX_LIST = 1024
"""Longest list of numbers that is kept (llama.cpp has at most 512 layers)."""
_KEY_LIMIT = 65_535
_NAME_LIMIT = 63
"""ggml's own limit for tensor names."""
_MAX_ELEMENTS = 2**62
_MAX_VERSION, _MAX_TYPE = 99, 255
"""Higher numbers are damage, not a format to come."""
_DEFAULT_ALIGNMENT = 32
_MAX_ALIGNMENT = 2**20

_TOKENS = "tokenizer.ggml.tokens"
_THINK_TOKENS = frozenset({b"<think>", b"</think>"})
_KEPT_TEXTS = frozenset(
    {
        "general.architecture",
        "general.type",
        "general.name",
        "general.basename",
        "general.size_label",
        "general.alignment",  # a text there is refused
        "tokenizer.ggml.model",
        "tokenizer.ggml.pre",
        "tokenizer.chat_template",
        "quantize.imatrix.file",
        "general.quantized_by",
        "clip.projector_type",
        "clip.vision.projector_type",
    }
)
_KEPT_LISTS = (".attention.head_count", ".attention.head_count_kv", ".attention.recurrent_layers")

_TENSOR_INFOS = tuple(struct.Struct(f"<{n_dimensions}QIQ") for n_dimensions in range(5))
"""Shape, type and data offset of a tensor with 0 to 4 dimensions (ggml's most)."""

Value = Number | str | tuple[Number, ...]


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """One file's header. `values` holds all single numbers, and the texts and number lists the facts need."""

    values: dict[str, Value]
    token_count: int
    has_think_tokens: bool
    """`<think>` and `</think>` both occur as whole tokens."""
    tensors: tuple[TensorFacts, ...]
    needed_bytes: int
    """Up to the end of the last tensor's data."""

    def number(self, key: str) -> int:
        """A whole number of 0 or more: of a list with one for each layer the largest; 0 when the file does not say."""
        value = self.values.get(key, 0)
        if isinstance(value, tuple):
            value = max(value, default=0)
        return max(int(value), 0) if isinstance(value, int | float) and math.isfinite(value) else 0

    def text(self, key: str) -> str:
        value = self.values.get(key, "")
        return value if isinstance(value, str) else ""


def read_header(source: ByteSource) -> Header:
    """The header of `source`. Also checks that every tensor's data lies within the file.

    Raises BadModelFile (not_gguf, truncated, unsupported_architecture, other), and OSError when it cannot be read.
    """
    _check_magic(source)
    cursor = Cursor(source)
    cursor.skip(len(MAGIC))
    _check_version(cursor.name, cursor.u32())
    n_tensors, n_values = cursor.u64(), cursor.u64()
    if n_tensors > MAX_TENSORS or n_values > MAX_VALUES:
        raise damaged(cursor.name, f"its header claims {n_tensors:,} tensors and {n_values:,} values")
    metadata = _Metadata(cursor)
    for _ in range(n_values):
        metadata.read_one()
    tensors, offsets = _read_tensors(cursor, n_tensors)
    needed_bytes = _check_data(cursor, metadata.values, tensors, offsets)
    return Header(
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
        raise cut_short(source.name, "it ends inside its header")
    raise BadModelFile("Not a model file", f"{source.name} {_what_it_is(start)}", "not_gguf")


def _what_it_is(start: bytes) -> str:
    """How the sentence about a file that is no GGUF goes on after the file's name."""
    lowered = start.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if not start:
        return "is empty: its download did not begin or was lost. Download it again."
    if lowered.startswith(b"version https://git-lfs"):
        return "is only a Git LFS pointer, a note that stands for the real file. Download the file itself."
    if lowered.startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        return "is a web page, probably an error message saved under this name. Download the file again."
    if start[8:9] == b"{":
        return "is a safetensors file. QwenDesk runs GGUF files: look for a repository with GGUF in its name."
    if start.startswith((b"PK\x03\x04", b"\x1f\x8b", b"7z\xbc\xaf")):
        return "is an archive or a PyTorch file, not a GGUF file. Unpack it, or look for the GGUF version."
    if start[:4] in (b"tjgg", b"lmgg", b"fmgg"):
        return "is in a GGML format from before GGUF, which no current engine reads. Look for a GGUF version."
    return "is not a GGUF file. Choose a file whose name ends in .gguf, or download it again."


def _check_version(name: str, version: int) -> None:
    if version in (2, 3):
        return
    if version and version & 0xFFFF == 0:
        raise BadModelFile(
            "Model file for another machine",
            f"{name} is big-endian: it was made for another kind of processor. Look for the ordinary version.",
            "unsupported_architecture",
        )
    if version > _MAX_VERSION:
        raise damaged(name, f"its header claims to have version {version:,}")
    age = "too old" if version < 2 else "newer than this app"
    sentence = f"{name} has GGUF version {version}, which is {age}: 2 and 3 can be read."
    raise BadModelFile("GGUF version not supported", sentence, "unsupported_architecture")


class _Metadata:
    """Collects the wanted values while the cursor passes the metadata."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._keys: set[str] = set()
        self._texts_left = MAX_TEXTS
        self.values: dict[str, Value] = {}
        self.found: set[bytes] = set()
        self.token_count = 0

    def read_one(self) -> None:
        cursor = self._cursor
        key = cursor.text(_KEY_LIMIT)
        if not key or key in self._keys:
            raise damaged(cursor.name, f'its header has the key "{key[:80]}" twice' if key else "a key is empty")
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
            raise damaged(cursor.name, f'the value of "{key[:80]}" has the unknown type {kind}')

    def _read_list(self, key: str, kind: int, count: int) -> None:
        cursor = self._cursor
        if kind == TEXT_VALUE:
            self._texts_left -= count
            if self._texts_left < 0:
                raise damaged(cursor.name, f'"{key[:80]}" claims to hold {count:,} texts')
            found = cursor.skip_texts(count, _THINK_TOKENS if key == _TOKENS else ())
            if key == _TOKENS:
                self.token_count, self.found = count, found
            return
        layout = VALUE_LAYOUTS.get(kind)
        if layout is None:
            raise damaged(cursor.name, f'the list "{key[:80]}" has the unknown type {kind}')
        if key.endswith(_KEPT_LISTS) and count <= MAX_LIST:
            self.values[key] = cursor.numbers(struct.Struct(f"<{count}{layout.format[1:]}"))
        else:
            cursor.skip(count * layout.size)


def _read_tensors(cursor: Cursor, count: int) -> tuple[tuple[TensorFacts, ...], list[int]]:
    """All tensor infos, and where each tensor's data starts (counted from the data section)."""
    tensors: dict[str, TensorFacts] = {}
    offsets: list[int] = []
    for _ in range(count):
        name = cursor.text(_NAME_LIMIT)
        if name in tensors:
            raise damaged(cursor.name, f'it has the tensor "{name}" twice')
        n_dimensions = cursor.u32()
        if n_dimensions >= len(_TENSOR_INFOS):
            raise damaged(cursor.name, f'its tensor "{name}" has {n_dimensions} dimensions')
        *shape, type_number, offset = map(int, cursor.numbers(_TENSOR_INFOS[n_dimensions]))
        tensors[name] = _tensor(cursor.name, name, tuple(shape), type_number)
        offsets.append(offset)
    return tuple(tensors.values()), offsets


def _tensor(file_name: str, name: str, shape: tuple[int, ...], type_number: int) -> TensorFacts:
    kind = TENSOR_TYPES.get(type_number)
    if kind is None and type_number > _MAX_TYPE:
        raise damaged(file_name, f'its tensor "{name}" has the unknown type {type_number:,}')
    if kind is None:
        raise BadModelFile(
            "Tensor type not supported",
            f'{file_name} holds its tensor "{name}" in type {type_number}, which this engine does not know. '
            "Choose another quant, or update QwenDesk.",
            "unsupported_architecture",
        )
    elements = math.prod(shape)
    row = shape[0] if shape else 1
    if elements > _MAX_ELEMENTS or row % kind.block:
        raise damaged(file_name, f'its tensor "{name}" has the impossible shape {shape} for type {kind.name}')
    return TensorFacts(name=name, type=kind.name, shape=shape, n_bytes=elements // kind.block * kind.n_bytes)


def _check_data(cursor: Cursor, values: dict[str, Value], tensors: tuple[TensorFacts, ...], offsets: list[int]) -> int:
    """Where the data ends. It follows the header, tensor after tensor, each start rounded up to the alignment."""
    alignment = values.get("general.alignment", _DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or not 0 < alignment <= _MAX_ALIGNMENT or alignment & (alignment - 1):
        raise damaged(cursor.name, f"its data alignment {alignment} is no power of two")
    start = _round_up(cursor.position, alignment)
    end = 0
    for tensor, offset in zip(tensors, offsets, strict=True):
        if offset != _round_up(end, alignment):
            raise damaged(cursor.name, f'the data of its tensor "{tensor.name}" is not where it should be')
        end = offset + tensor.n_bytes
    missing = start + end - cursor.size
    if tensors and missing > 0:
        raise cut_short(cursor.name, f"the last {show_bytes(missing)} of {show_bytes(start + end)} are missing")
    return start + end if tensors else cursor.position


def _round_up(number: int, step: int) -> int:
    return -(-number // step) * step
