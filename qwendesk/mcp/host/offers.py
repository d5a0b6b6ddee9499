"""Turns what a server offers and answers into values, cut to what the app accepts, with schemas that are safe to use.

A schema is text of others. It could refer to addresses in the network, refer to itself without end, or hold a pattern
on which Python's regular expressions work for years.
"""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import mcp_types as types
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from qwendesk.core.json_decoding import decode_base64, whole_characters
from qwendesk.core.json_schema import SchemaReader, SchemaReferences
from qwendesk.mcp.host_protocol import (
    IMAGE_TYPES,
    MOST_IMAGES,
    MOST_IMAGES_BYTES,
    MOST_TEXT,
    Answered,
    ImageData,
    OfferedPrompt,
    OfferedResource,
    OfferedTool,
    PromptArgument,
    ServerOffer,
)

# Schemas in a schema, with references written out.
MOST_NODES = 2000
_DEEPEST = 24
# Larger bounds of lengths are dropped: a grammar writes each repetition out. The server checks them.
_MOST_REPEATED = 1000
_ONE = ("not", "if", "then", "else", "items", "contains", "additionalProperties", "propertyNames", "unevaluatedItems")
_MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "dependentSchemas")
# Kept as they are. `format` is not checked by our validator, and describes the value to the model.
_PLAIN = (
    "type", "enum", "const", "description", "title", "default", "examples", "required", "minimum", "maximum",
    "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "dependentRequired", "format", "deprecated",
)  # fmt: skip
_BOUNDS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")


class TooLarge(Exception):
    """A schema with too many parts."""


