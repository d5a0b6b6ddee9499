"""Which layers keep their experts in RAM, as the load options say it.

llama.cpp's n_cpu_moe counts from layer 0. Experts of other layers, such as those of a full second card, are kept in
RAM by a placement pattern.
"""

import functools
import re
from collections.abc import Iterable, Sequence

import msgspec

from qwendesk.core.model_facts import EXPERT_TENSORS
from qwendesk.core.options import LoadOptions

_OURS = re.compile(r"blk\\\.\(\d+(\|\d+)*\)\\\." + re.escape(EXPERT_TENSORS) + "=CPU")
# Expert tensors that every mixture has; a layer counts if a pattern keeps both in RAM.
_PARTS = ("up", "down")


def cpu_expert_layers(options: LoadOptions, n_layers: int) -> tuple[int, ...]:
    """Return the layers, of `n_layers`, whose experts are in RAM by n_cpu_moe or by a placement pattern.

    Raises re.error if a pattern is not a valid regular expression.
    """
    counted = min(options.n_cpu_moe, n_layers) if isinstance(options.n_cpu_moe, int) else 0
    return (*range(counted), *(layer for layer in _pinned(options.override_tensor, n_layers) if layer >= counted))


def with_cpu_expert_layers(options: LoadOptions, layers: Iterable[int]) -> LoadOptions:
    """Return `options` with the experts of exactly these layers in RAM, beside what the user's own patterns place.

    The layers from 0 on become n_cpu_moe, the others one placement pattern after the user's own.
    """
    wanted = sorted(set(layers))
    counted = next((number for number, layer in enumerate(wanted) if number != layer), len(wanted))
    patterns = own_patterns(options)
    if wanted[counted:]:
        patterns += (_pattern(wanted[counted:]),)
    return msgspec.structs.replace(options, n_cpu_moe=counted, override_tensor=patterns)


def count_cpu_expert_layers(options: LoadOptions) -> int:
    """Return the number of layers with experts in RAM by n_cpu_moe, or by a pattern of `with_cpu_expert_layers`."""
    counted = options.n_cpu_moe if isinstance(options.n_cpu_moe, int) else 0
    ours = (each for each in options.override_tensor if _OURS.fullmatch(each))
    layers = {int(number) for each in ours for number in re.findall(r"\d+", each)}
    return counted + sum(layer >= counted for layer in layers)


def own_patterns(options: LoadOptions) -> tuple[str, ...]:
    """Return the placement patterns that were not made by `with_cpu_expert_layers`."""
    return tuple(each for each in options.override_tensor if not _OURS.fullmatch(each))


def _pattern(layers: Sequence[int]) -> str:
    return rf"blk\.({'|'.join(map(str, layers))})\.{EXPERT_TENSORS}=CPU"


@functools.lru_cache(maxsize=64)
def _pinned(override_tensor: tuple[str, ...], n_layers: int) -> tuple[int, ...]:
    if not override_tensor:
        return ()
    pairs = [(re.compile(pattern), place) for pattern, _, place in (each.rpartition("=") for each in override_tensor)]

    def is_in_ram(name: str) -> bool:
        place = next((place for pattern, place in pairs if pattern.search(name)), "")
        return place.upper().startswith("CPU")

    return tuple(
        layer for layer in range(n_layers) if all(is_in_ram(f"blk.{layer}.ffn_{part}_exps.weight") for part in _PARTS)
    )
