"""Finds spill remedies: changes to the load options that free enough video memory without shortening the chat."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import msgspec

from qwendesk.core.failures import LoadFailure
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import MachineMemory
from qwendesk.core.units import GIB
from qwendesk.engine.answer_meter import AnswerMeter
from qwendesk.engines.engine_service import EngineService
from qwendesk.hardware.expert_layers import count_cpu_expert_layers
from qwendesk.hardware.ladder import ModelShape, StepId, experts_off_gpus, layers_on_gpu, step_levels
from qwendesk.hardware.memory_estimate import memory_use
from qwendesk.hardware.speed_estimate import estimate_speed
from qwendesk.hardware.spill import HEADROOM_BYTES
from qwendesk.meters.meter_state import GpuBar, VramConsumer

# A step of the ladder; `both` for experts and vision where neither is enough alone; `eject` to unload the model.
RemedyId = StepId | Literal["both", "eject"]
# RAM that a remedy leaves free.
_RAM_LEFT_BYTES = GIB
# Tokens that a shorter context leaves free after the chat.
_ROOM_TOKENS = 8_192

# Headers of a model file, and of its vision projector if it has one.
Headers = tuple[ModelFacts, ModelFacts | None]
ReadHeaders = Callable[[LoadOptions], Headers | LoadFailure]


class LoadEstimate(msgspec.Struct, frozen=True):
    """Estimated memory of a model with some options: bytes on each GPU, by the engine's device name, and in RAM."""

    gpus: Mapping[str, int]
    ram_bytes: int
    expected_tok_s: tuple[float, float] | None = None
    """Lowest and highest estimated decode speed; None if it can't be estimated."""


# Estimates a load, or returns None if it can't. May read file headers, so it is called on another thread.
EstimateLoad = Callable[[LoadOptions], LoadEstimate | None]


class SpillRemedy(msgspec.Struct, frozen=True, kw_only=True):
    """One change that ends a spill."""

    id: RemedyId
    options: LoadOptions | None = None
    """Options to load; None to eject the model until the memory is free again."""
    expert_layers: int = 0
    """Number of expert layers that move to the CPU."""
    cpu_layers: int = 0
    """Number of whole layers on the CPU, for `layers`."""
    expected_tok_s: tuple[float, float] | None = None
    consumer: VramConsumer | None = None


class EjectedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that is loaded again as soon as enough video memory is free."""

    options: LoadOptions
    needed: dict[str, int]
    """Bytes that must be free on each GPU, by the key of the GPU."""
    consumer: VramConsumer | None
    free_samples: int = 0
    """Number of samples in a row with enough free memory."""


class RemedyState(msgspec.Struct, frozen=True, kw_only=True):
    """The remedies that are offered, and the one being applied."""

    remedies: tuple[SpillRemedy, ...] = ()
    reread_s: float | None = None
    """Seconds to process the chat again after the reload; None if the speed isn't known yet."""
    reread_tokens: int = 0
    pending: RemedyId | None = None
    """The chosen remedy, which is applied after the current answer."""
    ejected: EjectedModel | None = None
    failure: LoadFailure | None = None
    """Reason why the model did not load with the last remedy; None if it did."""


def find_remedies(
    options: LoadOptions,
    needed: Mapping[str, int],
    ram_free_bytes: int | None,
    n_layers: int,
    estimate: EstimateLoad,
    chat_tokens: int = 0,
) -> tuple[SpillRemedy, ...]:
    """Return the changes that free at least `needed` bytes (by device name), the gentlest first.

    None of them shortens a chat of `chat_tokens`. Blocks while headers are read.
    """
    return _RemedySearch(options, needed, ram_free_bytes, n_layers, estimate).remedies(chat_tokens)


