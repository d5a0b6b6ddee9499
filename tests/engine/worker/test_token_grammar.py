"""Grammars with many ways to go on, slow ones, and one that never comes back."""

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from qwendesk.core.errors import BadRequest
from qwendesk.engine.load_failures import describe_exit
from qwendesk.engine.protocol import GRAMMAR_EXIT_CODE
from qwendesk.engine.worker import sampling
from qwendesk.engine.worker.model import first_bytes_of
from qwendesk.engine.worker.sampling import TOKEN_DATA, TokenGrammar
from tests.engine.worker.conftest import Demo

WIDE = "root ::= " + " | ".join(f'"{number}é{number * 7}"' for number in range(900)) + ' | "" | [\\n😀] "x"'
NARROW = 'root ::= "é" [a-z]* | "\\"" [^"]* "\\"" | "\U0001f600"'


def grammar_of(demo: Demo, text: str) -> TokenGrammar:
    model: Any = SimpleNamespace(vocab=demo.vocab, first_bytes=first_bytes_of(demo.vocab))
    return TokenGrammar(model, text)


def allowed(grammar: TokenGrammar, n_tokens: int) -> list[int]:
    candidates = np.zeros(n_tokens, dtype=TOKEN_DATA)
    candidates["id"] = np.arange(n_tokens)
    grammar.restrict(candidates)
    return [int(each) for each in np.flatnonzero(candidates["logit"] > -np.inf)]


@pytest.mark.parametrize("text", [WIDE, NARROW])
def test_to_try_only_the_first_bytes_that_may_come_changes_nothing(demo: Demo, text: str) -> None:
    n_tokens = len(first_bytes_of(demo.vocab).of_tokens)
    grammar = grammar_of(demo, text)
    for token in [None, *demo.tokenize("8é" if text == WIDE else "é", parse_special=False)]:
        if token is not None:
            assert grammar.allows(token)
            grammar.accept(token)
        grammar._is_wide = True
        by_first_bytes = allowed(grammar, n_tokens)
        grammar._is_wide = False
        assert by_first_bytes == allowed(grammar, n_tokens)
        assert by_first_bytes
    grammar.close()


def test_an_answer_ends_when_its_grammar_took_most_of_its_time(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(sampling.time, "monotonic", lambda: now)
    grammar = grammar_of(demo, "root ::= [a-z]*")
    (token,) = demo.tokenize("a", parse_special=False)
    apply = sampling.C.llama_sampler_apply

    def slow(*arguments: Any) -> None:
        nonlocal now
        now += 3.0
        apply(*arguments)

    monkeypatch.setattr(sampling.C, "llama_sampler_apply", slow)

    def take(n_tokens: int) -> None:
        for _ in range(n_tokens):
            assert grammar.allows(token)
            grammar.accept(token)

    take(3)
    now += 20.0  # the model's own time: the grammar has less than half of all
    take(1)
    with pytest.raises(BadRequest, match="for more than 10 s"):
        take(5)
    grammar.close()


def test_a_call_that_does_not_come_back_ends_the_process_with_its_reason() -> None:
    """In a process of its own, with a limit of a moment."""
    code = (
        "import threading\n"
        "from qwendesk.engine.worker import sampling as t\n"
        "t._MOST_CALL_S = 0.05\n"
        "with t.ended_if_stuck(lambda: 1.0, lambda: print('said', flush=True)):\n"
        "    threading.Event().wait(60)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=False)
    assert (done.returncode, done.stdout) == (GRAMMAR_EXIT_CODE, "said\n"), done.stderr
    assert "grammar" in describe_exit(done.returncode)
