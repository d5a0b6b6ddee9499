"""Statistics of an answer, shown below it and in `qwendesk ask --json`."""

from typing import Literal

import msgspec

# Why an answer ended; "tool_calls" if it waits for their results, "repetition" if it repeated itself.
StopReason = Literal["eos", "stop_string", "tool_calls", "max_tokens", "context_full", "repetition", "cancelled"]


class AnswerTiming(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where the time of an answer went, as far as the engine worker measures it. All 0 for a model on a server."""

    engine_s: float = 0.0
    """Seconds that the engine took to decode the answer's tokens, after the first, and to guess drafts."""
    sampling_s: float = 0.0
    """Seconds to choose the tokens, with penalties and grammars."""
    drafts_lost_s: float = 0.0
    """Seconds that steps with drafts took more than the same tokens would have taken without; negative for a gain."""
    wanted_cores: float = 0.0
    """Cores that other programs wanted, as a mean; 0 if too few looks fell into the answer."""
    delayed_s: float = 0.0
    """Seconds that the engine's slowest thread was ready and got no core; 0 where the system doesn't tell."""
    drive_bytes: int = 0
    """Bytes that were read from the drive, from the question to the end; 0 where the system doesn't tell."""

    def plus(self, later: "AnswerTiming") -> "AnswerTiming":
        """Return the timing of two parts of one answer."""
        return AnswerTiming(
            self.engine_s + later.engine_s,
            self.sampling_s + later.sampling_s,
            self.drafts_lost_s + later.drafts_lost_s,
            max(self.wanted_cores, later.wanted_cores),
            self.delayed_s + later.delayed_s,
            self.drive_bytes + later.drive_bytes,
        )


class AnswerStats(msgspec.Struct, frozen=True):
    """Statistics in tokens and seconds. An image counts as the number of tokens it takes."""

    prompt_tokens: int = 0
    reused_tokens: int = 0
    """Prompt tokens that were taken from the prompt cache."""
    reread_tokens: int = 0
    """Prompt tokens that were processed."""
    is_reuse_known: bool = True
    """True if the two numbers before are known. A server may not report them."""
    image_tokens: int = 0
    reasoning_tokens: int = 0
    answer_tokens: int = 0
    reasoning_looped: bool = False
    """True if the reasoning was ended because it repeated itself."""
    ttft_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    cache_note: str = ""
    """Reason why the prompt cache could not be used fully; "" if it could."""
    drafted_tokens: int = 0
    """Tokens that were drafted, and decoded together with others."""
    accepted_tokens: int = 0
    """Drafted tokens that became part of the answer."""
    draft_speedup: float = 0.0
    """Speed-up by drafts since the model was loaded; 0.0 if too few steps are known."""
    n_threads: int = 0
    """Fewest threads that computed the answer, where other programs wanted cores; 0 if unknown."""
    most_threads: int = 0
    """Threads that compute an answer on a quiet PC."""
    timing: AnswerTiming = AnswerTiming()
    is_follow_up: bool = False
    """True if the prompt has an earlier answer, so that most of it should have been in memory."""
    dropped_messages: int = 0
    """Number of the oldest messages that were left out because the context was full."""
    tool_rounds: int = 0
    """Number of times that the answer went on after tools."""
    after_tools_tokens: int = 0
    """Prompt tokens that were processed after tools, over all rounds: their results, mostly."""
    after_tools_s: float = 0.0
    """Seconds from the results of tools to the next token, over all rounds."""

    @property
    def total_tokens(self) -> int:
        """Tokens of the context that are used after the answer."""
        return self.prompt_tokens + self.after_tools_tokens + self.reasoning_tokens + self.answer_tokens

    @property
    def tokens_per_step(self) -> float:
        """How many tokens one step of the engine gave: 1.0 without drafts."""
        n_tokens = self.reasoning_tokens + self.answer_tokens
        return n_tokens / max(1, n_tokens - self.accepted_tokens) if n_tokens else 1.0

    @property
    def of_reasoning(self) -> "AnswerStats":
        """The figures without the answer's text, to continue from the reasoning. Decoding is shared out by tokens."""
        share = self.reasoning_tokens / max(1, self.reasoning_tokens + self.answer_tokens)
        return msgspec.structs.replace(
            self,
            answer_tokens=0,
            reasoning_looped=False,
            decode_s=self.decode_s * share,
            drafted_tokens=round(self.drafted_tokens * share),
            accepted_tokens=round(self.accepted_tokens * share),
        )

    @property
    def acceptance(self) -> float | None:
        """The share of drafted tokens that became part of the answer; None if none were drafted."""
        return self.accepted_tokens / self.drafted_tokens if self.drafted_tokens else None

    @property
    def decode_tok_s(self) -> float:
        """Tokens per second after the first token; 0.0 with fewer than two tokens."""
        decoded = self.reasoning_tokens + self.answer_tokens - 1
        return decoded / self.decode_s if decoded > 0 and self.decode_s > 0 else 0.0
