"""The tools that list, search and read files of the folders that the user picked."""

import asyncio

from qwendesk.core.tool_context import CallContext
from qwendesk.core.translation import mark
from qwendesk.toolbox.folder_access import FolderAccess
from qwendesk.toolbox.folder_files import MOST_LINES, list_files, read_file
from qwendesk.toolbox.knowledge.folder_indexes import FolderIndexes
from qwendesk.toolbox.knowledge.search import search_folders
from qwendesk.toolbox.tool import Arguments, Tool

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
