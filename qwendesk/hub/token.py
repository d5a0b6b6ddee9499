"""The access token of one endpoint: in the system's keyring, or in a file that only this user may read."""

import logging
import os
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import keyring
import msgspec
from keyring.errors import KeyringError

from qwendesk.core.files import decode_json, replace
from qwendesk.core.paths import config_folder
from qwendesk.hub.network import endpoint_from_environment

_logger = logging.getLogger(__name__)
_SERVICE = "QwenDesk"
TokenPlace = Literal["environment", "keyring", "file", "nowhere"]


def load_token(host: str) -> str:
    """The token for `host`: HF_TOKEN of the environment, else what was saved; "" when there is none.

    Tokens are kept by host, so that one for the Hub never goes to a mirror; HF_TOKEN belongs to HF_ENDPOINT.
    """
    return _from_environment(host) or _from_keyring(host) or _read_file().get(host, "")


def token_place(host: str) -> TokenPlace:
    """Where the token that `load_token` gives for `host` comes from."""
    if _from_environment(host):
        return "environment"
    if _from_keyring(host):
        return "keyring"
    return "file" if host in _read_file() else "nowhere"


def save_token(host: str, token: str) -> bool:
    """Keeps `token`; True when it is in the keyring, False when it had to go to the file."""
    delete_token(host)
    try:
        keyring.set_password(_SERVICE, host, token)
        return True
    except (KeyringError, OSError) as error:
        _logger.info("No usable keyring (%s): the token goes to a file", type(error).__name__)
        _write_file(_read_file() | {host: token})
        return False


def delete_token(host: str) -> None:
    """Forgets the token of `host`, wherever it is."""
    try:
        keyring.delete_password(_SERVICE, host)
    except (KeyringError, OSError):
        _logger.debug("No token of %s in a keyring", host)
    tokens = _read_file()
    if tokens.pop(host, None) is not None:
        _write_file(tokens)


def known_hosts() -> tuple[str, ...]:
    """Hosts whose token may be kept: those of the file, the Hub itself, and the one the environment names."""
    return tuple(dict.fromkeys((*_read_file(), "huggingface.co", urlsplit(endpoint_from_environment()).netloc)))


def _from_environment(host: str) -> str:
    return os.environ.get("HF_TOKEN", "").strip() if urlsplit(endpoint_from_environment()).netloc == host else ""


def _from_keyring(host: str) -> str:
    try:
        return keyring.get_password(_SERVICE, host) or ""
    except (KeyringError, OSError):
        return ""


def token_file() -> Path:
    """Where tokens are when there is no keyring."""
    return config_folder() / "tokens.json"


def _read_file() -> dict[str, str]:
    try:
        return decode_json(token_file().read_bytes(), dict[str, str])
    except (OSError, msgspec.DecodeError):
        return {}


def _write_file(tokens: dict[str, str]) -> None:
    path = token_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    # Created with its permissions, so that it is never readable by others, not even for a moment.
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(tokens))
    replace(new, path)
