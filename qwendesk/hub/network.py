"""Network settings for connections to the Hub, and errors with sentences for users.

httpx2 and huggingface_hub are imported at the first request: that takes a tenth of a second of the start.
"""

from __future__ import annotations

import logging
import os
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import msgspec

from qwendesk.core.certificate_errors import certificate_problem
from qwendesk.core.errors import QwenDeskError, causes
from qwendesk.core.translation import tr

# huggingface_hub reads these when it is imported. Xet is off because its downloads can't be cancelled or resumed by
# this app; telemetry is off because the app reports nothing to anyone.
os.environ["HF_HUB_DISABLE_XET"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"

if TYPE_CHECKING:
    import httpx2

_logger = logging.getLogger(__name__)

DEFAULT_ENDPOINT = "https://huggingface.co"
CONNECT_S = 10.0

HubErrorKind = Literal[
    "offline", "no_connection", "busy", "gated", "denied", "not_found", "bad_name", "bad_answer", "changed",
    "hash_mismatch", "no_space", "disk", "locked", "stopped",
]  # fmt: skip
# Errors after which other requests would fail too.
UNREACHABLE: tuple[HubErrorKind, ...] = ("offline", "no_connection", "bad_answer", "busy")


class HubError(QwenDeskError):
    """Why something couldn't be downloaded from the Hub or saved. Code tells errors apart by `kind`."""

    def __init__(self, kind: HubErrorKind, title: str, sentence: str, retry_after_s: float | None = None) -> None:
        super().__init__(title, sentence)
        self.kind: HubErrorKind = kind
        self.retry_after_s = retry_after_s
        """The wait that the server asked for, in seconds."""


class Network(msgspec.Struct, frozen=True):
    """Settings of every connection."""

    endpoint: str = DEFAULT_ENDPOINT
    """Address of the Hub or a mirror. The token is sent to no other address."""
    token: str = ""
    proxy: str = ""
    """URL of a proxy; "" for the system's setting."""
    offline: bool = False
    """Make no connection at all."""
    stall_s: float = 30.0
    """Seconds without a byte after which a connection is given up."""

    @property
    def host(self) -> str:
        return urlsplit(self.endpoint).netloc

    def is_endpoint(self, url: str) -> bool:
        """Return True if `url` has the endpoint's scheme, host and port, so that the token may be sent there."""
        import httpx2

        asked, own = httpx2.URL(url), httpx2.URL(self.endpoint)
        return bool(asked.origin == own.origin)


def endpoint_from_environment() -> str:
    """Return the address in HF_ENDPOINT, or that of the Hub itself."""
    return os.environ.get("HF_ENDPOINT", "").strip().rstrip("/") or DEFAULT_ENDPOINT


def never_cut() -> bool:
    """Return False: the default `is_cut`, for a network whose settings don't change."""
    return False


def offline_error() -> HubError:
    return HubError("offline", tr("Offline"), tr("QwenDesk is set to offline, so it doesn't connect to Hugging Face."))


@contextmanager
def hub_errors(network: Network, repo: str) -> Iterator[None]:
    """Turn the exceptions of huggingface_hub and its client into HubError."""
    import httpx2
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        RemoteEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        yield
    except GatedRepoError as error:
        raise _gated(network, repo) from error
    except (RemoteEntryNotFoundError, RevisionNotFoundError) as error:
        sentence = tr("{0} no longer has this file. Check for updates.", repo)
        raise HubError("not_found", tr("File not found"), sentence) from error
    except RepositoryNotFoundError as error:
        raise _no_repository(network, repo) from error
    except HFValidationError as error:
        sentence = tr('"{0}" isn\'t a repository name. Enter it as owner/name.', repo)
        raise HubError("bad_name", tr("Not a repository name"), sentence) from error
    except HfHubHTTPError as error:
        raise status_error(error.response, network, repo) from error
    except httpx2.TransportError as error:
        raise no_connection_error(network, error) from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise bad_answer_error(network.host, str(error)) from error
    except RecursionError as error:
        raise bad_answer_error(network.host, tr("too deeply nested JSON")) from error
    except RuntimeError as error:
        # The client was closed during the request because the network settings were changed.
        raise no_connection_error(network, error) from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, msgspec.ValidationError) as error:
        # A captive portal or a broken mirror doesn't answer with the Hub's JSON.
        raise bad_answer_error(network.host, tr("another format than the Hub's")) from error


