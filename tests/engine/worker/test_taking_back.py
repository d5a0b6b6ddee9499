"""What is in a hybrid's memory stays there, but for drafts of the last batch."""

import random
from collections.abc import Sequence, Sized

import pytest

from qwendesk.core.messages import Message, text_message
from qwendesk.engine.worker.cache import ContextMemory
from qwendesk.engine.worker.loader import Session
from qwendesk.engine.worker.model import LoadedModel
from tests.engine.worker.process import greedy, user
from tests.engine.worker.test_drafts import (  # noqa: F401
    QUESTION,
    ask,
    head_file,
    oracle,
    session,
    with_head,
    without_head,
)


def test_only_drafts_of_the_last_batch_are_ever_taken_back(
    session: Session,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """llama.cpp answers True for a token that was decoded alone, too, and leaves a hybrid's memory wrong."""
    assert not session.model.can_cut_anywhere
    last_batch = (0, 0)
    cuts: list[tuple[int, tuple[int, int]]] = []
    decode, cut, restore = LoadedModel.decode, ContextMemory.cut, ContextMemory.restore

    def noted_decode(model: LoadedModel, tokens: Sequence[int], position: int, *, rows: int = 1) -> None:
        nonlocal last_batch
        last_batch = (position, position + len(tokens))
        decode(model, tokens, position, rows=rows)

    def noted_restore(memory: ContextMemory, data: Sized) -> bool:
        nonlocal last_batch
        last_batch = (0, 0)
        return restore(memory, data)

    def noted_cut(memory: ContextMemory, position: int) -> bool:
        cuts.append((position, last_batch))
        return cut(memory, position)

    monkeypatch.setattr(LoadedModel, "decode", noted_decode)
    monkeypatch.setattr(ContextMemory, "restore", noted_restore)
    monkeypatch.setattr(ContextMemory, "cut", noted_cut)
    rng = random.Random(11)
    messages: list[Message] = []
    for question in (QUESTION, "What is a quant?", "Tell me a story"):
        messages.append(user(question))
        oracle(monkeypatch, [rng.randrange(300, 400) for _ in range(200)], wrong=0.5, seed=rng.randrange(99))
        part = ask(session, messages, greedy(max_tokens=9))
        messages.append(text_message("assistant", part.text, reasoning=part.reasoning))
    ask(session, messages[:1], greedy(max_tokens=9))
    of_drafts = [(position, batch) for position, batch in cuts if batch != (0, 0)]
    assert len(of_drafts) > 10
    for position, (begin, end) in of_drafts:
        assert begin < position < end, "the first token of a batch stays, and nothing before the batch is cut"
