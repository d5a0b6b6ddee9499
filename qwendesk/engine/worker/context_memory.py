"""The memory of the engine's context, and of the model's draft head if it is used, for the prompt cache."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sized
from typing import cast

import llama_cpp.llama_cpp as C
import numpy as np

from qwendesk.engine.worker.engine_calls import SEQUENCE, EngineFault
from qwendesk.engine.worker.model import LoadedModel

_PREFIX = struct.Struct("<QQQ")
"""A copy begins with the bytes of its three parts: the model's state, the head's state, and the hidden row."""
_WHOLE_STATE = 0
"""The flags of llama_state_seq_get_data_ext for KV cache and recurrent state together."""


class ContextMemory:
    """A checkpoint has only what cannot be cut (recurrent state, sliding windows); the KV cache stays in place.

    The state of a chat has both. With a draft head, both have the hidden row that it drafts from, and the state of a
    chat has the head's KV cache.
    """

    def __init__(self, model: LoadedModel) -> None:
        self._model = model

    def save(self) -> Sized:
        return self._copy(C.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY, with_head=False)

    def restore(self, data: Sized) -> bool:
        """Restore `data`, a return value of `save`. Return False if the engine could not."""
        return self._replace(data, C.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY)

    def n_bytes(self) -> int:
        """Return the size of a copy by `save_all`."""
        return _PREFIX.size + sum(self._sizes(_WHOLE_STATE, with_head=True))

    def save_all(self) -> Sized:
        return self._copy(_WHOLE_STATE, with_head=True)

    def restore_all(self, data: Sized) -> bool:
        return self._replace(data, _WHOLE_STATE)

    def cut(self, position: int) -> bool:
        if not C.llama_memory_seq_rm(self._model.memory, SEQUENCE, position, -1):
            return False
        if self._model.head is not None:
            self._model.head.cut(position)
        return True

    def clear(self) -> None:
        C.llama_memory_clear(self._model.memory, True)
        if self._model.head is not None:
            self._model.head.clear()

    def _sizes(self, flags: int, *, with_head: bool) -> tuple[int, int, int]:
        model, head = self._model, self._model.head
        own = C.llama_state_seq_get_size_ext(model.ctx, SEQUENCE, flags)
        if head is None:
            return own, 0, 0
        return own, C.llama_state_seq_get_size_ext(head.ctx, SEQUENCE, flags) if with_head else 0, head.hidden.nbytes

    def _copy(self, flags: int, *, with_head: bool) -> Sized:
        own, of_head, hidden = sizes = self._sizes(flags, with_head=with_head)
        buffer: ctypes.Array[ctypes.c_uint8] = (ctypes.c_uint8 * (_PREFIX.size + sum(sizes)))()
        _PREFIX.pack_into(buffer, 0, *sizes)
        _save(self._model.ctx, buffer, _PREFIX.size, own, flags)
        head = self._model.head
        if head is not None:
            if of_head:
                _save(head.ctx, buffer, _PREFIX.size + own, of_head, flags)
            memoryview(buffer).cast("B")[_PREFIX.size + own + of_head :] = head.hidden.tobytes()[:hidden]
        return buffer

    def _replace(self, data: Sized, flags: int) -> bool:
        """Restore a copy. What another session had no head for is left out: the head drafts worse then."""
        buffer = cast("ctypes.Array[ctypes.c_uint8]", data)
        own, of_head, hidden = _PREFIX.unpack_from(buffer, 0)
        if _PREFIX.size + own + of_head + hidden != len(data):
            return False
        if not _restore(self._model.ctx, buffer, _PREFIX.size, own, flags):
            return False
        head = self._model.head
        if head is None:
            return True
        if of_head and not _restore(head.ctx, buffer, _PREFIX.size + own, of_head, flags):
            head.clear()
        row = np.frombuffer(memoryview(buffer), np.float32, hidden // 4, _PREFIX.size + own + of_head)
        head.restore_hidden(row.copy() if len(row) == len(head.hidden) else np.zeros_like(head.hidden))
        return True


def _save(ctx: C.llama_context_p, buffer: ctypes.Array[ctypes.c_uint8], offset: int, size: int, flags: int) -> None:
    place = ctypes.cast(ctypes.byref(buffer, offset), ctypes.POINTER(ctypes.c_uint8))
    if C.llama_state_seq_get_data_ext(ctx, place, size, SEQUENCE, flags) != size:
        raise EngineFault("the engine could not copy its state")


def _restore(ctx: C.llama_context_p, buffer: ctypes.Array[ctypes.c_uint8], offset: int, size: int, flags: int) -> bool:
    place = ctypes.cast(ctypes.byref(buffer, offset), ctypes.POINTER(ctypes.c_uint8))
    return bool(C.llama_state_seq_set_data_ext(ctx, place, size, SEQUENCE, flags) == size)
