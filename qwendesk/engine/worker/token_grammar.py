"""A GBNF grammar that tells which token may come next."""

from __future__ import annotations

import ctypes
from typing import NoReturn

import llama_cpp.llama_cpp as C
import numpy as np

from qwendesk.core.errors import BadRequest
from qwendesk.core.translation import mark
from qwendesk.engine.worker.model import LoadedModel

TOKEN_DATA = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
"""struct llama_token_data."""

Candidates = np.ndarray[tuple[int], np.dtype[np.void]]
"""Items of TOKEN_DATA."""


class TokenGrammar:
    """The position in a text that follows the grammar. `close` frees it."""

    def __init__(self, model: LoadedModel, text: str) -> None:
        """Raise BadRequest if `text` is not valid."""
        sampler: C.llama_sampler_p | None = C.llama_sampler_init_grammar(model.vocab, text.encode(), b"root")
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
        array = token_array(one)
        C.llama_sampler_apply(self._sampler, ctypes.byref(array))
        return bool(array.size > 0 and array.data[0].logit > -np.inf)

    def accept(self, token: int) -> None:
        """Move on. The token must be allowed: a forbidden one would crash with a C++ exception."""
        C.llama_sampler_accept(self._sampler, token)

    def restrict(self, candidates: C.llama_token_data_array) -> None:
        """Give forbidden tokens the logit -inf."""
        C.llama_sampler_apply(self._sampler, ctypes.byref(candidates))


def token_array(data: Candidates) -> C.llama_token_data_array:
    return C.llama_token_data_array(
        data=data.ctypes.data_as(ctypes.POINTER(C.llama_token_data)), size=len(data), selected=-1, sorted=False
    )


def dead_end() -> NoReturn:
    raise BadRequest(
        mark("Dead end in the grammar"),
        mark("No token of this model can continue the grammar. Simplify it."),
    )
