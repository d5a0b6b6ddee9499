"""Access tokens by host, saved in the system's keyring or in a file that only this user may read."""

import logging
import os
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from qwendesk.core import paths
from qwendesk.core.json_file import JsonFile
from qwendesk.hub.network import endpoint_from_environment

_logger = logging.getLogger(__name__)
_SERVICE = "QwenDesk"
# The search service whose key is saved like a token.
SEARCH_HOST = "api.search.brave.com"
TokenPlace = Literal["environment", "keyring", "file", "nowhere"]


def load_token(host: str) -> str:
    """Return the token for `host`: HF_TOKEN in the environment, or else the saved one; "" if there is none.

    Tokens are saved by host, so that one for the Hub is never sent to a mirror. HF_TOKEN belongs to HF_ENDPOINT.
    """
    return _from_environment(host) or _from_keyring(host) or _file().read().get(host, "")


def token_place(host: str) -> TokenPlace:
    """Return where the token that `load_token` returns comes from."""
    if _from_environment(host):
        return "environment"
    if _from_keyring(host):
        return "keyring"
    return "file" if host in _file().read() else "nowhere"


def save_token(host: str, token: str) -> bool:
    """Save a token. Return True if it is in the keyring, False if it could only be saved in the file."""
    import keyring
    from keyring.errors import KeyringError

    _note_host(host)
    try:
        keyring.set_password(_SERVICE, host, token)
    except (KeyringError, OSError) as error:
        _logger.info("No usable keyring (%s): the token goes to a file", type(error).__name__)
        _file().write(_file().read() | {host: token})
        _delete_from_keyring(host)  # an older one there would be taken first
        return False
    _delete_from_file(host)
    return True


def delete_token(host: str) -> None:
    """Delete the token of `host` from the keyring and from the file."""
    _delete_from_keyring(host)
    _delete_from_file(host)


def _delete_from_keyring(host: str) -> None:
    import keyring
    from keyring.errors import KeyringError

    try:
        keyring.delete_password(_SERVICE, host)
    except (KeyringError, OSError):
        _logger.debug("No token of %s in a keyring", host)


def _delete_from_file(host: str) -> None:
    tokens = _file().read()
    if tokens.pop(host, None) is not None:
        _file().write(tokens)


def known_hosts() -> tuple[str, ...]:
    """Return the hosts that may have a saved token: those that had one, the Hub, HF_ENDPOINT's and the search's."""
    hub = ("huggingface.co", urlsplit(endpoint_from_environment()).netloc)
    return tuple(dict.fromkeys((*_file().read(), *_hosts_file().read(), *hub, SEARCH_HOST)))


def _note_host(host: str) -> None:
    """Remember that a host has a token, because a keyring lists nothing and all tokens are to be deletable."""
    noted = _hosts_file().read()
    if host not in noted:
        _hosts_file().try_write((*noted, host))


def _hosts_file() -> JsonFile[tuple[str, ...]]:
    return JsonFile(paths.config_folder() / "token_hosts.json", tuple[str, ...], tuple, keep_unusable=False)


def _from_environment(host: str) -> str:
    return os.environ.get("HF_TOKEN", "").strip() if urlsplit(endpoint_from_environment()).netloc == host else ""


def _from_keyring(host: str) -> str:
    import keyring
    from keyring.errors import KeyringError

    try:
        return keyring.get_password(_SERVICE, host) or ""
    except (KeyringError, OSError):
        return ""


def token_file() -> Path:
    """Return the path of the file used if there is no keyring."""
    return paths.config_folder() / "tokens.json"


def _file() -> JsonFile[dict[str, str]]:
    # No copy of an unusable file is kept: the user could never delete a token in it from within the app.
    return JsonFile(token_file(), dict[str, str], dict, keep_unusable=False)
