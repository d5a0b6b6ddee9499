"""The tools that come with the app; those that use the Internet ask each time, with all that they would send."""

import datetime
from collections.abc import Callable
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from qwendesk.toolbox.web.page_text import Internet


def web_tools(app: Observed[AppOptions], internet: "Internet | None" = None) -> tuple[Tool, ...]:
    """Return the two tools. `options` returns the app's options as they are then.

    `internet` replaces how pages are reached. What the tools need is imported at the first call: it takes a tenth of a
    second.
    """

    async def preview_search(arguments: Arguments, _context: CallContext) -> str:
        from qwendesk.toolbox.web.web_search import chosen_service, preview

        return preview(arguments, chosen_service(app.value))

    async def run_search(arguments: Arguments, context: CallContext) -> str:
        from qwendesk.toolbox.web.web_search import chosen_service, run

        return await run(arguments, context, chosen_service(app.value))

    async def preview_page(arguments: Arguments, _context: CallContext) -> str:
        from qwendesk.toolbox.web import page_text

        return page_text.preview(arguments, app.value, internet or page_text.internet())

    async def run_page(arguments: Arguments, context: CallContext) -> str:
        from qwendesk.toolbox.web import page_text

        return await page_text.run(arguments, context, app.value, internet or page_text.internet())

    return (
        Tool(
            name="web_search",
            title=mark("Web search"),
            promise=mark("Looks things up. You see each search before it's sent."),
            description="Search the web. Gives titles, addresses and short excerpts. The user sees each search.",
            parameters={
                "type": "object",
                "properties": {"query": {"type": "string", "description": "A few words, as for a search engine"}},
                "required": ["query"],
            },
            effect="sends",
            run=run_search,
            preview=preview_search,
            icon="search",
            command_name="web_search",
            asks_each_time=True,
        ),
        Tool(
            name="read_page",
            title=mark("Read page"),
            promise=mark("Opens a web page. You see each address first."),
            description="Read a page of the Internet, a text or a PDF by its address. The user sees each address.",
            parameters={
                "type": "object",
                "properties": {
                    "url": {"type": "string", "description": "Such as https://example.org/page"},
                    "offset": {"type": "integer", "minimum": 0, "description": "Where to read on in a long page"},
                },
                "required": ["url"],
            },
            effect="sends",
            run=run_page,
            preview=preview_page,
            icon="page",
            command_name="read_page",
            asks_each_time=True,
        ),
    )


def _now() -> datetime.datetime:
    return datetime.datetime.now().astimezone()


def clock(now: Callable[[], datetime.datetime] = _now) -> Tool:
    """Return the tool; `now` gives the time with its zone."""

    async def run(_arguments: Arguments, _context: CallContext) -> str:
        return told(now())

    return Tool(
        name="current_time",
        title=mark("Clock"),
        promise=mark("Knows today's date and time."),
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
