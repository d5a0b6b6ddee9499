"""The tool that changes a text file: one passage by another, after the user has seen the difference."""

import asyncio
from pathlib import Path

import msgspec

from qwendesk.core.tool_context import CallContext
from qwendesk.core.translation import mark, tr
from qwendesk.toolbox.edit_history import EditHistory, FileEdit, overwrite
from qwendesk.toolbox.folder_access import FolderAccess
from qwendesk.toolbox.folder_files import read_text
from qwendesk.toolbox.shown_text import difference, on_one_line
from qwendesk.toolbox.tool import Arguments, Tool, ToolError


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
