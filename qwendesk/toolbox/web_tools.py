"""The tools that use the Internet. They ask each time, with all that they would send."""

from typing import TYPE_CHECKING

from qwendesk.core.app_options import AppOptions
from qwendesk.core.observed import Observed
from qwendesk.core.tool_context import CallContext
from qwendesk.core.translation import mark
from qwendesk.toolbox.tool import Arguments, Tool

if TYPE_CHECKING:
    from qwendesk.toolbox.web.read_page import Internet


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
        from qwendesk.toolbox.web import read_page

        return read_page.preview(arguments, app.value, internet or read_page.internet())

    async def run_page(arguments: Arguments, context: CallContext) -> str:
        from qwendesk.toolbox.web import read_page

        return await read_page.run(arguments, context, app.value, internet or read_page.internet())

    return (
        Tool(
            name="web_search",
            title=mark("Web search"),
            promise=mark("Sends words to the search service that you chose in Settings, after you have seen them."),
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
            promise=mark(
                "Reads a page of the Internet, after you have seen its address. Never on this PC or in your network."
            ),
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
