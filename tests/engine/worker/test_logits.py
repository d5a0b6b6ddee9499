"""Biases, penalties and the choice of candidates in a row of logits, held to llama.cpp's own samplers to the bit."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Sequence

import llama_cpp.llama_cpp as C  # noqa: N812
import numpy as np
import pytest

from qwendesk.engine.worker.logits import TOKEN_DATA, LogitChanges, Row, likeliest

N_VOCAB = 300


def row_of(rng: np.random.Generator, n_vocab: int = N_VOCAB, *, step: float = 0.0) -> Row:
    """Logits as a model's; multiples of `step`, among them 0 and equal ones, if it is given."""
    row = rng.normal(0, 4, n_vocab).astype(np.float32)
    return np.round(row / step).astype(np.float32) * np.float32(step) if step else row


def changes_of(biases: Sequence[tuple[int, float]] = (), **values: float) -> LogitChanges:
    known = {"window": 1000, "repeat": 1.0, "frequency": 0.0, "presence": 0.0} | values
    return LogitChanges(
        biases,
        window=int(known["window"]), repeat=known["repeat"], frequency=known["frequency"], presence=known["presence"],
    )  # fmt: skip


def applied(sampler: C.llama_sampler_p, row: Row) -> Row:
    """What llama.cpp's sampler makes of a row."""
    candidates = np.zeros(len(row), dtype=TOKEN_DATA)
    candidates["id"], candidates["logit"] = np.arange(len(row)), row
    array = C.llama_token_data_array(
        data=candidates.ctypes.data_as(ctypes.POINTER(C.llama_token_data)), size=len(row), selected=-1, sorted=False
    )
    C.llama_sampler_apply(sampler, ctypes.byref(array))
    return candidates["logit"].copy()


@pytest.mark.parametrize("window", [1, 7, 64, 1000])
@pytest.mark.parametrize(
    ("repeat", "frequency", "presence"),
    [(1.0, 0.0, 1.5), (1.0, 0.3, 0.7), (1.1, 0.0, 0.0), (1.3, 0.1, 1.5), (0.9, -0.4, -0.3)],
)
def test_penalties_are_those_of_llama_cpp_to_the_bit(
    window: int, repeat: float, frequency: float, presence: float
) -> None:
    sampler = C.llama_sampler_init_penalties(N_VOCAB, window, repeat, frequency, presence)
    changes = changes_of(window=window, repeat=repeat, frequency=frequency, presence=presence)
    rng, text = np.random.default_rng(window), random.Random(window)
    for index in range(150):
        row = row_of(rng, step=0.25 if index % 3 == 0 else 0.0)
        expected = applied(sampler, row)
        with changes.made_in(row):
            assert row.tobytes() == expected.tobytes(), index
        # A few tokens come often, as in any text.
        token = text.randrange(12) if text.random() < 0.5 else text.randrange(N_VOCAB)
        C.llama_sampler_accept(sampler, token)
        changes.accept(token)
    C.llama_sampler_free(sampler)


def test_biases_are_those_of_llama_cpp_and_come_before_the_penalties() -> None:
    biases = [(3, -2.5), (290, float("-inf")), (7, 0.1), (3, 0.3), (3, 1e-3)]
    array = (C.llama_logit_bias * len(biases))(*(C.llama_logit_bias(*each) for each in biases))
    bias = C.llama_sampler_init_logit_bias(N_VOCAB, len(biases), array)
    penalties = C.llama_sampler_init_penalties(N_VOCAB, 50, 1.2, 0.2, 0.9)
    changes = changes_of(biases, window=50, repeat=1.2, frequency=0.2, presence=0.9)
    rng = np.random.default_rng(1)
    for token in (3, 7, 3, 290, 5, 3):
        row = row_of(rng)
        expected = applied(penalties, applied(bias, row))
        with changes.made_in(row):
            assert row.tobytes() == expected.tobytes()
        C.llama_sampler_accept(penalties, token)
        changes.accept(token)
    for sampler in (bias, penalties):
        C.llama_sampler_free(sampler)


