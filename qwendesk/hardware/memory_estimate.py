"""Calculates the memory that load options need: every tensor, cache and buffer where llama.cpp puts it. Pure.

Options that are still "auto" count as llama.cpp's defaults: all layers on the GPU, no expert layer on the CPU, f16
caches, vision on the GPU, the model's context length.
"""

from collections.abc import Sequence

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import DevicePlan, MachineMemory, MemoryUse, shared_bytes
from qwendesk.core.units import GIB, MIB
from qwendesk.hardware.compute_buffers import (
    RamCopies,
    activation_widths,
    cpu_only_bytes,
    gpu_bytes,
    host_bytes,
    output_only_bytes,
    ubatch_of,
)
from qwendesk.hardware.layer_split import Gpu, LayerSplit, planned_gpus, shared_budget, shares_ram
from qwendesk.hardware.model_memory import (
    Weights,
    checkpoint_bytes,
    kv_layers,
    layer_kv_bytes,
    split_weights,
    state_bytes,
    vision_bytes,
)

# RAM of the worker process without the model.
#
# Python with the engine library was measured with 41 MiB, a vocabulary of 150,000 tokens and its merges with about 60
# MiB; this is rounded up generously.
WORKER_BYTES = 256 * MIB
# What fills the prompt cache in a long chat: one checkpoint per turn, and images of the largest size.
_MAX_CHECKPOINTS, _MAX_PICTURES, _PICTURE_TOKENS = 64, 32, 4096
# Cache types that flash attention reads as they are.
UNQUANTIZED = ("auto", "f16", "bf16", "f32")


def memory_use(
    facts: ModelFacts,
    options: LoadOptions,
    machine: MachineMemory,
    mmproj: ModelFacts | None = None,
) -> MemoryUse:
    """Return the bytes on each GPU that the options may use, and in RAM. Takes less than 2 ms if `facts` are cached.

    With `speculative` mtp, the model's draft head is loaded too, with a separate context. Raises re.error if a
    placement pattern is not a valid regular expression.
    """
    return _Estimate(facts, options, machine, mmproj).result()


