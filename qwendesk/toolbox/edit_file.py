"""The tool that changes a text file: one passage by another, after the user has seen the difference."""

import asyncio
import difflib
import stat
from pathlib import Path

import msgspec

from qwendesk.core.files import write_whole
from qwendesk.core.tool_context import CallContext
from qwendesk.core.translation import mark
from qwendesk.toolbox.folder_access import FolderAccess
from qwendesk.toolbox.folder_files import read_text
from qwendesk.toolbox.tool import Arguments, Tool, ToolError

_CONTEXT_LINES = 3
"""Of unchanged text around a change in the difference."""


class Change(msgspec.Struct, frozen=True):
    """What a call would make of a file."""

    path: Path
    name: str
    """As the user reads it."""
    before: str
    after: str

    @property
    def diff(self) -> str:
        """The change in the form of `diff -u`, without the times."""
        lines = difflib.unified_diff(
            self.before.splitlines(), self.after.splitlines(), self.name, self.name, n=_CONTEXT_LINES, lineterm=""
        )
        return "\n".join(lines)


async def _preview(arguments: Arguments, context: CallContext) -> str:
    return (await asyncio.to_thread(planned, arguments, FolderAccess(context.settings.tool_folders))).diff


async def _run(arguments: Arguments, context: CallContext) -> str:
    # Planned again: the file may have changed while the user looked at the difference.
    change = await asyncio.to_thread(planned, arguments, FolderAccess(context.settings.tool_folders))
    await asyncio.to_thread(apply, change)
    return f"{change.name} was changed."


EDIT_FILE = Tool(
    name="edit_file",
    title=mark("Edit files"),
    promise=mark("Changes text files in the folders that you picked for this chat, after you have seen each change."),
    description=(
        "Replace one passage of a text file of the user. The passage must occur exactly once. To make a new file, "
        "give an empty passage. The user sees the change and may refuse it."
    ),
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Path in the folder, such as src/main.py"},
            "old": {"type": "string", "description": "The passage to replace, copied exactly, with its line breaks"},
            "new": {"type": "string", "description": "What stands there afterwards"},
        },
        "required": ["path", "old", "new"],
    },
    effect="writes",
    run=_run,
    preview=_preview,
)


def planned(arguments: Arguments, access: FolderAccess) -> Change:
    """Return the change that a call asks for, without making it. Raise ToolError."""
    given, old, new = str(arguments["path"]), str(arguments["old"]), str(arguments["new"])
    path = access.find(given, must_exist=bool(old))
    name = access.shown(path)
    if not old:
        if path.exists():
            raise ToolError(f"{name} exists. Give the passage that is to be replaced.")
        if not path.parent.is_dir():
            raise ToolError(f"There is no folder for {name}.")
        return Change(path, name, "", new)
    before = read_text(path, name)
    if "\ufffd" in before:
        raise ToolError(f"{name} is not in UTF-8, so it can't be changed without damage.")
    if "\r\n" in before and "\r\n" not in old:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    count = before.count(old)
    if count != 1:
        found = "does not occur" if not count else f"occurs {count} times"
        raise ToolError(f"The passage {found} in {name}. Read the file, and give a passage that occurs once.")
    after = before.replace(old, new)
    if after == before:
        raise ToolError("The passage and its replacement are the same.")
    return Change(path, name, before, after)


def apply(change: Change) -> None:
    """Write the file as a whole, with the permissions that it had. Raise ToolError if it can't be written."""
    try:
        mode = change.path.stat().st_mode if change.path.exists() else None
        write_whole(change.path, change.after.encode())
        if mode is not None:
            change.path.chmod(stat.S_IMODE(mode))
    except OSError as error:
        raise ToolError(f"{change.name} can't be written: {error.strerror}.") from None
