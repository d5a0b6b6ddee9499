"""The tools that come with the app."""

from qwendesk.core.app_options import AppOptions
from qwendesk.core.observed import Observed
from qwendesk.toolbox.calculator import CALCULATOR
from qwendesk.toolbox.clock import clock
from qwendesk.toolbox.edit_file import edit_file
from qwendesk.toolbox.edit_history import EditHistory
from qwendesk.toolbox.file_tools import file_tools
from qwendesk.toolbox.knowledge.folder_indexes import FolderIndexes
from qwendesk.toolbox.run_python import run_python
from qwendesk.toolbox.tool import Tool
from qwendesk.toolbox.web_tools import web_tools


def builtin_tools(
    indexes: FolderIndexes | None = None,
    edits: EditHistory | None = None,
    app: Observed[AppOptions] | None = None,
) -> tuple[Tool, ...]:
    """Return all of them, in the order in which they are shown.

    `edits` keeps what changes of files replace.
    """
    return (
        clock(),
        CALCULATOR,
        *file_tools(indexes or FolderIndexes()),
        edit_file(edits),
        *web_tools(app or Observed(AppOptions())),
        run_python(),
    )