class _Estimate:
    """Calculates the memory for one set of options; call `result` once."""

    def __init__(
        self,
        facts: ModelFacts,
        options: LoadOptions,
        machine: MachineMemory,
        mmproj: ModelFacts | None,
    ) -> None:
        self._facts, self._options, self._machine = facts, options, machine
        self._mmproj = None if options.vision == "off" else mmproj
        self._weights: Weights = split_weights(facts, options.override_tensor)
        self._gpus: tuple[Gpu, ...] = planned_gpus(machine, options)
        self._n_ctx = options.n_ctx or facts.context_length
        layers_with_output = len(self._weights.layers) + 1
        n_gpu_layers = options.n_gpu_layers
        self._gpu_layers = (
            min(n_gpu_layers, layers_with_output) if isinstance(n_gpu_layers, int) else layers_with_output
        )
        self._cpu_moe = 0 if options.n_cpu_moe == "auto" else options.n_cpu_moe
        self._shares = LayerSplit(self._gpus, options, self._gpu_layers, layers_with_output)
        self._gpu_memory = [_DeviceMemory() for _ in self._gpus]
        self._ram = _DeviceMemory()

    def result(self) -> MemoryUse:
        experts_in_ram = self._place_layers()
        self._place_buffers()
        self._place_vision_and_draft()
        gpus = tuple(
            msgspec.structs.replace(
                memory.plan(gpu.device.name, gpu.budget_bytes, gpu.limit_bytes),
                description=gpu.device.description.strip(),
                other_bytes=gpu.other_bytes if memory.is_used else 0,
                shares_ram=gpu.device.shares_ram,
                carve_out_bytes=gpu.carve_out_bytes,
            )
            for gpu, memory in zip(self._gpus, self._gpu_memory, strict=True)
        )
        available = self._machine.ram_available_bytes
        budget = shared_budget(self._machine) if shares_ram(self._gpus) else available
        worker = WORKER_BYTES + prompt_cache_bytes(self._facts, self._options, with_pictures=self._mmproj is not None)
        ram = msgspec.structs.replace(
            self._ram.plan("CPU", budget, available), other_bytes=worker, gpu_bytes=shared_bytes(gpus)
        )
        return MemoryUse(
            gpus=gpus,
            ram=ram,
            ram_weights_bytes=self._ram.weights,
            experts_in_ram=experts_in_ram,
            lazy_bytes=self._lazy_bytes(),
        )

    def _lazy_bytes(self) -> int:
        """Return the bytes of the model's table if it is read from the file."""
        table = self._weights.lazy_table
        return table if table and is_read_lazily(table, self._options, [gpu.device for gpu in self._gpus]) else 0

    def _place_layers(self) -> bool:
        """Place weights, caches and states. Return whether any experts are in RAM."""
        facts, options = self._facts, self._options
        kv = kv_layers(facts, options, self._n_ctx)
        recurrent = state_bytes(facts, options) // max(facts.recurrent_layers, 1)
        layers = self._weights.layers
        experts_in_ram = False
        for index, layer in enumerate(layers):
            on_gpu = index >= self._shares.first
            experts_on_gpu = on_gpu and index >= self._cpu_moe
            is_run = index < len(layers) - facts.nextn_layers
            self._add(index if on_gpu else None, layer.rest, "weights")
            self._add(index if experts_on_gpu else None, layer.experts, "weights")
            self._add(index if experts_on_gpu else None, layer.experts, "experts")
            self._ram.experts += layer.pinned_experts
            state_on_gpu = index if on_gpu and options.offload_kqv else None
            self._add(state_on_gpu, kv[index], "kv")
            self._add(state_on_gpu, recurrent if is_run and not layer.has_kv else 0, "recurrent")
            has_experts_in_ram = bool(layer.pinned_experts or (layer.experts and not experts_on_gpu))
            experts_in_ram |= has_experts_in_ram
            if on_gpu and is_run:
                memory = self._gpu_memory[self._shares.gpu_of(index) if self._shares.whole_layers else 0]
                memory.layers += 1
                memory.cpu_expert_layers += has_experts_in_ram
        last = len(layers)
        if last >= self._shares.first:
            self._add(last, self._weights.output, "weights")
        else:
            self._ram.weights += self._weights.output - self._weights.tied
        self._ram.weights += max(self._weights.always_in_ram - self._lazy_bytes(), 0)
        by_name = {gpu.device.name.upper(): memory for gpu, memory in zip(self._gpus, self._gpu_memory, strict=True)}
        for name, n_bytes in self._weights.pinned:
            by_name.get(name.upper(), self._ram).weights += n_bytes
        return experts_in_ram

    def _add(self, layer: int | None, n_bytes: int, part: str) -> None:
        """Add bytes to the GPU or GPUs of a layer, or to the RAM if `layer` is None."""
        if layer is None:
            self._ram.add(part, n_bytes)
        elif self._shares.whole_layers:
            self._gpu_memory[self._shares.gpu_of(layer)].add(part, n_bytes)
        else:
            for memory, share in zip(self._gpu_memory, self._shares.parts, strict=True):
                memory.add(part, round(n_bytes * share))

    def _place_buffers(self) -> None:
        options, n_ctx = self._options, self._n_ctx
        widths, flash_attn = activation_widths(self._facts), options.flash_attn != "off"
        n_ubatch = ubatch_of(options, n_ctx)
        if not self._gpus:
            self._ram.compute += cpu_only_bytes(widths, n_ctx, n_ubatch, flash_attn)
            return
        first = self._shares.first
        is_pipelined = (
            len(self._gpus) > 1
            and first == 0
            and options.split_mode == "layer"
            and options.offload_kqv
            and not self._cpu_moe
            and not options.override_tensor
        )
        self._ram.compute += host_bytes(
            widths, n_ctx, n_ubatch, flash_attn, has_cpu_layers=first > 0, is_pipelined=is_pipelined
        )
        layer_f16 = layer_kv_bytes(self._facts, n_ctx)
        quantised = options.type_k not in UNQUANTIZED or options.type_v not in UNQUANTIZED
        for index, memory in enumerate(self._gpu_memory):
            ram_copies = self._ram_copies(index)
            copies = (2 if index else 1) if is_pipelined else 0
            runs_layers = memory.layers or not self._shares.whole_layers or options.override_tensor
            if memory.is_used and not runs_layers and ram_copies == RamCopies():
                memory.compute += output_only_bytes(widths, n_ubatch, is_pipelined=is_pipelined)
            elif memory.is_used or ram_copies != RamCopies():
                unpacked_bytes = layer_f16 if quantised else 0
                memory.compute += gpu_bytes(widths, n_ctx, n_ubatch, flash_attn, unpacked_bytes, ram_copies, copies)

    def _ram_copies(self, gpu: int) -> RamCopies:
        """Return what this GPU copies temporarily from RAM.

        It copies experts and caches of its own layers. Only the first GPU also copies everything of layers in RAM.
        """
        if not self._options.op_offload:
            return RamCopies()
        layers, first, options = self._weights.layers, self._shares.first, self._options
        expert_pair = largest = layer_kv = 0
        for index, layer in enumerate(layers):
            if index < first:
                if gpu == 0:
                    largest = max(largest, layer.largest, layer.expert_pair // 2)
                    layer_kv = layer_kv or (self._layer_kv() if layer.has_kv else 0)
            elif not self._shares.whole_layers or self._shares.gpu_of(index) == gpu:
                expert_pair = max(
                    expert_pair, layer.expert_pair if index < self._cpu_moe else 0, layer.pinned_expert_pair
                )
                layer_kv = layer_kv or (self._layer_kv() if layer.has_kv and not options.offload_kqv else 0)
        return RamCopies(expert_pair, largest, layer_kv)

    def _layer_kv(self) -> int:
        return layer_kv_bytes(self._facts, self._n_ctx, self._options.type_k, self._options.type_v)

    def _place_vision_and_draft(self) -> None:
        vision = vision_bytes(self._mmproj)
        on_gpu = self._gpus and self._options.vision in ("auto", "gpu")
        (self._gpu_memory[0] if on_gpu else self._ram).vision += vision
        if self._options.speculative == "mtp" and self._facts.can_draft:
            draft = draft_bytes(self._facts, self._options, self._n_ctx)
            (self._gpu_memory[-1] if self._shares.first < len(self._weights.layers) else self._ram).draft += draft
            self._ram.draft += draft_table_bytes(self._facts)


def draft_bytes(facts: ModelFacts, options: LoadOptions, n_ctx: int) -> int:
    """Return the bytes of the draft head (MTP) where the model's last layer is; 0 for a model without one.

    It has its weights, a KV cache for `n_ctx` tokens, and the compute buffer of one layer. In a file of its own, its
    weights include an output matrix.
    """
    if not facts.can_draft:
        return 0
    layer_kv = layer_kv_bytes(facts, n_ctx, options.type_k, options.type_v)
    n_ubatch, flash_attn = ubatch_of(options, n_ctx), options.flash_attn != "off"
    buffers = gpu_bytes(activation_widths(facts), n_ctx, n_ubatch, flash_attn, 0, RamCopies(), 0)
    head = facts.draft_head or facts
    weights = split_weights(head, ())
    output = weights.output if facts.draft_head is not None else 0
    return weights.draft + output + head.nextn_layers * layer_kv + buffers


def draft_table_bytes(facts: ModelFacts) -> int:
    """Return the bytes of the token embeddings of a draft head in a file of its own: they stay in RAM."""
    return split_weights(facts.draft_head, ()).always_in_ram if facts.draft_head is not None else 0


def prompt_cache_bytes(facts: ModelFacts, options: LoadOptions, *, with_pictures: bool) -> int:
    """Return the most bytes of RAM that the worker's prompt cache takes.

    Three quarters of its budget are for checkpoints and a quarter for encoded images. A small model, whose
    checkpoints never fill the budget, needs less.
    """
    budget = options.cache_budget_mib * MIB
    checkpoints = min(
        budget - budget // 4, _MAX_CHECKPOINTS * checkpoint_bytes(facts, options, options.n_ctx or facts.context_length)
    )
    pictures = min(budget // 4, _MAX_PICTURES * _PICTURE_TOKENS * facts.embedding_length * 4) if with_pictures else 0
    return checkpoints + pictures


class _DeviceMemory:
    """Adds up the memory of one device."""

    def __init__(self) -> None:
        self.weights = self.experts = self.kv = self.recurrent = self.compute = self.vision = self.draft = 0
        self.layers = self.cpu_expert_layers = 0

    @property
    def is_used(self) -> bool:
        return any((self.weights, self.kv, self.recurrent, self.compute, self.vision, self.draft))

    def add(self, part: str, n_bytes: int) -> None:
        setattr(self, part, getattr(self, part) + n_bytes)

    def plan(self, name: str, budget_bytes: int | None, limit_bytes: int | None) -> DevicePlan:
        return DevicePlan(
            name=name,
            weights_bytes=self.weights,
            expert_bytes=self.experts,
            kv_bytes=self.kv,
            recurrent_bytes=self.recurrent,
            compute_bytes=self.compute,
            vision_bytes=self.vision,
            draft_bytes=self.draft,
            budget_bytes=budget_bytes,
            limit_bytes=limit_bytes,
            layers=self.layers,
            cpu_expert_layers=self.cpu_expert_layers,
        )


# llama.cpp's auto_min_size: by default, it reads only larger tables from the file.
AUTO_ABOVE_BYTES = 4 * GIB


def is_read_lazily(table_bytes: int, options: LoadOptions, gpus: Sequence[DeviceInfo]) -> bool:
    """Return whether a table of that size stays on the drive, with a load that uses `gpus`.

    By default it doesn't if any GPU can't work with mapped files (llama_model_base::load_tensors and
    llama_model_loader::lazy_read in llama.cpp).
    """
    if options.lazy_mode == "auto":
        return table_bytes > AUTO_ABOVE_BYTES and all(gpu.supports_mmap for gpu in gpus)
    return options.lazy_mode == "on" and table_bytes > 0
