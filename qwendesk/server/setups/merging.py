"""Puts entries into the text of a configuration file, and keeps all else that is in it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import tr

FileKind = Literal["json", "toml", "yaml"]
_BARE_WORD = re.compile(r"[A-Za-z_][\w.-]*")
_YAML_WORDS = {"true", "false", "yes", "no", "on", "off", "null"}


class NotMerged(QwenDeskError):
    """The file can't be changed without losing something; the user has to do it."""

    def __init__(self, sentence: str) -> None:
        super().__init__(tr("Not written"), sentence)


def as_text(entries: Mapping[str, Any], kind: FileKind) -> str:
    """Return the text of a file that has these entries only."""
    if kind == "json":
        return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"
    if kind == "yaml":
        return "".join(f"{line}\n" for line in _yaml_lines(entries))
    import tomlkit  # noqa: PLC0415  only here

    return tomlkit.dumps(entries)


def merged(text: str, entries: Mapping[str, Any], kind: FileKind, slot: Sequence[str] = ()) -> str:
    """Return the text of a file with these entries in it. Raise NotMerged.

    Values of the same keys are replaced, except those below the keys of `slot`, which may belong to something else.
    Comments stay in TOML. JSON with comments and YAML aren't changed.
    """
    if not text.strip():
        return as_text(entries, kind)
    if kind == "yaml":
        raise NotMerged(tr("The file exists, and QwenDesk doesn't change files in YAML."))
    if kind == "toml":
        return _merged_toml(text, entries)
    document = _json_object(text)
    _check_slot(document, slot)
    _put(document, entries)
    indent = re.search(r'\n([ \t]+)"', text)
    new = json.dumps(document, indent=indent[1] if indent else 2, ensure_ascii=False)
    new += "\n" if text.endswith("\n") else ""
    return new.replace("\n", "\r\n") if "\r\n" in text else new


def _merged_toml(text: str, entries: Mapping[str, Any]) -> str:
    import tomlkit  # noqa: PLC0415  only here
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise NotMerged(tr("The file isn't valid TOML: {0}.", error)) from error
    _put(document, entries)
    return tomlkit.dumps(document)


def _json_object(text: str) -> dict[str, Any]:
    def without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise NotMerged(tr("A name in the file occurs twice, so part of it would be lost."))
        return dict(pairs)

    try:
        document = json.loads(text, object_pairs_hook=without_doubles)
    except (ValueError, RecursionError) as error:
        raise NotMerged(tr("The file has comments, which would be lost, or isn't valid JSON.")) from error
    if not isinstance(document, dict):
        raise NotMerged(tr("The file has no settings that QwenDesk understands."))
    return document


def _check_slot(document: Mapping[str, Any], slot: Sequence[str]) -> None:
    found: Any = document
    for key in slot:
        found = found.get(key) if isinstance(found, Mapping) else None
    if slot and found is not None and "qwendesk" not in json.dumps(found).lower():
        raise NotMerged(tr("The place for a server is taken by another one in this file."))


def _put(document: Any, entries: Mapping[str, Any]) -> None:
    for key, value in entries.items():
        if not isinstance(value, Mapping):
            document[key] = value
            continue
        if key not in document:
            document[key] = {}
        if not isinstance(document[key], Mapping):
            raise NotMerged(tr("“{0}” in the file isn't what QwenDesk expects there.", key))
        _put(document[key], value)


def _yaml_lines(value: Any, indent: str = "") -> Iterator[str]:
    """Yield the lines of a mapping or a list of mappings; other lists stand on one line, as in JSON."""
    for key, each in value.items():
        if isinstance(each, Mapping):
            yield f"{indent}{key}:"
            yield from _yaml_lines(each, indent + "  ")
        elif isinstance(each, list) and each and isinstance(each[0], Mapping):
            yield f"{indent}{key}:"
            for item in each:
                first, *others = _yaml_lines(item, indent + "    ")
                yield f"{indent}  - {first.strip()}"
                yield from others
        else:
            yield f"{indent}{key}: {_yaml_value(each)}"


def _yaml_value(value: Any) -> str:
    is_plain = isinstance(value, str) and _BARE_WORD.fullmatch(value) and value.lower() not in _YAML_WORDS
    return value if is_plain else json.dumps(value, ensure_ascii=False)
