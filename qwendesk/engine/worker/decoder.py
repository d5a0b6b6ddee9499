"""Decodes the tokens of one answer, and drafts beyond them where that pays off.

With drafts, one batch decodes the last token and the drafted ones, and gives logits after each. The sampler draws from
them in order; as long as it draws what was drafted, the next token is in memory already. At the first difference the
rest of the drafts is cut off. Every token is drawn from the model's own distribution, so drafts change how fast an
answer comes and not what it says.
"""

import time
from collections.abc import Sequence
from typing import Protocol

import llama_cpp.llama_cpp as C

from qwendesk.engine.worker.cache import PromptCache
from qwendesk.engine.worker.drafts import FEWEST_STEPS, DraftGate, StepTotal
from qwendesk.engine.worker.engine_calls import EngineFault
from qwendesk.engine.worker.model import LoadedModel


class Drafter(Protocol):
    """Proposes the next tokens of a text."""

    def add(self, token: int) -> None:
        """Take the next token of the text."""

    def propose(self, most: int) -> Sequence[int]:
        """Return up to `most` tokens that may follow."""


class Decoder:
    """The memory always ends with the last token of the answer, or with drafts that were not drawn yet."""

    def __init__(self, model: LoadedModel, cache: PromptCache, gate: DraftGate) -> None:
        """`gate` opens when drafts pay off."""
        self._model, self._cache, self._gate = model, cache, gate
        self._drafter: Drafter | None = None
        self._n_max = 0
        self._drafts: Sequence[int] = ()
        """The drafts of the last batch."""
        self._n_drawn = 0
        """How many of them were drawn by the sampler, so that they belong to the answer."""
        self._step_began = 0.0
        self._steps = StepTotal(), StepTotal()
        """The steps of this answer, without drafts and with."""
        self.drafted = self.accepted = 0
        self.engine_s = 0.0
        """Seconds in the engine, with the making of drafts."""

    def draft_with(self, drafter: Drafter, n_max: int) -> None:
        """Draft up to `n_max` tokens at once from now on. The memory must be able to cut that many off."""
        self._drafter, self._n_max = drafter, n_max

    @property
    def row(self) -> int:
        """The row of logits from which the next token is drawn, counted from the end of the last batch (-1)."""
        return self._n_drawn - len(self._drafts) - 1

    @property
    def drafts_lost_s(self) -> float:
        """By how many seconds drafts made this answer later; negative for a gain, 0.0 if too few steps tell."""
        plain, drafted = self._steps
        if plain.steps < FEWEST_STEPS or not drafted.steps:
            return 0.0
        return drafted.seconds - drafted.tokens * plain.seconds / plain.tokens

    def decode(self, tokens: Sequence[int], *, rows: int = 1) -> None:
        """Decode tokens after those of the answer, with the logits of the last one (or of none, for 0 rows)."""
        self.discard_drafts()
        began = time.perf_counter()
        self._model.decode(tokens, self._cache.position, rows=rows)
        self.engine_s += time.perf_counter() - began
        self._cache.append(*tokens)

    def wait(self) -> None:
        """Wait until the last batch is computed: a GPU's calls return before."""
        began = time.perf_counter()
        C.llama_synchronize(self._model.ctx)
        self.engine_s += time.perf_counter() - began

    def is_drafted(self, token: int) -> bool:
        """Return whether `token`, which the sampler drew, is in memory already, because it was drafted."""
        return self._n_drawn < len(self._drafts) and self._drafts[self._n_drawn] == token

    def advance(self, token: int, most: int) -> None:
        """Make `token`, which the sampler drew, the last one in memory. Draft at most `most` tokens beyond it."""
        if self._drafter is not None:
            self._drafter.add(token)
        if self.is_drafted(token):
            self._cache.append(token)
            self._n_drawn += 1
            self.accepted += 1
            return
        self._end_step()
        self.discard_drafts()
        drafts: Sequence[int] = ()
        self._step_began = began = time.perf_counter()
        if self._drafter is not None and self._gate.is_open:
            drafts = self._drafter.propose(min(most, self._n_max))
        self._model.decode((token, *drafts), self._cache.position, rows=1 + len(drafts))
        self.engine_s += time.perf_counter() - began
        self._cache.append(token)
        self._drafts = drafts
        self.drafted += len(drafts)

    def discard_drafts(self) -> None:
        """Cut off the drafts that were not drawn. Call this before anything else uses the memory."""
        is_rest, self._drafts = self._n_drawn < len(self._drafts), ()
        self._n_drawn, self._step_began = 0, 0.0
        if is_rest and not self._cache.cut_unrecorded():
            raise EngineFault("the engine could not take its drafts back")

    def _end_step(self) -> None:
        if self._step_began and self._drafter is not None:
            seconds = time.perf_counter() - self._step_began
            self._gate.note(drafted=len(self._drafts), gained=1 + self._n_drawn, seconds=seconds)
            self._steps[bool(self._drafts)].add(1 + self._n_drawn, seconds)
