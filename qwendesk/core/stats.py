"""What one answer cost: the numbers under a turn and in `qwendesk ask --json`."""

from typing import Literal

import msgspec

StopReason = Literal["eos", "stop_string", "max_tokens", "context_full", "cancelled"]


class AnswerStats(msgspec.Struct, frozen=True):
    """Counts are tokens, times are seconds. One picture counts as the tokens it fills."""

    prompt_tokens: int = 0
    reused_tokens: int = 0
    reread_tokens: int = 0
    image_tokens: int = 0
    reasoning_tokens: int = 0
    answer_tokens: int = 0
    ttft_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    cache_note: str = ""
    """Why something was read again that need not have been; empty when nothing was."""
    dropped_messages: int = 0
    """Oldest messages left out because the context was full and the caller allowed it."""

    @property
    def decode_tok_s(self) -> float:
        """Tokens per second after the first token; 0.0 when fewer than two tokens came."""
        decoded = self.reasoning_tokens + self.answer_tokens - 1
        return decoded / self.decode_s if decoded > 0 and self.decode_s > 0 else 0.0
