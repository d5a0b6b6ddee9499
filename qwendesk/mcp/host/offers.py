"""Asks a server what it offers, and leaves out what is too much."""

import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeVar

import mcp_types as types
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from qwendesk.core.json_schema import SchemaReader
from qwendesk.mcp.host.results import plain, shortened
from qwendesk.mcp.host_protocol import OfferedPrompt, OfferedResource, OfferedTool, PromptArgument, ServerOffer
from qwendesk.mcp.schemas import TooLarge, usable_schema

_MOST_PAGES = 20
MOST_TOOLS = 128
_MOST_OTHERS = 100
"""Resources, and prompts."""
_MOST_NAME, _MOST_DESCRIPTION, _MOST_ADDRESS = 128, 4000, 1000
MOST_SCHEMA = 30_000
"""Characters of the schema of a tool's arguments, as the server sends it and with its references written out."""

ItemT = TypeVar("ItemT")


class _Page(Protocol):
    @property
    def next_cursor(self) -> str | None: ...


PageT = TypeVar("PageT", bound=_Page)


async def read_offer(client: Client) -> ServerOffer:
    """Return what the server offers. Raises what the client raises; a kind that it does not know is empty."""
    has = client.server_capabilities
    tools = await _all(client.list_tools, lambda page: page.tools) if has.tools else []
    resources = await _all(client.list_resources, lambda page: page.resources) if has.resources else []
    prompts = await _all(client.list_prompts, lambda page: page.prompts) if has.prompts else []
    callable_tools = [tool for tool in tools if SchemaReader(tool.input_schema).arguments() is not None]
    not_callable = [shortened(tool.name, _MOST_NAME) for tool in tools if tool not in callable_tools][:MOST_TOOLS]
    offered_tools = list(filter(None, map(_tool, callable_tools)))[:MOST_TOOLS]
    offered_resources = list(filter(None, map(_resource, resources)))[:_MOST_OTHERS]
    offered_prompts = list(filter(None, map(_prompt, prompts)))[:_MOST_OTHERS]
    n_all = len(tools) + len(resources) + len(prompts)
    info = client.server_info
    return ServerOffer(
        server=shortened(f"{info.name} {info.version}".strip(), _MOST_NAME) if info is not None else "",
        tools=tuple(offered_tools),
        resources=tuple(offered_resources),
        prompts=tuple(offered_prompts),
        not_callable=tuple(not_callable),
        n_left_out=n_all - len(offered_tools) - len(not_callable) - len(offered_resources) - len(offered_prompts),
    )


async def _all(list_page: "Callable[..., Awaitable[PageT]]", items: Callable[[PageT], Iterable[ItemT]]) -> list[ItemT]:
    """Return the items of all pages, of which there may be any number."""
    found: list[ItemT] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        try:
            page = await list_page(cursor=cursor, cache_mode="bypass")
        except MCPError as error:
            if error.code == types.METHOD_NOT_FOUND:
                return found
            raise
        found.extend(items(page))
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


def _tool(tool: types.Tool) -> OfferedTool | None:
    if len(tool.name) > _MOST_NAME or len(_json(tool.input_schema)) > MOST_SCHEMA:
        return None
    try:
        schema = usable_schema(tool.input_schema)
    except TooLarge:
        return None
    if len(_json(schema)) > MOST_SCHEMA:
        return None
    return OfferedTool(plain(tool.name), shortened(tool.description, _MOST_DESCRIPTION), plain(schema))


def _resource(resource: types.Resource) -> OfferedResource | None:
    uri = str(resource.uri)
    if len(uri) > _MOST_ADDRESS:
        return None
    name, description = shortened(resource.title or resource.name, _MOST_NAME), shortened(resource.description, 300)
    return OfferedResource(plain(uri), name, description)


def _prompt(prompt: types.Prompt) -> OfferedPrompt | None:
    arguments = prompt.arguments or []
    if len(prompt.name) > _MOST_NAME or len(arguments) > _MOST_OTHERS:
        return None
    return OfferedPrompt(
        plain(prompt.name),
        shortened(prompt.description, _MOST_DESCRIPTION),
        tuple(
            PromptArgument(plain(each.name[:_MOST_NAME]), shortened(each.description, 300), bool(each.required))
            for each in arguments
        ),
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
