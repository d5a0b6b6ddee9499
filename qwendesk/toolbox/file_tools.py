"""The tools for files of the folders that the user picked: they list, search, read, and change one passage."""

import asyncio
import stat
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path

import msgspec

from qwendesk.core.files import is_utf8
from qwendesk.core.input_files import FileTooLarge, read_bounded
from qwendesk.core.tool_context import MOST_CHARACTERS, CallContext
from qwendesk.core.translation import mark, tr
from qwendesk.core.units import KIB, MIB
from qwendesk.toolbox.contained_files import FolderEntry, overwrite_contained
from qwendesk.toolbox.edit_history import EditHistory, FileEdit
from qwendesk.toolbox.folder_access import FolderAccess
from qwendesk.toolbox.knowledge.file_texts import NoText, UnreadableFile, read_parts, unit_of
from qwendesk.toolbox.knowledge.folder_indexes import FolderIndexes
from qwendesk.toolbox.knowledge.search import search_folders
from qwendesk.toolbox.shown_text import difference, on_one_line
from qwendesk.toolbox.tool import Arguments, Tool, ToolError

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
        entries = [entry for entry in access.entries(folder) if access.may_see(folder / entry.name)]
    except OSError as error:
        raise ToolError(f"{name} can't be listed: {error.strerror}.") from None
    folders = {entry.name for entry in entries if _is_folder(entry, folder)}
    names = sorted((entry.name for entry in entries), key=lambda each: (each not in folders, each.lower()))
    lines = [on_one_line(f"{each}/" if each in folders else each) for each in names]
    more = len(lines) - MOST_LISTED
    return "\n".join([*lines[:MOST_LISTED], *([f"({more} more)"] if more > 0 else [])]) or "(empty)"


def _is_folder(entry: FolderEntry, folder: Path) -> bool:
    return (folder / entry.name).is_dir() if entry.is_link else stat.S_ISDIR(entry.state.st_mode)


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
    lines, encoding = _lines(access, path, page)
    last = min(last or len(lines), len(lines), first + MOST_LINES - 1)
    if first > max(1, len(lines)) or first < 1 or last < first - 1:
        raise ToolError(f"{name} has {len(lines)} lines.")
    room = most_characters - _ROOM_FOR_NOTE
    ends = list(accumulate(len(line) + 1 for line in lines[first - 1 : last]))
    last = min(last, first - 1 + max(1, bisect_right(ends, room)))
    text = "\n".join(lines[first - 1 : last])[:room]
    is_all = first == 1 and last == len(lines) and len(text) < room
    notes = [] if is_all else [f"(lines {first} to {last} of {len(lines)})"]
    if encoding:
        notes.append(f"(read as {encoding}, which is a guess)")
    return "\n".join([text, *notes])


def _lines(access: FolderAccess, path: Path, page: int) -> tuple[list[str], str]:
    """Return the lines of a file or page, and the encoding if it was guessed. Raise ToolError."""
    name = access.shown(path)
    if path.is_dir():
        raise ToolError(f"{name} is a folder. List it with list_files.")
    try:
        parts = read_parts(path, access.open)
    except NoText:
        raise ToolError(f"{name} is not a text file.") from None
    except UnreadableFile as error:
        raise ToolError(f"{name} can't be read. {error}") from None
    unit = unit_of(path.name)
    if page and unit:
        if page > len(parts):
            raise ToolError(f"{name} has {len(parts)} {unit}s.")
        return list(parts[page - 1].lines), ""
    if not unit:
        return list(parts[0].lines), parts[0].encoding
    titles = (f"--- {unit} {part.at}{f' ({part.name})' if part.name else ''} ---" for part in parts)
    return [line for title, part in zip(titles, parts, strict=True) for line in (title, *part.lines)], ""


