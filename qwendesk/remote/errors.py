"""Failures of a server in words for users, with a next step."""

import socket
import ssl
from typing import Any, Final

import httpx2
import msgspec

from qwendesk.core.certificate_errors import certificate_problem
from qwendesk.core.errors import QwenDeskError, causes
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.translation import join_sentences, tr

_LONGEST_QUOTE: Final = 300
_MOST_DIGITS: Final = 6
_TOO_LONG: Final = (
    "exceed_context_size",
    "exceeds the available context",
    "context length",
    "context_length_exceeded",
    "maximum context",
    "context size",
    "input is too long",
    "longer than the model",
)
_NO_TOOLS: Final = ("tool-call-parser", "does not support tools", "tools param requires", "enable-auto-tool-choice")
_NO_PICTURES: Final = (
    "image input is not supported",
    "does not support image",
    "not a multimodal",
    "multimodal is not supported",
    "mmproj",
    "at most 0 image",
    "missing data required for image input",
)


class ServerError(QwenDeskError):
    """A server that can't be used, or that refused a request."""

    def __init__(self, title: str, sentence: str, *, untrusted: bool = False) -> None:
        super().__init__(title, sentence)
        self.untrusted = untrusted
        """Whether its certificate is the cause, so that the user may look at it and decide."""


def status_error(server: str, status: int, body: bytes, *, model: str = "", retry_after: str = "") -> ServerError:
    """Return the error for a refused request. `server` and `model` are names for the user."""
    message, kind = _message_in(body)
    low = f"{message} {kind}".lower()
    if status in (401, 403):
        return ServerError(
            tr("Key refused"),
            tr("{0} doesn't accept the key, or wants one. Enter it under Server > Other engines.", server),
        )
    if status in (400, 413, 422, 500) and any(each in low for each in _TOO_LONG):
        return ServerError(
            tr("Too long"),
            tr(
                "This chat is longer than the context of {0}. Start it with a longer context, or skip the older half "
                "of the chat. It says: {1}",
                server, message,
            ),
        )  # fmt: skip
    if any(each in low for each in _NO_TOOLS):
        return ServerError(
            tr("No tools there"),
            tr(
                "{0} can't call tools with this model. Turn off the tools of this chat, or start the server with a "
                "tool parser. It says: {1}",
                server, message,
            ),
        )  # fmt: skip
    if any(each in low for each in _NO_PICTURES):
        return ServerError(
            tr("No pictures there"),
            tr(
                "{0} has no vision for this model. Remove the picture, or choose another model. It says: {1}",
                server, message,
            ),
        )  # fmt: skip
    if status == 404 and model:
        return ServerError(
            tr("Model not found"),
            tr("{0} has no model “{1}”, or not any more. Choose another one of its models.", server, model),
        )
    return _by_status(server, status, message, retry_after)


def stream_error(server: str, error: Any, *, model: str) -> ServerError:
    """Return the error that a server sent in the middle of an answer."""
    code = error.get("code") if isinstance(error, dict) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 500
    return status_error(server, status, msgspec.json.encode({"error": error}), model=model)


def transport_error(server: str, error: httpx2.RequestError) -> ServerError:
    """Return the error for a connection that could not be made, or that failed."""
    found, problem = tuple(causes(error)), certificate_problem(server, error)
    if problem:
        return ServerError(tr("Certificate not valid"), join_sentences(problem, tr("Nothing was sent.")))
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in found):
        return ServerError(
            tr("Certificate not trusted"),
            tr(
                "The certificate of {0} isn't trusted, so nothing was sent. If it is your own server, or the "
                "certificate was renewed, add it again under Server > Other engines and compare the fingerprint.",
                server,
            ),
            untrusted=True,
        )
    if any(isinstance(cause, ssl.SSLError) for cause in found):
        sentence = tr(
            "{0} doesn't speak TLS properly. If it serves plain HTTP, begin its address with http://.", server
        )
        return ServerError(tr("No secure connection"), sentence)
    if any(isinstance(cause, ConnectionRefusedError) for cause in found):
        return ServerError(
            tr("Not running"), tr("Nothing answers at {0}. Start the server there, then try again.", server)
        )
    if any(isinstance(cause, socket.gaierror) for cause in found):
        return ServerError(
            tr("Not reachable"),
            tr("No server is known by the name in {0}. Check it, or enter its number, as in 192.168.1.5.", server),
        )
    if isinstance(error, httpx2.DecodingError):
        return compressed_answer(server)
    if isinstance(error, httpx2.TimeoutException):
        return ServerError(
            tr("No answer"),
            tr("{0} doesn't answer. Check that it is on and in the same network, then try again.", server),
        )
    if isinstance(error, httpx2.ConnectError | httpx2.UnsupportedProtocol | httpx2.ProxyError):
        return ServerError(
            tr("Not reachable"),
            tr("{0} can't be reached: {1}. Check its address and your network.", server, _quoted(str(error))),
        )
    return ServerError(
        tr("Connection lost"), tr("The connection to {0} was lost. Check your network, then try again.", server)
    )


