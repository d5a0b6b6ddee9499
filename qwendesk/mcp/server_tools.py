"""The tools that a server's offer makes: its own, and those that read its resources and its prompts."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from qwendesk.core.translation import tr
from qwendesk.mcp.host_protocol import (
    CallTool,
    GetPrompt,
    OfferedPrompt,
    OfferedResource,
    Question,
    ReadResource,
    ServerOffer,
)
from qwendesk.mcp.server_config import ServerConfig, clean_name

# What the tools that read resources and prompts are called where a server's own are by their names.
RESOURCES, PROMPTS = "resources", "prompts"
_RESOURCES_DESCRIPTION = (
    "Read a resource of this server, such as a document. Without an address (uri), list the resources that there are."
)
_RESOURCES_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"uri": {"type": "string", "description": "The address of the resource."}},
}
_PROMPTS_DESCRIPTION = (
    "Get a prompt of this server: instructions that it has for a task, when the user asks for them. "
    "Without a name, list the prompts that there are, with their arguments."
)
_PROMPTS_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "The name of the prompt."},
        "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}


class ServerTool(msgspec.Struct, frozen=True):
    """A tool of a server, as it was when the model was told of it."""

    name: str
    """As the model calls it."""
    server_name: str
    server_id: str
    server_identity: str
    """The program or the address behind it, which consents are bound to."""
    server_line: str
    """The same for people to read: a command line, or an address."""
    runs_program: bool
    """True if the server is a program on this PC, and not one elsewhere."""
    original: str
    """As the server calls it."""
    description: str
    """Of others: data, never instructions to the app."""
    parameters: dict[str, Any]
    kind: Literal["tool", "resources", "prompts"] = "tool"

    @property
    def title(self) -> str:
        """What the user sees: always with the server's name, which the user gave it."""
        names = {"tool": clean_name(self.original), "resources": tr("Resources"), "prompts": tr("Prompts")}
        return tr("{0}: {1}", self.server_name, names[self.kind])

    def question(self, request_id: int, arguments: Mapping[str, Any]) -> Question:
        """Return the request to the server for a call with these arguments."""
        match self.kind:
            case "tool":
                return CallTool(request_id, self.original, dict(arguments))
            case "resources":
                return ReadResource(request_id, str(arguments["uri"]))
            case "prompts":
                return GetPrompt(request_id, str(arguments["name"]), dict(arguments.get("arguments", {})))

    def listing(self, arguments: Mapping[str, Any], offer: ServerOffer) -> str:
        """Return what the server offers, if a call asks for that alone; "" if the server is to be asked."""
        match self.kind:
            case "resources" if not arguments.get("uri"):
                return "\n".join(map(_resource_line, offer.resources))
            case "prompts" if not arguments.get("name"):
                return "\n".join(map(_prompt_line, offer.prompts))
        return ""


def all_tools(servers: Iterable[ServerConfig]) -> tuple[ServerTool, ...]:
    """Return the tools of all servers that are on, without those that the user switched off."""
    configs = list(servers)
    # Also the servers that are off have their prefix, so that switching one changes no other's names.
    prefixes = server_prefixes({server.id: server.name for server in configs})
    return tuple(
        tool
        for server in configs
        if server.is_on
        for tool in server_tools(server, prefixes[server.id])
        if tool.original not in server.tools_off or tool.kind != "tool"
    )


def server_tools(server: ServerConfig, prefix: str) -> Iterator[ServerTool]:
    """Yield the tools that a server offers."""
    offered = {tool.name: tool for tool in server.offer.tools}
    names = tool_names(prefix, [*offered, RESOURCES, PROMPTS])
    about = (server.name, server.id, server.identity, server.command_line, bool(server.command))
    for tool in offered.values():
        yield ServerTool(names[tool.name], *about, tool.name, tool.description, tool.schema)
    if server.offer.resources and RESOURCES not in offered:
        yield ServerTool(
            names[RESOURCES], *about, RESOURCES, _RESOURCES_DESCRIPTION, dict(_RESOURCES_SCHEMA), "resources"
        )
    if server.offer.prompts and PROMPTS not in offered:
        yield ServerTool(names[PROMPTS], *about, PROMPTS, _PROMPTS_DESCRIPTION, dict(_PROMPTS_SCHEMA), "prompts")


def _resource_line(resource: OfferedResource) -> str:
    return _line(resource.uri, resource.name, resource.description)


def _prompt_line(prompt: OfferedPrompt) -> str:
    arguments = ", ".join(f"{each.name} (required)" if each.required else each.name for each in prompt.arguments)
    return _line(prompt.name, prompt.description, f"arguments: {arguments}" if arguments else "")


def _line(*parts: str) -> str:
    return " ".join(" - ".join(filter(None, parts)).split())


# Between the server's part and the tool's. No tool of the app has it in its name, and no server's part.
SEPARATOR = "__"
# Characters of a name, as other programs limit them too.
_MOST = 64
_MOST_PREFIX = 24
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_-]+")


def server_prefixes(names: Mapping[str, str]) -> dict[str, str]:
    """Return a prefix for each server, by its id; `names` are those that the user sees, by id."""
    prefixes: dict[str, str] = {}
    for server_id, name in names.items():
        slug = re.sub(r"_+", "_", _NOT_ALLOWED.sub("_", name.lower())).strip("_-")[:_MOST_PREFIX].strip("_-")
        prefixes[server_id] = _unique(slug or "server", prefixes.values())
    return prefixes


def tool_names(prefix: str, tools: Sequence[str]) -> dict[str, str]:
    """Return the model's name of each tool by the server's name of it. It does not depend on the tools' order."""
    names: dict[str, str] = {}
    for tool in sorted(set(tools)):
        slug = _NOT_ALLOWED.sub("_", tool).strip("_") or "tool"
        name = f"{prefix}{SEPARATOR}{slug}"
        if len(name) > _MOST:
            digest = hashlib.sha256(tool.encode("utf-8", "replace")).hexdigest()[:8]
            name = f"{name[: _MOST - 9]}_{digest}"
        names[tool] = _unique(name, names.values())
    return names


def _unique(name: str, taken: Iterable[str]) -> str:
    """Return `name`, with a number if it is taken."""
    others = set(taken)
    number, unique = 1, name
    while unique in others:
        number += 1
        unique = f"{name}_{number}"
    return unique
