"""The model's own draft head (MTP, multi-token prediction): a layer that guesses the next token from a hidden row.

The head has a context of its own, with a KV cache. It must see every token that the model sees, together with the
hidden row that the model computed for the token before. llama.cpp binds these functions as experimental; the exact
version of llama-cpp-python that QwenDesk needs makes their use safe.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import llama_cpp.llama_cpp as C
import msgspec
import numpy as np
from llama_cpp import llama_cpp_ext as X

from qwendesk.core.options import DecidedOptions
from qwendesk.engine.worker import params
from qwendesk.engine.worker.engine_calls import SEQUENCE, check

Rows = np.ndarray[tuple[int, int], np.dtype[np.float32]]
Row = np.ndarray[tuple[int], np.dtype[np.float32]]


class MtpHead:
    """Drafts tokens for one model context. `close` frees its context."""

    def __init__(
        self,
        target: C.llama_context_p,
        ctx: C.llama_context_p,
        n_embd: int,
        n_vocab: int,
        own_model: C.llama_model_p | None,
    ) -> None:
        """`ctx` has the context type MTP. It was made for the model of `target`, or for `own_model`: a file that has
        nothing but the head, and is freed with it.
        """
        memory = C.llama_get_memory(ctx)
        assert memory is not None, "a draft head has a KV cache"
        self._target, self.ctx, self._memory, self._own_model = target, ctx, memory, own_model
        self._n_embd, self._n_vocab = n_embd, n_vocab
        self._batch = _HiddenBatch(C.llama_n_ubatch(ctx), n_embd)
        self._rows: Rows | None = None
        """The hidden rows of the last batch of tokens, whose first token is at `_rows_at`."""
        self._rows_at = 0
        self.hidden: Row = np.zeros(n_embd, np.float32)
        """The hidden row of the last token or image in the model's memory."""
        self.is_fed = True
        """False while nothing is drafted: the head then misses tokens, and drafts a little worse afterwards."""
        X.llama_set_embeddings_nextn(target, True, False)
        X.llama_set_embeddings_nextn(ctx, True, True)

    def close(self) -> None:
        self._batch.close()
        C.llama_free(self.ctx)
        if self._own_model is not None:
            C.llama_model_free(self._own_model)

    def follow(self, tokens: Sequence[int], position: int) -> None:
        """Take tokens that the model has just decoded at `position`."""
        rows = self._target_rows(len(tokens))
        if self.is_fed:
            self._batch.clear()
            for index, token in enumerate(tokens):
                self._batch.add(token, position + index, rows[index - 1] if index else self.hidden)
            self._decode()
        self._rows, self._rows_at, self.hidden = rows, position, rows[-1]

    def follow_image(self, n_tokens: int, n_batch: int) -> None:
        """Take an image that the model has just decoded in batches of `n_batch`. The head skips images themselves."""
        self._rows, self.hidden = None, self._target_rows((n_tokens - 1) % n_batch + 1)[-1]

    def draft(self, token: int, position: int, most: int) -> list[int]:
        """Return `most` tokens that may follow `token`, which belongs at `position` and was not decoded yet."""
        drafts: list[int] = []
        hidden = self.hidden
        for index in range(most):
            self._batch.clear()
            self._batch.add(token, position + index, hidden, wants_logits=True)
            self._decode()
            logits = np.ctypeslib.as_array(C.llama_get_logits_ith(self.ctx, 0), (self._n_vocab,))
            token = int(logits.argmax())
            hidden = np.ctypeslib.as_array(X.llama_get_embeddings_nextn_ith(self.ctx, 0), (self._n_embd,)).copy()
            drafts.append(token)
        self._cut(position)
        return drafts

    def cut(self, position: int) -> None:
        """Drop everything from `position` on, as the model's memory did."""
        self._cut(position)
        if self._rows is not None and 0 < position - self._rows_at <= len(self._rows):
            self.hidden = self._rows[position - self._rows_at - 1]

    def clear(self) -> None:
        C.llama_memory_clear(self._memory, True)
        self._rows, self.hidden = None, np.zeros(self._n_embd, np.float32)

    def restore_hidden(self, hidden: Row) -> None:
        """Continue from a hidden row that was kept with a checkpoint or a state."""
        self._rows, self.hidden = None, hidden

    def _cut(self, position: int) -> None:
        C.llama_memory_seq_rm(self._memory, SEQUENCE, position, -1)

    def _decode(self) -> None:
        check(C.llama_decode(self.ctx, self._batch.struct))

    def _target_rows(self, n_rows: int) -> Rows:
        return np.ctypeslib.as_array(X.llama_get_embeddings_nextn(self._target), (n_rows, self._n_embd)).copy()


