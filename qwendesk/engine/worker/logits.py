"""Change a row of logits by an answer's biases and penalties, and find the tokens that can be drawn from it.

llama.cpp's samplers do both over the whole vocabulary for each token: its penalties look up every token in a hash map,
which took 14 to 32% of a token's time with the values that Qwen's model card gives for general use. Here, only the
tokens that a bias or a penalty concerns are touched, and only the `top_k` tokens that can be drawn reach the samplers.
The arithmetic is that of llama.cpp (b11312, src/llama-sampler.cpp) to the bit: float32 in the same order, with one
subtraction for both penalties.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

# The logits of one place in the text, one for each token of the vocabulary.
Row = np.ndarray[tuple[int], np.dtype[np.float32]]

# struct llama_token_data.
TOKEN_DATA = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])

# Items of TOKEN_DATA.
Candidates = np.ndarray[tuple[int], np.dtype[np.void]]

# `likeliest` takes the maxima of about this many blocks: fewer make its bound low, more cost as much as the row.
_N_BLOCKS = 1000
# Up to here `likeliest` is faster than the samplers' own search.
MOST_LIKELY = 256


class LogitChanges:
    """The logit biases of one answer, and the penalties of the tokens that it has so far."""

    def __init__(
        self, biases: Sequence[tuple[int, float]], *, window: int, repeat: float, frequency: float, presence: float
    ) -> None:
        """Penalties count the last `window` tokens. `biases` are token ids and what is added to their logits."""
        self._bias_ids = np.array([token for token, _ in biases], dtype=np.intp)
        self._bias_values = np.array([bias for _, bias in biases], dtype=np.float32)
        self._repeat, self._frequency, self._presence = np.float32(repeat), np.float32(frequency), np.float32(presence)
        self._window = window if repeat != 1 or frequency or presence else 0
        self._recent: deque[int] = deque()
        # The tokens in the window, in any order, each with how often it occurs there; and the place of each.
        self._ids, self._counts = np.zeros(64, dtype=np.intp), np.zeros(64, dtype=np.float32)
        self._places: dict[int, int] = {}

    def accept(self, token: int) -> None:
        """Count a token of the answer."""
        if not self._window:
            return
        if len(self._recent) == self._window:
            self._uncount(self._recent.popleft())
        self._recent.append(token)
        place = self._places.setdefault(token, len(self._places))
        if place == len(self._ids):
            self._ids = np.concatenate((self._ids, np.zeros_like(self._ids)))
            self._counts = np.concatenate((self._counts, np.zeros_like(self._counts)))
        self._ids[place] = token
        self._counts[place] += 1

    @contextmanager
    def made_in(self, row: Row) -> Iterator[None]:
        """Change the row's logits, and put them back at the end, so that whoever reads them next finds the model's."""
        n_counted = len(self._places)
        if not n_counted and not len(self._bias_ids):
            yield
            return
        ids = self._ids[:n_counted]
        unbiased = row[self._bias_ids]
        with np.errstate(all="ignore"):
            # One after the other, for a token that has several.
            np.add.at(row, self._bias_ids, self._bias_values)
            biased = row[ids]
            row[ids] = self._penalized(biased, self._counts[:n_counted])
        try:
            yield
        finally:
            row[ids] = biased
            row[self._bias_ids] = unbiased

    def _penalized(self, logits: npt.NDArray[np.float32], counts: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        if self._repeat != 1:
            logits = np.where(logits <= 0, logits * self._repeat, logits / self._repeat)
        return logits - (counts * self._frequency + self._presence)

    def _uncount(self, token: int) -> None:
        place = self._places[token]
        self._counts[place] -= 1
        if self._counts[place]:
            return
        # The last one takes its place.
        del self._places[token]
        last = len(self._places)
        if place != last:
            moved = int(self._ids[last])
            self._ids[place], self._counts[place], self._places[moved] = moved, self._counts[last], place
        self._counts[last] = 0


def likeliest(row: Row, k: int) -> Candidates | None:
    """Return the k tokens with the largest logits, the largest first, and equal ones by their ids.

    None if the vocabulary is too small for that, or a logit isn't a number. The k-th largest of the maxima of k blocks
    or more is a lower bound of the k-th largest logit, so only blocks with such a maximum are looked at.
    """
    size = max(1, len(row) // _N_BLOCKS)
    n_blocks = len(row) // size
    if n_blocks < k:
        return None
    blocks, rest = row[: n_blocks * size].reshape(n_blocks, size), row[n_blocks * size :]
    maxima = blocks.max(axis=1)
    bound = np.partition(maxima, -k)[-k]
    high = np.flatnonzero(maxima >= bound)
    which, place = np.nonzero(blocks[high] >= bound)
    ids = np.concatenate((high[which] * size + place, n_blocks * size + np.flatnonzero(rest >= bound)))
    if len(ids) < k:
        return None
    ids = ids[np.argsort(-row[ids], kind="stable")[:k]]
    found = np.zeros(k, dtype=TOKEN_DATA)
    found["id"], found["logit"] = ids, row[ids]
    return found