def usable_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema of an object that has no references, no patterns and no keywords that we don't know.

    What it leaves out allows more, never less: the server checks its arguments itself. Raises TooLarge.
    """
    usable = _Writer(schema).write(schema, (), 0)
    return {**(usable if isinstance(usable, dict) else {}), "type": "object"}


class _Writer:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._references, self._left = SchemaReferences(root), MOST_NODES

    def write(self, schema: Any, references: tuple[str, ...], depth: int) -> Any:
        """Return `schema` with its references written out; one into itself allows anything."""
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            return {}
        self._left -= 1
        if self._left < 0:
            raise TooLarge
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self._written_out(reference, schema, references, depth)
        written = {key: schema[key] for key in _PLAIN if key in schema}
        written |= {key: schema[key] for key in _BOUNDS if _is_small(schema.get(key))}
        if schema.get("nullable") is True and isinstance(schema.get("type"), str):
            written["type"] = [schema["type"], "null"]
        if isinstance(schema.get("patternProperties"), Mapping):
            schema = {**schema, "additionalProperties": _any_of_patterns(schema)}
        if isinstance(schema.get("items"), list):
            schema = {**schema, "prefixItems": schema["items"], "items": schema.get("additionalItems", True)}
        for key in _ONE:
            if key in schema:
                written[key] = self.write(schema[key], references, depth + 1)
        for key in _MANY:
            if isinstance(schema.get(key), list):
                written[key] = [self.write(each, references, depth + 1) for each in schema[key]]
        for key in _NAMED:
            if isinstance(schema.get(key), Mapping):
                named = schema[key].items()
                written[key] = {name: self.write(each, references, depth + 1) for name, each in named}
        return {key: value for key, value in written.items() if _is_well_formed(key, value)}

    def _written_out(self, reference: str, schema: Mapping[str, Any], references: tuple[str, ...], depth: int) -> Any:
        """Return what a reference leads to, together with what stands beside it."""
        beside = self.write({key: value for key, value in schema.items() if key != "$ref"}, references, depth)
        if reference in references:
            return beside
        target = self.write(self._references.find(reference), (*references, reference), depth + 1)
        if not beside or not isinstance(target, dict):
            return target
        if not target.keys() & (beside.keys() - {"title", "description", "default"}):
            return {**target, **beside}
        return {"allOf": [target, beside]}


def _any_of_patterns(schema: Mapping[str, Any]) -> Any:
    """Return a schema of the properties that have no name of their own, without the patterns of their names."""
    more = schema.get("additionalProperties", False)
    schemas = [*schema["patternProperties"].values(), *([more] if more is not False else [])]
    return {"anyOf": schemas} if schemas else more


def _is_small(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_REPEATED


_TYPES = {"string", "number", "integer", "boolean", "object", "array", "null"}


def _is_well_formed(key: str, value: Any) -> bool:
    """Return whether our validator can work with this keyword; servers write schemas by hand."""
    match key:
        case "type":
            names = value if isinstance(value, list) else [value]
            return bool(names) and all(isinstance(name, str) and name in _TYPES for name in names)
        case "enum":
            return isinstance(value, list) and bool(value)
        case "required":
            return isinstance(value, list) and all(isinstance(name, str) for name in value)
        case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "multipleOf":
            return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
        case "allOf" | "anyOf" | "oneOf":
            return bool(value)
        case "dependentRequired":
            return isinstance(value, Mapping) and all(isinstance(each, list) for each in value.values())
        case "title" | "description" | "format":
            return isinstance(value, str)
        case _:
            return True


_MOST_PAGES = 20
MOST_TOOLS = 128
# Resources, and prompts.
_MOST_OTHERS = 100
_MOST_NAME, _MOST_DESCRIPTION, _MOST_ADDRESS = 128, 4000, 1000
# Characters of the schema of a tool's arguments, as the server sends it and with its references written out.
MOST_SCHEMA = 30_000

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


Block = types.ContentBlock | types.TextResourceContents | types.BlobResourceContents


def tool_answer(request_id: int, result: types.CallToolResult) -> Answered:
    """Return the result of a tool. Structured content is text if there is nothing else, as it repeats the text."""
    answer = _answer(request_id, result.content)
    text = answer.text
    if not result.content and result.structured_content is not None:
        text = shortened(json.dumps(result.structured_content, ensure_ascii=False), MOST_TEXT)
    is_error = bool(result.is_error)
    return Answered(request_id, printable(text) if is_error else text, answer.images, is_error)


def resource_answer(request_id: int, result: types.ReadResourceResult) -> Answered:
    return _answer(request_id, result.contents)


def prompt_answer(request_id: int, result: types.GetPromptResult) -> Answered:
    """Return the messages of a prompt one after the other. Those that speak for the assistant are marked."""
    blocks: list[Block] = []
    for message in result.messages:
        if message.role == "assistant":
            blocks.append(types.TextContent(type="text", text="(The assistant's part:)"))
        blocks.append(message.content)
    return _answer(request_id, blocks)


def printable(text: str) -> str:
    """Return a text without control characters but line ends: it is shown in a window or a terminal as it is."""
    return "".join(each if each.isprintable() or each == "\n" else " " for each in text)


def shortened(text: str | None, most: int) -> str:
    """Return a text of at most `most` characters that UTF-8 can encode, with how much is missing."""
    text = (text or "").encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= most else f"{text[:most]}\n(cut off: {len(text):,} characters in all)"


def _answer(request_id: int, blocks: Iterable[Block]) -> Answered:
    texts: list[str] = []
    images: list[ImageData] = []
    for block in blocks:
        image = _image(block, images)
        if image is not None:
            images.append(image)
            texts.append(f"(picture {len(images)})")
        else:
            texts.append(_text(block))
    return Answered(request_id, shortened("\n\n".join(texts), MOST_TEXT), tuple(images))


def _text(block: Block) -> str:
    match block:
        case types.TextContent(text=text):
            return text
        case types.ResourceLink(uri=uri, name=name):
            return f"{name}: {uri}"
        case types.EmbeddedResource(resource=resource):
            return _text(resource)
        case types.TextResourceContents(uri=uri, text=text):
            return f"{uri}:\n{text}"
        case types.BlobResourceContents(uri=uri, blob=blob, mime_type=mime):
            return f"({uri}: {mime or 'unknown type'}, {len(blob) * 3 // 4:,} bytes, which can't be shown)"
        case types.ImageContent(mime_type=mime):
            return f"(a picture that is damaged, too large or of a type that can't be shown: {mime})"
        case types.AudioContent(mime_type=mime):
            return f"(a sound, which can't be played to the model: {mime})"


def _image(block: Block, earlier: Sequence[ImageData]) -> ImageData | None:
    """Return the picture of a block, if it is one and there is room for it."""
    match block:
        case types.EmbeddedResource(resource=resource):
            return _image(resource, earlier)
        case types.ImageContent(data=data, mime_type=mime):
            encoded = data
        case types.BlobResourceContents(blob=data, mime_type=str(mime)):
            encoded = data
        case _:
            return None
    n_bytes = sum(len(each.data) for each in earlier)
    has_room = len(earlier) < MOST_IMAGES and n_bytes + len(encoded) * 3 // 4 <= MOST_IMAGES_BYTES
    if mime not in IMAGE_TYPES or not has_room:
        return None
    try:
        return ImageData(mime, decode_base64(encoded))
    except ValueError:
        return None


def plain(value: Any) -> Any:
    """Return a JSON value without what UTF-8 can't encode."""
    return json.loads(whole_characters(json.dumps(value, ensure_ascii=False)))
