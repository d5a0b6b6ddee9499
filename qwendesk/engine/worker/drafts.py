"""Drafts for an answer: from the context or from the model's own head, and the decision by measuring whether they pay
off.

When the last tokens have occurred before, as in code that is edited, in quotes and in tables, the text often goes on
as it did then. Such drafts cost nothing to make and need no draft head.
"""

from collections.abc import Iterable, Sequence

from qwendesk.engine.worker.cache import Item, PromptCache
from qwendesk.engine.worker.mtp_head import MtpHead

# The weight of the newest step in the running means: about the last ten steps count.
_WEIGHT = 0.1
# How many steps of a kind are measured before it is judged.
FEWEST_STEPS = 6
# After so many steps of each kind, the speedup is known well enough to be saved for later loads.
_JUDGED_STEPS = 48
# After drafts were found not to pay off, so many tokens are decoded without; then a few drafts are measured again.
_PAUSE_TOKENS = 96


class DraftGate:
    """Compares steps with drafts and steps without, in seconds per token."""

    def __init__(self) -> None:
        self._plain_steps = self._drafted_steps = 0
        self._plain_s = self._drafted_s = 0.0
        """Running means of seconds per step."""
        self._gained = 0.0
        """The running mean of tokens per step with drafts."""
        self._pause = 0
        self._total = StepTotal(), StepTotal()
        """All steps so far, without drafts and with."""

    @property
    def is_open(self) -> bool:
        """Whether the next step should have drafts."""
        return self._plain_steps >= FEWEST_STEPS and not self._pause

    @property
    def speedup(self) -> float:
        """How many times faster steps with drafts are; 1.0 as long as that is not known."""
        if self._plain_steps < FEWEST_STEPS or self._drafted_steps < FEWEST_STEPS or not self._drafted_s:
            return 1.0
        return self._gained * self._plain_s / self._drafted_s

    @property
    def measured_speedup(self) -> float:
        """How many times faster drafts were in all steps of this model since it was loaded; 0.0 if too few are known.

        Drafts are only made while they seem to pay off, so this is what they are worth in the texts that suit them.
        """
        plain, drafted = self._total
        if plain.steps < _JUDGED_STEPS or drafted.steps < _JUDGED_STEPS or not drafted.seconds:
            return 0.0
        return drafted.tokens / drafted.seconds * plain.seconds / plain.tokens

    def note(self, *, drafted: int, gained: int, seconds: float) -> None:
        """Take a finished step: how many tokens were drafted, how many it gave (at least 1), and how long it took."""
        self._total[bool(drafted)].add(gained, seconds)
        if not drafted:
            self._plain_steps += 1
            self._plain_s = _mean(self._plain_s, seconds, self._plain_steps)
            self._pause = max(0, self._pause - gained)
            return
        self._drafted_steps += 1
        self._drafted_s = _mean(self._drafted_s, seconds, self._drafted_steps)
        self._gained = _mean(self._gained, gained, self._drafted_steps)
        if self._drafted_steps >= FEWEST_STEPS and self.speedup < 1:
            self._pause, self._drafted_steps = _PAUSE_TOKENS, 0


class OpenGate(DraftGate):
    """Lets every step draft, to measure what drafts are worth."""

    @property
    def is_open(self) -> bool:
        return True


class StepTotal:
    """How many steps there were, and how many tokens they gave in how many seconds."""

    def __init__(self) -> None:
        self.steps = self.tokens = 0
        self.seconds = 0.0

    def add(self, tokens: int, seconds: float) -> None:
        self.steps += 1
        self.tokens += tokens
        self.seconds += seconds


def _mean(mean: float, value: float, count: int) -> float:
    weight = max(_WEIGHT, 1 / count)
    return mean + weight * (value - mean)


# How many tokens must have occurred before. With two, most drafts are wrong; with four, many are missed.
_MATCH = 3
# Stands for an image, with which no match is possible.
_NO_TOKEN = -1


class LookupDrafter:
    """Knows the context of one answer: its prompt, and what has been generated."""

    def __init__(self, prompt: Iterable[Item]) -> None:
        self._tokens = [item if isinstance(item, int) else _NO_TOKEN for item in prompt]
        tokens = self._tokens
        ends = range(_MATCH, len(tokens))  # the match at the very end has no continuation yet
        self._continuations = dict(zip(zip(tokens, tokens[1:], tokens[2:], strict=False), ends, strict=False))
        """Where the text went on after each three tokens the last time."""

    def add(self, token: int) -> None:
        """Take the next token of the context."""
        self._tokens.append(token)
        end = len(self._tokens) - 1
        if end >= _MATCH:
            self._continuations[self._match(end)] = end

    def propose(self, most: int) -> Sequence[int]:
        """Return up to `most` tokens that may follow; none if the last tokens have not occurred before."""
        if len(self._tokens) < _MATCH:
            return ()
        start = self._continuations.get(self._match(len(self._tokens)))
        if start is None:
            return ()
        drafts = self._tokens[start : start + most]
        return drafts[: drafts.index(_NO_TOKEN)] if _NO_TOKEN in drafts else drafts

    def _match(self, end: int) -> tuple[int, int, int]:
        first, second, third = self._tokens[end - _MATCH : end]
        return first, second, third


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
