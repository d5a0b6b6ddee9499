"""Watches whether the engine of this PC is outgrown, and says what the next step is."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.observed import Observed
from qwendesk.engines.pending_load import PendingLoad

if TYPE_CHECKING:
    from qwendesk.commands.outgrown import NextStep
    from qwendesk.commands.serving import Serving


class OutgrownService:
    """Owns the next step. Call its methods on the event loop's thread."""

    def __init__(self, pending: Observed[PendingLoad], answer_options: Callable[[], GenerationOptions]) -> None:
        """`answer_options` returns the generation options of the open chat, for the command."""
        self._pending, self._answer_options = pending, answer_options
        self._most_waiting = 0
        self.state: Observed[NextStep | None] = Observed(None)
        self._unsubscribe = pending.subscribe(lambda _pending: self._update())

    def note_waiting(self, n_waiting: int) -> None:
        """Note how many programs wait at the local server now. The most since the app started counts."""
        if n_waiting > self._most_waiting:
            self._most_waiting = n_waiting
            self._update()

    def close(self) -> None:
        self._unsubscribe()

    def _update(self) -> None:
        pending = self._pending.value
        if pending.requested is None or pending.conflicts or pending.plan is None:
            self.state.set(None)
            return
        # Imported only now, because what writes commands of other programs isn't needed before a model is planned.
        from qwendesk.commands.command_writer import for_commands  # noqa: PLC0415
        from qwendesk.commands.outgrown import next_step  # noqa: PLC0415

        step = next_step(
            for_commands(pending.requested, pending.decided),
            pending.answer_options(self._answer_options()),
            serving_of(pending),
            n_waiting=self._most_waiting if pending.is_loaded else 0,
            fits=pending.plan.fits or pending.is_loaded,
            windows=sys.platform == "win32",
        )
        self.state.set(step)


def serving_of(pending: PendingLoad) -> "Serving":
    """Return what commands for programs that don't load GGUF files need to know."""
    from qwendesk.commands.serving import Serving, cards_of, kv_bytes_of  # noqa: PLC0415 - as above

    limits = pending.limits
    return Serving(
        base_repo=pending.base_repo,
        cards=cards_of(pending.devices, pending.plan, pending.links),
        kv_bytes=kv_bytes_of(pending.plan),
        n_heads=limits.n_heads if limits is not None else 0,
        n_kv_heads=limits.n_kv_heads if limits is not None else 0,
    )
