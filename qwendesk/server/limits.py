"""How much and how long a client may send, and how long it hears nothing."""

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
