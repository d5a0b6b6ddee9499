"""A model on another server, written where the path of a model file stands otherwise: "http://127.0.0.1:8080#name".

Here is also where a model is: on this PC, in the same network or beyond, and what that means for what users write.
"""

import ipaddress
import re
import socket
from pathlib import PurePath
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from qwendesk.core.translation import tr

Reach = Literal["pc", "network", "internet"]
_LOCAL_SUFFIXES: Final = (".local", ".lan", ".home", ".home.arpa", ".internal")
# IPv4 addresses as programs still take them: "127.1", "2130706433".
_OLD_NUMBER = re.compile(r"(?:0x[0-9a-f]+|\d+)(?:\.(?:0x[0-9a-f]+|\d+)){0,3}")
_SCHEMES = ("http://", "https://")


class ServedModel(msgspec.Struct, frozen=True):
    """A model by the address of its server and the name that the server gives it."""

    address: str
    """Without a slash at the end, and without the "/v1" of OpenAI's API."""
    name: str

    @property
    def text(self) -> str:
        """The form in `LoadOptions.model`."""
        return f"{self.address}#{self.name}"


class ServedChoice(msgspec.Struct, frozen=True):
    """A model of a server that the user may choose."""

    model: str
    """The form in `LoadOptions.model`."""
    name: str
    details: str
    """Its server, and what that says of the model."""


def served_model(model: str) -> ServedModel | None:
    """Return the server and the name that `LoadOptions.model` stands for; None if it is a file's path."""
    if not is_served(model):
        return None
    address, _, name = model.partition("#")
    return ServedModel(address, name)


def is_served(model: str) -> bool:
    return model.startswith(_SCHEMES)


def served_name(name: str) -> str:
    """Return a server's name of a model, without the folder and ending that llama-server gives one without an alias."""
    return PurePath(name.replace("\\", "/")).stem if name.lower().endswith(".gguf") else name


def reach_of(address: str) -> Reach:
    """Return how far the address of a server leads, as far as its host's name says."""
    name = host_of(address).lower().rstrip(".")
    number = _ip_address(name)
    if number is None:
        if name == "localhost" or name.endswith(".localhost"):
            return "pc"
        return "network" if "." not in name or name.endswith(_LOCAL_SUFFIXES) else "internet"
    if number.is_loopback or number.is_unspecified:
        return "pc"
    return "network" if number.is_private or number.is_link_local else "internet"


def host_of(address: str) -> str:
    """Return the host of an address; "" if it isn't one."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def privacy_text(model: str, *, has_tools: bool = False) -> str:
    """Return in a sentence where goes what users write to a model, which is written as in `LoadOptions.model`.

    `has_tools`: tools are on in the chat, which the user may allow to send something.
    """
    served = served_model(model)
    if served is None and has_tools:
        return tr("The model runs on this PC. Only what you allow a tool to send leaves it.")
    if served is None:
        return tr("Everything stays on this PC.")
    server = urlsplit(served.address).netloc
    match reach_of(served.address):
        case "pc":
            return tr("What you write goes to the server {0} on this PC.", server)
        case "network":
            return tr("What you write is sent to {0} in your network.", server)
        case "internet":
            return tr("What you write is sent to {0} on the internet.", server)


def incognito_text(model: str) -> str:
    """Return in sentences what is kept of an incognito chat with a model; "" is none."""
    served = served_model(model)
    if served is None:
        return tr("This chat is incognito. Nothing is saved.")
    server = urlsplit(served.address).netloc
    return tr("This chat is incognito. QwenDesk saves nothing, but {0} gets what you write and may keep it.", server)


def _ip_address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(name)) if _OLD_NUMBER.fullmatch(name) else None
        except OSError:
            return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
