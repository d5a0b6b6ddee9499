"""The tools for files of the folders that the user picked: they list, search, read, and change one passage."""

import asyncio
from pathlib import Path

import msgspec

from qwendesk.core.tool_context import CallContext
from qwendesk.core.translation import mark, tr
from qwendesk.toolbox.edit_history import EditHistory, FileEdit, overwrite
from qwendesk.toolbox.folder_access import FolderAccess
from qwendesk.toolbox.folder_files import MOST_LINES, list_files, read_file, read_text
from qwendesk.toolbox.knowledge.folder_indexes import FolderIndexes
from qwendesk.toolbox.knowledge.search import search_folders
from qwendesk.toolbox.shown_text import difference, on_one_line
from qwendesk.toolbox.tool import Arguments, Tool, ToolError

_GROUP = mark("Read files")
_PROMISE = mark("Reads in the folders that you picked for this chat. Never outside, and no hidden or secret files.")


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
    """What a call would make of a file."""

    path: Path
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
        promise=mark(
            "Changes text files in the folders that you picked for this chat, after you have seen each change."
        ),
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
    made = planned(arguments, FolderAccess(context.settings.tool_folders))
    if context.confirmed and made.shown != context.confirmed:
        raise ToolError(f"{made.name} has changed meanwhile, so nothing was done. Read it again.")
    if history is not None:
        before = None if made.is_new else made.before.encode()
        edit = FileEdit(context.chat_id, str(made.path), made.name, before, made.after.encode())
        history.remember(context.call_id, edit, on_disk=not context.is_incognito)
    try:
        overwrite(made.path, made.after.encode())
    except OSError as error:
        if history is not None:
            history.drop(context.call_id)
        raise ToolError(f"{made.name} can't be written: {error.strerror}.") from None
    return f"{made.name} was changed."


def planned(arguments: Arguments, access: FolderAccess) -> Change:
    """Return the change that a call asks for, without making it. Raise ToolError."""
    given, old, new = str(arguments["path"]), str(arguments["old"]), str(arguments["new"])
    path = access.find(given, must_exist=bool(old))
    name = on_one_line(access.shown(path))
    if not old:
        if path.exists():
            raise ToolError(f"{name} exists. Give the passage that is to be replaced.")
        if not path.parent.is_dir():
            raise ToolError(f"There is no folder for {name}.")
        return Change(path, name, "", new, is_new=True)
    before = read_text(path, name, keeps_mark=True)
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
    return Change(path, name, before, after)
