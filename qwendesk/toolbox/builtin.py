"""The tools that come with the app."""

from qwendesk.toolbox.calculator import CALCULATOR
from qwendesk.toolbox.clock import clock
from qwendesk.toolbox.edit_file import edit_file
from qwendesk.toolbox.edit_history import EditHistory
from qwendesk.toolbox.file_tools import file_tools
from qwendesk.toolbox.knowledge.folder_indexes import FolderIndexes
from qwendesk.toolbox.tool import Tool

FILES = ("list_files", "search_files", "read_file")
"""The tools that read in the folders of the user, which are on or off together."""


def builtin_tools(indexes: FolderIndexes | None = None, edits: EditHistory | None = None) -> tuple[Tool, ...]:
    """Return all of them, in the order in which they are shown. `edits` keeps what changes of files replace."""
    return (clock(), CALCULATOR, *file_tools(indexes or FolderIndexes()), edit_file(edits))