def lost_in_answer(server: str) -> ServerError:
    """Return the error for an answer whose connection ended before its end."""
    return ServerError(
        tr("Connection lost"),
        tr("The connection to {0} was lost in the middle of the answer. What had arrived is kept.", server),
    )


def silent_in_answer(server: str, silence_s: float) -> ServerError:
    """Return the error for an answer in the middle of which nothing came for so long."""
    sentence = tr(
        "{0} has sent nothing for {1} minutes, so the answer was ended. What had arrived is kept.",
        server, round(silence_s / 60),
    )  # fmt: skip
    return ServerError(tr("No answer"), sentence)


def endless_answer(server: str) -> ServerError:
    return ServerError(
        tr("Answer without an end"),
        tr("{0} sent more than an answer has, so it was ended. What had arrived is kept.", server),
    )


def compressed_answer(server: str) -> ServerError:
    return ServerError(
        tr("Not understood"),
        tr("{0} compresses its answers although QwenDesk asked for plain ones. Turn that off there.", server),
    )


def not_understood(server: str) -> ServerError:
    return ServerError(
        tr("Not understood"),
        tr("{0} sent something that isn't an answer in OpenAI's form. Check its address and version.", server),
    )


def _by_status(server: str, status: int, message: str, retry_after: str) -> ServerError:
    said = tr("It says: {0}", message) if message else ""
    if status == 404:
        sentence = tr("{0} has no OpenAI-compatible API at this address. Check the address.", server)
        return ServerError(tr("Not found"), join_sentences(sentence, said))
    if status == 429:
        is_number = retry_after.isascii() and retry_after.isdecimal() and len(retry_after) <= _MOST_DIGITS
        wait = tr("Try again in {0} s.", retry_after) if is_number else tr("Try again in a moment.")
        return ServerError(tr("Too busy"), join_sentences(tr("{0} has too many requests now.", server), wait))
    if status == 503:
        sentence = tr("{0} isn't ready, perhaps it is still loading its model. Try again in a moment.", server)
        return ServerError(tr("Not ready"), join_sentences(sentence, said))
    if status >= 500:
        sentence = tr("{0} failed with error {1}. Its own log says more.", server, status)
        return ServerError(tr("The server failed"), join_sentences(sentence, said))
    sentence = tr("{0} refused the request with error {1}.", server, status)
    return ServerError(tr("Refused"), join_sentences(sentence, said))


def _message_in(body: bytes) -> tuple[str, str]:
    """Return the message and the type in the body of an error, in any of the forms that servers use."""
    try:
        content = decode_json(body)
    except msgspec.DecodeError:
        text = body.decode("utf-8", "replace")
        return ("" if "<html" in text.lower() else _quoted(text)), ""
    if not isinstance(content, dict):
        return _quoted(str(content)), ""
    error = content.get("error", content)
    if not isinstance(error, dict):
        return _quoted(str(error)), ""
    message = error.get("message") or error.get("detail") or ""
    return _quoted(message if isinstance(message, str) else str(message)), str(error.get("type", ""))


def _quoted(text: str) -> str:
    text = text[: 4 * _LONGEST_QUOTE]
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= _LONGEST_QUOTE else f"{line[:_LONGEST_QUOTE]}…"