def _read_text(access: FolderAccess, path: Path, name: str) -> str:
    """Return the text of a file with its byte order mark. Raise ToolError if it can't be read or is no text."""
    if path.is_dir():
        raise ToolError(f"{name} is a folder. List it with list_files.")
    try:
        data = read_bounded(path, _LARGEST_BYTES, access.open)
    except FileTooLarge:
        raise ToolError(f"{name} is larger than {_LARGEST_BYTES // MIB} MB, which is more than can be read.") from None
    except OSError as error:
        raise ToolError(f"{name} can't be read: {error.strerror}.") from None
    if b"\0" in data[: 8 * KIB]:
        raise ToolError(f"{name} is not a text file.")
    return data.decode("utf-8", "replace")


_GROUP = mark("Read files")
_PROMISE = mark("Answers from your folder, with sources.")


def file_tools(indexes: FolderIndexes) -> tuple[Tool, ...]:
    """Return the three tools. `indexes` keeps what it has read of the folders."""

    async def run_list(arguments: Arguments, context: CallContext) -> str:
        return await asyncio.to_thread(list_files, _access(context), str(arguments.get("path", ".")))

    async def run_read(arguments: Arguments, context: CallContext) -> str:
        first, last = int(arguments.get("first_line", 1)), arguments.get("last_line")
        return await asyncio.to_thread(
            read_file, _access(context), str(arguments["path"]), first, None if last is None else int(last),
            context.most_characters, int(arguments.get("page", 0)),
        )  # fmt: skip

    async def run_search(arguments: Arguments, context: CallContext) -> str:
        return await search_folders(indexes, str(arguments["query"]), context)

    path = {"type": "string", "description": "Path in the folder, such as src/main.py"}
    return (
        Tool(
            name="list_files",
            title=mark("List files"),
            promise=_PROMISE,
            description="List the files and folders in a folder of the user.",
            parameters={"type": "object", "properties": {"path": {"type": "string", "description": "Default: all"}}},
            effect="reads",
            run=run_list,
            icon="folder",
            command_name="files",
            needs_folder=True,
            group=_GROUP,
        ),
        Tool(
            name="search_files",
            title=mark("Search files"),
            promise=_PROMISE,
            description="Find the places in the user's files (text, code, PDF, Office) that contain the words, the "
            "best first. Places are numbered: cite what you use in your answer with its number, like this [1].",
            parameters={
                "type": "object",
                "properties": {"query": {"type": "string", "description": "Words of the text, not a question"}},
                "required": ["query"],
            },
            effect="reads",
            run=run_search,
            icon="search",
            command_name="files",
            needs_folder=True,
            group=_GROUP,
        ),
        Tool(
            name="read_file",
            title=mark("Read file"),
            promise=_PROMISE,
            description=f"Read a file of the user (text, code, PDF, Office, e-book), up to {MOST_LINES} lines at once.",
            parameters={
                "type": "object",
                "properties": {
                    "path": path,
                    "first_line": {"type": "integer", "minimum": 1},
                    "last_line": {"type": "integer", "minimum": 1},
                    "page": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "Of a PDF; for other documents the slide, sheet or chapter",
                    },
                },
                "required": ["path"],
            },
            effect="reads",
            run=run_read,
            icon="document",
            command_name="files",
            needs_folder=True,
            group=_GROUP,
        ),
    )


def _access(context: CallContext) -> FolderAccess:
    return FolderAccess(context.settings.tool_folders)


class Change(msgspec.Struct, frozen=True):
    """The result of a call for a file."""

    root: Path
    """The folder of the user that it is in, resolved."""
    path: Path
    """Resolved."""
    name: str
    """As the user reads it."""
    before: str
    after: str
    is_new: bool = False
    """True if there was no file."""

    @property
    def shown(self) -> str:
        """The change as the user reads it."""
        return difference(self.before, self.after, self.name) or tr("{0}: a new, empty file", self.name)


