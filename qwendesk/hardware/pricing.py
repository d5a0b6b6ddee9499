"""What one set of options costs: every tensor, cache and buffer where llama.cpp puts it. Pure numbers.

Options that are still "auto" count as llama.cpp would take them: all layers on the GPU, no expert layer on the CPU,
f16 caches, pictures on the GPU, the model's own context.
"""

import msgspec

from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import DevicePlan, Machine, Prices
from qwendesk.core.units import MIB
from qwendesk.hardware.compute import Moves, in_host_memory, on_cpu_alone, on_gpu, ubatch_of, widths_of
from qwendesk.hardware.estimate import Weights, kv_bytes, recurrent_bytes, split_weights, vision_bytes
from qwendesk.hardware.sharing import Gpu, Shares, gpus_of, shares_ram

WORKER_BYTES = 256 * MIB
"""RAM of the worker process beside the model: Python with the engine library measured 41 MiB, a vocabulary of
150,000 tokens with its merges about 60 MiB more; rounded up generously."""
_TURNS_KEPT, _PICTURES_KEPT, _PICTURE_TOKENS = 64, 32, 4096
"""What fills the prompt cache in a long chat: a checkpoint for each turn, and pictures of the largest size."""
_UNQUANTISED = ("auto", "f16", "bf16", "f32")


def price(
    facts: ModelFacts,
    options: LoadOptions,
    machine: Machine,
    mmproj: ModelFacts | None = None,
    *,
    with_draft: bool = False,
) -> Prices:
    """Bytes on each GPU that the options may use, and in RAM. Under 2 ms once the file's sums are known.

    `with_draft`: the file's next-token layer is loaded too, with a context of its own. Raises re.error when a
    placement pattern is no regular expression.
    """
    return Pricing(facts, options, machine, mmproj, with_draft=with_draft).prices()


