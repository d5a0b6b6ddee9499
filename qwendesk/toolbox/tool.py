"""Tool: one thing that the model can do, with what it promises never to do."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

import msgspec

from qwendesk.core.tool_context import CallContext

# What a call may do besides answering: nothing, read in folders that the user picked for the chat, write there or in
# the user's notes, send something out, or run a program.
Effect = Literal["nothing", "reads", "writes", "sends", "runs"]

# Checked against the tool's schema.
Arguments = Mapping[str, Any]


class ToolError(Exception):
    """A call that failed. The text is a sentence that the model reads, so it says what to do instead."""


class ToolImage(msgspec.Struct, frozen=True):
    """A picture in a result: the bytes of an image file."""

    mime: str
    data: bytes


class ToolResult(msgspec.Struct, frozen=True):
    text: str
    images: tuple[ToolImage, ...] = ()


class Tool(msgspec.Struct, frozen=True):
    name: str
    """As the model calls it."""
    title: str
    """As the user sees it."""
    promise: str
    """One sentence for the user: what it may do."""
    description: str
    """For the model, in English."""
    parameters: Mapping[str, Any]
    """JSON schema of the arguments."""
    effect: Effect
    run: Callable[[Arguments, CallContext], Awaitable[str | ToolResult]]
    """Returns the result, often text alone. Raises ToolError."""
    preview: Callable[[Arguments, CallContext], Awaitable[str]] | None = None
    """Preview before consent in place of the arguments, such as a diff. Raises ToolError."""
    icon: str = "tool"
    command_name: str = ""
    """Name in `qwendesk ask --tools`; tools with the same name are on together. "" for none."""
    shows_code: bool = False
    """True if its arguments and results are code and what it printed, whose columns matter."""
    changes_files: bool = False
    """True if its arguments are a change of a file, which can be undone."""
    is_trusted: bool = False
    """True if its results never hold text of others."""
    is_described_by_others: bool = False
    """True if others wrote its description, which the model reads in every chat that has the tool."""
    provider: str = ""
    """The program or the address behind it, if it is not the app: a consent counts for that one alone."""
    switch: str = ""
    """By what it is on in a chat, together with others, such as all of a server's; "": by its own name."""
    limit_s: float = 0.0
    """Longest duration of a call, in seconds; 0 for the limit of most tools."""
    needs_folder: bool = False
    """True if it works in the folders that the user picked for the chat."""
    group: str = ""
    """Title in place of those of tools that are on or off together."""
    asks_each_time: bool = False
    """True if a consent counts for one call only, in every chat."""
    find_obstacle: Callable[[], Awaitable[str]] | None = None
    """Returns why the tool can't be used on this PC, in a sentence for the user; "" if it can. None: it can."""

    @property
    def definition(self) -> dict[str, Any]:
        """The tool in the form of OpenAI's API."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}
