"""The tags of a call in XML: how names stand in them, and where a value ends."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from qwendesk.engine.worker.tools import as_json

END_TAG = "</parameter>"
END_OF_VALUE = re.compile(r"\n</parameter>[ \t\r\n]*(?=<parameter=|</function>)")
"""What ends a value. The line break before an empty one is that of the tag which begins it, or is missing.

A closing tag with anything else after it is part of the text.
"""
END_WITH_TAG = re.compile(END_OF_VALUE.pattern.replace("(?=", "(?:"))
NOT_IN_NAME = r">\x00-\x1F\x7F"
"""Characters that no name has which stands in a tag as it is, as in a class of GBNF and of regular expressions."""
JSON_NAME = r'"(?:[^"\\\x00-\x1F]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"'
_PLAIN_NAME = re.compile(rf'(?![\s"])[^{NOT_IN_NAME}\ud800-\udfff]+(?<!\s)')


def _partly(text: str, then: str = "") -> str:
    """Return a regular expression of all beginnings of `text`, and of `text` with `then` after it."""
    for character in reversed(text):
        then = f"(?:{re.escape(character)}{then})?"
    return then


BEGUN_END = re.compile("\n" + _partly(END_TAG, rf"[ \t\r\n]*(?:{_partly('<parameter=')}|{_partly('</function>')})"))
"""What may become the end of a value with the text that follows."""


def written_name(name: str) -> str:
    """Return a name as it stands in a tag: as it is, or as JSON if it could be mistaken for something else then."""
    return name if _PLAIN_NAME.fullmatch(name) else as_json(name)


def names_by_form(names: Iterable[str]) -> dict[str, str]:
    """Return the names by all forms in which they may stand in a tag, as the grammar and as a template write them."""
    known = list(names)
    return {name: name for name in known} | {written_name(name): name for name in known}


def tag(kind: str, names: Iterable[str], others: str, *, equals: str = "=", quote: str = "", end: str = ">") -> str:
    """Return a regular expression of a tag with one of `names`, any name as JSON, or one that `others` matches."""
    known = "|".join(map(re.escape, sorted(names, key=len, reverse=True))) or "(?!)"
    forms = rf"(?:{quote}(?P<known>{known}){quote}(?=\s*>)|(?P<json>{JSON_NAME})|{quote}(?P<other>{others}){quote})"
    return f"<{kind}{equals}{forms}{end}"


def tag_name(found: re.Match[str], names: Mapping[str, str]) -> str:
    """Return the name in a tag that was found; `names` are those known, by form."""
    if found["known"] is not None:
        return names[found["known"]]
    return found["other"] if found["json"] is None else str(json.loads(found["json"]))


def can_be_value(text: str) -> bool:
    """Return whether a text ends where it should when it stands between its tags."""
    found = END_OF_VALUE.search(f"\n{text}\n{END_TAG}\n</function>")
    return found is not None and found.start() == 1 + len(text)
