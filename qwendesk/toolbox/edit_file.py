"""The tool that changes a text file: one passage by another, after the user has seen the difference."""

import asyncio
import difflib
import stat
import unicodedata
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
_INVISIBLE = ("Cc", "Cf", "Zl", "Zp")
"""Categories of Unicode that don't show, or that change the order in which others do."""


class Change(msgspec.Struct, frozen=True):
    """What a call would make of a file."""

    path: Path
    name: str
    """As the user reads it."""
    before: str
    after: str

    @property
    def shown(self) -> str:
        """The change as the user reads it: a difference, in which every character can be seen."""
        before, after = self.before, self.after
        if "\n" not in (before + after).replace("\r\n", ""):  # lines that all end in the way of Windows
            before, after = before.replace("\r\n", "\n"), after.replace("\r\n", "\n")
        lines = difflib.unified_diff(
            before.splitlines(keepends=True), after.splitlines(keepends=True), self.name, self.name, n=_CONTEXT_LINES
        )
        return "".join(map(_visible, lines)).rstrip("\n") or f"{self.name}: a new, empty file"


def _visible(line: str) -> str:
    """Return a line of a difference with its invisible characters as codes, and with a note where no line ends."""
    end = "" if line.endswith("\n") else "\n\\ No newline at end of file\n"
    seen = (c if c in "\n\t" or unicodedata.category(c) not in _INVISIBLE else f"<U+{ord(c):04X}>" for c in line)
    return "".join(seen) + end


async def _preview(arguments: Arguments, context: CallContext) -> str:
    def shown() -> str:
        return planned(arguments, FolderAccess(context.settings.tool_folders)).shown

    return await asyncio.to_thread(shown)


async def _run(arguments: Arguments, context: CallContext) -> str:
    def change() -> str:
        # Planned again: the file may have changed while the user looked at the difference.
        made = planned(arguments, FolderAccess(context.settings.tool_folders))
        if context.confirmed and made.shown != context.confirmed:
            raise ToolError(f"{made.name} has changed meanwhile, so nothing was done. Read it again.")
        apply(made)
        return f"{made.name} was changed."

    return await asyncio.to_thread(change)


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
    is_trusted=True,
    needs_folder=True,
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


def apply(change: Change) -> None:
    """Write the file as a whole, with the permissions that it had. Raise ToolError if it can't be written."""
    try:
        mode = change.path.stat().st_mode if change.path.exists() else None
        write_whole(change.path, change.after.encode())
        if mode is not None:
            change.path.chmod(stat.S_IMODE(mode))
    except OSError as error:
        raise ToolError(f"{change.name} can't be written: {error.strerror}.") from None
