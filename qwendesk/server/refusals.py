"""How much and how long a client may send, and what it is told when a request can't be served.

The sentences are English: programs read them, and people who write programs.
"""

from typing import Any, Literal

import msgspec

from qwendesk.core.units import MIB


class Limits(msgspec.Struct, frozen=True):
    body_bytes: int = 48 * MIB
    """A line of the engine's protocol has 64 MiB, and pictures are a third larger there."""
    head_s: float = 20.0
    """Longest time from connecting to the end of a client's first request head."""
    keepalive_s: float = 75.0
    """Longest wait of a connection for its next request."""
    body_s: float = 60.0
    """Longest time for sending a request's body."""
    send_s: float = 60.0
    """Longest time in which a client takes nothing that is sent to it."""
    ping_s: float = 5.0
    """Longest silence of a stream."""


ApiFamily = Literal["openai", "anthropic"]

_OPENAI_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
    503: "unavailable_error",
}
_ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}
# OpenAI's code for a prompt that doesn't fit.
CONTEXT_FULL = "context_length_exceeded"
# OpenAI's code for a picture that can't be read. Codex leaves its pictures out when it reads this.
BAD_PICTURE = "invalid_value"


class Refused(Exception):
    """A request that is not served. `status` is that of HTTP; `param` names the field that is wrong."""

    def __init__(self, status: int, sentence: str, *, param: str = "", code: str = "") -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.param, self.code = status, sentence, param, code


def bad_field(param: str, sentence: str, *, code: str = "") -> Refused:
    """Return the refusal of a request with a field that can't be used."""
    return Refused(400, sentence, param=param, code=code)


def error_body(refused: Refused, family: ApiFamily) -> dict[str, Any]:
    """Return the JSON object that a client of that API expects instead of an answer."""
    if family == "anthropic":
        default = "invalid_request_error" if refused.status < 500 else "api_error"
        kind = _ANTHROPIC_TYPES.get(refused.status, default)
        return {"type": "error", "error": {"type": kind, "message": refused.sentence}}
    kind = _OPENAI_TYPES.get(refused.status, "server_error")
    return {
        "error": {
            "message": refused.sentence,
            "type": kind,
            "param": refused.param or None,
            "code": refused.code or None,
        }
    }
