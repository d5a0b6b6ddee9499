"""An MCP server made with the SDK, as a program: on its standard input and output, or by HTTP with a port."""

import asyncio
import io
import os
import sys
from pathlib import Path
from typing import Annotated, Any

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel

from tests.pictures import ShapePicture

server = MCPServer("friendly", version="1.2")


def png_bytes() -> bytes:
    buffer = io.BytesIO()
    ShapePicture("red", "square").draw().save(buffer, "PNG")
    return buffer.getvalue()


def write(path: str, text: str) -> None:
    Path(path).write_text(text, encoding="utf-8")


class Colour(BaseModel):
    colour: str


@server.tool()
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@server.tool()
def variable(name: str) -> str:
    """Return an environment variable."""
    return os.environ.get(name, "(none)")


@server.tool()
def folder() -> str:
    """Return the folder that the server runs in."""
    return str(Path.cwd())


@server.tool()
def header(name: str, context: Context[Any, Any]) -> str:
    """Return a header of the request."""
    request = context.request_context.request
    return str(request.headers.get(name)) if request is not None else "(no request)"


@server.tool(structured_output=False)
def picture() -> list[Any]:
    """Return a picture with a text."""
    return ["A red square.", Image(data=png_bytes(), format="png")]


@server.tool()
def fail() -> str:
    """Always fail."""
    raise ToolError("The printer is on fire.")


@server.tool()
async def slow(steps: int, context: Context[Any, Any]) -> str:
    """Work for a while and report progress."""
    for step in range(steps):
        await context.report_progress(step + 1, steps, f"step {step + 1}")
        await asyncio.sleep(0.3)
    return "done"


@server.tool()
async def wait(path: str) -> str:
    """Work until the call is cancelled, and write that down."""
    try:
        write(path, "begun")
        await asyncio.sleep(600)
    finally:
        write(path, "cancelled")
    return "never"


def which_colour() -> Elicit[Colour]:
    return Elicit("Which colour?", Colour)


@server.tool()
def ask_user(colour: Annotated[Colour, Resolve(which_colour)]) -> str:
    """Ask the user for a colour."""
    return colour.colour


@server.tool()
async def grow(context: Context[Any, Any]) -> str:
    """Offer one more tool."""
    server.add_tool(lambda: "new", name="grown", description="A tool that was not there before.")
    await context.notify_tools_changed()
    return "grown"


@server.resource("notes://today", description="What to do.")
def today() -> str:
    return "Water the plants."


@server.prompt()
def greeting(name: str) -> str:
    """Greet somebody."""
    return f"Greet {name}."


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
