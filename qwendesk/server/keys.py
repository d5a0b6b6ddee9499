"""The keys that clients must send. They stand in a file that only this user can read."""

import hmac
import os
import secrets
import stat
import sys
from pathlib import Path

import msgspec

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.files import write_whole
from qwendesk.core.translation import tr

KEY_VARIABLE = "QWENDESK_SERVER_KEY"
"""An environment variable with a key, in place of the file."""
_FEWEST_CHARACTERS = 16


class ServerKey(msgspec.Struct, frozen=True):
    key: str
    name: str
    """What the key is called, for the list of requests."""


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
