"""Reads the settings of servers that other programs use: Claude Desktop, Cursor, LM Studio and VS Code."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from qwendesk.core.errors import BadOption
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.translation import tr
from qwendesk.mcp.server_config import NewServer, ServerConfig, clean_name, new_id

# Keys under which programs have their servers.
_LISTS = ("mcpServers", "servers", "context_servers")
_MOST_CHARACTERS = 200_000
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*+"?|//[^\n]*|/\*(?:.*?\*/|.*)', re.DOTALL)
# Both end with the text where a string or a comment doesn't, so that each is looked through once.
_STRING_OR_LAST_COMMA = re.compile(r'"(?:[^"\\]|\\.)*+"?|,(?=\s*[}\]])', re.DOTALL)
_VARIABLE = re.compile(r"\$\{[^}]*\}")


def read_pasted_servers(text: str, taken: Iterable[str] = ()) -> tuple[NewServer, ...]:
    """Return the servers in a text. `taken` are the names of servers that are there already.

    Comments and commas at the end, as VS Code allows them, are no mistakes. Raises BadOption with a sentence that says
    where the mistake is.
    """
    if not text.strip():
        raise _bad(tr("Paste the JSON from the server's instructions."))
    if len(text) > _MOST_CHARACTERS:
        raise _bad(tr("This text is too long to be the settings of servers."))
    entries = _entries(_decoded(text))
    known = {name.casefold() for name in taken}
    servers: list[NewServer] = []
    for name, entry in entries.items():
        server = _server(name, entry)
        if server.config.name.casefold() in known:
            raise _bad(tr('There is a server "{0}" already. Change the name, or remove the other.', server.config.name))
        known.add(server.config.name.casefold())
        servers.append(server)
    return tuple(servers)


def check_server(server: NewServer) -> NewServer:
    """Return a server that was entered, or raise BadOption with what is wrong with it."""
    config = server.config
    if not config.name:
        raise _bad(tr("Enter a name for the server."))
    if bool(config.command) == bool(config.address):
        raise _bad(tr('"{0}" needs either a program (command) or an address (url).', config.name))
    for part in (config.command, *config.arguments, config.folder, *server.secrets, *server.secrets.values()):
        if "\0" in part:
            raise _bad(tr('"{0}" contains a character that no program can be started with.', config.name))
    if config.address:
        _check_address(config)
        _check_headers(server)
    elif " " in config.command and not any(sign in config.command for sign in "/\\"):
        first, _, rest = config.command.partition(" ")
        raise _bad(
            tr('"{0}": the program is {1}; {2} belongs to its arguments (args).', config.name, first, rest.strip())
        )
    return server


def _check_address(config: ServerConfig) -> None:
    try:
        parts = urlsplit(config.address)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable or re.search(r"[\s\x00-\x1f]", config.address):
        raise _bad(
            tr('"{0}": {1} is not an address that begins with https:// or http://.', config.name, config.address)
        )


def _check_headers(server: NewServer) -> None:
    for name, value in server.secrets.items():
        is_name = re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name)
        if not is_name or not value.isascii() or not value.isprintable():
            raise _bad(
                tr('"{0}": the header {1} contains characters that no header can have.', server.config.name, name)
            )


def _decoded(text: str) -> Any:
    text = text.lstrip("\ufeff").strip()
    plain = _STRING_OR_COMMENT.sub(lambda found: found[0] if found[0].startswith('"') else _blank(found[0]), text)
    plain = _STRING_OR_LAST_COMMA.sub(lambda found: found[0] if found[0].startswith('"') else " ", plain)
    if plain.lstrip().startswith('"'):  # a piece of a file, without the braces around it
        plain = f"{{{plain.rstrip().rstrip(',')}}}"
    try:
        return decode_json(plain)
    except msgspec.DecodeError as error:
        raise _bad(_complaint(plain, text.splitlines()) or tr("This isn't valid JSON: {0}.", error)) from error


def _complaint(plain: str, lines: Sequence[str]) -> str:
    """Return what is wrong in which line; "" for what is wrong with the whole."""
    try:
        json.loads(plain)
    except json.JSONDecodeError as error:
        line = lines[error.lineno - 1].strip()[:60] if error.lineno <= len(lines) else ""
        return tr("This isn't valid JSON: {0} in line {1}, column {2}: {3}", error.msg, error.lineno, error.colno, line)
    except (ValueError, RecursionError):
        pass
    return ""


def _blank(comment: str) -> str:
    """Return spaces in place of a comment, so that lines and columns stay what they are."""
    return re.sub(r"[^\n]", " ", comment)


def _entries(value: Any) -> Mapping[str, Any]:
    """Return the servers by name, from any of the forms that programs use."""
    if isinstance(value, dict):
        for key in _LISTS:
            if isinstance(value.get(key), dict):
                return _not_empty(value[key])
        if isinstance(value.get("mcp"), dict):
            return _entries(value["mcp"])
        if "command" in value or "url" in value:
            name = value.get("name")
            return {name if isinstance(name, str) else _guessed_name(value): value}
        if all(isinstance(entry, dict) for entry in value.values()):
            return _not_empty(value)
    return _not_empty({})


def _not_empty(entries: Mapping[str, Any]) -> Mapping[str, Any]:
    if entries:
        return entries
    raise _bad(tr('There are no servers in this text. It should begin like {"mcpServers": {"name": {"command": …}}}.'))


def _guessed_name(entry: Mapping[str, Any]) -> str:
    """Return a name for a server that has none: its package or its host."""
    if isinstance(entry.get("url"), str):
        return urlsplit(entry["url"]).hostname or "server"
    arguments = entry.get("args")
    words = [each for each in arguments if isinstance(each, str)] if isinstance(arguments, list) else []
    word = next((each for each in words if not each.startswith("-")), str(entry.get("command")))
    return re.split(r"[/\\]", word.rstrip("/\\"))[-1] or "server"


def _server(given_name: str, entry: Any) -> NewServer:
    name = clean_name(given_name)
    if not isinstance(entry, dict):
        raise _bad(tr('"{0}" should be an object in braces with command or url.', name))
    kind = entry.get("type", entry.get("transport", ""))
    if kind == "sse":
        raise _bad(
            tr(
                '"{0}" uses the transport SSE, which MCP has replaced. Ask for its address for streamable HTTP; it '
                "often ends with /mcp.",
                name,
            )
        )
    is_on = entry.get("disabled") is not True
    address = _text(name, entry, "url") or _text(name, entry, "serverUrl")
    if address:
        secrets = _texts(name, entry, "headers")
        config = ServerConfig(new_id(), name, address=address, headers=tuple(secrets), is_on=is_on)
    else:
        secrets = _texts(name, entry, "env")
        config = ServerConfig(
            new_id(),
            name,
            command=_text(name, entry, "command"),
            arguments=_arguments(name, entry),
            folder=_text(name, entry, "cwd"),
            environment=tuple(secrets),
            is_on=is_on,
        )
    _refuse_variables(name, (config.command_line, config.folder))
    # Of a secret, a variable is a place to fill in: the server asks for it when it starts.
    secrets = {key: value for key, value in secrets.items() if not _VARIABLE.search(value)}
    return check_server(NewServer(config, secrets))


def _refuse_variables(name: str, texts: Iterable[str]) -> None:
    for text in texts:
        if found := _VARIABLE.search(text):
            raise _bad(
                tr('"{0}" contains {1}, which only another program can fill in. Write what it means.', name, found[0])
            )


def _text(name: str, entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key, "")
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _bad(tr('"{0}": {1} should be a text in quotation marks.', name, key))
    return value.strip()


def _arguments(name: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
    values = entry.get("args", [])
    if not isinstance(values, list) or not all(isinstance(each, str | int | float) for each in values):
        raise _bad(tr('"{0}": args should be a list of texts, such as ["-y", "package"].', name))
    return tuple(map(_as_text, values))


def _texts(name: str, entry: Mapping[str, Any], key: str) -> dict[str, str]:
    values = entry.get(key) or {}
    if not isinstance(values, dict) or not all(isinstance(each, str | int | float) for each in values.values()):
        raise _bad(tr('"{0}": {1} should be an object of names and texts.', name, key))
    return {each.strip(): _as_text(value) for each, value in values.items()}


def _as_text(value: str | float | bool) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _bad(sentence: str) -> BadOption:
    return BadOption(tr("Server not added"), sentence)