async def _preview(arguments: Arguments, context: CallContext) -> str:
    def shown() -> str:
        return planned(arguments, FolderAccess(context.settings.tool_folders)).shown

    return await asyncio.to_thread(shown)


def edit_file(history: EditHistory | None = None) -> Tool:
    """Return the tool. `history` keeps what its changes replace."""

    async def run(arguments: Arguments, context: CallContext) -> str:
        return await asyncio.to_thread(_change, arguments, context, history)

    return Tool(
        name="edit_file",
        title=mark("Edit files"),
        promise=mark("Changes files in your folder. You see each change first."),
        description=(
            "Replace one passage of a text file of the user. The passage must occur exactly once. To make a new file, "
            "give an empty passage. The user sees the change and may refuse it."
        ),
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Path in the folder, such as src/main.py"},
                "old": {
                    "type": "string",
                    "description": "The passage to replace, copied exactly, with its line breaks",
                },
                "new": {"type": "string", "description": "What stands there afterwards"},
            },
            "required": ["path", "old", "new"],
        },
        effect="writes",
        run=run,
        preview=_preview,
        is_trusted=True,
        needs_folder=True,
        icon="edit",
        changes_files=True,
    )


def _change(arguments: Arguments, context: CallContext, history: EditHistory | None) -> str:
    """Make the change that a call asks for. Blocks."""
    # Planned again: the file may have changed while the user looked at the difference.
    access = FolderAccess(context.settings.tool_folders)
    made = planned(arguments, access)
    if context.confirmed and made.shown != context.confirmed:
        raise ToolError(f"{made.name} has changed meanwhile, so nothing was done. Read it again.")
    before = None if made.is_new else made.before.encode()
    edit = FileEdit(context.chat_id, str(made.path), made.name, before, made.after.encode(), str(made.root))
    if history is not None:
        history.remember(context.call_id, edit, on_disk=not context.is_incognito)
    try:
        overwrite_contained(made.root, made.path, edit.after)
    except OSError as error:
        if history is not None:
            history.drop(context.call_id)
        raise ToolError(f"{made.name} can't be written: {error.strerror}.") from None
    return f"{made.name} was changed."


def _exists(path: Path) -> bool:
    """Return whether there is a file or folder. Raise OSError if there can't be one, as by a name that is too long."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True


def planned(arguments: Arguments, access: FolderAccess) -> Change:
    """Return the change that a call asks for, without making it. Raise ToolError."""
    given, old, new = str(arguments["path"]), str(arguments["old"]), str(arguments["new"])
    if not all(map(is_utf8, (given, old, new))):
        raise ToolError("The path or a passage has half of a character (a lone surrogate), which no text can have.")
    path = access.find(given, must_exist=bool(old))
    name = access.shown(path)
    if not is_utf8(str(path)):  # its history couldn't be kept
        raise ToolError(f"{name} can't be changed: its name has bytes that are no text. Ask the user to rename it.")
    try:
        root = access.root_of(path)
        if not old:
            if _exists(path):
                raise ToolError(f"{name} exists. Give the passage that is to be replaced.")
            if not path.parent.is_dir():
                raise ToolError(f"There is no folder for {name}.")
            return Change(root, path, name, "", new, is_new=True)
    except OSError as error:  # such as a name that is too long
        raise ToolError(f"{name} can't be used: {error.strerror}.") from None
    before = _read_text(access, path, name)
    if "\ufffd" in before:
        raise ToolError(f"{name} is not in UTF-8, so it can't be changed without damage.")
    if "\r\n" in before:
        old, new = (text.replace("\r\n", "\n").replace("\n", "\r\n") for text in (old, new))
    count = before.count(old)
    if count != 1:
        found = "does not occur" if not count else f"occurs {count} times"
        raise ToolError(f"The passage {found} in {name}. Read the file, and give a passage that occurs once.")
    after = before.replace(old, new)
    if after == before:
        raise ToolError("The passage and its replacement are the same.")
    return Change(root, path, name, before, after)
