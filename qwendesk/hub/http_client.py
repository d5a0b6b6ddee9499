"""HTTP clients for the Hub and its file servers, with the user's settings and limits on every answer."""

from collections.abc import Callable
from time import monotonic
from typing import Any

import httpx2

from qwendesk.core.translation import tr
from qwendesk.hub.network import CONNECT_S, Network, busy_error, never_cut, offline_error

# Must be imported after network.py, which sets environment variables that the library reads at import.
from huggingface_hub import close_session, constants, set_client_factory  # isort: skip

# Limit for answers that aren't files. The list of a thousand files has less than 1 MiB.
LARGEST_ANSWER_BYTES = 16 * 1024**2
# Limit against servers that keep sending small pieces forever.
_LONGEST_ANSWER_S = 120.0
_MAX_REDIRECTS = 5
_TOO_MANY_REQUESTS = 429
_CHANGED_HEADERS = ("content-encoding", "content-length", "link", "transfer-encoding")


def new_client(
    network: Network, is_cut: Callable[[], bool] = never_cut, kind: type[httpx2.Client] = httpx2.Client
) -> httpx2.Client:
    """Return a client with the proxy, the timeouts and the offline switch of `network`. Certificates are checked.

    `is_cut` is called before every request and after every answer, on any thread, because the user may go offline while
    the client is in use. The token is sent to the endpoint only. Redirects are followed to web addresses only, and
    never from HTTPS to HTTP.
    """

    def refuse_when_offline(_: httpx2.Request | httpx2.Response) -> None:
        if network.offline or is_cut() or constants.is_offline_mode():
            raise offline_error()

    def keep_token(request: httpx2.Request) -> None:
        if not network.is_endpoint(str(request.url)):
            request.headers.pop("Authorization", None)

    return kind(
        event_hooks={"request": [refuse_when_offline, keep_token], "response": [refuse_when_offline, _check_redirect]},
        follow_redirects=True,
        proxy=network.proxy or None,
        timeout=httpx2.Timeout(network.stall_s, connect=min(CONNECT_S, network.stall_s)),
    )


def use_in_library(network: Network, is_cut: Callable[[], bool] = never_cut) -> None:
    """Make huggingface_hub, which has one client for the whole process, use the settings of `network` from now on."""
    set_client_factory(lambda: new_client(network, is_cut, QuestionClient))


def drop_connections() -> None:
    """Close the connections that huggingface_hub keeps open. Running requests fail."""
    close_session()


class _Unreachable(httpx2.TransportError):
    """No server answers. huggingface_hub doesn't know this class, so it doesn't retry for 20 seconds."""


class _BadAnswer(httpx2.RequestError):
    """The server sends something that the Hub never sends."""


class QuestionClient(httpx2.Client):
    """A client for requests that a user waits for: a single attempt, and an answer of limited size and duration.

    `Link` headers are removed, so that huggingface_hub requests no further pages: one page is always enough.
    """

    def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        for _ in range(_MAX_REDIRECTS):
            # A compressed piece of 64 KiB may hold a gigabyte, and httpx2 unpacks each as a whole.
            request.headers["Accept-Encoding"] = "identity"
            try:
                # Streamed, because otherwise httpx2 would read an endless answer or redirect into memory.
                answer = super().send(request, **how | {"stream": True, "follow_redirects": False})
            except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
                raise _Unreachable(str(error) or type(error).__name__, request=request) from error
            try:
                if answer.status_code == _TOO_MANY_REQUESTS:
                    # huggingface_hub would ask for a list five times more, within 23 seconds.
                    raise busy_error(answer)
                if answer.next_request is None:
                    return _limited_copy(answer)
                request = answer.next_request
            finally:
                answer.close()
        raise httpx2.TooManyRedirects(tr("too many redirects"), request=request)


def _limited_copy(answer: httpx2.Response) -> httpx2.Response:
    """Return the answer with its whole content in memory. Raises _BadAnswer if it is too large or takes too long."""
    content, end = bytearray(), monotonic() + _LONGEST_ANSWER_S
    if answer.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        raise _BadAnswer(tr("a compressed answer"), request=answer.request)
    for piece in answer.iter_raw():
        content += piece
        if len(content) > LARGEST_ANSWER_BYTES or monotonic() > end:
            raise _BadAnswer(tr("an answer without an end"), request=answer.request)
    headers = [(name, value) for name, value in answer.headers.multi_items() if name not in _CHANGED_HEADERS]
    return httpx2.Response(answer.status_code, headers=headers, content=bytes(content), request=answer.request)


def _check_redirect(answer: httpx2.Response) -> None:
    """Raise _BadAnswer for a redirect to something other than a web address, or from HTTPS to HTTP."""
    if not answer.has_redirect_location:
        return
    asked = answer.request.url
    try:
        target = asked.join(answer.headers["Location"])
    except (httpx2.InvalidURL, ValueError) as error:
        raise _BadAnswer(tr("a redirect to an invalid address"), request=answer.request) from error
    schemes = ("https",) if asked.scheme == "https" else ("https", "http")
    if target.scheme not in schemes or not target.host:
        raise _BadAnswer(tr("a redirect to an address that isn't allowed"), request=answer.request)
