"""Writes GGUF files: the demo model, the generated benchmark models, and the made-up files of the tests."""

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import BinaryIO

import msgspec

from qwendesk.hub.gguf_header import MAGIC
from qwendesk.hub.gguf_types import LIST_VALUE, TENSOR_TYPES, TEXT_VALUE, VALUE_LAYOUTS

ALIGNMENT = 32
_BOOL, _I32, _U32, _F32, _U64 = 7, 5, 4, 6, 10


class LongNumbers(tuple[int, ...]):
    """A list that is written as u64, not i32."""


Value = bool | int | float | str | Sequence[str] | Sequence[int] | Sequence[float]


class Tensor(msgspec.Struct, frozen=True):
    """One tensor: `data` yields its bytes in pieces, so that no whole tensor need be in memory."""

    name: str
    shape: tuple[int, ...]
    """ggml order: the fastest dimension first."""
    type: int
    data: Iterable[bytes]

    @property
    def n_bytes(self) -> int:
        kind = TENSOR_TYPES[self.type]
        return math.prod(self.shape) // kind.block * kind.n_bytes


def write_gguf(file: BinaryIO, values: Mapping[str, Value], tensors: Sequence[Tensor] = ()) -> None:
    """Writes a whole file. Raises ValueError when a tensor's data does not have the size its shape asks for."""
    header = header_bytes(values, tensors)
    file.write(header)
    file.write(bytes(_padding(len(header))))
    for tensor in tensors:
        written = 0
        for piece in tensor.data:
            written += file.write(piece)
        if written != tensor.n_bytes:
            raise ValueError(f"{tensor.name}: {written} bytes written, {tensor.n_bytes} expected")
        file.write(bytes(_padding(written)))


def header_bytes(values: Mapping[str, Value], tensors: Sequence[Tensor] = (), *, version: int = 3) -> bytes:
    """The header alone, without the padding before the tensor data."""
    parts = [MAGIC, struct.pack("<IQQ", version, len(tensors), len(values))]
    parts += [text_bytes(key) + value_bytes(value) for key, value in values.items()]
    offset = 0
    for tensor in tensors:
        shape = struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *tensor.shape)
        parts.append(text_bytes(tensor.name) + shape + struct.pack("<IQ", tensor.type, offset))
        offset += tensor.n_bytes + _padding(tensor.n_bytes)
    return b"".join(parts)


def text_bytes(text: str) -> bytes:
    """A text with its length before it."""
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def value_bytes(value: Value) -> bytes:
    """A metadata value with its type before it. Whole numbers are u32, in lists i32; lists must not be empty."""
    if isinstance(value, str):
        return struct.pack("<I", TEXT_VALUE) + text_bytes(value)
    if isinstance(value, bool | int | float):
        kind = _kind(value, whole=_U32)
        return struct.pack("<I", kind) + VALUE_LAYOUTS[kind].pack(value)
    if isinstance(value[0], str):
        items = b"".join(text_bytes(str(item)) for item in value)
        return struct.pack("<IIQ", LIST_VALUE, TEXT_VALUE, len(value)) + items
    kind = _kind(value[0], whole=_U64 if isinstance(value, LongNumbers) else _I32)
    layout = struct.Struct(f"<{len(value)}{VALUE_LAYOUTS[kind].format[-1]}")
    return struct.pack("<IIQ", LIST_VALUE, kind, len(value)) + layout.pack(*value)


def _kind(number: float, *, whole: int) -> int:
    if isinstance(number, bool):
        return _BOOL
    return whole if isinstance(number, int) else _F32


def _padding(position: int) -> int:
    return -position % ALIGNMENT
