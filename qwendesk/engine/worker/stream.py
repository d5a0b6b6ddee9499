"""Measures how fast the CPU reads what a token reads: a stream loop of ggml's own operations, and nothing else.

llama-cpp-python has no functions of ggml, so the few that are needed are declared here, as ggml.h and ggml-backend.h of
the pinned engine have them.
"""

import contextlib
import ctypes
import functools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import llama_cpp.llama_cpp as C

from qwendesk.core.benchmarks import Attention, Matrix, StreamSpeed, StreamTest
from qwendesk.core.errors import BadRequest
from qwendesk.core.translation import mark
from qwendesk.engine.worker import devices
from qwendesk.engine.worker.engine_calls import own_table
from qwendesk.engine.worker.params import CACHE_TYPES

# GGML_BACKEND_DEVICE_TYPE_CPU
_CPU = 0
# Passes of each part: at least and at most, and the seconds after which there is none beyond the fewest.
_FEWEST, _PASSES, _LONGEST_S = 6, 20, 1.0
# Every byte of the buffer. Such numbers are small and normal in every type, so nothing slows an operation down.
_BYTE = 0x11
_ALIGNED = 256
# A plain reader: one matrix of floats, with which the CPU computes little.
_PLAIN = Matrix("F32", 4096, 12_288)
_SMALL_STEPS, _SMALL_WIDTH = 500, 1024
_MOST_NODES = 16_384


def stream(test: StreamTest) -> StreamSpeed:
    """Measure a test. Raise BadRequest if this engine can't."""
    fills: tuple[Callable[[_Graph], None], ...] = (
        lambda graph: graph.multiply((_PLAIN,)),
        lambda graph: graph.multiply(test.matrices),
        lambda graph: graph.add_small(_SMALL_STEPS),
        lambda graph: graph.attend(test.attention),
    )
    medians = []
    for fill in fills:
        with _graph(test.n_threads, test.buffer_bytes) as graph:
            fill(graph)
            medians.append(graph.median_s())
    plain_s, matrices_s, small_s, attention_s = medians
    return StreamSpeed(
        ram_bytes_s=4 * _PLAIN.n_in * _PLAIN.n_out / plain_s,
        matrices_s=matrices_s,
        step_s=small_s / _SMALL_STEPS,
        attention_s=attention_s,
    )


