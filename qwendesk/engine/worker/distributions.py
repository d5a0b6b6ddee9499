"""The mathematics of scoring a text: log probabilities from rows of logits, divergences and perplexity. Only NumPy."""

import math
from collections.abc import Sequence

import numpy as np

from qwendesk.engine.worker.base_file import BaseBlock, Ids

Rows = np.ndarray[tuple[int, int], np.dtype[np.float32]]
"""Logits, a row for each token."""
Values = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def likeliest(logits: Rows, n_kept: int) -> Ids:
    """Return the ids of the likeliest tokens of each row, the likeliest first."""
    if not n_kept:
        return np.empty((len(logits), 0), np.uint32)
    ids = np.argpartition(-logits, n_kept - 1, axis=1)[:, :n_kept]
    order = np.argsort(-np.take_along_axis(logits, ids, axis=1), axis=1, kind="stable")
    return np.take_along_axis(ids, order, axis=1).astype(np.uint32)


def distributions(logits: Rows, ids: Ids, following: Sequence[int]) -> BaseBlock:
    """Return the log probabilities of `ids`, of all other tokens together, and of the token that follows each row."""
    peaks = logits.max(axis=1, keepdims=True)
    shares = np.exp(logits - peaks)
    log_sums = np.log(shares.sum(axis=1, keepdims=True, dtype=np.float64)) + peaks
    logs = np.take_along_axis(logits, ids.astype(np.int64), axis=1) - log_sums
    target = np.take_along_axis(logits, np.array(following, np.int64)[:, None], axis=1) - log_sums
    np.put_along_axis(shares, ids.astype(np.int64), 0, axis=1)
    with np.errstate(divide="ignore"):  # no other tokens: a probability of 0
        rest = np.log(shares.sum(axis=1, dtype=np.float64)) + (peaks - log_sums)[:, 0]
    return BaseBlock(ids, logs.astype(np.float32), rest.astype(np.float32), target[:, 0].astype(np.float32))


def divergences(base: BaseBlock, block: BaseBlock) -> Values:
    """Return the Kullback-Leibler divergence of each row from the base, in nats."""
    p, q = base.logs.astype(np.float64), block.logs.astype(np.float64)
    rest_p, rest_q = base.rest.astype(np.float64), block.rest.astype(np.float64)
    has_rest = np.isfinite(rest_p) & np.isfinite(rest_q)
    of_rest = np.where(has_rest, np.exp(rest_p) * np.where(has_rest, rest_p - rest_q, 0.0), 0.0)
    found: Values = (np.exp(p) * (p - q)).sum(axis=1) + of_rest
    return found


def perplexity_of(losses: Values) -> tuple[float, float]:
    """Return the perplexity and its standard error."""
    perplexity = math.exp(losses.mean())
    error = losses.std() / math.sqrt(len(losses) - 1) if len(losses) > 1 else 0.0
    return perplexity, float(error * perplexity)


def joined(blocks: Sequence[BaseBlock]) -> BaseBlock:
    """Return the rows of several blocks as one block."""
    ids, logs, rest, target = (
        np.concatenate([getattr(block, name) for block in blocks]) for name in ("ids", "logs", "rest", "target")
    )
    return BaseBlock(ids, logs, rest, target)
