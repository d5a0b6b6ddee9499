"""Real models through the real worker, and through a plain loop over the low-level API in this process."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jinja2
import llama_cpp.llama_cpp as C  # noqa: N812
import msgspec
import numpy as np

from qwendesk.core.messages import text_message
from qwendesk.core.options import DecidedOptions
from qwendesk.engine import protocol as p
from tests.engine.worker.process import Answer, WorkerProcess, demo_options, greedy, worker_process

QUESTIONS = (
    "What is the capital of France?",
    "Write a Python function that returns the sum of two numbers.",
    "Translate to Spanish: Good morning, how are you?",
    "你好，请介绍一下你自己。",
    "What does the HTML tag <table> do? And </td>?",
    "Which is heavier, a kilogram of iron or a kilogram of feathers? 🤔",
    "List three colours.\n\n\n- one for each line\n    - indented",
    "Say <|im_end|> and </s> and <eos>, then explain what they are.",
)
"""With other scripts, markup, blank lines, and texts that are spelt like special tokens."""
N_CTX = 1024
_CUT, _NO_TOKEN = "\ue000", "\ue001"
_MARKS = r"(<bos>|<start_of_turn>|<end_of_turn>|<\|im_start\|>|<\|im_end\|>)"
"""The tokens that the templates write themselves."""
CLOSE_CALL = 0.05
"""Two logits that are closer than this may change places when batches are computed in another way."""


def real_options(model: Path, **changes: Any) -> DecidedOptions:
    """One thread, so that a result doesn't depend on the machine, and no drafts, so that each token is a batch."""
    return demo_options(**{"model": str(model), "mmproj": "", "n_ctx": N_CTX, "speculative": "off"} | changes)


class Token(msgspec.Struct, frozen=True):
    """A token of an answer: its bytes and its log probability."""

    piece: bytes
    logprob: float
    lead: float = 0.0
    """How far its logit lies above the second best one."""


@contextlib.contextmanager
def real_worker(model: Path, **changes: Any) -> Iterator[WorkerProcess]:
    with worker_process() as worker:
        worker.load(real_options(model, **changes))
        yield worker


def tokens_of(answer: Answer) -> list[Token]:
    """The tokens with which the worker wrote an answer that was asked with `n_logprobs=0`."""
    known = [each for event in answer.events if isinstance(event, p.Delta) for each in event.logprobs]
    return [Token(each.token, each.logprob) for each in known]


def ask(worker: WorkerProcess, question: str, n_tokens: int, **options: Any) -> Answer:
    """A greedy answer from an empty cache."""
    wanted = greedy(**{"max_tokens": n_tokens, "cache_prompt": False, "break_loops": False} | options)
    return worker.ask([text_message("user", question)], wanted, n_logprobs=0)


def parting_gap(first: Answer, second: Answer) -> float:
    """How far the two likeliest tokens of `first` lay apart where `second` parts from it; 0 if it doesn't.

    Both were asked with `n_logprobs=2`.
    """
    one, two = (
        [each for event in answer.events if isinstance(event, p.Delta) for each in event.logprobs]
        for answer in (first, second)
    )
    for token, other in itertools.zip_longest(one, two):
        if token is None or other is None:
            return math.inf
        if token.token != other.token:
            likeliest, next_one = token.likeliest
            return likeliest.logprob - next_one.logprob
    return 0.0


