"""What a token makes the CPU and the GPUs read: the matrices of its weights, and the KV cache."""

import math
import re
from collections import Counter

import msgspec

from qwendesk.core.benchmarks import Attention, Matrix, StreamTest
from qwendesk.core.model_facts import EXPERT_TENSORS, ModelFacts, TensorFacts
from qwendesk.core.options import DecidedOptions
from qwendesk.hardware.expert_layers import cpu_expert_layers
from qwendesk.hardware.model_memory import kv_layers, recurrent_bytes

_BLOCK = re.compile(r"blk\.(\d+)\.")
_EXPERT = re.compile(rf"\.{EXPERT_TENSORS}")
# Only rows of these are read, or nothing at all.
_NOT_MULTIPLIED = ("per_layer_token_embd", "position_embd", "token_types", "rope_")
# Tokens of a KV cache that are enough to measure it: its time grows with them.
_MOST_STREAMED = 16_384
_EMBEDDING, _OUTPUT = "token_embd.weight", "output.weight"


class TokenReads(msgspec.Struct, frozen=True, kw_only=True):
    """What is read for one token with `n_tokens` before it."""

    n_tokens: int
    matrices: tuple[Matrix, ...] = ()
    """Those that the CPU multiplies with."""
    ram_bytes: int = 0
    gpu_bytes: int = 0
    gpu_layers: int = 0
    attention: Attention | None = None
    """One layer's, where the CPU computes it."""
    cpu_caches: int = 0
    """Layers whose KV cache the CPU reads."""
    cpu_cache_bytes: int = 0
    gpu_cache_bytes: int = 0
    cpu_state_bytes: int = 0
    """Recurrent state in RAM, which is read and written."""

    @property
    def n_matrices(self) -> int:
        return sum(matrix.count for matrix in self.matrices)

    def stream_test(self, n_threads: int) -> StreamTest:
        """Return the test that measures how fast this PC's CPU reads all this."""
        return StreamTest(matrices=self.matrices, attention=self.attention, n_threads=n_threads)


def token_reads(facts: ModelFacts, options: DecidedOptions, n_tokens: int, *, has_gpu: bool) -> TokenReads:
    """Return what a token reads. With `has_gpu`, layers are on a GPU as `options` say, else all are in RAM.

    A table that is read row by row isn't counted, and neither are the layers of a draft head.
    """
    n_layers = facts.block_count - facts.nextn_layers
    wanted = n_layers + 1 if options.n_gpu_layers == "all" else options.n_gpu_layers
    first_on_gpu = max(n_layers + 1 - wanted, 0) if has_gpu and "none" not in options.devices else n_layers + 1
    experts_in_ram = frozenset(cpu_expert_layers(options, n_layers))
    names = {tensor.name for tensor in facts.tensors}
    on_cpu: Counter[tuple[str, int, int]] = Counter()
    ram_bytes = gpu_bytes = 0
    for tensor in facts.tensors:
        found = _BLOCK.match(tensor.name)
        layer = int(found[1]) if found else n_layers  # the output is placed like a layer after the last one
        if layer > n_layers or (found and layer >= n_layers) or not _is_multiplied(tensor, names):
            continue
        is_expert = _EXPERT.search(tensor.name) is not None
        used = facts.expert_used_count if is_expert and len(tensor.shape) > 2 else 1
        n_bytes = tensor.n_bytes * used // (math.prod(tensor.shape[2:]) or 1)
        if layer >= first_on_gpu and not (is_expert and layer in experts_in_ram):
            gpu_bytes += n_bytes
            continue
        ram_bytes += n_bytes
        on_cpu[tensor.type, tensor.shape[0], tensor.shape[1]] += used
    caches = kv_layers(facts, options, n_tokens)[:n_layers]
    starts_on_gpu = first_on_gpu if options.offload_kqv else n_layers
    in_ram = [n_bytes for n_bytes in caches[:starts_on_gpu] if n_bytes]
    return TokenReads(
        n_tokens=n_tokens,
        matrices=tuple(Matrix(*kind, count) for kind, count in on_cpu.items()),
        ram_bytes=ram_bytes,
        gpu_bytes=gpu_bytes,
        gpu_layers=n_layers - min(first_on_gpu, n_layers),
        attention=_attention(facts, options, n_tokens) if in_ram else None,
        cpu_caches=len(in_ram),
        cpu_cache_bytes=sum(in_ram),
        gpu_cache_bytes=sum(caches[starts_on_gpu:]),
        cpu_state_bytes=recurrent_bytes(facts) * min(starts_on_gpu, n_layers) // max(n_layers, 1),
    )


def _is_multiplied(tensor: TensorFacts, names: set[str]) -> bool:
    """Return whether a token is multiplied with the whole of it. Tied embeddings are the output, too."""
    if len(tensor.shape) < 2 or tensor.name.startswith(_NOT_MULTIPLIED) or "conv1d" in tensor.name:
        return False
    return tensor.name != _EMBEDDING or _OUTPUT not in names


def _attention(facts: ModelFacts, options: DecidedOptions, n_tokens: int) -> Attention | None:
    """Return the attention of a layer with at most so many tokens; None if the header doesn't say its shape."""
    if not facts.head_count or not n_tokens:
        return None
    length = facts.embedding_length // facts.head_count
    heads_kv = max(facts.layer_heads_kv, default=0) or facts.head_count_kv or facts.head_count
    return Attention(
        type_k=options.type_k.upper(),
        type_v=options.type_v.upper(),
        key_length=facts.key_length or length,
        value_length=facts.value_length or length,
        n_heads=facts.head_count,
        n_heads_kv=heads_kv,
        n_tokens=min(n_tokens, _MOST_STREAMED),
    )
