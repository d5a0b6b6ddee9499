"""PartialAnswer: collects the text of an answer while it is generated, and returns it as a message on demand."""

import msgspec

from qwendesk.core.chat_tree import ChatNode
from qwendesk.core.messages import text_message
from qwendesk.core.stats import AnswerStats, StopReason
from qwendesk.engine.protocol import Begun, Delta

_NO_STATS = AnswerStats()


class PartialAnswer:
    """An answer that is generated from its beginning, or continued where it was cut off."""

    def __init__(self, chat_id: str, turn_id: int, node: ChatNode) -> None:
        """`node` is the answer in the tree; its id, parent, model and options are kept."""
        self.chat_id = chat_id
        self.turn_id = turn_id
        self.begun = Begun(node.message.reasoning, node.message.text)
        self._node = node
        self._reasoning = [node.message.reasoning] if node.message.reasoning else []
        self._text = [node.message.text] if node.message.text else []
        self._reasoning_began_at: float | None = None
        self._reasoning_ended_at = 0.0

    @property
    def node_id(self) -> str:
        return self._node.id

    def set_model_and_options(self, *, model: str, options_json: str) -> None:
        """Set the model and the options, which are known once the request is sent."""
        self._node = msgspec.structs.replace(self._node, model=model, options_json=options_json)

    def add(self, delta: Delta, now: float) -> None:
        """Append a piece of text that arrived at the time `now`, in seconds of a monotonic clock."""
        if delta.kind == "reasoning":
            self._reasoning.append(delta.text)
            if self._reasoning_began_at is None:
                self._reasoning_began_at = now
            self._reasoning_ended_at = now
            return
        if not self._text:
            self._reasoning_ended_at = now
        self._text.append(delta.text)

    def node(
        self, *, stop_reason: StopReason | None = None, stats: AnswerStats = _NO_STATS, error: str = ""
    ) -> ChatNode:
        """Return the answer so far; the arguments say how it ended, if it has."""
        thought_s = 0.0 if self._reasoning_began_at is None else self._reasoning_ended_at - self._reasoning_began_at
        return msgspec.structs.replace(
            self._node,
            message=text_message("assistant", "".join(self._text), reasoning="".join(self._reasoning)),
            stop_reason=stop_reason,
            stats=stats if self.begun.is_empty else joined(self._node.stats, stats),
            thought_s=self._node.thought_s + thought_s,
            error=error,
        )


def joined(first: AnswerStats, rest: AnswerStats) -> AnswerStats:
    """Return the statistics of a continued answer: tokens and times of both parts, and the prompt of the first."""
    if not first.prompt_tokens:
        return rest
    reread = min(rest.reread_tokens, first.prompt_tokens)
    return msgspec.structs.replace(
        first,
        reused_tokens=first.prompt_tokens - reread,
        reread_tokens=reread,
        reasoning_tokens=first.reasoning_tokens + rest.reasoning_tokens,
        answer_tokens=first.answer_tokens + rest.answer_tokens,
        reasoning_looped=first.reasoning_looped or rest.reasoning_looped,
        drafted_tokens=first.drafted_tokens + rest.drafted_tokens,
        accepted_tokens=first.accepted_tokens + rest.accepted_tokens,
        prefill_s=first.prefill_s + rest.prefill_s,
        decode_s=first.decode_s + rest.decode_s,
        cache_note=rest.cache_note,
        dropped_messages=rest.dropped_messages,
    )
