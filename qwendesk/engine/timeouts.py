"""How long the client waits for its worker, and when it kills a worker that does not respond."""

import msgspec

from qwendesk.engine.protocol import PromptProgress, Rendered
from qwendesk.engine.replies import Reply
from qwendesk.engine.watchdog import SilenceLimits, TemplateWatchdogLimits


class WorkerTimeouts(msgspec.Struct, frozen=True):
    """How many seconds the client waits before it kills its worker."""

    start_s: float = 120.0
    """From the start to Welcome. Up to 2 GB of GPU libraries may have to be read from disk."""
    acknowledge_s: float = 10.0
    load_stall_s: float = 3.0
    """A cancelled load may take this long without progress. An early kill loses nothing: no model is loaded yet."""
    answer_stall_s: float = 20.0
    """A cancelled answer may take this long without progress. A batch on a GPU cannot be interrupted and takes seconds
    if video memory spills. After a kill, the model must be loaded again.
    """
    cancel_s: float = 120.0
    """From a cancel to the end of its request. Also the limit without progress while images are decoded and encoded,
    which cannot be interrupted either and takes this long on a slow CPU.
    """
    stop_s: float = 3.0
    template: TemplateWatchdogLimits = TemplateWatchdogLimits()
    silence: SilenceLimits = SilenceLimits()


def stalled_at(timeouts: WorkerTimeouts, reply: Reply) -> float:
    """Return the time, by the event loop's clock, at which a request without another event counts as stalled."""
    event = reply.last_event
    if isinstance(event, Rendered) or (isinstance(event, PromptProgress) and event.encodes_image):
        limit_s = timeouts.cancel_s
    else:
        limit_s = timeouts.load_stall_s if reply.is_load else timeouts.answer_stall_s
    return reply.last_event_at + limit_s


def kill_at(timeouts: WorkerTimeouts, reply: Reply) -> float:
    """Return the time, by the event loop's clock, at which the worker of a cancelled request is killed.

    That is at once if the request had already stalled when it was cancelled. Each event of the request moves the time.
    """
    assert reply.cancelled_at is not None
    times = [stalled_at(timeouts, reply), reply.cancelled_at + timeouts.cancel_s]
    if not reply.is_acknowledged:
        times.append(reply.cancelled_at + timeouts.acknowledge_s)
    return min(times)
