"""Plans how to load a model on a machine: pure numbers in, a plan out. The order of the steps is ladder.py's.

A plan fills no GPU beyond its budget, min(total - reserve, free now + ours - 512 MiB), and no more RAM than there is.
The first step that fits is taken, so with one expert layer fewer on the CPU it would not fit.
"""

from collections.abc import Iterable, Sequence

import msgspec

from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Machine, Plan, PlanKind, Prices
from qwendesk.core.units import MIB
from qwendesk.hardware.estimate import split_weights
from qwendesk.hardware.ladder import Start, steps
from qwendesk.hardware.plan_words import label_of, sentences
from qwendesk.hardware.pricing import price
from qwendesk.hardware.sharing import gpus_of
from qwendesk.hardware.speed import estimate_speed

__all__ = ["choices", "judge", "price", "solve"]

TINY_MODEL_BYTES = 64 * MIB
"""Up to this size one thread is fastest: with more, they wait for each other longer than they work. Measured on the
demo model (3 MB): 5,000 tok/s with one thread on an idle PC, and with two a hundred times less on a busy one."""


def solve(facts: ModelFacts, mmproj: ModelFacts | None, machine: Machine, options: LoadOptions) -> Plan:
    """The best plan for what `options` leave open; what they set is kept.

    `fits` is False when nothing does: the plan is then the one that misses least. When the GPUs cannot help at all,
    `devices` becomes "none" and everything lies in RAM. Raises re.error for a placement pattern that is no regular
    expression.
    """
    mmproj = None if options.vision == "off" else mmproj
    open_gpus = gpus_of(machine, options)
    if options.n_gpu_layers == "auto" and any(gpu.budget_bytes is None for gpu in open_gpus):
        machine = msgspec.structs.replace(
            machine,
            devices=tuple(
                device
                for device in machine.devices
                if device.name not in {gpu.device.name for gpu in open_gpus if gpu.budget_bytes is None}
            ),
        )
        open_gpus = tuple(gpu for gpu in open_gpus if gpu.budget_bytes is not None)
    search = _Search(facts, mmproj, machine, options)
    found = search.first_that_fits(_ladder(facts, mmproj, options, has_gpu=bool(open_gpus)))
    if found is None and open_gpus and options.n_gpu_layers == "auto" and not options.devices:
        alone = msgspec.structs.replace(options, devices=("none",))
        found = search.first_that_fits(_ladder(facts, mmproj, alone, has_gpu=False))
    return found or search.nearest()


def judge(facts: ModelFacts, mmproj: ModelFacts | None, machine: Machine, options: LoadOptions) -> Plan:
    """The plan that `options` are as they stand: nothing is decided, only priced, explained and checked."""
    prices = price(facts, options, machine, mmproj)
    return _plan(facts, mmproj, machine, options, options, prices)


def choices(facts: ModelFacts, mmproj: ModelFacts | None, machine: Machine, options: LoadOptions) -> tuple[Plan, ...]:
    """The plan first, then ways that need a warning: all experts in RAM, and more than RAM holds read from disk.

    Each has a label that must be shown beside it. Only those that differ from the plan are given.
    """
    best = solve(facts, mmproj, machine, options)
    found = [best]
    blocks = split_weights(facts, options.override_tensor).expert_blocks
    if blocks and gpus_of(machine, options) and options.n_cpu_moe == "auto" and best.options.n_cpu_moe != blocks:
        found.append(solve(facts, mmproj, machine, msgspec.structs.replace(options, n_cpu_moe=blocks)))
    if not best.fits and options.load_mode in ("auto", "mmap"):
        found.append(solve(facts, mmproj, machine, msgspec.structs.replace(options, load_mode="mmap")))
    return tuple(plan for plan in found if plan is best or plan.fits)


def choose_file(
    candidates: Sequence[ModelFacts], mmproj: ModelFacts | None, machine: Machine, options: LoadOptions
) -> tuple[int, Plan] | None:
    """The file (index into `candidates`, all of one model in different quants) that suits the machine best, with its
    plan; None when none fits.

    The largest that lies in video memory altogether, if it has at least four bits a weight or so; a mixture else
    takes the largest of about that size with experts in RAM, as few bits cost more than slow experts do; else the
    largest that fits at all.
    """
    plans = [(index, solve(facts, mmproj, machine, options)) for index, facts in enumerate(candidates)]
    fitting = [(index, plan) for index, plan in plans if plan.fits]
    if not fitting:
        return None

    def size(item: tuple[int, Plan]) -> int:
        return candidates[item[0]].file_bytes

    most = max(each.file_bytes for each in candidates)
    good = [item for item in fitting if item[1].kind == "vram" and size(item) >= most * _GOOD_SHARE]
    if good:
        return max(good, key=size)
    usual = [item for item in fitting if item[1].kind == "some_experts_in_ram" and size(item) <= most * _USUAL_SHARE]
    if usual and options.aim != "speed":
        return max(usual, key=size)
    whole = [item for item in fitting if item[1].kind == "vram"]
    return max(whole or usual or fitting, key=size)


