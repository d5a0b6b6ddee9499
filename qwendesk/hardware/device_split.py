"""Deals the layers of a model to several GPUs, and decides of which layers the experts stay in RAM. Pure.

Each GPU gets a run of consecutive layers, in the engine's order, as llama.cpp deals them (layer_split.py). On a GPU
whose run doesn't fit, the experts of its first layers stay in RAM, as few as possible. Of all such splits, the one with
the highest estimated speed is chosen; of equally fast ones, the one with the fewest layers with experts in RAM, then
the one that n_cpu_moe can say best, then the one that fills the GPUs most evenly.

The sums are those of memory_estimate.py and speed_estimate.py, but for any run of layers at once: the estimate of one
whole configuration would be too slow for the thousands of runs that a search compares.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import msgspec

from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import MachineMemory
from qwendesk.hardware.compute_buffers import RamCopies, activation_widths, gpu_bytes, ubatch_of
from qwendesk.hardware.expert_layers import with_cpu_expert_layers
from qwendesk.hardware.layer_split import LayerSplit, planned_gpus
from qwendesk.hardware.memory_estimate import UNQUANTIZED
from qwendesk.hardware.model_memory import (
    LayerWeights,
    kv_layers,
    layer_kv_bytes,
    split_weights,
    state_bytes,
    vision_bytes,
)
from qwendesk.hardware.speed_estimate import SLOW, START_TOKENS, token_rates

# Costs are whole numbers of these parts, so that splits between equal cards cost exactly the same.
_PARTS_OF_A_SECOND = 10**18


class LayerRun(msgspec.Struct, frozen=True):
    """Layers from `begin` to before `end` on one GPU. The output counts as a layer after the last one."""

    begin: int
    end: int
    n_moved: int
    """Number of the first layers that keep their experts in RAM."""
    cost: int
    """Time that a token takes, but for what is the same for all splits."""
    fill: float
    """Share of the GPU's budget that is used."""

    @property
    def moved_layers(self) -> range:
        return range(self.begin, self.begin + self.n_moved)