class _RemedySearch:
    """Tries the levels of each step until one frees enough memory.

    Every level is tried. A binary search wouldn't work, because each further layer frees video memory but also takes
    RAM. An estimate takes a fraction of a millisecond.
    """

    def __init__(
        self,
        options: LoadOptions,
        needed: Mapping[str, int],
        ram_free_bytes: int | None,
        n_layers: int,
        estimate: EstimateLoad,
    ) -> None:
        self._options, self._needed, self._ram_free_bytes, self._estimate = options, needed, ram_free_bytes, estimate
        # The engine doesn't report which layers have experts, so all are assumed to. In a dense model, moving experts
        # frees nothing, so the step is not offered.
        self._model = ModelShape(n_layers, n_layers, has_vision=bool(options.mmproj))
        self._now = estimate(options)

    def remedies(self, chat_tokens: int) -> tuple[SpillRemedy, ...]:
        if self._now is None or not self._needed:
            return ()
        experts, vision = self._first("experts"), self._first("vision")
        both = None
        if experts is None and vision is None:
            for on_cpu in step_levels("vision", self._options, self._model):
                both = self._first("experts", on_cpu, remedy_id="both")
        # It costs no quality and moves nothing.
        drafts = self._first("drafts")
        # The smaller cache comes after these, because it changes what the model computes in the middle of a chat.
        cache = self._first("kv")
        gentle = tuple(remedy for remedy in (drafts, experts, vision, both, cache) if remedy is not None)
        if gentle:
            return gentle
        last = self._first("context", least_context=chat_tokens + _ROOM_TOKENS) or self._first("layers")
        return () if last is None else (last,)

    def _first(
        self,
        step_id: StepId,
        start: LoadOptions | None = None,
        *,
        remedy_id: RemedyId | None = None,
        least_context: int = 0,
    ) -> SpillRemedy | None:
        """Return the smallest change of one step that is enough, or None."""
        for options in self._levels(step_id, start or self._options):
            estimate = self._estimate(options) if options.n_ctx >= least_context else None
            if estimate is not None and self._is_enough(estimate):
                moved = count_cpu_expert_layers(options) - count_cpu_expert_layers(self._options)
                cpu_layers = self._model.layers + 1 - layers_on_gpu(options, self._model) if step_id == "layers" else 0
                return SpillRemedy(
                    id=remedy_id or step_id,
                    options=options,
                    expert_layers=moved,
                    cpu_layers=cpu_layers,
                    expected_tok_s=estimate.expected_tok_s,
                )
        return None

    def _levels(self, step_id: StepId, options: LoadOptions) -> Iterator[LoadOptions]:
        """Return the levels of a step. Experts are moved off the GPUs that lack memory."""
        if step_id != "experts" or self._now is None:
            return step_levels(step_id, options, self._model)
        names = tuple(self._now.gpus)
        short = [number for number, name in enumerate(names) if name in self._needed]
        return experts_off_gpus(options, self._model, len(names), short)

    def _is_enough(self, estimate: LoadEstimate) -> bool:
        now, free = self._now, self._ram_free_bytes
        if now is None:
            return False
        frees = all(now.gpus.get(name, 0) - estimate.gpus.get(name, 0) >= n for name, n in self._needed.items())
        more_ram = estimate.ram_bytes - now.ram_bytes
        return frees and (more_ram <= 0 or free is None or more_ram + _RAM_LEFT_BYTES <= free)


def bytes_needed(bars: tuple[GpuBar, ...], devices: Mapping[str, str], *, suspected: bool = False) -> dict[str, int]:
    """Return the bytes that each GPU lacks, by device name: the spilled bytes and what is missing for enough headroom.

    `devices` maps the key of each GPU to the engine's device name. With `suspected`, the spilled bytes are unknown, and
    only the headroom counts.
    """
    lacking = {}
    for bar in bars:
        name = devices.get(bar.gpu.key)
        short = bar.excess_bytes + max(0, HEADROOM_BYTES - (bar.total_bytes - bar.used_bytes))
        if name is not None and (bar.excess_bytes or suspected) and short:
            lacking[name] = short
    return lacking


def load_estimator(engine: EngineService, answers: AnswerMeter) -> EstimateLoad:
    """Return a function that estimates loads on the engine's devices for a chat as long as the present one."""

    def estimate(options: LoadOptions) -> LoadEstimate | None:
        headers = engine.read_files(options)
        if isinstance(headers, LoadFailure):
            return None
        machine = MachineMemory(devices=engine.state.devices, ram_total_bytes=0, ram_available_bytes=0)
        try:
            return _estimate(headers, options, machine, answers.context_tokens)
        except re.error:  # a tensor placement that the engine understood and Python doesn't
            return None

    return estimate


def _estimate(headers: Headers, options: LoadOptions, machine: MachineMemory, context_tokens: int) -> LoadEstimate:
    model, mmproj = headers
    memory = memory_use(model, options, machine, mmproj)
    speed = estimate_speed(model, options, memory, machine)
    expected = None
    if speed is not None:
        expected = speed.long if context_tokens > speed.long_tokens // 4 else speed.start
    return LoadEstimate({plan.name: plan.total_bytes for plan in memory.gpus}, memory.ram.total_bytes, expected)
