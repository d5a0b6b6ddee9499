"""Who may use the server: what of a request's head is checked before anything of its body is read."""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from qwendesk.server.keys import ServerKey, matching_key
from qwendesk.server.refusals import Refused

_OPEN_PATHS = ("/health",)
"""Served without a key: they tell nothing but that a server runs, as llama-server does."""

_MOST_PATH = 80
"""Characters of a path that are shown."""


class Access(msgspec.Struct, frozen=True):
    keys: tuple[ServerKey, ...]
    host_names: tuple[str, ...] = ()
    """Names of this server beside localhost and addresses in numbers."""
    origins: tuple[str, ...] = ()
    """Web pages that may use the server, such as "https://example.com"."""

    def check_host(self, host: str) -> None:
        """Raise Refused if a browser was led here by another name.

        A web page can point a name of its own at this PC (DNS rebinding), and a browser then takes page and server for
        the same site. It can't do that with numbers or with localhost.
        """
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower().rstrip(".")
        except ValueError:
            name = ""
        if name != "localhost" and name not in self.host_names and not _is_address(name):
            raise Refused(403, "This server isn't reached by that host name.", code="host_not_allowed")

    def check_origin(self, origin: str) -> None:
        """Raise Refused for a request by a web page that is not on the list."""
        if origin and origin not in self.origins:
            sentence = f"Web pages from {origin} may not use this server. Start it with --allow-origin {origin}."
            raise Refused(403, sentence, code="origin_not_allowed")

    def client_of(self, path: str, headers: Mapping[str, str]) -> ServerKey | None:
        """Return the key that was sent, None where none is needed. Raise Refused for a wrong one, or none."""
        if f"/{path.strip('/')}" in _OPEN_PATHS:
            return None
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        sent = token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        found = matching_key(self.keys, sent)
        if found is None:
            wrong = "The key is wrong." if sent else "A key is missing: send Authorization: Bearer KEY."
            sentence = f"{wrong} QwenDesk's Server page has it, and `qwendesk serve` says where it is."
            raise Refused(401, sentence, code="invalid_api_key")
        return found


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True


def program_name(user_agent: str) -> str:
    """Return a short name of the program that sent a request, such as "claude-cli"."""
    name = user_agent.partition(" ")[0].partition("/")[0]
    return "".join(c for c in name if c.isprintable())[:40]


def shown_path(raw_path: str) -> str:
    """Return a path for the list of requests, as it was sent. Any web page can send a request, though it is refused.

    So it is short and not decoded: it can't look like something that QwenDesk says.
    """
    path = raw_path.partition("?")[0]
    return "".join(character if "!" <= character <= "~" else "?" for character in path[:_MOST_PATH])
