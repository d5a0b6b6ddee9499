"""A GBNF grammar that tells which token may come next."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import NoReturn

import llama_cpp.llama_cpp as C
import numpy as np

from qwendesk.core.errors import BadRequest
from qwendesk.core.grammar_bounds import check_grammar_bounds
from qwendesk.core.translation import mark
from qwendesk.engine.protocol import GRAMMAR_EXIT_CODE
from qwendesk.engine.worker.model import ANY_BYTE, LoadedModel

TOKEN_DATA = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
"""struct llama_token_data."""

Candidates = np.ndarray[tuple[int], np.dtype[np.void]]
"""Items of TOKEN_DATA."""

_MANY_WAYS = 100
"""Ways to go on at one place. To compare one with each token of a large vocabulary takes 3 ms."""
_MOST_ANSWER_S = 10.0
_MOST_SHARE = 0.5
"""An answer ends when a grammar took longer than this, and more than this share of the answer's time."""
_MOST_CALL_S = 10.0


class TokenGrammar:
    """The position in a text that follows the grammar. `close` frees it."""

    def __init__(self, model: LoadedModel, text: str) -> None:
        """Raise BadRequest if `text` is not valid, or beyond what the engine can stand."""
        n_ways = check_grammar_bounds(text, allows_tokens=True)
        self._model, self._is_wide = model, n_ways > _MANY_WAYS
        self._used_s, self._began_at, self._call_began_at = 0.0, time.monotonic(), 0.0
        sampler: C.llama_sampler_p | None = C.llama_sampler_init_grammar(
            model.vocab, text.encode("utf-8", "replace"), b"root"
        )
        if not sampler:
            raise BadRequest(
                mark("Invalid grammar"),
                mark('The grammar isn\'t valid GBNF with a rule named "root". Check its syntax.'),
            )
        self._sampler = sampler

    def close(self) -> None:
        C.llama_sampler_free(self._sampler)

    def begin_again(self) -> None:
        C.llama_sampler_reset(self._sampler)

    def allows(self, token: int) -> bool:
        one = np.zeros(1, dtype=TOKEN_DATA)
        one["id"] = token
        array = self._applied(one)
        return bool(array.size > 0 and array.data[0].logit > -np.inf)

    def accept(self, token: int) -> None:
        """Move on. The token must be allowed: a forbidden one would crash with a C++ exception.

        Raise BadRequest if the grammar has become too slow.
        """
        with self._timed():
            C.llama_sampler_accept(self._sampler, token)
        if self._used_s > _MOST_ANSWER_S and self._used_s > _MOST_SHARE * (time.monotonic() - self._began_at):
            raise BadRequest(
                mark("Grammar too slow"),
                mark(
                    "The answer ends here: its JSON schema or grammar, or the schemas of its tools, kept the engine "
                    "busy for more than {0} s. Make them simpler."
                ),
                int(_MOST_ANSWER_S),
            )

    def restrict(self, candidates: Candidates) -> None:
        """Give forbidden tokens the logit -inf."""
        if not self._is_wide:
            self._applied(candidates)
            return
        # With many ways to go on, each token costs much, so only those are tried whose first byte may come.
        firsts, alone = self._model.first_bytes
        may_come = np.ones(ANY_BYTE + 1, dtype=np.bool_)
        probes = np.zeros(len(alone), dtype=TOKEN_DATA)
        probes["id"] = alone
        self._applied(probes)
        may_come[firsts[alone]] = probes["logit"] > -np.inf
        kept = np.flatnonzero(may_come[firsts[candidates["id"]]])
        tried = candidates[kept]
        self._applied(tried)
        candidates["logit"] = -np.inf
        candidates["logit"][kept] = tried["logit"]

    def stuck_s(self) -> float:
        """Return for how many seconds the engine has been in one call. For another thread."""
        began_at = self._call_began_at
        return time.monotonic() - began_at if began_at else 0.0

    def _applied(self, candidates: Candidates) -> C.llama_token_data_array:
        array = token_array(candidates)
        with self._timed():
            C.llama_sampler_apply(self._sampler, ctypes.byref(array))
        return array

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        self._call_began_at = time.monotonic()
        yield
        self._used_s += time.monotonic() - self._call_began_at
        self._call_began_at = 0.0


@contextlib.contextmanager
def ended_if_stuck(stuck_s: Callable[[], float], report: Callable[[], None]) -> Iterator[None]:
    """End the process if one call into a grammar takes too long: nothing can interrupt it, and it may never end.

    Bounds don't catch all such grammars, because in how many ways a text can be read depends on the text. `report` is
    called before, on another thread.
    """
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(_MOST_CALL_S / 10):
            if stuck_s() > _MOST_CALL_S:
                report()
                os._exit(GRAMMAR_EXIT_CODE)

    thread = threading.Thread(target=watch, name="grammar", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def token_array(data: Candidates) -> C.llama_token_data_array:
    return C.llama_token_data_array(
        data=data.ctypes.data_as(ctypes.POINTER(C.llama_token_data)), size=len(data), selected=-1, sorted=False
    )


def dead_end() -> NoReturn:
    raise BadRequest(
        mark("Dead end in the grammar"),
        mark("No token of this model can continue the grammar. Simplify it."),
    )


STUCK = (
    mark("Grammar too slow"),
    mark(
        "The JSON schema or grammar kept the engine busy for more than {0} s without a pause, so the engine was "
        "stopped. Make it simpler."
    ),
    int(_MOST_CALL_S),
)