class _HiddenBatch:
    """A batch of tokens with a hidden row each. llama_batch_init has room for one of them only."""

    def __init__(self, n_max: int, n_embd: int) -> None:
        self.struct = C.llama_batch_init(n_max, n_embd, 1)
        self._tokens = (C.llama_token * n_max)()
        self.struct.token = ctypes.cast(self._tokens, ctypes.POINTER(C.llama_token))
        self._rows = np.ctypeslib.as_array(self.struct.embd, (n_max, n_embd))
        for slot in range(n_max):
            self.struct.n_seq_id[slot] = 1
            self.struct.seq_id[slot][0] = SEQUENCE

    def close(self) -> None:
        self.struct.token = ctypes.POINTER(C.llama_token)()  # it belongs to Python
        C.llama_batch_free(self.struct)

    def clear(self) -> None:
        self.struct.n_tokens = 0

    def add(self, token: int, position: int, hidden: Row, *, wants_logits: bool = False) -> None:
        slot = self.struct.n_tokens
        self.struct.token[slot], self.struct.pos[slot], self.struct.logits[slot] = token, position, wants_logits
        self._rows[slot] = hidden
        self.struct.n_tokens = slot + 1


_logger = logging.getLogger(__name__)
# How many tokens of both vocabularies are compared, spread evenly: llama.cpp's header checks tell no more.
_COMPARED_TOKENS = 1000


def load_head(
    options: DecidedOptions,
    model: C.llama_model_p,
    ctx: C.llama_context_p,
    context_params: C.llama_context_params,
    is_cancelled: Callable[[], bool],
) -> MtpHead | None:
    """Return the draft head for `ctx`, the context of `model` made with `context_params`.

    None if it isn't asked for or can't be had: the model works without it. The log says why.
    """
    if options.speculative != "mtp" or not C.llama_n_rs_seq(ctx):
        return None
    with contextlib.ExitStack() as undo:
        own = None
        if options.draft_model:
            settings = params.ModelParams(head_options(options), lambda _fraction: not is_cancelled())
            own = C.llama_model_load_from_file(options.draft_model.encode(), settings.struct)
            name = Path(options.draft_model).name
            if not own:
                _logger.warning("The draft head %s could not be loaded. The model is loaded without it.", name)
                return None
            undo.callback(C.llama_model_free, own)
            if not _fits(own, model):
                _logger.warning("The draft head %s is for another model. The model is loaded without it.", name)
                return None
        source = own or model
        if not C.llama_model_n_layer_nextn(source):
            return None
        draft = C.llama_init_from_model(source, params.draft_params(context_params, ctx))
        if not draft:
            _logger.warning("There is too little memory for the draft head. The model is loaded without it.")
            return None
        undo.pop_all()
    vocab = C.llama_model_get_vocab(model)
    return MtpHead(ctx, draft, C.llama_model_n_embd(model), C.llama_vocab_n_tokens(vocab), own)


def head_options(options: DecidedOptions) -> DecidedOptions:
    """Return the options to load a draft head in a file of its own, which goes where the model's last layer is."""
    return msgspec.structs.replace(
        options,
        model=options.draft_model,
        draft_model="",
        n_gpu_layers="all" if params.gpu_layers(options) > 1 else 0,
        n_cpu_moe=0,
        override_tensor=(),
        kv_overrides=(),
    )


def _fits(head: C.llama_model_p, model: C.llama_model_p) -> bool:
    """Return whether hidden rows and tokens of `model` mean the same to `head`."""
    ours, theirs = C.llama_model_get_vocab(model), C.llama_model_get_vocab(head)
    n_tokens = C.llama_vocab_n_tokens(ours)
    return (
        bool(C.llama_model_n_layer_nextn(head))
        and C.llama_model_n_embd_out(head) == C.llama_model_n_embd_out(model)
        and C.llama_vocab_n_tokens(theirs) == n_tokens
        and all(
            C.llama_vocab_get_text(ours, token) == C.llama_vocab_get_text(theirs, token)
            for token in range(0, n_tokens, max(n_tokens // _COMPARED_TOKENS, 1))
        )
    )