class Pricing:
    """One calculation; `prices` gives its result."""

    def __init__(
        self,
        facts: ModelFacts,
        options: LoadOptions,
        machine: Machine,
        mmproj: ModelFacts | None,
        *,
        with_draft: bool = False,
    ) -> None:
        self._facts, self._options, self._machine = facts, options, machine
        self._mmproj = None if options.vision == "off" else mmproj
        self._weights: Weights = split_weights(facts, options.override_tensor)
        self._gpus: tuple[Gpu, ...] = gpus_of(machine, options)
        self._n_ctx = options.n_ctx or facts.context_length
        layers = len(self._weights.blocks) + 1
        asked = options.n_gpu_layers
        self._gpu_layers = min(asked, layers) if isinstance(asked, int) else layers
        self._cpu_moe = 0 if options.n_cpu_moe == "auto" else options.n_cpu_moe
        self._shares = Shares(self._gpus, options, self._gpu_layers, layers)
        self._rows = [_Row() for _ in self._gpus]
        self._ram = _Row()
        self._with_draft = with_draft

    def prices(self) -> Prices:
        experts_in_ram = self._place_layers()
        self._place_buffers()
        self._place_vision_and_draft()
        gpus = tuple(
            msgspec.structs.replace(
                row.plan(gpu.device.name, gpu.budget_bytes, gpu.limit_bytes),
                description=gpu.device.description.strip(),
                drift_bytes=gpu.drift_bytes if row.is_used else 0,
            )
            for gpu, row in zip(self._gpus, self._rows, strict=True)
        )
        shared = sum(plan.total_bytes for gpu, plan in zip(self._gpus, gpus, strict=True) if shares_ram(gpu.device))
        available = self._machine.ram_available_bytes
        beside = WORKER_BYTES + prompt_cache_bytes(self._facts, self._options, with_pictures=self._mmproj is not None)
        ram = msgspec.structs.replace(self._ram.plan("CPU", available, available), drift_bytes=beside + shared)
        return Prices(gpus=gpus, ram=ram, ram_weights_bytes=self._ram.weights, experts_in_ram=experts_in_ram)

    def _place_layers(self) -> bool:
        facts, options = self._facts, self._options
        kv = kv_bytes(facts, self._n_ctx, options.type_k, options.type_v) // max(facts.attention_layers, 1)
        recurrent = recurrent_bytes(facts) // max(facts.recurrent_layers, 1)
        blocks = self._weights.blocks
        experts_in_ram = False
        for index, block in enumerate(blocks):
            on_gpu = index >= self._shares.first
            experts_on_gpu = on_gpu and index >= self._cpu_moe
            is_run = index < len(blocks) - facts.nextn_layers
            self._add(index if on_gpu else None, block.rest, "weights")
            self._add(index if experts_on_gpu else None, block.experts, "weights")
            state_on_gpu = index if on_gpu and options.offload_kqv else None
            self._add(state_on_gpu, kv if block.has_kv else 0, "kv")
            self._add(state_on_gpu, recurrent if is_run and not block.has_kv else 0, "recurrent")
            experts_in_ram |= bool(block.experts) and not experts_on_gpu
        last = len(blocks)
        if last >= self._shares.first:
            self._add(last, self._weights.output, "weights")
        else:
            self._ram.weights += self._weights.output - self._weights.tied
        self._ram.weights += self._weights.in_ram
        by_name = {gpu.device.name.upper(): row for gpu, row in zip(self._gpus, self._rows, strict=True)}
        for name, n_bytes in self._weights.pinned:
            by_name.get(name.upper(), self._ram).weights += n_bytes
        return experts_in_ram

    def _add(self, layer: int | None, n_bytes: int, part: str) -> None:
        """`layer` None: into RAM."""
        if layer is None:
            self._ram.add(part, n_bytes)
        elif self._shares.whole_layers:
            self._rows[self._shares.gpu_of(layer)].add(part, n_bytes)
        else:
            for row, share in zip(self._rows, self._shares.parts, strict=True):
                row.add(part, round(n_bytes * share))

    def _place_buffers(self) -> None:
        options, n_ctx = self._options, self._n_ctx
        widths, flash = widths_of(self._facts), options.flash_attn != "off"
        n_ubatch = ubatch_of(options, n_ctx)
        if not self._gpus:
            self._ram.compute += on_cpu_alone(widths, n_ctx, n_ubatch, flash)
            return
        first, layers = self._shares.first, len(self._weights.blocks) + 1
        is_pipelined = (
            len(self._gpus) > 1
            and first == 0
            and options.split_mode == "layer"
            and options.offload_kqv
            and not self._cpu_moe
            and not options.override_tensor
        )
        self._ram.compute += in_host_memory(
            widths, n_ctx, n_ubatch, flash, has_cpu_layers=first > 0, is_pipelined=is_pipelined
        )
        layer_f16 = kv_bytes(self._facts, n_ctx) // max(self._facts.attention_layers, 1)
        quantised = options.type_k not in _UNQUANTISED or options.type_v not in _UNQUANTISED
        for index, row in enumerate(self._rows):
            moves = self._moves(index)
            copies = (2 if index else 1) if is_pipelined else 0
            if row.is_used or moves != Moves() or layers > first:
                unpacked = layer_f16 if quantised else 0
                row.compute += on_gpu(widths, n_ctx, n_ubatch, flash, unpacked, moves, copies)

    def _moves(self, gpu: int) -> Moves:
        """What this GPU borrows from RAM: experts of its own layers; and of layers in RAM everything, on the first."""
        if not self._options.op_offload:
            return Moves()
        blocks, first, options = self._weights.blocks, self._shares.first, self._options
        pair = largest = layer_kv = 0
        for index, block in enumerate(blocks):
            if index < first:
                if gpu == 0:
                    largest = max(largest, block.largest, block.pair // 2)
                    layer_kv = layer_kv or (self._layer_kv() if block.has_kv else 0)
            elif not self._shares.whole_layers or self._shares.gpu_of(index) == gpu:
                pair = max(pair, block.pair if index < self._cpu_moe else 0, block.pinned_pair)
                layer_kv = layer_kv or (self._layer_kv() if block.has_kv and not options.offload_kqv else 0)
        return Moves(pair, largest, layer_kv)

    def _layer_kv(self) -> int:
        options, facts = self._options, self._facts
        return kv_bytes(facts, self._n_ctx, options.type_k, options.type_v) // max(facts.attention_layers, 1)

    def _place_vision_and_draft(self) -> None:
        vision = vision_bytes(self._mmproj)
        on_gpu = self._gpus and self._options.vision in ("auto", "gpu")
        (self._rows[0] if on_gpu else self._ram).vision += vision
        if self._with_draft and self._facts.nextn_layers:
            draft = draft_bytes(self._facts, self._options, self._n_ctx)
            (self._rows[-1] if self._shares.first < len(self._weights.blocks) else self._ram).draft += draft


def draft_bytes(facts: ModelFacts, options: LoadOptions, n_ctx: int) -> int:
    """The next-token (MTP) layers with their context: their weights, a KV cache as long as the model's, and a compute
    buffer of one layer. 0 for a file without them."""
    if not facts.nextn_layers:
        return 0
    layer_kv = kv_bytes(facts, n_ctx, options.type_k, options.type_v) // max(facts.attention_layers, 1)
    n_ubatch, flash = ubatch_of(options, n_ctx), options.flash_attn != "off"
    buffers = on_gpu(widths_of(facts), n_ctx, n_ubatch, flash, 0, Moves(), 0)
    return split_weights(facts, ()).draft + facts.nextn_layers * layer_kv + buffers


def prompt_cache_bytes(facts: ModelFacts, options: LoadOptions, *, with_pictures: bool) -> int:
    """RAM that the worker's prompt cache may come to: three quarters of its budget for checkpoints, a quarter for
    pictures already encoded. Less for a small model, whose checkpoints would never fill the budget."""
    budget = options.cache_budget_mib * MIB
    checkpoints = min(budget - budget // 4, _TURNS_KEPT * recurrent_bytes(facts))
    pictures = min(budget // 4, _PICTURES_KEPT * _PICTURE_TOKENS * facts.embedding_length * 4) if with_pictures else 0
    return checkpoints + pictures


class _Row:
    """Adds up one device."""

    def __init__(self) -> None:
        self.weights = self.kv = self.recurrent = self.compute = self.vision = self.draft = 0

    @property
    def is_used(self) -> bool:
        return any((self.weights, self.kv, self.recurrent, self.compute, self.vision, self.draft))

    def add(self, part: str, n_bytes: int) -> None:
        setattr(self, part, getattr(self, part) + n_bytes)

    def plan(self, name: str, budget_bytes: int | None, limit_bytes: int | None) -> DevicePlan:
        return DevicePlan(
            name=name,
            weights_bytes=self.weights,
            kv_bytes=self.kv,
            recurrent_bytes=self.recurrent,
            compute_bytes=self.compute,
            vision_bytes=self.vision,
            draft_bytes=self.draft,
            budget_bytes=budget_bytes,
            limit_bytes=limit_bytes,
        )
