"""Fields: the JSON objects of requests, read field by field with a clear refusal of what can't be used."""

import asyncio
import itertools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from qwendesk.core.json_decoding import decode_json
from qwendesk.server.refusals import Refused, bad_field

# Objects in which some clients send what belongs beside them: the former is an argument of OpenAI's Python package, the
# latter is Ollama's.
_SPREAD = ("extra_body", "options")
# Characters of names that a header shows as they are, beside letters and digits.
_SHOWN = "[]._-$:/@ "
_LONGEST_HEADER = 1000
_INDEX = re.compile(r"\[\d+\]")


_LARGE_BYTES = 64 * 1024
# Of a list. So many messages fill any context, and a template takes seconds for them.
_MOST_ENTRIES = 5000
# Of a request that are looked at.
_MOST_OBJECTS = 50_000

T = TypeVar("T")


async def off_loop(n_bytes: int, work: Callable[[], T]) -> T:
    """Return what `work` returns: done on another thread for a body of many bytes, so that others are served."""
    return work() if n_bytes < _LARGE_BYTES else await asyncio.to_thread(work)


def decode_body(content: bytes) -> "Fields":
    """Return the object in a request's body. Raise Refused.

    What is no UTF-8 is repaired: half a character in the history would otherwise refuse every further request.
    """
    try:
        value = decode_json(_repaired(content))
    except msgspec.DecodeError as error:
        raise Refused(400, f"The body is not valid JSON: {error}") from error
    fields = Fields(value)
    for name in _SPREAD:
        fields.spread(name)
    return fields


def _repaired(content: bytes) -> bytes | str:
    try:
        content.decode()
    except UnicodeDecodeError:
        encoding = json.detect_encoding(content)
        try:
            return content.decode(encoding, "surrogatepass")
        except UnicodeDecodeError:
            return content.decode(encoding, "replace")
    return content


def encode_json(value: Any) -> str:
    """Return a value as JSON text. Keys keep their order."""
    return msgspec.json.encode(value).decode()


class Fields:
    """A JSON object. A field that is null counts as left out. All methods raise Refused for values of a wrong kind.

    It notes which of its fields are read, so that the client can be told of the others.
    """

    __slots__ = ("_all", "_moved", "_path", "_read", "_value")

    def __init__(self, value: Any, path: str = "", all_objects: "dict[str, Fields] | None" = None) -> None:
        """`path` says where the object stands in the request, such as "messages[2]".

        `all_objects` are those of the request that were looked at, by their paths.
        """
        if not isinstance(value, dict):
            raise bad_field(path, f"{path or 'The body'} must be a JSON object.")
        self._value: dict[str, Any] = value
        self._path = path
        self._moved: dict[str, str] = {}
        """The paths of fields that stand in another object."""
        self._read: set[str] = set()
        self._all = {} if all_objects is None else all_objects
        self._all[path] = self
        if len(self._all) > _MOST_OBJECTS:
            raise bad_field(path, f"The request has more than {_MOST_OBJECTS:,} objects.")

    @property
    def value(self) -> dict[str, Any]:
        """The whole object, all of which counts as read."""
        self._read.update(self._value)
        return self._value

    def names(self) -> tuple[str, ...]:
        """Return the names of the fields that are not left out."""
        return tuple(name for name, value in self._value.items() if value is not None)

    def spread(self, name: str) -> None:
        """Take the fields of the object in that field as fields of this one, where it has none of their names."""
        inner = self._value.get(name)
        if not isinstance(inner, dict):
            return
        self._read.add(name)
        for each, value in inner.items():
            if self._value.get(each) is None:
                self._value[each] = value
                self._moved[each] = f"{self.path(name)}.{each}"

    def drop(self) -> None:
        """Note that this object, in a list, is left out as a whole."""
        self._read = {*self._value}
        self._moved[""] = self._path

    def ignored(self) -> str:
        """Return the paths of the fields and objects of the request that had no effect, for a header; "" for none.

        Of a field that many messages have, the first one is named.
        """
        found: dict[str, str] = {}
        for each in self._all.values():
            if "" in each._moved:
                found.setdefault(each._path, each._path)
            for name, value in each._value.items():
                if value is not None and name not in each._read:
                    path = each.path(name)
                    found.setdefault(_INDEX.sub("[]", path), path)
        paths = [quote(path, safe=_SHOWN, errors="replace") for path in found.values()]
        lengths = itertools.accumulate(len(path) + 2 for path in paths)
        kept = paths[: sum(length <= _LONGEST_HEADER for length in lengths)]
        left = [f"and {len(paths) - len(kept)} more"] if len(kept) < len(paths) else []
        return ", ".join([*kept, *left])

    def path(self, name: str) -> str:
        """Return the full name of a field."""
        return self._moved.get(name) or (f"{self._path}.{name}" if self._path else name)

    def has(self, name: str) -> bool:
        return self._value.get(name) is not None

    def peek(self, name: str) -> Any:
        """Return the value of a field, which does not count as read by that."""
        return self._value.get(name)

    def any(self, name: str) -> Any:
        self._read.add(name)
        return self._value.get(name)

    def text(self, name: str, default: str = "") -> str:
        value = self.any(name)
        if value is not None and not isinstance(value, str):
            raise bad_field(self.path(name), f"{self.path(name)} must be a string.")
        return default if value is None else value

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self.any(name)
        if value is not None and not isinstance(value, bool):
            raise bad_field(self.path(name), f"{self.path(name)} must be true or false.")
        return default if value is None else value

    def number(self, name: str) -> float | None:
        value = self.any(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise bad_field(self.path(name), f"{self.path(name)} must be a number.")
        return value

    def whole(self, name: str) -> int | None:
        """Return a whole number, which may be written as 5.0."""
        value = self.number(name)
        if value is not None and value != int(value):
            raise bad_field(self.path(name), f"{self.path(name)} must be a whole number.")
        return None if value is None else int(value)

    def object(self, name: str) -> "Fields":
        """Return the object of a field; one without fields if it is left out."""
        value, path = self.any(name), self.path(name)
        return self._all.get(path) or Fields({} if value is None else value, path, self._all)

    def objects(self, name: str) -> Iterator["Fields"]:
        """Yield the objects of a list."""
        for index, value in enumerate(self.list(name)):
            path = f"{self.path(name)}[{index}]"
            yield self._all.get(path) or Fields(value, path, self._all)

    def list(self, name: str) -> list[Any]:
        value = self.any(name)
        if value is not None and not isinstance(value, list):
            raise bad_field(self.path(name), f"{self.path(name)} must be a list.")
        if value is not None and len(value) > _MOST_ENTRIES:
            raise bad_field(self.path(name), f"{self.path(name)} must have at most {_MOST_ENTRIES:,} entries.")
        return [] if value is None else value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of strings, which may be one string."""
        value = self.any(name)
        values = [value] if isinstance(value, str) else self.list(name)
        if not all(isinstance(each, str) for each in values):
            raise bad_field(self.path(name), f"{self.path(name)} must be a string or a list of strings.")
        return tuple(values)

    def required(self, name: str) -> None:
        """Raise Refused if a field is left out."""
        if not self.has(name):
            raise bad_field(self.path(name), f"{self.path(name)} is missing.")

    def refuse(self, name: str, sentence: str) -> Refused:
        """Return the refusal of a field, for `raise`."""
        return bad_field(self.path(name), sentence)