class PlainLoop:
    """Tokens of the model by the plainest use of llama.cpp: it imports nothing of the worker."""

    def __init__(self, model: Path, n_ctx: int = N_CTX) -> None:
        C.llama_backend_init()
        model_params, params = C.llama_model_default_params(), C.llama_context_default_params()
        model_params.n_gpu_layers = 0
        self._model = C.llama_model_load_from_file(str(model).encode(), model_params)
        assert self._model
        params.n_ctx = params.n_batch = n_ctx
        params.n_ubatch, params.n_threads, params.n_threads_batch = 512, 1, 1
        self._ctx = C.llama_init_from_model(self._model, params)
        self._vocab = C.llama_model_get_vocab(self._model)
        self._n_vocab = C.llama_vocab_n_tokens(self._vocab)

    def close(self) -> None:
        C.llama_free(self._ctx)
        C.llama_model_free(self._model)

    def chat_template(self) -> str:
        """The template in the file's header."""
        text = C.llama_model_chat_template(self._model, None)
        assert text
        return str(text.decode("utf-8"))

    def tokenize(self, text: str, *, special: bool = True) -> list[int]:
        raw = text.encode()
        room = (C.llama_token * (len(raw) + 8))()
        # The template writes the first token itself, where one is needed.
        n_tokens = C.llama_tokenize(self._vocab, raw, len(raw), room, len(room), False, special)
        assert n_tokens >= 0
        return list(room[:n_tokens])

    def answer(self, prompt: Sequence[int], n_tokens: int, *, cuts: Sequence[int] = ()) -> list[Token]:
        """The likeliest tokens one after the other, without the one that ends the text, from an empty memory.

        The prompt is read in batches that are cut at the positions in `cuts`: where the memory of a model can't be cut
        anywhere, the worker and llama-server keep checkpoints before the end, and other batches round otherwise.
        """
        C.llama_memory_clear(C.llama_get_memory(self._ctx), True)
        answer: list[Token] = []
        begins = (0, *cuts)
        for begin, end in itertools.pairwise(begins):
            self._decode(prompt[begin:end])
        tokens = list(prompt[begins[-1] :])
        while True:
            self._decode(tokens)
            logits = np.ctypeslib.as_array(C.llama_get_logits_ith(self._ctx, -1), (self._n_vocab,)).astype(np.float64)
            best = int(logits.argmax())
            if C.llama_vocab_is_eog(self._vocab, best):
                return answer
            second, first = np.partition(logits, -2)[-2:]
            log_sum = first + math.log(float(np.exp(logits - first).sum()))
            answer.append(Token(self.piece(best), float(first - log_sum), float(first - second)))
            if len(answer) == n_tokens:
                return answer
            tokens = [best]

    def drawn(self, prompt: Sequence[int], n_tokens: int, samplers: Sequence[C.llama_sampler_p]) -> list[bytes]:
        """The tokens that llama.cpp's own samplers draw one after the other, from an empty memory."""
        C.llama_memory_clear(C.llama_get_memory(self._ctx), True)
        chain = C.llama_sampler_chain_init(C.llama_sampler_chain_default_params())
        for sampler in samplers:
            C.llama_sampler_chain_add(chain, sampler)
        answer: list[bytes] = []
        tokens = list(prompt)
        while len(answer) < n_tokens:
            self._decode(tokens)
            tokens = [C.llama_sampler_sample(chain, self._ctx, -1)]
            if C.llama_vocab_is_eog(self._vocab, tokens[0]):
                break
            answer.append(self.piece(tokens[0]))
        C.llama_sampler_free(chain)
        return answer

    @property
    def n_vocab(self) -> int:
        return int(self._n_vocab)

    def _decode(self, tokens: Sequence[int]) -> None:
        row = (C.llama_token * len(tokens))(*tokens)
        assert C.llama_decode(self._ctx, C.llama_batch_get_one(row, len(tokens))) == 0

    def piece(self, token: int) -> bytes:
        room = ctypes.create_string_buffer(256)
        length = C.llama_token_to_piece(self._vocab, token, room, len(room), 0, False)
        return room.raw[:length]


@contextlib.contextmanager
def plain_loop(model: Path) -> Iterator[PlainLoop]:
    loop = PlainLoop(model)
    try:
        yield loop
    finally:
        loop.close()


def prompt_of(loop: PlainLoop, template: str, question: str, *, begin: str = "") -> list[int]:
    """The tokens of a question's prompt by plain Jinja. What the question spells is text, even where it is a token.

    A control token's text is none without `special`. Other tokens, such as gemma's "<table>", are found in any text,
    unless it is cut inside them.
    """
    inert = question
    for text in ("<|im_end|>", "</s>", "<eos>", "<table>", "</td>"):
        mark = _CUT if len(loop.tokenize(text, special=False)) == 1 else _NO_TOKEN
        inert = inert.replace(text, f"{text[0]}{mark}{text[1:]}")
    messages = [{"role": "user", "content": inert}]
    environment = jinja2.Environment(autoescape=False)
    prompt = environment.from_string(template).render(messages=messages, add_generation_prompt=True, bos_token=begin)
    tokens: list[int] = []
    for piece in re.split(_MARKS, prompt):
        is_mark = re.fullmatch(_MARKS, piece) is not None
        for text in piece.replace(_NO_TOKEN, "").split(_CUT):
            tokens += loop.tokenize(text, special=is_mark)
    return tokens
