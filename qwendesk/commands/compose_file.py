"""Finds the service of a pasted `docker compose` file that runs one of the known images, and reads what it starts."""

import re
import shlex
import textwrap
from collections.abc import Callable, Sequence

import msgspec

from qwendesk.commands.command_text import plain_lines

_IMAGE = re.compile(r"(?P<indent> *)(?:- )?image:\s*[\"']?(?P<image>[^\s\"']+)[\"']?\s*$")
_KEY = re.compile(r"(?P<key>[\w.-]+):(?:\s+(?P<value>.*))?$")
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'")
_ESCAPED = re.compile(r"\\([\"\\/])")
_FLOW_ITEM = re.compile(rf"{_QUOTED.pattern}|[^,\s][^,]*")
_BLOCK = re.compile(r"[>|][+-]?\d?$")
_SHELLS = frozenset({"sh", "bash", "/bin/sh", "/bin/bash"})


class ComposeService(msgspec.Struct, frozen=True):
    """One service: its image, the words that it starts, and its variables."""

    image: str
    words: tuple[str, ...]
    """Of `entrypoint` and `command`."""
    variables: tuple[str, ...]
    """As "NAME=value"."""
    others: tuple[str, ...]
    """The other keys, with their values where these stand in the same line."""


def read_compose(text: str, is_known: Callable[[str], bool]) -> ComposeService | None:
    """Return the first service in a YAML text whose image `is_known`; None if there is none.

    Only what such files contain is understood of YAML: keys, lists, texts in quotation marks and blocks.
    """
    if "image:" not in text:
        return None
    lines = plain_lines(textwrap.dedent(text))
    for number, line in enumerate(lines):
        found = _IMAGE.match(line)
        if found is not None and is_known(found["image"]):
            return _service(found["image"], _entries(lines, number, len(found["indent"])))
    return None


def _service(image: str, entries: dict[str, list[str]]) -> ComposeService:
    words = [word for key in ("entrypoint", "command") for word in _words(entries.get(key, []))]
    named = ("image", "entrypoint", "command", "environment")
    others = (f"{key}: {lines[0]}" if _is_short(lines) else key for key, lines in entries.items())
    return ComposeService(
        image=image,
        words=tuple(words),
        variables=tuple(map(_variable, _items(entries.get("environment", [])))),
        others=tuple(each for each in others if each.partition(":")[0] not in named),
    )


def _entries(lines: Sequence[str], at: int, indent: int) -> dict[str, list[str]]:
    """Return the keys beside that of line `at`, each with the lines of its value, of which the first is its own."""
    first = at
    while first and _indent(lines[first - 1]) >= indent:
        first -= 1
    entries: dict[str, list[str]] = {}
    key = ""
    for line in lines[first:]:
        if _indent(line) < indent:
            break
        found = _KEY.match(line[indent:])
        if found is not None:
            key = found["key"]
            entries[key] = [found["value"]] if found["value"] else []
        elif key:
            entries[key].append(line.strip())
    return entries


def _variable(text: str) -> str:
    """Return "NAME=value" for the item of a list, or the line of a mapping."""
    name, mark, value = text.partition(":" if re.match(r"\w+:", text) else "=")
    return f"{name}={_unquoted(value.strip())}" if mark else text


def _is_short(lines: Sequence[str]) -> bool:
    return len(lines) == 1 and not lines[0].startswith("- ")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _words(lines: Sequence[str]) -> list[str]:
    """Return the words of a command: a text is split as a shell does it, each item of a list is one word."""
    if lines and (_BLOCK.match(lines[0]) or not lines[0].startswith(("[", "- "))):
        start = 1 if _BLOCK.match(lines[0]) else 0
        return _split(" ".join(line.removesuffix("\\") for line in lines[start:]))
    words = _items(lines)
    return _split(words[-1]) if len(words) > 2 and words[0] in _SHELLS and words[1].endswith("c") else words


def _split(text: str) -> list[str]:
    try:
        return shlex.split(_unquoted(text.strip()))
    except ValueError:  # a quotation mark is not closed
        return text.split()


def _items(lines: Sequence[str]) -> list[str]:
    """Return the items of a list in one line or in several, or the lines of a mapping, without quotation marks."""
    text = " ".join(lines)
    if text.startswith("["):
        return [_unquoted(each.strip()) for each in _FLOW_ITEM.findall(text.strip("[] "))]
    return [_unquoted(line.removeprefix("- ").strip()) for line in lines]


def _unquoted(text: str) -> str:
    if not _QUOTED.fullmatch(text):
        return text
    return _ESCAPED.sub(r"\1", text[1:-1]) if text[0] == '"' else text[1:-1]
