"""Loops that must be found, and ordinary texts that must not be taken for loops. `bench/loops.py` measures more."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.loops import PARTS, first_alarm, legal_repeats, ordinary_texts, period_loop, sentence_loop, word_tokens
from qwendesk.engine.worker.repetition import FIRST_TOKEN, LoopDetector, Part

parts = pytest.mark.parametrize("part", PARTS)
_ORDINARY = list(ordinary_texts())
_PROSE = " ".join(text for _, text in _ORDINARY[:3])


@settings(max_examples=20, deadline=None)
@given(st.integers(16, 128), st.sampled_from((0, 100, 511, 800)), st.integers(0, 999), st.sampled_from(PARTS))
def test_a_repeated_block_is_found_within_four_periods(period: int, start: int, seed: int, part: Part) -> None:
    loop = period_loop(random.Random(seed), word_tokens, period, start)
    rounds = loop.rounds_until(part)
    assert rounds is not None
    assert rounds <= 4


@settings(max_examples=10, deadline=None)
@given(st.integers(4, 15), st.integers(0, 999), st.sampled_from(PARTS))
def test_short_periods_need_more_tokens(period: int, seed: int, part: Part) -> None:
    loop = period_loop(random.Random(seed), word_tokens, period, 600)
    found = first_alarm(loop.tokens, part)
    assert found is not None
    assert loop.start + 40 <= found[0] <= loop.start + 512 + period


def test_the_period_and_the_text_are_reported() -> None:
    loop = period_loop(random.Random(1), word_tokens, 50, 700)
    found = first_alarm(loop.tokens, "reasoning")
    assert found is not None
    assert (found[1].kind, found[1].period) == ("period", 50)
    block = "".join(text for _, text in loop.tokens[700:800])
    assert found[1].excerpt[:20] in " ".join(block.split())


@parts
@pytest.mark.parametrize("is_changed", [False, True], ids=["in another order", "with other words"])
@pytest.mark.parametrize("n_sentences", [4, 8])
def test_sentences_that_come_back_are_found(part: Part, n_sentences: int, is_changed: bool) -> None:
    for seed in range(2):
        loop = sentence_loop(random.Random(seed), word_tokens, n_sentences, 600, is_changed=is_changed)
        rounds = loop.rounds_until(part)
        assert rounds is not None
        assert rounds <= 8


def test_a_sentence_that_came_back_is_reported() -> None:
    loop = sentence_loop(random.Random(3), word_tokens, 12, 600, is_changed=False)
    found = first_alarm(loop.tokens, "reasoning")
    assert found is not None
    assert found[1].kind == "sentences"
    assert found[1].period > 0
    assert found[1].excerpt in "".join(text for _, text in loop.tokens).casefold()


def test_a_loop_in_chinese_is_found() -> None:
    sentences = (
        "让我再想一想这个问题的答案。" * 2 + "我们需要检查每一个步骤是否正确。" + "也许应该从头开始重新计算一次。"
    )
    before = _PROSE[:3000]
    for text in (sentences * 12, "".join(sentences[n * 14 % 40 :] for n in range(60))):
        tokens = word_tokens(before) + [(ord(letter), letter) for letter in text]
        assert first_alarm(word_tokens(before), "reasoning") is None
        assert first_alarm(tokens, "reasoning") is not None


@parts
def test_nothing_is_reported_before_the_first_tokens(part: Part) -> None:
    loop = period_loop(random.Random(5), word_tokens, 20, 0)
    assert first_alarm(loop.tokens[: FIRST_TOKEN - 1], part) is None
    found = first_alarm(loop.tokens, part)
    assert found is not None
    assert found[0] == FIRST_TOKEN


@parts
def test_ordinary_texts_are_no_loops(part: Part) -> None:
    """Prose and code; every twenty-fourth text, because `bench/loops.py` reads them all."""
    chosen = [(name, word_tokens(text[:4000])) for name, text in _ORDINARY[::24]]
    assert len(chosen) >= 10
    assert [name for name, tokens in chosen if first_alarm(tokens, part)] == []


def test_source_code_in_a_fence_is_no_loop() -> None:
    sources = [text[:5000] for name, text in _ORDINARY if name.endswith(".py")][::64]
    found = [first_alarm(word_tokens(f"```python\n{source}"), "answer") for source in sources]
    assert sources
    assert not any(found)


@parts
def test_texts_that_repeat_legally_are_no_loops(part: Part) -> None:
    made = [(name, word_tokens(text[:6000])) for name, text in legal_repeats(random.Random(7))]
    assert [name for name, tokens in made if first_alarm(tokens, part)] == []


def test_equal_lines_of_code_are_legal_for_512_tokens() -> None:
    line = '    page.click("#next_page_of_results")\n    page.wait_until_loaded(timeout=500)\n'
    n_tokens = len(word_tokens(line))
    code = word_tokens(f"{_PROSE[:4000]}\n\n```python\n{line * 100}")
    start = len(code) - 100 * n_tokens
    found = first_alarm(code, "answer")
    assert found is not None
    assert found[0] - start >= 500
    after = word_tokens(f"{_PROSE[:4000]}\n\n```python\nx = 1\n```\n{line * 100}")
    found = first_alarm(after, "answer")
    assert found is not None
    assert found[0] - (len(after) - 100 * n_tokens) < 4 * n_tokens + 64


@parts
@pytest.mark.parametrize("text", ["0, ", "|---", "=", "\n", "- - "])
def test_blocks_without_letters_are_never_a_loop(part: Part, text: str) -> None:
    detector = LoopDetector(part)
    assert not any(detector.feed(token, piece) for token, piece in word_tokens(text * 1500))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(alphabet="ab .\n`~|。1", max_size=4), max_size=60), st.integers(1, 30))
def test_any_text_is_accepted(pieces: list[str], n_copies: int) -> None:
    """Including empty pieces, tokens beyond Unicode's planes of text, and lines that only begin like a fence."""
    detector = LoopDetector("reasoning")
    for number, piece in enumerate(pieces * n_copies):
        detector.feed(0xD800 + number % len(pieces), piece)
