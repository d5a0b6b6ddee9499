"""Binary interface of an engine's libraries, and the rules that tell whether the worker's calls fit it.

The worker calls llama.cpp's C functions through ctypes: nothing but these facts keeps it from reading or writing at a
wrong place. `engines/c_headers.py` reads them from the headers of a release; `resources/engine_abi/` has those of the
releases for which the worker is written, made by `python -m tools.abi_check`.

Sizes and offsets are those of 64-bit Windows, Linux and macOS alike: the reader refuses types whose sizes differ.
"""

import functools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from qwendesk.core import paths
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.translation import tr

Default = bool | int | float
# llama.cpp's releases are numbered; its versions, such as v0.6.0, are some of them.
_RELEASE = re.compile(r"b([1-9]\d{3,6})")
# So many differences are named where an engine is refused.
_MOST_SENTENCES = 5


class Field(msgspec.Struct, frozen=True):
    """A field of a struct or union."""

    name: str
    type: str
    """In one spelling for all that are the same to the machine: "int32", "float *", "enum llama_split_mode"."""
    offset: int
    """In bytes."""
    size: int
    """In bytes."""


class StructLayout(msgspec.Struct, frozen=True):
    """Where the fields of a struct or union lie. The fields of a union overlap."""

    size: int
    """In bytes, with the padding at the end."""
    fields: tuple[Field, ...]


class Signature(msgspec.Struct, frozen=True):
    """The types of a function. They are spelled as those of fields."""

    result: str
    parameters: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.result} ({', '.join(self.parameters) or 'void'})"


class EngineAbi(msgspec.Struct, frozen=True, kw_only=True):
    """What the worker uses of llama.cpp's C interface, in one release."""

    release: str
    """Of llama.cpp or of its binding, such as "b11312"."""
    functions: Mapping[str, Signature]
    structs: Mapping[str, StructLayout]
    fixed: tuple[str, ...] = ()
    """Structs that are passed by pointer, but of which the worker makes arrays in a layout of its own."""
    optional: tuple[str, ...] = ()
    """Functions and structs that one measurement alone needs: an engine without them is used, but not measured so."""
    constants: Mapping[str, int]
    """Values of enums, and other constants, whose numbers the worker relies on."""
    defaults: Mapping[str, Mapping[str, Default]] = {}
    """What the library's functions put into the parameter structs, without pointers; empty if no library was asked."""

    @property
    def exact(self) -> frozenset[str]:
        """The structs that must have the known layout: those passed by value, what they contain, and `fixed`."""
        found: set[str] = set()
        left = [text for each in self.functions.values() for text in (each.result, *each.parameters)]
        left += [f"struct {name}" for name in self.fixed]
        while left:
            kind, _, name = left.pop().partition(" ")
            if kind in ("struct", "union") and name in self.structs and name not in found:
                found.add(name)
                left += [field.type for field in self.structs[name].fields]
        return frozenset(found)


Change = Literal["missing", "signature", "value", "removed", "added", "moved", "type", "size", "default"]


class Difference(msgspec.Struct, frozen=True):
    """A point in which an engine differs from the release for which the worker is written."""

    change: Change
    name: str
    """Of the function, constant or struct, or STRUCT.FIELD."""
    known: str = ""
    found: str = ""

    @property
    def sentence(self) -> str:
        match self.change:
            case "missing":
                return tr("{0} is missing.", self.name)
            case "signature":
                return tr("The function {0} is now {2} instead of {1}.", self.name, self.known, self.found)
            case "value":
                return tr("The constant {0} is now {2} instead of {1}.", self.name, self.known, self.found)
            case "removed":
                return tr("The field {0} was removed.", self.name)
            case "added":
                return tr("The field {0} of type {1} was added.", self.name, self.found)
            case "moved":
                return tr("The field {0} moved from byte {1} to byte {2}.", self.name, self.known, self.found)
            case "type":
                return tr("The field {0} now has the type {2} instead of {1}.", self.name, self.known, self.found)
            case "size":
                return tr("The struct {0} now has {2} bytes instead of {1}.", self.name, self.known, self.found)
            case "default":
                return tr("The default of {0} is now {2} instead of {1}.", self.name, self.known, self.found)


class AbiReport(msgspec.Struct, frozen=True):
    """Whether the worker can use an engine, and what is different in it."""

    release: str
    """The engine's."""
    known_release: str
    """The release with which it was compared."""
    problems: tuple[Difference, ...] = ()
    """Why it can't be used."""
    notes: tuple[Difference, ...] = ()
    """Differences that do no harm: fields added at the end of a struct passed by pointer, other defaults, and what only
    a measurement needs."""

    @property
    def fits(self) -> bool:
        return not self.problems

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(each.sentence for each in self.problems)

    @property
    def why_refused(self) -> str:
        """Sentences that say why the engine can't be used, with the first differences by name; "" if it can."""
        if self.fits:
            return ""
        parts = [tr("QwenDesk can't call {0}, because it differs from {1}.", self.release, self.known_release)]
        parts += self.sentences[:_MOST_SENTENCES]
        if len(self.problems) > _MOST_SENTENCES:
            parts.append(tr("{0} more differences.", len(self.problems) - _MOST_SENTENCES))
        return " ".join(parts)


