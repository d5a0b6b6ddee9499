"""Structs of llama.cpp as ctypes classes, made from a table of their layouts."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

from qwendesk.core.engine_abi import Default, EngineAbi, Signature, StructLayout

_BASES: dict[str, Any] = {
    "bool": ctypes.c_bool, "char": ctypes.c_char, "int8": ctypes.c_int8, "uint8": ctypes.c_uint8,
    "int16": ctypes.c_int16, "uint16": ctypes.c_uint16, "int32": ctypes.c_int32, "uint32": ctypes.c_uint32,
    "int64": ctypes.c_int64, "uint64": ctypes.c_uint64, "float": ctypes.c_float, "double": ctypes.c_double,
}  # fmt: skip


class UnusableEngine(Exception):
    """The libraries lack something that the table says they have."""


def structure(layout: StructLayout, abi: EngineAbi, kinds: Mapping[str, Any], name: str = "_Struct") -> type[Any]:
    """Return a ctypes class for `layout`. `kinds` gives the types of fields by name; the others follow from the table.

    Objects of it refuse attributes that aren't fields.
    """
    fields = [(field.name, kinds.get(field.name) or _kind_of(field.type, abi)) for field in layout.fields]
    is_union = len(layout.fields) > 1 and not any(field.offset for field in layout.fields)
    base: Any = ctypes.Union if is_union else ctypes.Structure
    made: type[Any] = type(name, (base,), {"__slots__": (), "_fields_": fields})
    offsets = [getattr(made, field.name).offset for field in layout.fields]
    if offsets != [field.offset for field in layout.fields] or ctypes.sizeof(made) != layout.size:
        raise UnusableEngine(f"The layout of {name} in the engine's table isn't one of this system.")
    return made


def read_defaults(abi: EngineAbi, function_named: Callable[[str], Any]) -> dict[str, dict[str, Default]]:
    """Ask the library for its parameter structs. Return the values of their numbers by struct and field.

    `function_named` returns a function of the library. A bool is returned as a number if it is neither 0 nor 1.
    """
    found: dict[str, dict[str, Default]] = {}
    for name, signature in abi.functions.items():
        struct = _made_by(signature, abi)
        if not struct:
            continue
        layout, function = abi.structs[struct], function_named(name)
        bytes_of_bools = {field.name: ctypes.c_uint8 for field in layout.fields if field.type == "bool"}
        function.argtypes, function.restype = [], structure(layout, abi, bytes_of_bools)
        values = function()
        found[struct] = {
            field.name: bool(value) if field.name in bytes_of_bools and value in (0, 1) else value
            for field in layout.fields
            if isinstance(value := getattr(values, field.name), int | float) and not _is_pointer(field.type)
        }
    return found


def _made_by(signature: Signature, abi: EngineAbi) -> str:
    """Return the struct that a function without parameters returns; "" if it is another function."""
    name = signature.result.removeprefix("struct ")
    return name if not signature.parameters and name in abi.structs else ""


def _kind_of(text: str, abi: EngineAbi) -> Any:
    if _is_pointer(text):
        return ctypes.c_void_p
    if text.endswith("]"):
        element, _, count = text[:-1].rpartition("[")
        return _kind_of(element, abi) * int(count)
    kind, _, name = text.partition(" ")
    if kind in ("struct", "union"):
        return structure(abi.structs[name], abi, {}, name)
    return ctypes.c_int32 if kind == "enum" else _BASES[text]


def _is_pointer(text: str) -> bool:
    return text.endswith("*") or "(*" in text
