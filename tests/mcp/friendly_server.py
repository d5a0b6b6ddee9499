"""An MCP server made with the SDK, as a program: on its standard input and output, or by HTTP with a port."""

import asyncio
import io
import os
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.mcpserver import Context, Image, MCPServer
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


@server.tool()
def picture() -> list[Any]:
    """Return a picture with a text."""
    return ["A red square.", Image(data=png_bytes(), format="png")]


@server.tool()
def fail() -> str:
    """Always fail."""
    raise ValueError("The printer is on fire.")


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


@server.tool()
async def ask_user(context: Context[Any, Any]) -> str:
    """Ask the user for a colour."""
    answer = await context.elicit("Which colour?", Colour)
    return answer.action


@server.tool()
async def ask_model(context: Context[Any, Any]) -> str:
    """Ask the client's model."""
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Say hello."))
    result = await context.session.create_message([message], max_tokens=10)
    return str(result)


@server.tool()
async def grow(context: Context[Any, Any]) -> str:
    """Offer one more tool."""
    server.add_tool(lambda: "new", name="grown", description="A tool that was not there before.")
    await context.session.send_tool_list_changed()
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
