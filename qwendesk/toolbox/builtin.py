"""The tools that come with the app."""

import datetime
from collections.abc import Callable

from qwendesk.core.app_options import AppOptions
from qwendesk.core.observed import Observed
from qwendesk.core.tool_context import CallContext
from qwendesk.core.translation import mark
from qwendesk.toolbox.calculator import CALCULATOR
from qwendesk.toolbox.edit_history import EditHistory
from qwendesk.toolbox.file_tools import edit_file, file_tools
from qwendesk.toolbox.knowledge.folder_indexes import FolderIndexes
from qwendesk.toolbox.run_python import run_python
from qwendesk.toolbox.tool import Arguments, Tool
from qwendesk.toolbox.web_tools import web_tools


def _now() -> datetime.datetime:
    return datetime.datetime.now().astimezone()


def clock(now: Callable[[], datetime.datetime] = _now) -> Tool:
    """Return the tool; `now` gives the time with its zone."""

    async def run(_arguments: Arguments, _context: CallContext) -> str:
        return told(now())

    return Tool(
        name="current_time",
        title=mark("Clock"),
        promise=mark("Tells the model the date, the time and the time zone of this PC."),
        description="The current date and time, with weekday and time zone.",
        parameters={"type": "object", "properties": {}},
        effect="nothing",
        icon="clock",
        command_name="clock",
        run=run,
        is_trusted=True,
    )


def told(moment: datetime.datetime) -> str:
    """Return a moment as the model reads it, such as "Thursday, 2026-11-26, 15:04 (UTC+01:00)"."""
    zone = moment.strftime("%z")
    return f"{_DAYS[moment.weekday()]}, {moment:%Y-%m-%d, %H:%M} (UTC{zone[:3]}:{zone[3:5]})"


# In English whatever the system's language is: the model reads them.
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


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
