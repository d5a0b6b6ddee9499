"""C headers written from a table: what the worker uses, and nothing else."""

from collections.abc import Iterator

from qwendesk.core.engine_abi import EngineAbi

_TYPEDEFS = (
    *(f"typedef {sign}int{bits}_t {sign}int{bits};" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    "typedef struct opaque opaque;",
)


def headers_of(abi: EngineAbi) -> str:
    """Return declarations that have exactly what is in `abi`, its default values excepted."""
    constants = ", ".join(f"{name} = {value}" for name, value in abi.constants.items())
    lines = [*_TYPEDEFS, f"enum all_constants {{ {constants}, }};"]
    lines += [f"enum {name} {{ {name.upper()}_FIRST }};" for name in sorted(_enums(abi))]
    for name in abi.structs:
        if "." not in name:
            lines.append(f"struct {name} {{\n{_fields(name, abi)}}};")
    for name, signature in abi.functions.items():
        lines.append(f"LLAMA_API {signature.result} {name}({', '.join(signature.parameters) or 'void'});")
    return "#define LLAMA_API\n" + "\n".join(lines) + "\n"


def _fields(name: str, abi: EngineAbi) -> str:
    lines = []
    for field in abi.structs[name].fields:
        kind, _, inner = field.type.partition(" ")
        if kind == "union":
            lines.append(f"union {{\n{_fields(inner, abi)}}};\n")
        else:
            lines.append(f"    {_declared(field.type, field.name)};\n")
    return "".join(lines)


def _declared(text: str, name: str) -> str:
    if "(*)" in text:
        return text.replace("(*)", f"(*{name})", 1)
    element, bracket, count = text.partition("[")
    return f"{element} {name}{bracket}{count}"


def _enums(abi: EngineAbi) -> Iterator[str]:
    texts = [field.type for layout in abi.structs.values() for field in layout.fields]
    texts += [text for each in abi.functions.values() for text in (each.result, *each.parameters)]
    return (name for name in {text.removeprefix("enum ") for text in texts if text.startswith("enum ")})
