"""What the references of a JSON schema lead to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any
from urllib.parse import unquote, urljoin

_MOST_PLACES = 20
"""Documents in the document in which a path is looked for that isn't in it."""


class SchemaReferences:
    """Finds the parts of a document that references such as "#/$defs/Size" name, each in about the same time."""

    def __init__(self, root: Any) -> None:
        self._base = _id_of(root) if isinstance(root, dict) else ""
        self._by_address: dict[str, Any] = {self._base: root}
        self._by_anchor: dict[str, Any] = {}
        for part in _embedded(root):
            address = _id_of(part)
            if address and part is not root:
                self._by_address.setdefault(_joined(self._base, address), part)
            for anchor in (part.get("$anchor"), part.get("$dynamicAnchor"), address[1:] if address[:1] == "#" else ""):
                if anchor and isinstance(anchor, str):
                    self._by_anchor.setdefault(anchor, part)

    def find(self, reference: Any) -> Any:
        """Return what it names; None if there is none.

        A path that isn't in the document is looked for in those that it contains, where the reference may stand.
        """
        if not isinstance(reference, str):
            return None
        document, _, fragment = reference.partition("#")
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            return self._by_anchor.get(fragment)
        found = _at(fragment, self._by_address.get(_joined(self._base, document)))
        if found is None and not document:
            places = islice(self._by_address.values(), _MOST_PLACES)
            return next((part for place in places if (part := _at(fragment, place)) is not None), None)
        return found


def _id_of(schema: Mapping[str, Any]) -> str:
    """Return the address that a schema gives itself, before draft 6 in "id"; "" if it gives none."""
    given = schema.get("$id", schema.get("id"))
    return given.removesuffix("#") if isinstance(given, str) else ""


def _joined(base: str, address: str) -> str:
    try:
        return urljoin(base, address)
    except ValueError:  # no address
        return address


def _at(path: str, place: Any) -> Any:
    """Return the part at a JSON pointer; None if there is none."""
    found = place
    for step in path.split("/")[1:] if path != "/" else ():
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and re.fullmatch("0|[1-9][0-9]{0,8}", key) and int(key) < len(found):
            found = found[int(key)]
        else:
            return None
    return found


def _embedded(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects in a schema."""
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield each
        waiting += each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
