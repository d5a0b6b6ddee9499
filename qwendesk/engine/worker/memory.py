"""The context's memory as the prompt cache sees it: saved, restored, cut and cleared."""

import ctypes
from collections.abc import Sized

import llama_cpp.llama_cpp as C

from qwendesk.engine.worker.model import SEQUENCE, EngineFault, Model


class ContextMemory:
    """Saves only the part that cannot be cut (recurrent state, sliding windows); the KV cache stays where it is."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def save(self) -> Sized:
        size = C.llama_state_seq_get_size_ext(self._model.ctx, SEQUENCE, C.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY)
        buffer: ctypes.Array[ctypes.c_uint8] = (ctypes.c_uint8 * size)()
        written = C.llama_state_seq_get_data_ext(
            self._model.ctx, buffer, size, SEQUENCE, C.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY
        )
        if written != size:
            raise EngineFault("the engine could not save its recurrent state")
        return buffer

    def restore(self, data: Sized) -> bool:
        """`data` is what `save` gave."""
        read = C.llama_state_seq_set_data_ext(
            self._model.ctx, data, len(data), SEQUENCE, C.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY
        )
        return bool(read == len(data))

    def cut(self, position: int) -> bool:
        return bool(C.llama_memory_seq_rm(self._model.memory, SEQUENCE, position, -1))

    def clear(self) -> None:
        C.llama_memory_clear(self._model.memory, True)
