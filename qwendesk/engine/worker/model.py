"""A loaded model: its native handles, and the basic calls that the rest of the worker is built on."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import llama_cpp.llama_cpp as C
import numpy as np
import numpy.typing as npt

from qwendesk.engine.worker.engine_calls import SEQUENCE, EngineFault, check
from qwendesk.engine.worker.logits import Row
from qwendesk.engine.worker.mtp_head import MtpHead
from qwendesk.engine.worker.prompt import Vocabulary

# What stands for the first byte of a token that may match something else than its text, too.
ANY_BYTE = 256
_MORE_THAN_TEXT = C.LLAMA_TOKEN_ATTR_CONTROL | C.LLAMA_TOKEN_ATTR_USER_DEFINED


class FirstBytes(NamedTuple):
    of_tokens: npt.NDArray[np.uint16]
    """The first byte of each token's text; ANY_BYTE if it has none, or may stand for something else."""
    alone: npt.NDArray[np.int32]
    """The tokens of one byte."""


class AbortFlag:
    """A byte that the engine polls while it decodes on the CPU.

    The callback is libc's strlen on a string of at most one byte: the engine continues at 0 and stops at 1. A Python
    callback would slow decoding down by 2-3%.
    """

    def __init__(self) -> None:
        self._byte = ctypes.create_string_buffer(b"\0\0", 2)
        libc = ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)
        self._callback = ctypes.cast(libc.strlen, C.ggml_abort_callback)

    def raise_(self) -> None:
        self._byte[0] = b"\x01"

    def lower(self) -> None:
        self._byte[0] = b"\0"

    def attach(self, ctx: C.llama_context_p) -> None:
        C.llama_set_abort_callback(ctx, self._callback, ctypes.cast(self._byte, ctypes.c_void_p))


