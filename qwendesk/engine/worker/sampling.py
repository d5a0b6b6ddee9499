"""Choose the next token with llama.cpp's samplers, and with a grammar that tells which token may come next."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import secrets
import threading
import time
from collections.abc import Callable, Collection, Container, Iterator
from typing import NoReturn

import llama_cpp.llama_cpp as C
import numpy as np

from qwendesk.core.errors import BadRequest
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.grammar_bounds import check_grammar_bounds
from qwendesk.core.translation import mark
from qwendesk.engine.protocol import GRAMMAR_EXIT_CODE, AnswerToken, TokenLogprob
from qwendesk.engine.worker.logits import MOST_LIKELY, TOKEN_DATA, Candidates, LogitChanges, Row, likeliest
from qwendesk.engine.worker.model import ANY_BYTE, LoadedModel
from qwendesk.engine.worker.schema_grammar import json_grammar

# Ways to go on at one place. To compare one with each token of a large vocabulary takes 3 ms.
_MANY_WAYS = 100
_MOST_ANSWER_S = 10.0
# An answer ends when a grammar took longer than this, and more than this share of the answer's time.
_MOST_SHARE = 0.5
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


def token_array(data: Candidates, *, is_sorted: bool = False) -> C.llama_token_data_array:
    return C.llama_token_data_array(
        data=data.ctypes.data_as(ctypes.POINTER(C.llama_token_data)), size=len(data), selected=-1, sorted=is_sorted
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


# `likeliest_token_for` checks this many of the likeliest tokens.
_MAX_TRIED = 4096
# Sequence breakers of the DRY sampler: a repetition ends at them. These are llama.cpp's defaults.
_DRY_BREAKERS = (b"\n", b":", b'"', b"*")


class Sampler:
    """The sampler of one answer. Penalties apply to the tokens of this answer, not to those of the prompt.

    The values on Qwen's model cards are meant that way: they are for servers that only count output.
    """

    def __init__(self, model: LoadedModel, options: GenerationOptions) -> None:
        """Raise BadRequest for a grammar, JSON schema or logit bias that cannot be used."""
        grammar = _grammar_text(options)
        self._model = model
        self._grammar = TokenGrammar(model, grammar) if grammar else None
        try:
            self._changes = _changes(model, options)
        except BadRequest:
            if self._grammar is not None:
                self._grammar.close()
            raise
        self._chain = _chain(model, options)
        self._takes_best = options.temperature == 0
        # 0: the whole row is needed. DRY changes logits of any tokens.
        self._n_likeliest = options.top_k if options.top_k <= MOST_LIKELY else 0
        if options.dry_multiplier > 0:
            self._takes_best, self._n_likeliest = False, 0
        self._call_grammar: TokenGrammar | None = None
        self._candidates: Candidates | None = None

    def stuck_s(self) -> float:
        """Return for how many seconds the engine has been in one call into a grammar. For another thread."""
        return max((each.stuck_s() for each in (self._grammar, self._call_grammar) if each is not None), default=0.0)

    @property
    def has_grammar(self) -> bool:
        return self._grammar is not None

    def close(self) -> None:
        C.llama_sampler_free(self._chain)
        for grammar in (self._grammar, self._call_grammar):
            if grammar is not None:
                grammar.close()

    def next(self, row: int = -1) -> int:
        """Sample the next token from a row of the last decode's logits, without the grammar, and accept it.

        -1 is the last row, -2 the one before it.
        """
        token = self._draw(row)
        self._accept(token)
        return token

    def next_by_grammar(self, is_free: Callable[[int], bool], row: int) -> int:
        """Sample the next token of an answer that must follow the grammar, and accept it.

        A token for which `is_free` returns True is not checked. Raise BadRequest if no token can continue the grammar.
        """
        assert self._grammar is not None
        return self._draw_by(self._grammar, row, is_free=is_free)

    def begin_call(self, grammar: str) -> None:
        """Take the next tokens by `next_in_call`. All calls of an answer have the same grammar."""
        if self._call_grammar is None:
            self._call_grammar = TokenGrammar(self._model, grammar)
        else:
            self._call_grammar.begin_again()

    def next_in_call(self, excluded: Collection[int], row: int) -> int:
        """Sample the next token of a tool call, and accept it. The tokens in `excluded` are never taken.

        Raise BadRequest if no token can continue the call.
        """
        assert self._call_grammar is not None
        return self._draw_by(self._call_grammar, row, excluded=excluded)

    def _draw_by(
        self,
        grammar: TokenGrammar,
        row: int,
        *,
        is_free: Callable[[int], bool] = lambda _: False,
        excluded: Collection[int] = (),
    ) -> int:
        """Sample the next token, and accept it.

        It is sampled without the grammar first, and again with it only if the grammar forbids that token: applying the
        grammar to the whole vocabulary each time costs two thirds of the speed.
        """
        token = self._draw(row)
        if is_free(token):
            self._accept(token)
            return token
        if token in excluded or not grammar.allows(token):
            token = self._draw(row, grammar, excluded)
            if token in excluded or not grammar.allows(token):
                dead_end()
        self._accept(token)
        grammar.accept(token)
        return token

    def logprobs(self, token: int, n_likeliest: int, row: int = -1) -> AnswerToken:
        """Return the log probability that a row of the last decode's logits gives a token, and those of the likeliest.

        Neither sampling options nor a grammar change them.
        """
        logits = self._model.logits(row)
        peak = float(logits.max())
        log_sum = peak + math.log(float(np.exp(logits - peak).sum(dtype=np.float64)))
        ids = np.argpartition(-logits, n_likeliest)[:n_likeliest]
        ordered = ids[np.argsort(-logits[ids], kind="stable")].tolist()
        likeliest = (TokenLogprob(self._model.piece(each), float(logits[each]) - log_sum) for each in ordered)
        return AnswerToken(self._model.piece(token), float(logits[token]) - log_sum, tuple(likeliest))

    def likeliest_token_for(self, remaining: bytes, excluded: Container[int]) -> int:
        """Return the likeliest token that spells the beginning of `remaining`, or all of it and more.

        Tokens in `excluded` are left out. The token is not accepted.
        """
        logits = self._model.logits(-1)
        for token in np.argsort(-logits)[:_MAX_TRIED].tolist():
            piece = self._model.piece(token)
            if piece and (piece.startswith(remaining) or remaining.startswith(piece)) and token not in excluded:
                return int(token)
        tokens = self._model.tokenize(remaining.decode("utf-8", "ignore"))
        plain = [token for token in tokens if token not in excluded]
        return plain[0] if tokens[:1] == plain[:1] else self._model.tokenize(chr(remaining[0]))[0]

    def replay(self, token: int, *, by_grammar: bool) -> None:
        """Accept a token of an answer that is continued. Raise BadRequest if the grammar forbids it."""
        self._accept(token)
        if self._grammar is None or not by_grammar:
            return
        if not self._grammar.allows(token):
            raise BadRequest(
                mark("Can't continue"),
                mark(
                    "This answer doesn't follow the current JSON schema or grammar, so it can't be continued. "
                    "Regenerate it."
                ),
            )
        self._grammar.accept(token)

    def _accept(self, token: int) -> None:
        self._changes.accept(token)
        C.llama_sampler_accept(self._chain, token)

    def _draw(self, row: int, grammar: TokenGrammar | None = None, excluded: Collection[int] = ()) -> int:
        logits = self._model.logits(row)
        with self._changes.made_in(logits):
            if grammar is None:
                if self._takes_best:
                    return int(logits.argmax())
                found = likeliest(logits, self._n_likeliest) if self._n_likeliest else None
                if found is not None:
                    return self._chosen(found, is_sorted=True)
            candidates = self._whole_row(logits)
        if excluded:
            candidates["logit"][list(excluded)] = -np.inf
        if grammar is not None:
            grammar.restrict(candidates)
        return self._chosen(candidates, is_sorted=False)

    def _whole_row(self, logits: Row) -> Candidates:
        if self._candidates is None:
            self._candidates = np.zeros(len(logits), dtype=TOKEN_DATA)
        self._candidates["id"] = np.arange(len(logits), dtype=np.int32)
        self._candidates["logit"] = logits
        self._candidates["p"] = 0
        return self._candidates

    def _chosen(self, candidates: Candidates, *, is_sorted: bool) -> int:
        array = token_array(candidates, is_sorted=is_sorted)
        C.llama_sampler_apply(self._chain, ctypes.byref(array))
        return int(array.data[array.selected].id)


def _changes(model: LoadedModel, options: GenerationOptions) -> LogitChanges:
    return LogitChanges(
        _biases(model, options),
        window=model.n_ctx if options.penalty_last_n < 0 else options.penalty_last_n,
        repeat=options.repeat_penalty,
        frequency=options.frequency_penalty,
        presence=options.presence_penalty,
    )


def _chain(model: LoadedModel, options: GenerationOptions) -> C.llama_sampler_p:
    """Return the samplers in llama.cpp's default order, without those that would have no effect.

    Biases and penalties, which come first, are in the row of logits already.
    """
    params = C.llama_sampler_chain_default_params()
    params.no_perf = True
    chain: C.llama_sampler_p = C.llama_sampler_chain_init(params)

    def add(sampler: C.llama_sampler_p) -> None:
        C.llama_sampler_chain_add(chain, sampler)

    if options.dry_multiplier > 0:
        window = model.n_ctx if options.dry_penalty_last_n < 0 else options.dry_penalty_last_n
        breakers = (ctypes.c_char_p * len(_DRY_BREAKERS))(*_DRY_BREAKERS)
        add(
            C.llama_sampler_init_dry(
                model.vocab, options.dry_multiplier, options.dry_base, options.dry_allowed_length, window, breakers,
                len(_DRY_BREAKERS),
            )
        )  # fmt: skip
    if options.temperature == 0:
        add(C.llama_sampler_init_greedy())
        return chain
    seed = options.seed if options.seed >= 0 else secrets.randbelow(2**32 - 1)
    if options.top_k:
        add(C.llama_sampler_init_top_k(options.top_k))
    if options.typical_p < 1:
        add(C.llama_sampler_init_typical(options.typical_p, 1))
    if options.top_p < 1:
        add(C.llama_sampler_init_top_p(options.top_p, 1))
    if options.min_p > 0:
        add(C.llama_sampler_init_min_p(options.min_p, 1))
    if options.xtc_probability > 0:
        add(C.llama_sampler_init_xtc(options.xtc_probability, options.xtc_threshold, 1, seed))
    add(C.llama_sampler_init_temp(options.temperature))
    add(C.llama_sampler_init_dist(seed))
    return chain


def _biases(model: LoadedModel, options: GenerationOptions) -> list[tuple[int, float]]:
    found = []
    for text in options.logit_bias:
        token, _, bias = text.partition("=")
        try:
            found.append((int(token), float(bias)))
        except ValueError:
            raise BadRequest(
                mark("Invalid logit bias"), mark('"{0}" must look like TOKEN=BIAS, both numbers.'), text
            ) from None
        if not 0 <= found[-1][0] < model.n_vocab or math.isnan(found[-1][1]):
            raise BadRequest(
                mark("Invalid logit bias"), mark('"{0}": this model has tokens 0 to {1}.'), text, model.n_vocab - 1
            )
    return found


def _grammar_text(options: GenerationOptions) -> str:
    if options.json_schema and options.grammar:
        raise BadRequest(mark("Two grammars"), mark("Set either a JSON schema or a grammar, not both."))
    if not options.json_schema:
        if options.grammar:
            check_grammar_bounds(options.grammar)
        return options.grammar
    try:
        return json_grammar(options.json_schema)
    except (ValueError, RecursionError) as error:
        raise BadRequest(mark("Invalid JSON schema"), mark("It can't be turned into a grammar: {0}."), error) from error
