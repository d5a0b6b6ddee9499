"""The peer to measure against: the shortest possible loop over llama.cpp's C API, no process, no pipe, no text."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import llama_cpp.llama_cpp as C

from qwendesk.engine.worker.log import EngineLog


class BareLoop:
    """One model in this process. Times are seconds."""

    def __init__(self, model: Path, *, n_ctx: int, n_threads: int, n_ubatch: int = 512) -> None:
        self._log = EngineLog()
        self._log.install()
        C.llama_backend_init()
        params = C.llama_model_default_params()
        params.n_gpu_layers = 0
        self._model = C.llama_model_load_from_file(str(model).encode(), params)
        context = C.llama_context_default_params()
        context.n_ctx, context.n_ubatch = n_ctx, n_ubatch
        context.n_threads = context.n_threads_batch = n_threads
        self._ctx = C.llama_init_from_model(self._model, context)
        self._vocab = C.llama_model_get_vocab(self._model)
        self._n_ubatch = n_ubatch

    def close(self) -> None:
        C.llama_free(self._ctx)
        C.llama_model_free(self._model)

    def tokens(self, text: str) -> list[int]:
        raw = text.encode()
        array = (C.llama_token * (len(raw) + 8))()
        return list(array[: C.llama_tokenize(self._vocab, raw, len(raw), array, len(array), False, True)])

    def read(self, tokens: Sequence[int], position: int = 0) -> float:
        """Seconds to feed `tokens` from `position` on, what came before being in memory, and to sample once."""
        if position == 0:
            C.llama_memory_clear(C.llama_get_memory(self._ctx), True)
        started = time.perf_counter()
        with _greedy() as sampler:
            for first in range(0, len(tokens), self._n_ubatch):
                self._feed(tokens[first : first + self._n_ubatch], position + first)
            C.llama_sampler_sample(sampler, self._ctx, -1)
        return time.perf_counter() - started

    def decode(self, n_tokens: int, position: int) -> float:
        """Tokens per second of sampling and feeding one token at a time, `position` tokens being in memory."""
        with _greedy() as sampler:
            token = C.llama_sampler_sample(sampler, self._ctx, -1)
            started = time.perf_counter()
            for step in range(n_tokens):
                self._feed((token,), position + step)
                token = C.llama_sampler_sample(sampler, self._ctx, -1)
            return n_tokens / (time.perf_counter() - started)

    def _feed(self, tokens: Sequence[int], position: int) -> None:
        array = (C.llama_token * len(tokens))(*tokens)
        batch = C.llama_batch_get_one(array, len(tokens))
        if C.llama_decode(self._ctx, batch) != 0:
            raise RuntimeError(f"llama_decode failed at position {position}")


@contextlib.contextmanager
def _greedy() -> Iterator[C.llama_sampler_p]:
    sampler = C.llama_sampler_chain_init(C.llama_sampler_chain_default_params())
    C.llama_sampler_chain_add(sampler, C.llama_sampler_init_greedy())
    try:
        yield sampler
    finally:
        C.llama_sampler_free(sampler)
