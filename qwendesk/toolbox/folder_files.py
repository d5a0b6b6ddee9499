"""Listing and reading files of the folders that the user picked, as far as tools may see them."""

from bisect import bisect_right
from itertools import accumulate
from pathlib import Path

from qwendesk.core.tool_context import MOST_CHARACTERS
from qwendesk.core.units import KIB, MIB
from qwendesk.toolbox.folder_access import FolderAccess
from qwendesk.toolbox.knowledge.file_texts import NoText, UnreadableFile, read_parts, unit_of
from qwendesk.toolbox.tool import ToolError

# Of one call of read_file.
MOST_LINES = 400
MOST_LISTED = 300
_LARGEST_BYTES = 8 * MIB
# Characters that are kept free for the note on which lines these are.
_ROOM_FOR_NOTE = 100


def list_files(access: FolderAccess, name: str) -> str:
    """Return one line for each entry of a folder, folders with a slash. Raise ToolError."""
    is_top = name.strip() in ("", ".", "/")
    if is_top and (len(access.folders) > 1 or access.folders[0].is_file()):
        labels = zip(access.folders, access.labels, strict=True)
        return "\n".join(label if folder.is_file() else f"{label}/" for folder, label in labels)
    folder = access.find("." if is_top else name)
    if not folder.is_dir():
        raise ToolError(f"{name} is a file. Read it with read_file.")
    try:
        entries = sorted(folder.iterdir(), key=lambda path: (not path.is_dir(), path.name.lower()))
    except OSError as error:
        raise ToolError(f"{name} can't be listed: {error.strerror}.") from None
    lines = [f"{path.name}/" if path.is_dir() else path.name for path in entries if access.may_see(path)]
    more = len(lines) - MOST_LISTED
    return "\n".join([*lines[:MOST_LISTED], *([f"({more} more)"] if more > 0 else [])]) or "(empty)"


def read_file(
    access: FolderAccess,
    name: str,
    first: int = 1,
    last: int | None = None,
    most_characters: int = MOST_CHARACTERS,
    page: int = 0,
) -> str:
    """Return lines `first` to `last` of a file, counted from 1, and say so if that is not all. Raise ToolError.

    It ends with the last line that fits into `most_characters`; a line that is longer by itself is cut off. With
    `page`, the lines are those of that page of a PDF, or slide, sheet or chapter; otherwise of all of them together.
    """
    path = access.find(name)
    lines = _lines(path, access.shown(path), page)
    last = min(last or len(lines), len(lines), first + MOST_LINES - 1)
    if first > max(1, len(lines)) or first < 1 or last < first - 1:
        raise ToolError(f"{name} has {len(lines)} lines.")
    room = most_characters - _ROOM_FOR_NOTE
    ends = list(accumulate(len(line) + 1 for line in lines[first - 1 : last]))
    last = min(last, first - 1 + max(1, bisect_right(ends, room)))
    text = "\n".join(lines[first - 1 : last])[:room]
    is_all = first == 1 and last == len(lines) and len(text) < room
    return text if is_all else f"{text}\n(lines {first} to {last} of {len(lines)})"


def _lines(path: Path, name: str, page: int) -> list[str]:
    if path.is_dir():
        raise ToolError(f"{name} is a folder. List it with list_files.")
    try:
        parts = read_parts(path)
    except NoText:
        raise ToolError(f"{name} is not a text file.") from None
    except UnreadableFile as error:
        raise ToolError(f"{name} can't be read. {error}") from None
    unit = unit_of(path.name)
    if page and unit:
        if page > len(parts):
            raise ToolError(f"{name} has {len(parts)} {unit}s.")
        return list(parts[page - 1].lines)
    if not unit:
        return list(parts[0].lines)
    titles = (f"--- {unit} {part.at}{f' ({part.name})' if part.name else ''} ---" for part in parts)
    return [line for title, part in zip(titles, parts, strict=True) for line in (title, *part.lines)]


def read_text(path: Path, name: str, *, keeps_mark: bool = False) -> str:
    """Return the text of a file. Raise ToolError if it can't be read, is too large, or is no text.

    A byte order mark is part of it only if `keeps_mark`.
    """
    if path.is_dir():
        raise ToolError(f"{name} is a folder. List it with list_files.")
    if not path.is_file():  # a pipe or a device would block for ever
        raise ToolError(f"{name} is not an ordinary file.")
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_BYTES + 1)
    except OSError as error:
        raise ToolError(f"{name} can't be read: {error.strerror}.") from None
    if len(data) > _LARGEST_BYTES:
        raise ToolError(f"{name} is larger than {_LARGEST_BYTES // MIB} MB, which is more than can be read.")
    if b"\0" in data[: 8 * KIB]:
        raise ToolError(f"{name} is not a text file.")
    return data.decode("utf-8" if keeps_mark else "utf-8-sig", "replace")