class _Graph:
    """Operations that the CPU computes one after the other. Their tensors lie in one buffer, round and round."""

    def __init__(self, ggml: Any, context: int, backend: int, buffer: int, n_bytes: int) -> None:
        self._ggml, self._context, self._backend = ggml, context, backend
        self._buffer, self._n_bytes, self._offset = buffer, n_bytes, 0
        self._base: int = ggml.ggml_backend_buffer_get_base(buffer)
        self._graph = ggml.ggml_new_graph_custom(context, _MOST_NODES, False)
        self._n_nodes = 0

    def multiply(self, matrices: Sequence[Matrix]) -> None:
        """Multiply a vector by each matrix, and by one of each kind before the next of it, as in layers."""
        for number in range(max((matrix.count for matrix in matrices), default=0)):
            for matrix in matrices:
                if number < matrix.count:
                    self._multiply(matrix)

    def _multiply(self, matrix: Matrix) -> None:
        vector = self._tensor("F32", matrix.n_in)
        row_bytes = self._ggml.ggml_row_size(_number_of(matrix.type), matrix.n_in)
        # The output of a large model doesn't fit into the buffer.
        most_rows = max(self._n_bytes // row_bytes - 1, 1)
        for first in range(0, matrix.n_out, most_rows):
            weights = self._tensor(matrix.type, matrix.n_in, min(most_rows, matrix.n_out - first))
            self._add(self._ggml.ggml_mul_mat(self._context, weights, vector))

    def add_small(self, count: int) -> None:
        """Add a short vector to the result of the operation before, again and again."""
        result = other = self._tensor("F32", _SMALL_WIDTH)
        for _ in range(count):
            result = self._add(self._ggml.ggml_add(self._context, result, other))

    def attend(self, each: Attention | None) -> None:
        """Look at a KV cache as flash attention does for one token."""
        if each is None:
            return
        query = self._tensor("F32", each.key_length, 1, each.n_heads)
        keys = self._cache(each.type_k, each.key_length, each)
        values = self._cache(each.type_v, each.value_length, each)
        scale = each.key_length**-0.5
        self._add(self._ggml.ggml_flash_attn_ext(self._context, query, keys, values, None, scale, 0.0, 0.0))

    def _cache(self, kind: str, length: int, each: Attention) -> int:
        """Return the keys or values as llama.cpp passes them: all heads of a token lie together, and F32 is cast."""
        cells = self._tensor(kind, length, each.n_heads_kv, each.n_tokens)
        view: int = self._ggml.ggml_permute(self._context, cells, 0, 2, 1, 3)
        if kind != "F32":
            return view
        return self._add(self._ggml.ggml_cast(self._context, view, C.GGML_TYPE_F16))

    def median_s(self) -> float:
        """Return the seconds that a pass takes; 0.0 without operations. The first pass warms up."""
        seconds: list[float] = []
        while self._n_nodes and len(seconds) <= _PASSES and (len(seconds) < _FEWEST or sum(seconds) < _LONGEST_S):
            began = time.perf_counter()
            if self._ggml.ggml_backend_graph_compute(self._backend, self._graph):
                raise _unable()
            seconds.append(time.perf_counter() - began)
        return statistics.median(seconds[1:]) if seconds else 0.0

    def _tensor(self, kind: str, n_in: int, n_rows: int = 1, n_heads: int = 1) -> int:
        return self._placed(self._ggml.ggml_new_tensor_3d(self._context, _number_of(kind), n_in, n_rows, n_heads))

    def _add(self, node: int) -> int:
        self._ggml.ggml_build_forward_expand(self._graph, self._placed(node))
        self._n_nodes += 1
        if self._n_nodes >= _MOST_NODES // 2:
            raise _unable()
        return node

    def _placed(self, tensor: int) -> int:
        n_bytes = self._ggml.ggml_nbytes(tensor)
        if n_bytes > self._n_bytes:
            raise _unable()
        if self._offset + n_bytes > self._n_bytes:
            self._offset = 0
        self._ggml.ggml_backend_tensor_alloc(self._buffer, tensor, self._base + self._offset)
        self._offset += -(-n_bytes // _ALIGNED) * _ALIGNED
        return tensor


@contextlib.contextmanager
def _graph(n_threads: int, n_bytes: int) -> Iterator[_Graph]:
    """Yield an empty graph. Raise BadRequest if this engine can't compute it."""
    ggml = _ggml()
    with contextlib.ExitStack() as closing:

        def own(pointer: int | None, free: Callable[[int], None]) -> int:
            if not pointer:
                raise _unable()
            closing.callback(free, pointer)
            return pointer

        device = ggml.ggml_backend_dev_by_type(_CPU)
        backend = own(ggml.ggml_backend_dev_init(device, None) if device else None, ggml.ggml_backend_free)
        registry = ggml.ggml_backend_dev_backend_reg(device)
        set_threads = ggml.ggml_backend_reg_get_proc_address(registry, b"ggml_backend_set_n_threads")
        if not set_threads:
            raise _unable()
        ctypes.CFUNCTYPE(None, _POINTER, ctypes.c_int)(set_threads)(backend, n_threads)
        room = 3 * _MOST_NODES * ggml.ggml_tensor_overhead() + ggml.ggml_graph_overhead_custom(_MOST_NODES, False)
        context = own(ggml.ggml_init(_Params(room, None, True)), ggml.ggml_free)
        buffer = own(ggml.ggml_backend_alloc_buffer(backend, n_bytes), ggml.ggml_backend_buffer_free)
        ggml.ggml_backend_buffer_clear(buffer, _BYTE)
        yield _Graph(ggml, context, backend, buffer, n_bytes)


def _number_of(kind: str) -> int:
    """Return ggml's number of a type, such as 12 for "Q4_K"."""
    number = CACHE_TYPES["bf16"] if kind == "BF16" else getattr(C, f"GGML_TYPE_{kind}", None)
    if not isinstance(number, int):
        raise _unable()
    return number


def _unable() -> BadRequest:
    return BadRequest(mark("Can't measure"), mark("This engine can't measure the speed of the RAM."))


class _Params(ctypes.Structure):
    _fields_ = (("mem_size", ctypes.c_size_t), ("mem_buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool))


_POINTER, _SIZE, _INT, _INT64, _FLOAT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int64, ctypes.c_float
# By name, the type of the result and those of the arguments.
_SIGNATURES: Mapping[str, tuple[Any, ...]] = MappingProxyType(
    {
        "ggml_backend_alloc_buffer": (_POINTER, _POINTER, _SIZE),
        "ggml_backend_buffer_clear": (None, _POINTER, ctypes.c_uint8),
        "ggml_backend_buffer_free": (None, _POINTER),
        "ggml_backend_buffer_get_base": (_POINTER, _POINTER),
        "ggml_backend_dev_backend_reg": (_POINTER, _POINTER),
        "ggml_backend_dev_by_type": (_POINTER, _INT),
        "ggml_backend_dev_init": (_POINTER, _POINTER, ctypes.c_char_p),
        "ggml_backend_free": (None, _POINTER),
        "ggml_backend_graph_compute": (_INT, _POINTER, _POINTER),
        "ggml_backend_reg_get_proc_address": (_POINTER, _POINTER, ctypes.c_char_p),
        "ggml_backend_tensor_alloc": (_INT, _POINTER, _POINTER, _POINTER),
        "ggml_build_forward_expand": (None, _POINTER, _POINTER),
        "ggml_cast": (_POINTER, _POINTER, _POINTER, _INT),
        "ggml_permute": (_POINTER, _POINTER, _POINTER, _INT, _INT, _INT, _INT),
        "ggml_add": (_POINTER, _POINTER, _POINTER, _POINTER),
        "ggml_flash_attn_ext": (_POINTER, *(_POINTER,) * 5, _FLOAT, _FLOAT, _FLOAT),
        "ggml_free": (None, _POINTER),
        "ggml_graph_overhead_custom": (_SIZE, _SIZE, ctypes.c_bool),
        "ggml_init": (_POINTER, _Params),
        "ggml_mul_mat": (_POINTER, _POINTER, _POINTER, _POINTER),
        "ggml_nbytes": (_SIZE, _POINTER),
        "ggml_new_graph_custom": (_POINTER, _POINTER, _SIZE, ctypes.c_bool),
        "ggml_new_tensor_3d": (_POINTER, _POINTER, _INT, _INT64, _INT64, _INT64),
        "ggml_row_size": (_SIZE, _INT, _INT64),
        "ggml_tensor_overhead": (_SIZE,),
    }
)


@functools.cache
def _ggml() -> Any:
    """Return the library with the functions of `_SIGNATURES`. Raise BadRequest if this engine lacks one of them.

    An engine of another release may have them with other types, which its table tells.
    """
    table = own_table()
    if table is not None:
        from qwendesk.core.engine_abi import has_optional, known_abis, read_abi  # noqa: PLC0415 - few engines need it

        if not has_optional(known_abis()[0], read_abi(table)):
            raise _unable()
    library: Any = devices.ggml()
    try:
        for name, (result, *arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except AttributeError:
        raise _unable() from None
    return library
