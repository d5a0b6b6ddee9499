"""An answer while it is written: collects pieces cheaply, gives frozen values on demand."""

import msgspec

from qwendesk.core.chat_tree import ChatNode
from qwendesk.core.messages import text_message
from qwendesk.core.stats import AnswerStats, StopReason
from qwendesk.engine.protocol import Begun, Delta

_NO_STATS = AnswerStats()


class Draft:
    """The answer that is being made, from nothing or from where it was cut."""

    def __init__(self, chat_id: str, turn_id: int, node: ChatNode) -> None:
        """`node` is the answer as it stands in the tree; its place, model and options stay."""
        self.chat_id = chat_id
        self.turn_id = turn_id
        self.begun = Begun(node.message.reasoning, node.message.text)
        self._node = node
        self._reasoning = [node.message.reasoning] if node.message.reasoning else []
        self._text = [node.message.text] if node.message.text else []
        self._thought_began_at: float | None = None
        self._thought_ended_at = 0.0

    @property
    def node_id(self) -> str:
        return self._node.id

    def made_with(self, *, model: str, options_json: str) -> None:
        """What answers, known once the request goes out."""
        self._node = msgspec.structs.replace(self._node, model=model, options_json=options_json)

    def add(self, delta: Delta, now: float) -> None:
        """Takes a piece that came at the time `now` (seconds of any steady clock)."""
        if delta.kind == "reasoning":
            self._reasoning.append(delta.text)
            if self._thought_began_at is None:
                self._thought_began_at = now
            self._thought_ended_at = now
            return
        if not self._text:
            self._thought_ended_at = now
        self._text.append(delta.text)

    def node(
        self, *, stop_reason: StopReason | None = None, stats: AnswerStats = _NO_STATS, error: str = ""
    ) -> ChatNode:
        """What was written so far, with how it ended if it did."""
        thought_s = 0.0 if self._thought_began_at is None else self._thought_ended_at - self._thought_began_at
        return msgspec.structs.replace(
            self._node,
            message=text_message("assistant", "".join(self._text), reasoning="".join(self._reasoning)),
            stop_reason=stop_reason,
            stats=stats if self.begun.is_empty else joined(self._node.stats, stats),
            thought_s=self._node.thought_s + thought_s,
            error=error,
        )


def joined(first: AnswerStats, rest: AnswerStats) -> AnswerStats:
    """The numbers of an answer that was continued: both parts' tokens and times, the prompt as it was at first."""
    if not first.prompt_tokens:
        return rest
    reread = min(rest.reread_tokens, first.prompt_tokens)
    return msgspec.structs.replace(
        first,
        reused_tokens=first.prompt_tokens - reread,
        reread_tokens=reread,
        reasoning_tokens=first.reasoning_tokens + rest.reasoning_tokens,
        answer_tokens=first.answer_tokens + rest.answer_tokens,
        prefill_s=first.prefill_s + rest.prefill_s,
        decode_s=first.decode_s + rest.decode_s,
        cache_note=rest.cache_note,
        dropped_messages=rest.dropped_messages,
    )
