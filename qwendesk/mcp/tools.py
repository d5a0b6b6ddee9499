"""Makes tools of what MCP servers offer: the app's consent and limits hold for them, and what they say is data."""

import json
from collections.abc import Callable

from qwendesk.core.tool_context import CallContext
from qwendesk.core.translation import mark, tr
from qwendesk.mcp.host_protocol import ProgressNote
from qwendesk.mcp.server_tools import ServerTool
from qwendesk.mcp.service import CallFailed, McpService
from qwendesk.toolbox.service import ToolService
from qwendesk.toolbox.shown_text import on_one_line
from qwendesk.toolbox.tool import Arguments, Tool, ToolError, ToolImage, ToolResult

# How long a call may take however much progress is reported; a silent server is given up earlier.
_LIMIT_S = 600.0
# Characters of what a server says about its progress, beside the percent.
_MOST_WORDS = 40
_RUNS = mark("A program that can do all that you can on this PC. Each call asks you.")
_SENDS = mark("A server elsewhere, which gets what the model sends it. Each call asks you.")


def join_servers(service: McpService, toolbox: ToolService) -> Callable[[], None]:
    """Offer the tools of the servers, and follow their changes until the returned function is called."""

    def update() -> None:
        toolbox.set_added([make_tool(tool, service) for tool in service.state.value.tools])

    update()
    return service.state.subscribe_field(lambda state: state.tools, lambda _tools: update())


def server_switch(server_id: str) -> str:
    """Return the name by which all tools of a server are on in a chat."""
    return f"mcp/{server_id}"


def make_tool(tool: ServerTool, service: McpService) -> Tool:
    """Return a tool that asks each time it is called: nobody but its server knows what it does."""

    async def run(arguments: Arguments, context: CallContext) -> ToolResult:
        def show(progress: ProgressNote) -> None:
            context.report_progress(progress_text(progress))

        try:
            answer = await service.call(tool, arguments, show)
        except CallFailed as error:
            raise ToolError(str(error)) from error
        if answer.is_error:
            raise ToolError(answer.text or "The tool failed without a reason.")
        return ToolResult(answer.text, tuple(ToolImage(image.mime, image.data) for image in answer.images))

    async def preview(arguments: Arguments, context: CallContext) -> str:
        """Show all that the server gets, and which server that is."""
        name, line = on_one_line(tool.original), on_one_line(tool.server_line)
        where = tr("Runs: {0}", line) if tool.runs_program else tr("Sends to: {0}", line)
        values = json.dumps(dict(arguments), ensure_ascii=False, indent=2)
        return f"{tr('Tool: {0}', name)}\n{where}\n\n{values}"

    return Tool(
        name=tool.name,
        title=tool.title,
        promise=_RUNS if tool.runs_program else _SENDS,
        description=tool.description,
        parameters=tool.parameters,
        effect="runs" if tool.runs_program else "sends",
        run=run,
        preview=preview,
        is_described_by_others=True,
        provider=tool.server_identity,
        switch=server_switch(tool.server_id),
        group=tr("{0} (MCP server)", tool.server_name),
        limit_s=_LIMIT_S,
    )


def progress_text(progress: ProgressNote) -> str:
    """Return how far a call is: in percent if its server tells how much there is to do, and the server's words."""
    percent = tr("{0}%", round(100 * progress.fraction)) if progress.fraction is not None else ""
    words = " ".join(progress.message.split())
    words = words if len(words) <= _MOST_WORDS else f"{words[:_MOST_WORDS]}…"
    return " · ".join(part for part in (percent, words) if part)
