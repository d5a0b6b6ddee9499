"""Removes the user's name and folders from texts that may leave this PC, such as crash reports."""

import getpass
import re
from pathlib import Path

# A path separator of any system; in a repr and in JSON each backslash is doubled.
_SLASH = r"[\\/]+"
_PART = r'[^\\/:*?"<>|\s]+'
_PARTS = rf"{_PART}(?: +{_PART})*"
# Lookahead after a name: the name must be complete, but a full stop may follow.
_ENDS = r"(?![\w~-]|\.\w)"
_ANY_USER = r"""[^\\/:*?"'<>|\s,;()]*[^\\/:*?"'<>|\s,;().]"""
# Folders that contain one folder per user.
_HOME_PARENTS = rf"{_SLASH}(?:home|users|documents and settings|run{_SLASH}media){_SLASH}"
# A path of a model file; group 1 is its name.
_MODEL_PATH = re.compile(
    rf"(?<![\w\\/])(?<!http:)(?<!https:)(?:[A-Z]:|~)?{_SLASH}(?:{_PARTS}{_SLASH})*?"
    r'([^\\/:*?"<>|\r\n]*?\.gguf)(?!\w)',
    re.IGNORECASE,
)


def redact_user_paths(text: str) -> str:
    """Return `text` without the current user's name and folders; see `redact_paths`."""
    try:
        user = getpass.getuser()
    except (ImportError, KeyError, OSError):
        user = ""
    return redact_paths(text, str(Path.home()), user)


def redact_paths(text: str, home: str, user: str) -> str:
    """Return `text` with `~` for the home folder, USER for user names in paths, and model files without folders.

    `user` is replaced only where it is part of a path. Path separators of all systems are recognised; case is ignored
    if `home` is a Windows path. `home` and `user` may be "".
    """
    case = re.IGNORECASE if re.match(r"[A-Za-z]:|\\\\", home) else re.NOFLAG
    text = _MODEL_PATH.sub(r"\1", text)
    parts = [re.escape(part) for part in re.split(_SLASH, home) if part]
    if parts:
        start = "" if parts[0].endswith(":") else _SLASH
        text = re.sub(rf"(?<![\w.~-]){start}{_SLASH.join(parts)}{_ENDS}", "~", text, flags=case)
    known = rf"{re.escape(user)}{_ENDS}|" if user else ""
    text = re.sub(rf"({_HOME_PARENTS})(?:{known}{_ANY_USER})", r"\1USER", text, flags=re.IGNORECASE)
    if user:
        text = re.sub(rf"(?<=[\\/]){re.escape(user)}(?=[\\/])", "USER", text, flags=case)
        path = rf"(?<![\w\\/.])((?:[A-Za-z]:|~)?{_SLASH}(?:{_PARTS}{_SLASH})*)"
        text = re.sub(rf"{path}{re.escape(user)}{_ENDS}", r"\1USER", text, flags=case)
    return text
