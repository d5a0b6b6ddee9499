"""Addresses of servers: how users write them, which stay within the house, and how people compare certificates."""

import hashlib
import ssl
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from qwendesk.core.errors import BadRequest
from qwendesk.core.served_model import reach_of
from qwendesk.core.translation import tr

_API_SUFFIXES: Final = ("/v1/chat/completions", "/v1/models", "/v1")
# Where the API isn't at the root: Docker Model Runner's (docs.docker.com, "DMR REST API").
_PATHS: Final[Mapping[int | None, str]] = MappingProxyType({12434: "/engines"})
_LONGEST: Final = 300


def read_address(text: str) -> str:
    """Return the address that a user typed or pasted, such as "192.168.1.5:8080" or "http://pc:1234/v1/".

    Without a scheme it is http in the house and https elsewhere. Raises BadRequest.
    """
    typed = text.strip()
    if "://" not in typed:
        typed = f"{'http' if is_private_address(f'http://{typed}') else 'https'}://{typed}"
    try:
        parts = urlsplit(typed)
        port = parts.port
    except ValueError as error:
        raise _bad_address(text) from error
    if parts.scheme not in ("http", "https") or not parts.hostname or len(typed) > _LONGEST or not typed.isprintable():
        raise _bad_address(text)
    if any(character.isspace() for character in typed) or parts.username or parts.password:
        raise _bad_address(text)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    path = parts.path.rstrip("/")
    ending = next((suffix for suffix in _API_SUFFIXES if path.endswith(suffix)), "")
    path = path.removesuffix(ending) or _PATHS.get(port, "")
    return f"{parts.scheme}://{host}{f':{port}' if port is not None else ''}{path}"


def is_private_address(address: str) -> bool:
    """Return whether a server is this PC or in the same private network, as far as its name says."""
    return reach_of(address) != "internet"


def is_this_pc(address: str) -> bool:
    return reach_of(address) == "pc"


def is_own_server(address: str, own: Sequence[str]) -> bool:
    """Return whether an address leads to this app's server: it is one of `own`, or this PC with the port of one."""
    ports = {urlsplit(each).port for each in own}
    return address in own or (is_this_pc(address) and urlsplit(address).port in ports)


def address_warning(address: str) -> str:
    """Return what to say before messages are sent to an address; "" if nothing."""
    if address.startswith("https://") or is_this_pc(address):
        return ""
    if is_private_address(address):
        return tr("Not encrypted: others in your network could read along.")
    return tr("Not encrypted: anyone on the way to this server can read your chats and its key. Use https instead.")


def _bad_address(text: str) -> BadRequest:
    return BadRequest(
        tr("Not an address"),
        tr(
            '"{0}" is not the address of a server. Write it like http://192.168.1.5:8080, without a user name.',
            text.strip()[:80],
        ),
    )


def certificate_fingerprint(pem: str) -> str:
    """Return the SHA-256 of a certificate as pairs of hex digits, as servers and browsers show it.

    Raise ValueError if `pem` has anything but one certificate.
    """
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest().upper()
    return ":".join(digest[start : start + 2] for start in range(0, len(digest), 2))
