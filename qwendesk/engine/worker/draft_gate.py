"""Decides by measuring whether drafts pay off: that depends on the PC, the model, its placement and the text."""

_WEIGHT = 0.1
"""The weight of the newest step in the running means: about the last ten steps count."""
_FEWEST_STEPS = 6
"""How many steps of a kind are measured before it is judged."""
_JUDGED_STEPS = 48
"""After so many steps of each kind, the speedup is known well enough to be saved for later loads."""
_PAUSE_TOKENS = 96
"""After drafts were found not to pay off, so many tokens are decoded without; then a few drafts are measured again."""


class DraftGate:
    """Compares steps with drafts and steps without, in seconds per token."""

    def __init__(self) -> None:
        self._plain_steps = self._drafted_steps = 0
        self._plain_s = self._drafted_s = 0.0
        """Running means of seconds per step."""
        self._gained = 0.0
        """The running mean of tokens per step with drafts."""
        self._pause = 0
        self._total = _Total(), _Total()
        """All steps so far, without drafts and with."""

    @property
    def is_open(self) -> bool:
        """Whether the next step should have drafts."""
        return self._plain_steps >= _FEWEST_STEPS and not self._pause

    @property
    def speedup(self) -> float:
        """How many times faster steps with drafts are; 1.0 as long as that is not known."""
        if self._plain_steps < _FEWEST_STEPS or self._drafted_steps < _FEWEST_STEPS or not self._drafted_s:
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
        if self._drafted_steps >= _FEWEST_STEPS and self.speedup < 1:
            self._pause, self._drafted_steps = _PAUSE_TOKENS, 0


class OpenGate(DraftGate):
    """Lets every step draft, to measure what drafts are worth."""

    @property
    def is_open(self) -> bool:
        return True


class _Total:
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
