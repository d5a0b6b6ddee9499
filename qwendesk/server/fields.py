"""Fields: the JSON objects of requests, read field by field with a clear refusal of what can't be used."""

from collections.abc import Iterator
from typing import Any

import msgspec

from qwendesk.core.json_decoding import decode_json
from qwendesk.server.refusals import Refused, bad_field


def decode_body(content: bytes) -> "Fields":
    """Return the object in a request's body. Raise Refused."""
    try:
        value = decode_json(content)
    except msgspec.DecodeError as error:
        raise Refused(400, f"The body is not valid JSON: {error}") from error
    return Fields(value)


def encode_json(value: Any) -> str:
    """Return a value as JSON text. Keys keep their order."""
    return msgspec.json.encode(value).decode()


class Fields:
    """A JSON object. A field that is null counts as left out. All methods raise Refused for values of a wrong kind."""

    def __init__(self, value: Any, path: str = "") -> None:
        """`path` says where the object stands in the request, such as "messages[2]"."""
        if not isinstance(value, dict):
            raise bad_field(path, f"{path or 'The body'} must be a JSON object.")
        self.value: dict[str, Any] = value
        self._path = path

    def path(self, name: str) -> str:
        """Return the full name of a field."""
        return f"{self._path}.{name}" if self._path else name

    def has(self, name: str) -> bool:
        return self.value.get(name) is not None

    def any(self, name: str) -> Any:
        return self.value.get(name)

    def text(self, name: str, default: str = "") -> str:
        value = self.value.get(name)
        if value is not None and not isinstance(value, str):
            raise bad_field(self.path(name), f"{self.path(name)} must be a string.")
        return default if value is None else value

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self.value.get(name)
        if value is not None and not isinstance(value, bool):
            raise bad_field(self.path(name), f"{self.path(name)} must be true or false.")
        return default if value is None else value

    def number(self, name: str) -> float | None:
        value = self.value.get(name)
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
        value = self.value.get(name)
        return Fields({} if value is None else value, self.path(name))

    def objects(self, name: str) -> Iterator["Fields"]:
        """Yield the objects of a list."""
        for index, value in enumerate(self.list(name)):
            yield Fields(value, f"{self.path(name)}[{index}]")

    def list(self, name: str) -> list[Any]:
        value = self.value.get(name)
        if value is not None and not isinstance(value, list):
            raise bad_field(self.path(name), f"{self.path(name)} must be a list.")
        return [] if value is None else value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of strings, which may be one string."""
        value = self.value.get(name)
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
