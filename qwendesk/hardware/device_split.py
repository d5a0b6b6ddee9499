"""Deals the layers of a model to several GPUs, and decides of which layers the experts stay in RAM. Pure.

Each GPU gets a run of consecutive layers, in the engine's order, as llama.cpp deals them (layer_split.py). On a GPU
whose run doesn't fit, the experts of its first layers stay in RAM, as few as possible. Of all such splits, the one with
the highest estimated speed is chosen; of equally fast ones, the one with the fewest layers with experts in RAM, then
the one that n_cpu_moe can say best, then the one that fills the GPUs most evenly.
"""

from collections.abc import Sequence
from itertools import accumulate

import msgspec

from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import MachineMemory
from qwendesk.hardware.expert_layers import with_cpu_expert_layers
from qwendesk.hardware.layer_runs import LayerRun, LayerRuns
from qwendesk.hardware.layer_split import planned_gpus


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
