"""How the app reaches the Hub: settings, HTTP clients, and what its errors mean for people."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx2
import msgspec

from qwendesk.core.errors import QwenDeskError

# Read by huggingface_hub when it is imported: Xet downloads cannot be cancelled or resumed by us, and nothing is
# reported to anyone.
os.environ["HF_HUB_DISABLE_XET"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"

from huggingface_hub import close_session, constants, set_client_factory
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

DEFAULT_ENDPOINT = "https://huggingface.co"
CONNECT_S = 10.0

Trouble = Literal[
    "offline", "no_connection", "busy", "gated", "denied", "not_found", "bad_name", "bad_answer", "changed",
    "hash_mismatch", "no_space", "disk", "locked", "stopped",
]  # fmt: skip


class HubTrouble(QwenDeskError):
    """Why something could not be had from the Hub, or not be kept. `kind` is for code, the sentence for people."""

    def __init__(self, kind: Trouble, title: str, sentence: str, retry_after_s: float | None = None) -> None:
        super().__init__(title, sentence)
        self.kind: Trouble = kind
        self.retry_after_s = retry_after_s
        """How long the server asked to wait, in seconds."""


class Network(msgspec.Struct, frozen=True):
    """Settings of every connection."""

    endpoint: str = DEFAULT_ENDPOINT
    """Of the Hub or a mirror; the only place the token is sent to."""
    token: str = ""
    proxy: str = ""
    """URL of a proxy; "" for what the system says."""
    offline: bool = False
    """No connection at all."""
    stall_s: float = 30.0
    """A connection with no byte for so long is given up."""

    @property
    def host(self) -> str:
        return urlsplit(self.endpoint).netloc

    def is_endpoint(self, url: str) -> bool:
        """Whether `url` has the endpoint's scheme, host and port, and so may be given the token."""
        asked, own = httpx2.URL(url), httpx2.URL(self.endpoint)
        return bool(asked.origin == own.origin)


def endpoint_from_environment() -> str:
    """HF_ENDPOINT, or the Hub itself."""
    return os.environ.get("HF_ENDPOINT", "").strip().rstrip("/") or DEFAULT_ENDPOINT


def never() -> bool:
    """For a network whose settings stay as they are."""
    return False


class _Unreachable(httpx2.TransportError):
    """Nobody answers there at all. huggingface_hub does not know it, and so does not try again for 20 seconds."""


class _OneTryClient(httpx2.Client):
    """For questions that a person waits for: without a connection the answer is at once that there is none."""

    def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        try:
            return super().send(request, **how)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            raise _Unreachable(str(error) or type(error).__name__, request=request) from error


def new_client(
    network: Network, is_cut: Callable[[], bool] = never, kind: type[httpx2.Client] = httpx2.Client
) -> httpx2.Client:
    """A client with the proxy, the time limits and the offline switch of `network`. Certificates are checked.

    `is_cut` is asked before every request and after every answer, from any thread: the switch may be thrown while
    the client is in use.
    """

    def refuse_when_offline(_: httpx2.Request | httpx2.Response) -> None:
        if network.offline or is_cut() or constants.is_offline_mode():
            raise offline_trouble()

    return kind(
        event_hooks={"request": [refuse_when_offline], "response": [refuse_when_offline]},
        follow_redirects=True,
        proxy=network.proxy or None,
        timeout=httpx2.Timeout(network.stall_s, connect=min(CONNECT_S, network.stall_s)),
    )


def use_in_library(network: Network, is_cut: Callable[[], bool] = never) -> None:
    """From now on huggingface_hub, which knows one client for the whole process, connects as `network` says."""
    set_client_factory(lambda: new_client(network, is_cut, _OneTryClient))


def drop_connections() -> None:
    """Closes those that huggingface_hub keeps open for later. Who waits on one gets an error."""
    close_session()


def offline_trouble() -> HubTrouble:
    return HubTrouble("offline", "Offline", "QwenDesk is set to offline, so it does not connect to Hugging Face.")


@contextmanager
def translated(network: Network, repo: str, path: str = "") -> Iterator[None]:
    """Turns what huggingface_hub and its client raise into HubTrouble."""
    try:
        yield
    except GatedRepoError as error:
        raise _gated(network, repo) from error
    except (RemoteEntryNotFoundError, RevisionNotFoundError) as error:
        sentence = f"{repo} has no {path or 'such file'} any more. Look at what it has now."
        raise HubTrouble("not_found", "File not found", sentence) from error
    except RepositoryNotFoundError as error:
        raise _no_repository(network, repo) from error
    except HFValidationError as error:
        sentence = f'"{repo}" is no repository name: it should be like owner/name.'
        raise HubTrouble("bad_name", "No such name", sentence) from error
    except HfHubHTTPError as error:
        raise trouble_of(error.response, network, repo) from error
    except httpx2.TransportError as error:
        raise no_connection(network, error) from error
    except httpx2.HTTPError as error:
        raise bad_answer(network.host, str(error)) from error
    except RuntimeError as error:
        # Its client was closed: the settings of the network were changed while it waited.
        raise no_connection(network, error) from error
    except (ValueError, KeyError, TypeError) as error:
        # A captive portal or a broken mirror answers with something else than the Hub's JSON.
        raise bad_answer(network.host, "the answer is not the Hub's") from error


def trouble_of(response: httpx2.Response, network: Network, repo: str) -> HubTrouble:
    """What a status of 400 or more means."""
    status, host = response.status_code, response.request.url.host
    code = response.headers.get("X-Error-Code", "")
    if code == "GatedRepo":
        return _gated(network, repo)
    if status in (401, 403):
        sentence = f"{host} does not let you have {repo} ({status}). Check the access token and its permissions."
        return HubTrouble("denied", "Access denied", sentence)
    if status in (404, 410):
        return HubTrouble("not_found", "Not found", f"{host} does not have this file of {repo} any more.")
    if status in (408, 425, 429) or status >= 500:
        wait = _retry_after(response)
        what = "asks to slow down" if status == 429 else f"has trouble right now ({status})"
        return HubTrouble("busy", "Server busy", f"{host} {what}. Try again in a while.", wait)
    return bad_answer(host, f"status {status}")


def no_connection(network: Network, error: Exception) -> HubTrouble:
    detail = re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__
    return HubTrouble("no_connection", "No connection", f"No connection to {network.host}: {detail}.")


def bad_answer(host: str, detail: str) -> HubTrouble:
    return HubTrouble("bad_answer", "Unexpected answer", f"{host} answered in a way that makes no sense: {detail}.")


def _gated(network: Network, repo: str) -> HubTrouble:
    where = f"{network.endpoint}/{repo}"
    sentence = f"{repo} is gated: open {where}, accept its terms there, and give QwenDesk an access token of yours."
    return HubTrouble("gated", "Terms to accept", sentence)


def _no_repository(network: Network, repo: str) -> HubTrouble:
    sentence = f"{network.host} has no repository {repo}, or it is private and needs an access token."
    return HubTrouble("not_found", "Repository not found", sentence)


def _retry_after(response: httpx2.Response) -> float | None:
    text = response.headers.get("Retry-After", "").strip()
    return float(text) if text.isdigit() else None