def check_abi(known: EngineAbi, found: EngineAbi) -> AbiReport:
    """Compare an engine with a release for which the worker is written.

    Every function must be there with the same types, and every constant with the same value. A struct in `known.exact`
    must have the same layout. To any other, fields may have been added at its end: the worker takes its size from
    `found` and leaves them zero. Defaults may differ, as long as they are possible values. What is in `known.optional`
    may differ in any way (`has_optional`).
    """
    problems: list[Difference] = []
    notes: list[Difference] = []
    for name, signature in known.functions.items():
        other = found.functions.get(name)
        differences = notes if name in known.optional else problems
        if other is None:
            differences.append(Difference("missing", name))
        elif other != signature:
            differences.append(Difference("signature", name, str(signature), str(other)))
    for name, value in known.constants.items():
        if name not in found.constants:
            problems.append(Difference("missing", name))
        elif found.constants[name] != value:
            problems.append(Difference("value", name, str(value), str(found.constants[name])))
    exact = known.exact
    for name, layout in known.structs.items():
        is_optional = name in known.optional
        if name not in found.structs:
            (notes if is_optional else problems).append(Difference("missing", name))
            continue
        changes = _layout_differences(name, layout, found.structs[name])
        may_grow = name not in exact and _is_longer(layout, found.structs[name])
        (notes if may_grow or is_optional else problems).extend(changes)
    for name in known.defaults.keys() & found.defaults.keys():
        for difference, is_possible in _default_differences(known, found, name):
            (notes if is_possible else problems).append(difference)
    return AbiReport(found.release, known.release, tuple(problems), tuple(notes))


def has_optional(known: EngineAbi, found: EngineAbi) -> bool:
    """Return whether an engine has everything in `known.optional` as the worker knows it."""
    return all(
        found.functions.get(name) == known.functions.get(name) and found.structs.get(name) == known.structs.get(name)
        for name in known.optional
    )


def check_against_all(known: Sequence[EngineAbi], found: EngineAbi) -> AbiReport:
    """Return the report of the first of `known` that fits, else that of the most similar one."""
    reports = [check_abi(each, found) for each in known]
    return min(reports, key=lambda report: len(report.problems))


def known_abis(folder: Path | None = None) -> tuple[EngineAbi, ...]:
    """Return all releases for which this worker is written, the newest first.

    Raises msgspec.DecodeError if a file is damaged.
    """
    return tuple(map(read_abi, _known_files(folder)))


@functools.cache
def own_release() -> str:
    """Return the newest release for which this worker is written, which is that of the app's own engines."""
    return _known_files(None)[0].stem


def build_number(release: str) -> int:
    """Return 11861 for "b11861"; 0 if it isn't of this form."""
    found = _RELEASE.fullmatch(release)
    return int(found[1]) if found is not None else 0


def _known_files(folder: Path | None) -> list[Path]:
    files = (folder or paths.resources_folder() / "engine_abi").glob("b*.json")
    return sorted(files, key=lambda file: build_number(file.stem), reverse=True)


def read_abi(file: Path) -> EngineAbi:
    """Read a table. Raises OSError, and msgspec.DecodeError if it is damaged."""
    return decode_json(file.read_bytes(), EngineAbi)


def encode_abi(abi: EngineAbi) -> bytes:
    """Return the content of a table's file, as JSON with sorted names."""
    return msgspec.json.format(msgspec.json.encode(abi, order="sorted"), indent=1) + b"\n"


def _is_longer(known: StructLayout, found: StructLayout) -> bool:
    """Return whether `found` is `known` with more at its end."""
    return found.size >= known.size and found.fields[: len(known.fields)] == known.fields


def _layout_differences(name: str, known: StructLayout, found: StructLayout) -> tuple[Difference, ...]:
    """Return what differs. Fields that only moved because of others, and the size, are named if nothing else is."""
    ours, others = ({field.name: field for field in layout.fields} for layout in (known, found))
    causes = [
        *(Difference("removed", f"{name}.{field}") for field in ours if field not in others),
        *(
            Difference("type", f"{name}.{field}", ours[field].type, others[field].type)
            for field in ours
            if field in others and ours[field].type != others[field].type
        ),
        *(Difference("added", f"{name}.{field}", found=others[field].type) for field in others if field not in ours),
    ]
    if causes or found == known:
        return tuple(causes)
    moved = (field for field in ours if ours[field].offset != others[field].offset)
    differences = [
        Difference("moved", f"{name}.{field}", str(ours[field].offset), str(others[field].offset)) for field in moved
    ]
    return tuple(differences) or (Difference("size", name, str(known.size), str(found.size)),)


def _default_differences(known: EngineAbi, found: EngineAbi, struct: str) -> Iterator[tuple[Difference, bool]]:
    """Yield each default that differs, and whether the library can have meant it.

    A bool that is neither 0 nor 1, and a number that isn't finite, were read at a wrong place.
    """
    types = {field.name: field.type for field in known.structs[struct].fields}
    others = found.defaults[struct]
    for field, value in known.defaults[struct].items():
        other = others.get(field, value)
        is_possible = math.isfinite(other) and (types.get(field) != "bool" or other in (0, 1))
        if other != value:
            yield Difference("default", f"{struct}.{field}", str(value), str(other)), is_possible