def status_error(response: httpx2.Response, network: Network, repo: str) -> HubError:
    """Return the error for a status of 400 or more."""
    status, host = response.status_code, response.request.url.host
    code = response.headers.get("X-Error-Code", "")
    if code == "GatedRepo":
        return _gated(network, repo)
    if status in (401, 403):
        sentence = tr(
            "{0} denied access to {1} ({2}). Check your access token and its permissions.", host, repo, status
        )
        return HubError("denied", tr("Access denied"), sentence)
    if status in (404, 410):
        return HubError("not_found", tr("Not found"), tr("{0} no longer has this file of {1}.", host, repo))
    if status in (408, 425, 429) or status >= 500:
        return busy_error(response)
    return bad_answer_error(host, tr("status {0}", status))


def busy_error(response: httpx2.Response) -> HubError:
    """Return the error for a server that can't or won't answer now."""
    status, host = response.status_code, response.request.url.host
    limited = tr("{0} limits how often you can ask. Try again later.", host)
    broken = tr("{0} has a problem right now ({1}). Try again later.", host, status)
    return HubError("busy", tr("Server busy"), limited if status == 429 else broken, _retry_after(response))


def no_connection_error(network: Network, error: Exception) -> HubError:
    """Return the error for a server that can't be reached. The system's own words for it are only logged."""
    import httpx2

    host = network.host
    _logger.info("No connection to %s: %s: %s", host, type(error).__name__, error)
    if problem := certificate_problem(host, error):
        sentence = problem
    elif any(isinstance(each, ssl.SSLCertVerificationError) for each in causes(error)):
        sentence = tr("The certificate of {0} isn't trusted. Check this PC's date and time.", host)
    elif isinstance(error, httpx2.ReadTimeout):
        sentence = tr("{0} didn't answer in time. Check your internet connection.", host)
    elif network.proxy:
        sentence = tr("No connection to {0}. Check your internet connection and the proxy in the settings.", host)
    else:
        sentence = tr("No connection to {0}. Check your internet connection.", host)
    return HubError("no_connection", tr("No connection"), sentence)


_PROXY_REFUSES = ("401", "403", "407")


def is_lasting(error: Exception) -> bool:
    """Return whether the next connection would fail too: a certificate or an address is wrong, or a proxy refuses."""
    import httpx2

    if isinstance(error, httpx2.UnsupportedProtocol | httpx2.LocalProtocolError):
        return True
    if isinstance(error, httpx2.ProxyError):  # its text is the proxy's answer
        return str(error).startswith(_PROXY_REFUSES)
    return any(isinstance(each, ssl.SSLCertVerificationError) for each in causes(error))


def page_error(answer: httpx2.Response) -> HubError | None:
    """Return the error for an answer that is a web page where a file was asked for; None for others.

    The login page of a hotspot and the block page of a proxy come with status 200.
    """
    if answer.headers.get("Content-Type", "").partition(";")[0].strip().lower() not in _PAGES:
        return None
    return bad_answer_error(answer.request.url.host, tr("a web page, as a hotspot or a proxy sends it"))


_PAGES = ("text/html", "application/xhtml+xml")


def bad_answer_error(host: str, detail: str) -> HubError:
    """Return the error for an answer that the Hub never gives; `detail` is a clause that follows a colon."""
    return HubError("bad_answer", tr("Unexpected answer"), tr("{0} gave an unexpected answer: {1}.", host, detail))


def _gated(network: Network, repo: str) -> HubError:
    where = f"{network.endpoint}/{repo}"
    sentence = tr("{0} is gated. Open {1}, accept the terms, and enter your access token in QwenDesk.", repo, where)
    return HubError("gated", tr("Accept the terms first"), sentence)


def _no_repository(network: Network, repo: str) -> HubError:
    sentence = tr("{0} has no repository {1}, or it's private and needs an access token.", network.host, repo)
    return HubError("not_found", tr("Repository not found"), sentence)


def _retry_after(response: httpx2.Response) -> float | None:
    text = response.headers.get("Retry-After", "").strip()
    return float(text) if re.fullmatch(r"[0-9]{1,9}", text) else None
