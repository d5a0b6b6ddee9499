"""Who may use the server: the keys, and what of a request's head is checked before its body is read."""

import hmac
import ipaddress
import os
import secrets
import stat
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.files import write_whole
from qwendesk.core.translation import tr
from qwendesk.server.refusals import Refused

# An environment variable with a key, in place of the file.
KEY_VARIABLE = "QWENDESK_SERVER_KEY"
_FEWEST_CHARACTERS = 16


class ServerKey(msgspec.Struct, frozen=True):
    key: str
    name: str
    """Name of the key, for the list of requests."""


def as_origins(addresses: Iterable[str]) -> tuple[str, ...]:
    """Return addresses of web pages as browsers send them: in lower case, without a slash at the end."""
    return tuple(address.rstrip("/").lower() for address in addresses)


def read_keys(path: Path) -> tuple[ServerKey, ...]:
    """Return the keys of a file, which is made with one key if it does not exist. Blocks. Raise QwenDeskError.

    Each line has a key and, after a space, its name. Lines that begin with # are comments. A key in the environment
    replaces the file.
    """
    try:
        text = given_key() or _content(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        sentence = tr("The key file {0} can't be used: {1}. Choose another with --key-file.", path, reason)
        raise QwenDeskError(tr("Key file not usable"), sentence) from error
    lines = (line.strip() for line in text.splitlines())
    keys = tuple(_key(line) for line in lines if line and not line.startswith("#"))
    if not keys or any(len(each.key) < _FEWEST_CHARACTERS for each in keys):
        sentence = tr("Keys need at least {0} characters. Delete {1}, and a new one is made.", _FEWEST_CHARACTERS, path)
        raise QwenDeskError(tr("Key too short"), sentence)
    return keys


def given_key() -> str:
    """Return the key in the environment, which replaces the file; "" if there is none."""
    return os.environ.get(KEY_VARIABLE, "").strip()


def new_key_file(path: Path) -> None:
    """Write a file with a new key that only this user can read, in place of an older one. Raise OSError."""
    write_whole(path, f"{_new_key()}\n".encode(), mode=0o600)


def renew_key(path: Path) -> None:
    """Replace the first key of a file by a new one, and keep the others. Blocks. Raise OSError."""
    lines = _content(path).splitlines()
    for number, line in enumerate(lines):
        if line.strip() and not line.lstrip().startswith("#"):
            name = _key(line.strip()).name
            lines[number] = f"{_new_key()} {name}".rstrip()
            break
    else:
        lines.append(_new_key())
    write_whole(path, "".join(f"{line}\n" for line in lines).encode(), mode=0o600)


def matching_key(keys: tuple[ServerKey, ...], sent: str) -> ServerKey | None:
    """Return the key that was sent; None if it is none of them. Takes the same time for any wrong key."""
    found = None
    for each in keys:
        if hmac.compare_digest(each.key.encode(), sent.encode("utf-8", "surrogateescape")):
            found = each
    return found


def masked_key(key: str) -> str:
    """Return a key as it is shown: its beginning and its last characters; "" gives the hidden characters alone."""
    return f"{key[:3]}••••••••{key[-4:]}"


def _new_key() -> str:
    return f"qd-{secrets.token_urlsafe(24)}"


def _key(line: str) -> ServerKey:
    key, _, name = line.partition(" ")
    return ServerKey(key, name.strip())


def _content(path: Path) -> str:
    if not path.exists():
        new_key_file(path)
    if sys.platform != "win32" and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        path.chmod(0o600)
    return path.read_text(encoding="utf-8")


# Served without a key: they tell nothing but that a server runs, as llama-server does.
_OPEN_PATHS = ("/health",)

# Characters of a path that are shown.
_MOST_PATH = 80


class Access(msgspec.Struct, frozen=True):
    keys: tuple[ServerKey, ...]
    host_names: tuple[str, ...] = ()
    """Names of this server beside localhost and addresses in numbers."""
    origins: tuple[str, ...] = ()
    """Web pages that may use the server, such as "https://example.com"; "*" for all."""

    def allows(self, origin: str) -> bool:
        return origin in self.origins or "*" in self.origins

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
        if origin and not self.allows(origin):
            sentence = (
                f"Web pages from {origin} may not use this server. Add {origin} to Allowed web origins in QwenDesk's "
                f"settings, or start the server with --allow-origin {origin}."
            )
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