def test_the_row_is_the_models_again_afterwards() -> None:
    changes = changes_of([(3, float("-inf")), (3, 1.0), (4, 2.0)], presence=1.5, repeat=1.1)
    for token in (3, 4, 5, 5):
        changes.accept(token)
    row = row_of(np.random.default_rng(2))
    before = row.copy()
    with changes.made_in(row):
        assert (row != before).sum() == 3
        first = row.copy()
    assert (row == before).all()
    with pytest.raises(ZeroDivisionError), changes.made_in(row):
        raise ZeroDivisionError
    assert (row == before).all()
    with changes.made_in(row):
        assert (row == first).all()


def by_sorting(row: Row, k: int) -> list[int]:
    return [int(each) for each in np.lexsort((np.arange(len(row)), -row))[:k]]


def in_top_k(row: Row, k: int) -> set[int]:
    """The tokens that llama.cpp's top-k keeps."""
    candidates = np.zeros(len(row), dtype=TOKEN_DATA)
    candidates["id"], candidates["logit"] = np.arange(len(row)), row
    array = C.llama_token_data_array(
        data=candidates.ctypes.data_as(ctypes.POINTER(C.llama_token_data)), size=len(row), selected=-1, sorted=False
    )
    sampler = C.llama_sampler_init_top_k(k)
    C.llama_sampler_apply(sampler, ctypes.byref(array))
    C.llama_sampler_free(sampler)
    return {int(array.data[index].id) for index in range(array.size)}


@pytest.mark.parametrize("n_vocab", [256, 999, 1000, 1001, 49_152, 150_001, 248_320])
@pytest.mark.parametrize("k", [1, 2, 20, 64, 256])
def test_the_likeliest_tokens_are_those_of_llama_cpps_top_k(n_vocab: int, k: int) -> None:
    rng = np.random.default_rng(n_vocab + k)
    for spread in (distinct, peaked_in_one_block):
        row = spread(rng, n_vocab)
        found = likeliest(row, k)
        assert found is not None
        assert found["id"].tolist() == by_sorting(row, k)
        assert (found["logit"] == row[found["id"]]).all()
        assert set(found["id"].tolist()) == in_top_k(row, k)


def distinct(rng: np.random.Generator, n_vocab: int) -> Row:
    return rng.permutation(np.linspace(-20, 15, n_vocab, dtype=np.float32))


def peaked_in_one_block(rng: np.random.Generator, n_vocab: int) -> Row:
    """All of the largest lie side by side, at the end, which no block holds."""
    return np.sort(distinct(rng, n_vocab))


@pytest.mark.parametrize("values", [1, 2, 50, 8_191])
def test_equal_logits_are_taken_by_their_ids(values: int) -> None:
    """Models made for tests have few different logits, and a bias of minus infinity makes many equal."""
    rng = np.random.default_rng(values)
    row = rng.integers(0, values, 20_000).astype(np.float32)
    for k in (1, 20, 256):
        found = likeliest(row, k)
        assert found is not None
        assert found["id"].tolist() == by_sorting(row, k)


def with_nan(row: Row) -> Row:
    row[::7] = np.nan
    return row


@pytest.mark.parametrize(
    ("row", "k"),
    [(row_of(np.random.default_rng(0), 15), 20), (with_nan(row_of(np.random.default_rng(0), 5000)), 20)],
    ids=["vocabulary smaller than k", "logits that aren't numbers"],
)
def test_what_has_no_likeliest_tokens_is_left_to_the_samplers(row: Row, k: int) -> None:
    assert likeliest(row, k) is None


def test_a_row_of_equal_logits_gives_its_first_tokens() -> None:
    found = likeliest(np.full(3000, -np.inf, dtype=np.float32), 3)
    assert found is not None
    assert found["id"].tolist() == [0, 1, 2]
