"""The two messages of a dry run: a worker that is started for it gets one Estimate, sends one Estimated and exits."""

import msgspec

from qwendesk.core.options import DecidedOptions
from qwendesk.engine.protocol import Allocation, Event, Request
from qwendesk.engine.protocol_lines import decode_with


class Estimate(Request, frozen=True, kw_only=True, tag="estimate"):
    """Estimate the memory of a load."""

    options: DecidedOptions


class Estimated(Event, frozen=True, kw_only=True, tag="estimated"):
    """The engine's estimate, without vision, or the `problem` why there is none.

    All weights_bytes are 0 if this engine folder cannot report them.
    """

    allocations: tuple[Allocation, ...] = ()
    problem: str = ""


_estimate_decoder = msgspec.json.Decoder(Estimate)
_estimated_decoder = msgspec.json.Decoder(Estimated)


def decode_estimate(line: bytes) -> Estimate:
    """Raise msgspec.DecodeError (including ValidationError) if the line is not an Estimate."""
    return decode_with(_estimate_decoder, line)


def decode_estimated(line: bytes) -> Estimated:
    """Raise msgspec.DecodeError (including ValidationError) if the line is not an Estimated event."""
    return decode_with(_estimated_decoder, line)