class LoadedModel:
    """Owns the model and its context; `close` frees both. Not thread-safe: one thread decodes."""

    def __init__(self, handle: C.llama_model_p, ctx: C.llama_context_p, head: MtpHead | None = None) -> None:
        vocab, memory = C.llama_model_get_vocab(handle), C.llama_get_memory(ctx)
        if vocab is None or memory is None:
            raise EngineFault("the engine gave a model without vocabulary or memory")
        self.handle, self.ctx, self.vocab, self.memory, self.head = handle, ctx, vocab, memory, head
        self.n_ctx: int = C.llama_n_ctx(ctx)
        self.n_ubatch: int = C.llama_n_ubatch(ctx)
        self.n_vocab: int = C.llama_vocab_n_tokens(vocab)
        self.first_token: int = C.llama_vocab_bos(vocab) if C.llama_vocab_get_add_bos(vocab) else -1
        """The token with which every text has to begin; -1 if there is none."""
        self.can_cut_anywhere = not (
            C.llama_model_is_hybrid(handle) or C.llama_model_is_recurrent(handle) or C.llama_model_n_swa(handle) > 0
        )
        """Memory of plain attention can be cut anywhere. Recurrent and sliding-window memory needs checkpoints."""
        self.abort = AbortFlag()
        self.abort.attach(ctx)
        self._batch = C.llama_batch_init(self.n_ubatch, 0, 1)
        self._pieces: dict[int, bytes] = {}
        for slot in range(self.n_ubatch):
            self._batch.n_seq_id[slot] = 1
            self._batch.seq_id[slot][0] = SEQUENCE

    def close(self) -> None:
        if self.head is not None:
            self.head.close()
        C.llama_batch_free(self._batch)
        C.llama_free(self.ctx)
        C.llama_model_free(self.handle)

    def decode(self, tokens: Sequence[int], position: int, *, rows: int = 1) -> None:
        """Decode up to n_ubatch tokens at `position`. Compute the logits of the last `rows` of them.

        Raise Aborted if the abort flag stopped the decode, and EngineFault if it failed.
        """
        batch, n_tokens = self._batch, len(tokens)
        batch.n_tokens = n_tokens
        if n_tokens == 1:
            batch.token[0], batch.pos[0], batch.logits[0] = tokens[0], position, bool(rows)
        else:
            _view(batch.token, n_tokens)[:] = tokens
            _view(batch.pos, n_tokens)[:] = np.arange(position, position + n_tokens, dtype=np.int32)
            flags = np.ctypeslib.as_array(batch.logits, (n_tokens,))
            flags[:] = 0
            flags[n_tokens - rows :] = 1
        check(C.llama_decode(self.ctx, batch))
        if self.head is not None:
            self.head.follow(tokens, position)

    def logits(self, row: int) -> Row:
        """Return a row of the last decode's logits: -1 is the last one. It is the engine's own memory."""
        return np.ctypeslib.as_array(C.llama_get_logits_ith(self.ctx, row), (self.n_vocab,))

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """Return the token ids of `text`, with nothing added. Control tokens are only recognized if `special`."""
        raw = text.encode("utf-8", "replace")
        room = len(raw) + 8
        array = (C.llama_token * room)()
        n_tokens = C.llama_tokenize(self.vocab, raw, len(raw), array, room, False, special)
        if n_tokens < 0:
            raise EngineFault(f"the tokenizer wanted {-n_tokens} places for {len(raw)} bytes")
        return list(array[:n_tokens])

    def piece(self, token: int) -> bytes:
        """Return the bytes of `token`; control tokens have none."""
        known = self._pieces.get(token)
        if known is None:
            known = self._pieces[token] = self._piece(token, special=False)
        return known

    @cached_property
    def first_bytes(self) -> FirstBytes:
        return first_bytes_of(self.vocab)

    def is_end(self, token: int) -> bool:
        return bool(C.llama_vocab_is_eog(self.vocab, token))

    def vocabulary(self) -> Vocabulary:
        """Return the control and user-defined tokens by their text, and the tokenizer, for building prompts."""
        control: dict[str, int] = {}
        user_defined: dict[str, int] = {}
        for token in range(self.n_vocab):
            attributes = C.llama_vocab_get_attr(self.vocab, token)
            if attributes & (C.LLAMA_TOKEN_ATTR_CONTROL | C.LLAMA_TOKEN_ATTR_USER_DEFINED):
                text = self._piece(token, special=True).decode("utf-8", "replace")
                if text:
                    (control if attributes & C.LLAMA_TOKEN_ATTR_CONTROL else user_defined)[text] = token
        begin = self._piece(self.first_token, special=True).decode("utf-8", "replace") if self.first_token >= 0 else ""
        return Vocabulary(control=control, user_defined=user_defined, tokenize=self.tokenize, begin=begin)

    def meta(self, key: str) -> str:
        """Return a value of the file's header as text; "" if it has none."""
        room = 1 << 16
        while True:
            buffer = ctypes.create_string_buffer(room)
            length = C.llama_model_meta_val_str(self.handle, key.encode(), buffer, room)
            if length < room:
                return buffer.raw[:length].decode("utf-8", "replace") if length > 0 else ""
            room = length + 1

    def _piece(self, token: int, *, special: bool) -> bytes:
        room = 64
        while True:
            buffer = ctypes.create_string_buffer(room)
            length = C.llama_token_to_piece(self.vocab, token, buffer, room, 0, special)
            if length >= 0:
                return buffer.raw[:length]
            room = -length


def _view(pointer: ctypes._Pointer[ctypes.c_int32], length: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.ctypeslib.as_array(pointer, (length,))


def first_bytes_of(vocab: C.llama_vocab_p) -> FirstBytes:
    """Return the bytes that tokens begin with. Takes half a second for a large vocabulary."""
    buffer, alone, n_vocab = ctypes.create_string_buffer(256), [], C.llama_vocab_n_tokens(vocab)
    found = np.full(n_vocab, ANY_BYTE, dtype=np.uint16)
    for token in range(n_vocab):
        if C.llama_vocab_get_attr(vocab, token) & _MORE_THAN_TEXT or C.llama_vocab_is_eog(vocab, token):
            continue
        n_bytes = C.llama_token_to_piece(vocab, token, buffer, len(buffer), 0, True)
        if n_bytes > 0:
            found[token] = buffer[0][0]
        if n_bytes == 1:
            alone.append(token)
    return FirstBytes(found, np.array(alone, dtype=np.int32))
