"""Drafts of the model's own head, for one answer."""

from collections.abc import Sequence

from qwendesk.engine.worker.cache import PromptCache
from qwendesk.engine.worker.draft_gate import DraftGate
from qwendesk.engine.worker.mtp_head import MtpHead


class MtpDrafter:
    """Asks the head for drafts, and lets it rest while the gate is closed."""

    def __init__(self, head: MtpHead, cache: PromptCache, gate: DraftGate) -> None:
        self._head, self._cache, self._gate = head, cache, gate
        self._last = 0
        head.is_fed = True  # the prompt: without it, drafts would be worthless even where they pay off

    def add(self, token: int) -> None:
        """Take the next token of the answer, which is not decoded yet."""
        self._last = token
        self._head.is_fed = self._gate.is_open

    def propose(self, most: int) -> Sequence[int]:
        """Return `most` tokens that may follow the last one."""
        return self._head.draft(self._last, self._cache.position, most)