class LayerRuns:
    """Finds the runs of layers that fit on each GPU."""

    def __init__(
        self,
        facts: ModelFacts,
        mmproj: ModelFacts | None,
        machine: MachineMemory,
        options: LoadOptions,
        *,
        may_move_experts: bool,
    ) -> None:
        weights, gpus = split_weights(facts, options.override_tensor), planned_gpus(machine, options)
        self._layers, self._may_move = weights.layers, may_move_experts
        self._kept_moved = 0 if may_move_experts or options.n_cpu_moe == "auto" else options.n_cpu_moe
        """How many layers, from layer 0, have their experts in RAM if that is not to be decided here."""
        self.n_gpus, self.end = len(gpus), len(weights.layers) + 1
        on_gpu = min(options.n_gpu_layers, self.end) if isinstance(options.n_gpu_layers, int) else self.end
        self.first = self.end - on_gpu
        split = LayerSplit(gpus, options, on_gpu, self.end)
        self._fixed_ends = _fixed_ends(split, self.first, self.end) if options.tensor_split else None
        pinned = {name.upper(): n_bytes for name, n_bytes in weights.pinned}
        self._pinned = [pinned.get(gpu.device.name.upper(), 0) for gpu in gpus]
        self._vision = vision_bytes(mmproj) if options.vision in ("auto", "gpu") else 0
        self._budgets = [gpu.budget_bytes or 0 for gpu in gpus]
        self._other = [gpu.other_bytes for gpu in gpus]
        is_pipelined = not (self.first or may_move_experts or self._kept_moved or options.override_tensor)
        self._buffers = _Buffers(facts, options, weights.layers[: self.first], is_pipelined=is_pipelined)

        kv, states = _cache_bytes(facts, options, self._layers)
        rest = _sums((*(layer.rest for layer in self._layers), weights.output))
        self._experts = _sums((*(layer.experts for layer in self._layers), 0))
        self._fixed = [sum(parts) for parts in zip(rest, kv, states, strict=True)]
        """Bytes of everything but experts in the layers before each one."""
        self._pairs = [layer.expert_pair for layer in self._layers]
        self._pinned_pairs = [layer.pinned_expert_pair for layer in self._layers]
        self._has_pinned = any(self._pinned_pairs)
        self._largest_pairs: dict[int, list[int]] = {}

        rates = token_rates(facts, options, machine, min(START_TOKENS, options.n_ctx or facts.context_length), SLOW)
        self._byte_costs = [round(gpu.byte_s * _PARTS_OF_A_SECOND) for gpu in rates.gpus]
        self._layer_costs = [round(gpu.layer_s * _PARTS_OF_A_SECOND) for gpu in rates.gpus]
        self._hop_costs = [round(gpu.hop_s * _PARTS_OF_A_SECOND) for gpu in rates.gpus]
        self._ram_byte_cost = round(rates.ram_byte_s * _PARTS_OF_A_SECOND)
        self._n_run = self.end - 1 - facts.nextn_layers
        """Layers that are computed: the engine skips next-token layers, which come last."""
        self._read = [
            of_rest + round(of_kv * rates.kv_share) + 2 * of_state
            for of_rest, of_kv, of_state in zip(rest, kv, states, strict=True)
        ]
        self._read_experts = [round(n_bytes * rates.routed_share) for n_bytes in self._experts]

    @property
    def fit(self) -> bool:
        """True if there is a split that fits: if each GPU takes as many layers as it can, none are left."""
        begin = self.first
        for gpu in range(self.n_gpus):
            longest = self._longest_end(gpu, begin)
            if longest < (begin if self._fixed_ends is None else self._fixed_ends[gpu]):
                return False
            begin = longest if self._fixed_ends is None else self._fixed_ends[gpu]
        return begin == self.end

    def of_gpu(self, gpu: int, begin: int, *, may_add_one: bool) -> Iterator[LayerRun]:
        """Yield the runs from layer `begin` that fit on a GPU, with the fewest moved layers.

        With `may_add_one`, runs that need no moved layer also come with one.
        """
        n_moved, budget = 0, self._budgets[gpu]
        for end in self._possible_ends(gpu, begin):
            needed = self._needed(gpu, begin, end, n_moved)
            if needed > budget and self._may_move:
                n_moved = self._fewest_moved(gpu, begin, end, n_moved + 1)
                needed = self._needed(gpu, begin, end, n_moved)
            if needed > budget:
                return
            yield self._run(gpu, begin, end, n_moved, needed)
            if may_add_one and not n_moved and begin < min(end, self.end - 1):
                needed = self._needed(gpu, begin, end, 1)
                if needed <= budget:
                    yield self._run(gpu, begin, end, 1, needed)

    def _possible_ends(self, gpu: int, begin: int) -> Sequence[int]:
        if self._fixed_ends is not None:
            return (self._fixed_ends[gpu],)
        return (self.end,) if gpu == self.n_gpus - 1 else range(begin, self.end + 1)

    def _longest_end(self, gpu: int, begin: int) -> int:
        """Return where the longest run ends; less than `begin` if not even an empty one fits."""

        def least(end: int) -> int:
            most_moved = min(end, self.end - 1) - begin if self._may_move else 0
            return min(self._needed(gpu, begin, end, 0), self._needed(gpu, begin, end, max(most_moved, 0)))

        return begin + bisect_right(range(begin, self.end + 1), self._budgets[gpu], key=least) - 1

    def _run(self, gpu: int, begin: int, end: int, n_moved: int, needed: int) -> LayerRun:
        moved = begin + self._moved(begin, end, n_moved)
        on_gpu = self._read[end] - self._read[begin] + self._read_experts[end] - self._read_experts[moved]
        in_ram = self._read_experts[moved] - self._read_experts[begin]
        n_layers = max(min(end, self._n_run) - begin, 0)
        cost = on_gpu * self._byte_costs[gpu] + in_ram * self._ram_byte_cost
        cost += n_layers * self._layer_costs[gpu] + (moved - begin) * self._hop_costs[gpu]
        return LayerRun(begin, end, n_moved, cost, needed / max(self._budgets[gpu], 1))

    def _moved(self, begin: int, end: int, n_moved: int) -> int:
        return n_moved if self._may_move else max(min(end, self._kept_moved) - begin, 0)

    def _fewest_moved(self, gpu: int, begin: int, end: int, least: int) -> int:
        """Return how many layers' experts must be in RAM for a run to fit; all of them if it can't fit."""
        most = min(end, self.end - 1) - begin
        if least >= most:
            return most
        too_much = self._needed(gpu, begin, end, least) - self._budgets[gpu]
        n_moved = bisect_left(self._experts, self._experts[begin + least] + too_much, begin + least) - begin
        while n_moved < most and self._needed(gpu, begin, end, n_moved) > self._budgets[gpu]:
            n_moved += 1
        return min(n_moved, most)

    def _needed(self, gpu: int, begin: int, end: int, n_moved: int) -> int:
        """Return the bytes on a GPU with a run of layers and everything else that is placed there."""
        moved = begin + self._moved(begin, end, n_moved)
        vision = 0 if gpu else self._vision
        n_bytes = self._fixed[end] - self._fixed[begin] + self._experts[end] - self._experts[moved] + self._pinned[gpu]
        if not n_bytes and not self._buffers.copies_layers(gpu):
            return vision + (self._other[gpu] if vision else 0)
        buffers = self._buffers.of_gpu(gpu, self._largest_pair(begin, end, moved))
        return n_bytes + buffers + vision + self._other[gpu]

    def _largest_pair(self, begin: int, end: int, moved: int) -> int:
        """Return the two largest expert tensors of a layer of a run whose experts are in RAM."""
        if begin not in self._largest_pairs:
            self._largest_pairs[begin] = list(accumulate(self._pairs[begin:], max, initial=0))
        pinned = max(self._pinned_pairs[begin:end], default=0) if self._has_pinned else 0
        return max(self._largest_pairs[begin][moved - begin], pinned)


