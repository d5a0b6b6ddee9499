"""Addresses of pages that a model names: which are taken, and how the user sees them. Nothing is looked up."""

import ipaddress
import re

import httpx2

from qwendesk.core.translation import tr
from qwendesk.toolbox.tool import ToolError
from qwendesk.toolbox.web.public_ip import is_public

MOST_CHARACTERS = 2_000
"""Of an address. A longer one could carry what nobody would read before consent."""
_NAME = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+(?:[a-z]{2,63}|xn--[a-z0-9-]{1,59})")
"""A host's name: at least two labels, and the last is no number, so that 127.1 and 0x7f.0.0.1 are none."""
_LOCAL = re.compile(r".*\.(local|localhost|localdomain|internal|intranet|lan|home|corp|private|home\.arpa|onion|alt)")
"""Names that no public server has. To look them up would tell the network what the model wants."""
_LOWEST_OTHER_PORT = 1024
"""Below, only the ports of the web: mail servers and the like could take a request for a command."""


def checked_address(text: str, base: httpx2.URL | None = None) -> httpx2.URL:
    """Return an address as it is connected to; relative ones refer to `base`. Raise ToolError if it is not taken.

    Only web pages on the Internet are, by a host's name or a public IP address in its usual form.
    """
    text = text.strip()
    if base is None and "://" not in text:
        text = f"https://{text}"
    if len(text) > MOST_CHARACTERS:
        raise ToolError(f"The address is longer than {MOST_CHARACTERS:,} characters.")
    try:
        url = (base.join(text) if base is not None else httpx2.URL(text)).copy_with(fragment=None)
        port = url.port
    except (httpx2.InvalidURL, UnicodeError, ValueError):
        raise ToolError("This is not an address. Write it like https://example.org/page.") from None
    if url.scheme not in ("http", "https"):
        raise ToolError("Only addresses that begin with https:// or http:// can be read.")
    if url.userinfo:
        raise ToolError("Addresses with a user name or a password are not read.")
    if port is not None and not 0 < port < 65536:
        raise ToolError("The address has an impossible port.")
    if port is not None and port not in (80, 443) and port < _LOWEST_OTHER_PORT:
        raise ToolError(f"Port {port} is not one of web pages, so it is not connected to.")
    _check_host(url.raw_host.decode("ascii"))
    return url


def shown_host(url: httpx2.URL) -> str:
    """Return the host as it is looked up, with what a name in another script looks like."""
    host, looks_like = url.raw_host.decode("ascii"), url.host
    return host if looks_like == host else tr("{0} (looks like {1})", host, looks_like)


def private_error(host: str) -> ToolError:
    """Return the error for a host that is not on the Internet."""
    return ToolError(f"{host} is on this PC or in a private network. Only pages on the Internet can be read.")


def _check_host(host: str) -> None:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        if host == "localhost" or _LOCAL.fullmatch(host):
            raise private_error(host) from None
        if len(host) > 253 or not _NAME.fullmatch(host):
            raise ToolError("The address has no valid host. Write it like https://example.org/page.") from None
        return
    if not is_public(host):
        raise private_error(host)
