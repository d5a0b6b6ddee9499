"""Struct layouts of an engine that isn't of the binding's release, taken from a table beside its libraries.

`core/engine_abi.py` decides which engines may be used so. Without a table, this module isn't imported.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from qwendesk.core.engine_abi import (
    Default,
    EngineAbi,
    Signature,
    StructLayout,
    check_against_all,
    known_abis,
    read_abi,
)

_BASES: dict[str, Any] = {
    "bool": ctypes.c_bool, "char": ctypes.c_char, "int8": ctypes.c_int8, "uint8": ctypes.c_uint8,
    "int16": ctypes.c_int16, "uint16": ctypes.c_uint16, "int32": ctypes.c_int32, "uint32": ctypes.c_uint32,
    "int64": ctypes.c_int64, "uint64": ctypes.c_uint64, "float": ctypes.c_float, "double": ctypes.c_double,
}  # fmt: skip
_BINDING = "llama_cpp"
_MODULES = ("llama_cpp", "mtmd_cpp", "llama_cpp_ext")


class UnusableEngine(Exception):
    """The libraries lack something that the table says they have."""


def use_table(file: Path) -> None:
    """Have the binding use the layouts of the table `file`. Call it before anything else imports llama_cpp.

    Raise UnusableEngine, OSError, or msgspec.DecodeError if the table is damaged.
    """
    abi = read_abi(file)
    try:
        _allow_missing_functions()
        modules = [importlib.import_module(f"{_BINDING}.{name}") for name in _MODULES]
    except AttributeError as error:  # what llama_cpp_ext binds is not in C and has several names
        raise UnusableEngine(str(error)) from error
    functions = {name: value for each in modules for name, value in vars(each).items() if _is_function(value)}
    # The worker binds ggml's functions itself (devices.py).
    missing = [name for name in abi.functions if name not in functions and not name.startswith("ggml_")]
    if missing:
        raise UnusableEngine(f"Its libraries have no function {', '.join(missing)}.")
    _check_defaults(abi, [value for each in modules for value in vars(each).values() if isinstance(value, ctypes.CDLL)])
    replaced = _replace_classes(modules, abi)
    for function in functions.values():
        function.argtypes = [_replaced_in(kind, replaced) for kind in function.argtypes]
        function.restype = _replaced_in(function.restype, replaced)


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


def _check_defaults(abi: EngineAbi, libraries: Sequence[ctypes.CDLL]) -> None:
    """Raise UnusableEngine if the library fills its parameter structs with what it can't have meant.

    Then they lie otherwise in this library than its headers say.
    """

    def function_named(name: str) -> Any:
        found = next(library for library in libraries if hasattr(library, name))
        return found[name]  # one of its own, because the binding's has types already

    found = msgspec.structs.replace(abi, defaults=read_defaults(abi, function_named))
    wrong = [each for each in check_against_all(known_abis(), found).problems if each.change == "default"]
    if wrong:
        raise UnusableEngine(" ".join(each.sentence for each in wrong))


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


def _allow_missing_functions() -> None:
    """Have the binding skip functions that the library lacks: it binds more than the worker uses."""
    spec = importlib.util.find_spec(_BINDING)
    if spec is None or spec.loader is None:
        raise UnusableEngine("llama-cpp-python isn't installed.")
    # Its parts can only be imported from the package, and that imports them all when it is executed.
    package = sys.modules[_BINDING] = importlib.util.module_from_spec(spec)
    extensions: Any = importlib.import_module(f"{_BINDING}._ctypes_extensions")
    bind_all = extensions.ctypes_function_for_shared_library

    def bind_those_there(library: Any) -> Callable[..., Any]:
        bind = bind_all(library)

        def decorate(symbol: str, *types: Any, enabled: bool = True) -> Any:
            return bind(symbol, *types, enabled and hasattr(library, symbol))

        return decorate

    extensions.ctypes_function_for_shared_library = bind_those_there
    spec.loader.exec_module(package)


def _replace_classes(modules: list[ModuleType], abi: EngineAbi) -> dict[Any, Any]:
    """Replace the binding's classes of the table's structs. Return the new classes by the old ones."""
    replaced: dict[Any, Any] = {}
    # Fields point to other structs of the table, which are replaced before.
    for name in sorted(abi.structs, key=lambda name: _depth(name, abi)):
        for module in modules:
            old = vars(module).get(name)
            if isinstance(old, type) and hasattr(old, "_fields_"):
                # A callback or an array can only be assigned to a pointer of its own type.
                pointers = {field.name for field in abi.structs[name].fields if _is_pointer(field.type)}
                kinds = {field[0]: _replaced_in(field[1], replaced) for field in old._fields_ if field[0] in pointers}
                replaced[old] = structure(abi.structs[name], abi, kinds, name)
                setattr(module, name, replaced[old])
                break
    return replaced


def _depth(name: str, abi: EngineAbi) -> int:
    """Return how many structs of the table must be known before this one."""
    inner = (field.type.partition(" ")[2].rstrip(" *") for field in abi.structs[name].fields)
    return max((1 + _depth(each, abi) for each in inner if each in abi.structs and each != name), default=0)


def _is_function(value: object) -> bool:
    return isinstance(value, ctypes._CFuncPtr)  # type: ignore[attr-defined]


def _replaced_in(kind: Any, replaced: Mapping[Any, Any]) -> Any:
    """Return the type `kind` with the old class in it replaced by the new one."""
    if isinstance(kind, type) and issubclass(kind, ctypes._Pointer) and kind._type_ in replaced:
        return ctypes.POINTER(replaced[kind._type_])
    return replaced.get(kind, kind) if isinstance(kind, type) else kind
