"""Texts that leave this PC without the name of its person, and with model files by their names alone."""

import getpass
import re
from pathlib import Path

_SLASH = r"[\\/]+"
"""A path's separator in any writing; in a repr and in JSON each backslash is there twice."""
_PART = r'[^\\/:*?"<>|\s]+'
_PARTS = rf"{_PART}(?: +{_PART})*"
_ENDS = r"(?![\w~-]|\.\w)"
"""After a name that is not the begin of a longer one; a sentence may end there."""
_SOMEBODY = r"""[^\\/:*?"'<>|\s,;()]*[^\\/:*?"'<>|\s,;().]"""
_PEOPLE = rf"{_SLASH}(?:home|users|documents and settings|run{_SLASH}media){_SLASH}"
"""Folders that have one for each person."""
_MODEL = re.compile(
    rf"(?<![\w\\/])(?<!http:)(?<!https:)(?:[A-Z]:|~)?{_SLASH}(?:{_PARTS}{_SLASH})*?"
    r'([^\\/:*?"<>|\r\n]*?\.gguf)(?!\w)',
    re.IGNORECASE,
)
"""A model file with its folders."""


def without_person(text: str, home: str, user: str) -> str:
    """`text` with `~` for the home folder, USER for the name of whoever a folder of a person belongs to, and model
    files without their folders.

    `user` is replaced wherever it is a part of a path, and left alone where it is a word. Separators may be of any
    writing; upper and lower case are the same if `home` is a path of Windows. Either may be "".
    """
    case = re.IGNORECASE if re.match(r"[A-Za-z]:|\\\\", home) else re.NOFLAG
    text = _MODEL.sub(r"\1", text)
    parts = [re.escape(part) for part in re.split(_SLASH, home) if part]
    if parts:
        start = "" if parts[0].endswith(":") else _SLASH
        text = re.sub(rf"(?<![\w.~-]){start}{_SLASH.join(parts)}{_ENDS}", "~", text, flags=case)
    known = rf"{re.escape(user)}{_ENDS}|" if user else ""
    text = re.sub(rf"({_PEOPLE})(?:{known}{_SOMEBODY})", r"\1USER", text, flags=re.IGNORECASE)
    if user:
        text = re.sub(rf"(?<=[\\/]){re.escape(user)}(?=[\\/])", "USER", text, flags=case)
        path = rf"(?<![\w\\/.])((?:[A-Za-z]:|~)?{_SLASH}(?:{_PARTS}{_SLASH})*)"
        text = re.sub(rf"{path}{re.escape(user)}{_ENDS}", r"\1USER", text, flags=case)
    return text


def without_this_person(text: str) -> str:
    """`text` without whoever runs the app, as `without_person` says."""
    try:
        user = getpass.getuser()
    except (ImportError, KeyError, OSError):
        user = ""
    return without_person(text, str(Path.home()), user)