_GOOD_SHARE = 0.5
"""Of the largest candidate (Q8_0, 8.5 bits): about 4.25 bits a weight."""
_USUAL_SHARE = 0.62
"""About Q4_K_M, 4.9 bits: with experts in RAM, more bits read more slowly and answer hardly better."""


def _ladder(
    facts: ModelFacts, mmproj: ModelFacts | None, options: LoadOptions, *, has_gpu: bool
) -> Iterable[LoadOptions]:
    return steps(
        Start(
            facts=facts,
            options=options,
            expert_blocks=split_weights(facts, options.override_tensor).expert_blocks,
            has_gpu=has_gpu,
            has_pictures=mmproj is not None,
        )
    )


class _Search:
    """Prices steps until one fits, and remembers the one that misses least."""

    def __init__(self, facts: ModelFacts, mmproj: ModelFacts | None, machine: Machine, asked: LoadOptions) -> None:
        self._facts, self._mmproj, self._machine, self._asked = facts, mmproj, machine, asked
        self._nearest: tuple[tuple[bool, int], LoadOptions, Prices] | None = None

    def first_that_fits(self, ladder: Iterable[LoadOptions]) -> Plan | None:
        for options in ladder:
            prices = price(self._facts, options, self._machine, self._mmproj)
            missing = missing_bytes(prices, options)
            if not missing:
                return self._plan(options, prices)
            rank = (any(not _within_limits(gpu.total_bytes, gpu.limit_bytes) for gpu in prices.gpus), missing)
            if self._nearest is None or rank < self._nearest[0]:
                self._nearest = (rank, options, prices)
        return None

    def nearest(self) -> Plan:
        assert self._nearest is not None, "a ladder has at least one step"
        return self._plan(*self._nearest[1:])

    def _plan(self, options: LoadOptions, prices: Prices) -> Plan:
        return _plan(self._facts, self._mmproj, self._machine, self._asked, options, prices)


def missing_bytes(prices: Prices, options: LoadOptions) -> int:
    """Bytes beyond the budgets, of all devices together. With the load mode mmap, weights may stay on disk."""
    on_disk = prices.ram_weights_bytes if options.load_mode == "mmap" else 0
    ram = max(prices.ram.total_bytes - on_disk - (prices.ram.budget_bytes or 0), 0)
    return ram + sum(gpu.missing_bytes for gpu in prices.gpus)


def could_load(plan: Plan, asked: LoadOptions) -> bool:
    """Whether a plan that does not fit its budget loads all the same: what the user set may use all that is free."""
    on_disk = plan.prices.ram_weights_bytes if asked.load_mode == "mmap" else 0
    ram = plan.prices.ram
    return all(_within_limits(gpu.total_bytes, gpu.limit_bytes) for gpu in plan.prices.gpus) and _within_limits(
        ram.total_bytes - on_disk, ram.limit_bytes
    )


def _within_limits(n_bytes: int, limit_bytes: int | None) -> bool:
    return limit_bytes is None or n_bytes <= limit_bytes


def _plan(
    facts: ModelFacts,
    mmproj: ModelFacts | None,
    machine: Machine,
    asked: LoadOptions,
    options: LoadOptions,
    prices: Prices,
) -> Plan:
    kind = _kind(facts, options, prices)
    options = _finished(facts, machine, options, prices)
    fits = not missing_bytes(prices, asked)
    return Plan(
        fits=fits,
        options=options,
        prices=prices,
        kind=kind,
        speed=estimate_speed(facts, options, prices, machine),
        why=sentences(facts, mmproj, asked, options, prices, fits=fits),
        label=label_of(kind, prices, fits=fits),
    )


def _kind(facts: ModelFacts, options: LoadOptions, prices: Prices) -> PlanKind:
    ram = prices.ram
    if ram.budget_bytes is not None and ram.total_bytes > ram.budget_bytes and options.load_mode == "mmap":
        return "disk"
    if not prices.gpus or options.n_gpu_layers == 0:
        return "cpu"
    if isinstance(options.n_gpu_layers, int) and options.n_gpu_layers < facts.block_count:
        return "layers_in_ram"
    if not prices.experts_in_ram:
        return "vram"
    blocks = split_weights(facts, options.override_tensor).expert_blocks
    moved = options.n_cpu_moe if isinstance(options.n_cpu_moe, int) else 0
    return "all_experts_in_ram" if moved >= blocks else "some_experts_in_ram"


def _finished(facts: ModelFacts, machine: Machine, options: LoadOptions, prices: Prices) -> LoadOptions:
    """With the load mode and the threads decided: copied into RAM when experts work there, else mapped."""
    load_mode = options.load_mode
    if load_mode == "auto":
        load_mode = "none" if prices.gpus and options.n_gpu_layers != 0 and prices.experts_in_ram else "mmap"
    tiny = facts.file_bytes <= TINY_MODEL_BYTES
    return msgspec.structs.replace(
        options, load_mode=load_mode, n_threads=options.n_threads or (1 if tiny else machine.physical_cores)
    )