class _Buffers:
    """Compute buffers of GPUs. They depend on a run only by the experts that it has in RAM."""

    def __init__(
        self, facts: ModelFacts, options: LoadOptions, in_ram: Sequence[LayerWeights], *, is_pipelined: bool
    ) -> None:
        """`in_ram` are the layers that are on no GPU."""
        self._options, self._n_ctx = options, options.n_ctx or facts.context_length
        self._widths, self._n_ubatch = activation_widths(facts), ubatch_of(options, self._n_ctx)
        self._is_pipelined = is_pipelined and options.offload_kqv
        self._layer_kv = layer_kv_bytes(facts, self._n_ctx, options.type_k, options.type_v)
        is_quantized = options.type_k not in UNQUANTIZED or options.type_v not in UNQUANTIZED
        self._unpacked = layer_kv_bytes(facts, self._n_ctx) if is_quantized else 0
        self._largest = max((max(layer.largest, layer.expert_pair // 2) for layer in in_ram), default=0)
        self._has_kv_in_ram = any(layer.has_kv for layer in in_ram)
        self._known: dict[tuple[bool, int], int] = {}

    def copies_layers(self, gpu: int) -> bool:
        """Return True for the GPU that computes large batches of the layers in RAM."""
        return gpu == 0 and self._largest > 0 and self._options.op_offload

    def of_gpu(self, gpu: int, expert_pair: int) -> int:
        """Return the bytes on a GPU. Without offload_kqv, every GPU counts as having a layer with a KV cache."""
        key = gpu == 0, expert_pair
        if key not in self._known:
            self._known[key] = gpu_bytes(
                self._widths,
                self._n_ctx,
                self._n_ubatch,
                self._options.flash_attn != "off",
                self._unpacked,
                self._copies(gpu, expert_pair),
                (2 if gpu else 1) if self._is_pipelined else 0,
            )
        return self._known[key]

    def _copies(self, gpu: int, expert_pair: int) -> RamCopies:
        if not self._options.op_offload:
            return RamCopies()
        has_kv = not self._options.offload_kqv or (self.copies_layers(gpu) and self._has_kv_in_ram)
        return RamCopies(expert_pair, self._largest if self.copies_layers(gpu) else 0, self._layer_kv if has_kv else 0)


def _cache_bytes(
    facts: ModelFacts, options: LoadOptions, layers: Sequence[LayerWeights]
) -> tuple[list[int], list[int]]:
    """Return the bytes of KV caches and of recurrent states in the layers before each one."""
    n_ctx, n_run = options.n_ctx or facts.context_length, len(layers) - facts.nextn_layers
    kv = kv_layers(facts, options, n_ctx)
    layer_state = state_bytes(facts, options) // max(facts.recurrent_layers, 1)
    if not options.offload_kqv:
        kv, layer_state = (0,) * len(layers), 0
    states = [layer_state if index < n_run and not layer.has_kv else 0 for index, layer in enumerate(layers)]
    return _sums((*kv, 0)), _sums((*states, 0))


def _fixed_ends(split: LayerSplit, first: int, end: int) -> list[int]:
    """Return where each GPU's run ends."""
    gpus = [split.gpu_of(layer) for layer in range(first, end)]
    return [first + sum(each <= gpu for each in gpus) for gpu in range(len(split.parts))]


def _sums(values: Iterable[int]) -> list[int]:
    return list(accumulate(values, initial=0))


def can_split(machine: MachineMemory, options: LoadOptions) -> bool:
    """Return True if `best_split` applies: several GPUs of known memory get whole layers."""
    gpus = planned_gpus(machine, options)
    is_known = all(gpu.budget_bytes is not None for gpu in gpus)
    return len(gpus) > 1 and is_known and options.split_mode == "layer" and options.n_gpu_layers != 0


def best_split(
    facts: ModelFacts,
    mmproj: ModelFacts | None,
    machine: MachineMemory,
    options: LoadOptions,
    *,
    may_move_experts: bool,
) -> LoadOptions | None:
    """Return `options` with the best tensor_split and expert layers in RAM; None if nothing fits into the budgets.

    `can_split` must be true. A tensor_split in `options` is kept. With `may_move_experts`, the experts of at least one
    layer stay in RAM, of whichever layers are best; otherwise n_cpu_moe is kept. RAM is not checked.
    """
    runs = LayerRuns(facts, mmproj, machine, options, may_move_experts=may_move_experts)
    if not runs.fit:
        return None
    found = _search(runs, is_forced=False)
    if found is not None and may_move_experts and not found.n_moved:
        found = _search(runs, is_forced=True)
    if found is None:
        return None
    if may_move_experts:
        options = with_cpu_expert_layers(options, (layer for run in found.runs() for layer in run.moved_layers))
    if options.tensor_split:
        return options
    return msgspec.structs.replace(options, tensor_split=shares_of([run.end - run.begin for run in found.runs()]))


def shares_of(counts: Sequence[int]) -> tuple[float, ...]:
    """Return a tensor_split that deals `counts` layers to the GPUs: percentages, or finer for very deep models.

    llama.cpp compares the position of each layer with the sum of the shares so far. The sums lie near the middle
    between two layers, so that rounding can't change the result.
    """
    n_layers, scale = sum(counts), 100
    while scale < n_layers + 5:
        scale *= 10
    sums = [
        scale if end == n_layers else round((end - 0.5) * scale / n_layers) if end else 0 for end in accumulate(counts)
    ]
    return tuple(float(after - before) for before, after in zip((0, *sums), sums, strict=False))


class _Split(msgspec.Struct, frozen=True):
    """The runs of the first GPUs: a linked list, because many splits begin alike."""

    cost: int
    n_moved: int
    """Layers whose experts are in RAM."""
    n_not_counted: int
    """Those of them that n_cpu_moe, which counts from layer 0, doesn't reach."""
    fill: float
    """The largest share of its budget that a GPU uses."""
    run: LayerRun | None = None
    before: "_Split | None" = None

    @property
    def rank(self) -> tuple[int, int, int, float]:
        return self.cost, self.n_moved, self.n_not_counted, self.fill

    def runs(self) -> tuple[LayerRun, ...]:
        return () if self.run is None or self.before is None else (*self.before.runs(), self.run)


def _search(runs: LayerRuns, *, is_forced: bool) -> _Split | None:
    """Return the best split by dynamic programming over the GPUs and the layer where each one's run ends.

    With `is_forced`, the experts of at least one layer are in RAM.
    """
    best = {(runs.first, False): _Split(0, 0, 0, 0.0)}
    for gpu in range(runs.n_gpus):
        reached: dict[tuple[int, bool], _Split] = {}
        for (begin, has_moved), before in best.items():
            for run in runs.of_gpu(gpu, begin, may_add_one=is_forced):
                rank = (
                    before.cost + run.cost,
                    before.n_moved + run.n_moved,
                    before.n_not_counted + (run.n_moved if before.n_moved != begin else 0),
                    max(before.fill, run.fill),
                )
                key = run.end, is_forced and (has_moved or run.n_moved > 0)
                if key not in reached or rank < reached[key].rank:
                    reached[key] = _Split(*rank, run, before)
        best = reached
    return best.get((runs.end, is_forced))
