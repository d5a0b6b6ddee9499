"""What helps a model that spills: plans that are enough and do not cut the running chat, and how one is applied."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.core.subscribers import Subscribers
from qwendesk.engine.protocol import LoadReport
from qwendesk.engine.state import EngineState, Phase
from qwendesk.hardware.spill import HEADROOM_BYTES, SpillState
from qwendesk.services.engine.service import EngineService
from qwendesk.services.meters.answers import AnswerMeter
from qwendesk.services.meters.bars import GpuBar, Meters, Taker

FixId = Literal["experts", "vision", "both", "kv", "context", "layers", "eject"]
"""`both`: experts and pictures, where neither is enough alone. `context` and `layers`: where nothing gentler is."""
_FREE_SAMPLES = 3
"""The memory must be back for so many looks before an ejected model is loaded again."""
_RAM_LEFT_BYTES = 1024**3
_ROOM_TOKENS = 8_192
"""A shorter context still leaves so much for what comes after the chat as it is."""


class Price(msgspec.Struct, frozen=True):
    """What a model takes under some options: bytes of each GPU by the engine's name, and of RAM."""

    gpus: Mapping[str, int]
    ram_bytes: int
    expected_tok_s: tuple[float, float] | None = None
    """Estimated range; None where it cannot be guessed."""


PriceOf = Callable[[LoadOptions], Price | None]
"""The planner, seen from here. It may read file headers, so it is called on another thread; None: it cannot tell."""


class Fix(msgspec.Struct, frozen=True, kw_only=True):
    """One way out of a spill. `options` is what would be loaded; None ejects until the memory is back."""

    id: FixId
    options: LoadOptions | None = None
    expert_layers: int = 0
    """More expert layers on the CPU than now."""
    cpu_layers: int = 0
    """Whole layers on the CPU, for `layers`."""
    expected_tok_s: tuple[float, float] | None = None
    taker: Taker | None = None


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """An ejected model that is loaded again when so many bytes are free on each GPU (by its key)."""

    options: LoadOptions
    needed: dict[str, int]
    taker: Taker | None
    free_samples: int = 0


class Relief(msgspec.Struct, frozen=True, kw_only=True):
    """What is offered and what is under way."""

    fixes: tuple[Fix, ...] = ()
    reread_s: float | None = None
    """Seconds to read the chat again after the reload; None when the reading speed is not known yet."""
    reread_tokens: int = 0
    pending: FixId | None = None
    """Chosen, and applied after the current answer."""
    waiting: Waiting | None = None
    failure: LoadFailure | None = None
    """Why the last fix did not load."""


def fixes(
    options: LoadOptions,
    needed: Mapping[str, int],
    ram_free_bytes: int | None,
    n_layers: int,
    price_of: PriceOf,
    chat_tokens: int = 0,
) -> tuple[Fix, ...]:
    """The changes that free at least `needed` bytes (by device name), gentlest first.

    None of them cuts the running chat of `chat_tokens`. Blocks while headers are read.
    """
    now = price_of(options)
    if now is None or not needed:
        return ()

    def enough(changed: LoadOptions) -> Price | None:
        price = price_of(changed)
        if price is None:
            return None
        frees = all(now.gpus.get(name, 0) - price.gpus.get(name, 0) >= n_bytes for name, n_bytes in needed.items())
        more_ram = price.ram_bytes - now.ram_bytes
        holds = more_ram <= 0 or ram_free_bytes is None or more_ram + _RAM_LEFT_BYTES <= ram_free_bytes
        return price if frees and holds else None

    has_pictures = bool(options.mmproj) and options.vision == "gpu"
    experts = _more_experts("experts", options, n_layers, enough)
    vision = _one("vision", options, {"vision": "cpu"}, enough, possible=has_pictures)
    both = None
    if experts is None and vision is None and has_pictures:
        both = _more_experts("both", msgspec.structs.replace(options, vision="cpu"), n_layers, enough)
    found = [
        experts,
        vision,
        both,
        _one(
            "kv",
            options,
            {"type_k": "q8_0", "type_v": "q8_0"},
            enough,
            possible=options.type_k == options.type_v == "f16" and options.flash_attn != "off",
        ),
    ]
    offered = tuple(fix for fix in found if fix is not None)
    if offered:
        return offered
    last = _shorter_context(options, chat_tokens, enough) or _fewer_layers(options, n_layers, enough)
    return () if last is None else (last,)


def _shorter_context(
    options: LoadOptions, chat_tokens: int, enough: Callable[[LoadOptions], Price | None]
) -> Fix | None:
    """The longest power of two that is enough and holds the chat with room to go on."""
    n_ctx = 1 << max(options.n_ctx - 1, 1).bit_length() - 1
    while n_ctx >= chat_tokens + _ROOM_TOKENS:
        changed = msgspec.structs.replace(options, n_ctx=n_ctx)
        price = enough(changed)
        if price is not None:
            return Fix(id="context", options=changed, expected_tok_s=price.expected_tok_s)
        n_ctx //= 2
    return None


def _fewer_layers(options: LoadOptions, n_layers: int, enough: Callable[[LoadOptions], Price | None]) -> Fix | None:
    """The most layers that may stay on the GPU, the output counting as one more."""
    present = options.n_gpu_layers if isinstance(options.n_gpu_layers, int) else n_layers + 1
    low, high = 0, min(present, n_layers + 1) - 1
    best: Fix | None = None
    while low <= high:
        middle = (low + high) // 2
        changed = msgspec.structs.replace(options, n_gpu_layers=middle)
        price = enough(changed)
        if price is None:
            high = middle - 1
        else:
            best = Fix(
                id="layers", options=changed, cpu_layers=n_layers + 1 - middle, expected_tok_s=price.expected_tok_s
            )
            low = middle + 1
    return best


def _more_experts(
    fix: FixId, options: LoadOptions, n_layers: int, enough: Callable[[LoadOptions], Price | None]
) -> Fix | None:
    """The fewest more expert layers on the CPU that are enough, found by halving: each one more frees more."""
    present = options.n_cpu_moe if isinstance(options.n_cpu_moe, int) else 0
    low, high = present + 1, n_layers
    best: Fix | None = None
    while low <= high:
        middle = (low + high) // 2
        changed = msgspec.structs.replace(options, n_cpu_moe=middle, load_mode="none")
        price = enough(changed)
        if price is None:
            low = middle + 1
        else:
            best = Fix(id=fix, options=changed, expert_layers=middle - present, expected_tok_s=price.expected_tok_s)
            high = middle - 1
    return best


def _one(
    fix: FixId,
    options: LoadOptions,
    changes: Mapping[str, str],
    enough: Callable[[LoadOptions], Price | None],
    *,
    possible: bool,
) -> Fix | None:
    if not possible:
        return None
    changed = msgspec.structs.replace(options, **changes)
    price = enough(changed)
    return None if price is None else Fix(id=fix, options=changed, expected_tok_s=price.expected_tok_s)


def bytes_needed(bars: tuple[GpuBar, ...], devices: Mapping[str, str], *, suspected: bool = False) -> dict[str, int]:
    """What each GPU lacks, by device name: what spilled, and what is missing to comfortable room.

    `devices` is the engine's device name of each GPU's key. `suspected`: nothing counts what spilled here, so that the
    room alone is told.
    """
    lacking = {}
    for bar in bars:
        name = devices.get(bar.gpu.key)
        short = bar.excess_bytes + max(0, HEADROOM_BYTES - (bar.total_bytes - bar.used_bytes))
        if name is not None and (bar.excess_bytes or suspected) and short:
            lacking[name] = short
    return lacking


class ReliefService:
    """Offers fixes while a model spills, applies one after the current answer, and brings an ejected model back.

    Its methods are called on the event loop's thread.
    """

    def __init__(self, engine: EngineService, answers: AnswerMeter, price_of: PriceOf) -> None:
        self._engine, self._answers, self._price_of = engine, answers, price_of
        self._relief = Relief()
        self._subscribers = Subscribers[Relief]()
        self._unsubscribe = engine.subscribe(self._on_engine)
        self._ours = False
        """While a load or eject of our own is under way."""

    @property
    def relief(self) -> Relief:
        return self._relief

    def subscribe(self, callback: Callable[[Relief], None]) -> Callable[[], None]:
        """Call `callback` with each change. Returns what ends it."""
        return self._subscribers.add(callback)

    async def offer(self, meters: Meters, devices: Mapping[str, str]) -> None:
        """Find the fixes for the spill that `meters` shows; none when it shows none."""
        report = self._engine.state.report
        if meters.spill is None or report is None:
            self._change(fixes=())
            return
        ram = meters.snapshot.system.ram_available_bytes if meters.snapshot is not None else None
        needed = bytes_needed(meters.bars, devices, suspected=meters.spill.state is SpillState.SUSPECTED)
        tokens, speed = self._answers.context_tokens, self._answers.prefill_tok_s
        found = await asyncio.to_thread(fixes, report.options, needed, ram, report.n_layers, self._price_of, tokens)
        if self._engine.state.report is not report:
            return
        eject = Fix(id="eject", taker=meters.spill.taker)
        self._change(fixes=(*found, eject), reread_tokens=tokens, reread_s=tokens / speed if speed and tokens else None)

    async def apply(self, fix_id: FixId, meters: Meters) -> LoadReport | LoadFailure | None:
        """Do it after the current answer, by one reload (or by ejecting). None when it is not offered any more."""
        fix = next((each for each in self._relief.fixes if each.id == fix_id), None)
        report = self._engine.state.report
        if fix is None or report is None or self._relief.pending is not None:
            return None
        self._change(pending=fix_id, failure=None)
        try:
            await self._answers.idle()
            if self._engine.state.report is not report:
                return None  # the person has loaded something else meanwhile
            self._ours = True
            if fix.options is None:
                await self._eject(report, meters)
                return None
            result = await self._engine.load(fix.options)
            self._change(failure=result if isinstance(result, LoadFailure) else None)
            return result
        finally:
            self._ours = False
            self._change(pending=None)

    async def look(self, meters: Meters) -> None:
        """Load an ejected model again once its memory is free; keep what is told of the others true."""
        self._tell_reading()
        waiting = self._relief.waiting
        if waiting is None or meters.snapshot is None:
            return
        free = {gpu.key: gpu.headroom_bytes for gpu in meters.snapshot.gpus}
        back = all((free.get(key) or 0) >= n_bytes for key, n_bytes in waiting.needed.items())
        waiting = msgspec.structs.replace(waiting, free_samples=waiting.free_samples + 1 if back else 0)
        self._change(waiting=waiting)
        if waiting.free_samples >= _FREE_SAMPLES:
            await self.load_again()

    async def load_again(self) -> None:
        """Load the ejected model now, whatever is free."""
        waiting = self._relief.waiting
        if waiting is None:
            return
        self._change(waiting=None)
        result = await self._engine.load(waiting.options)
        self._change(failure=result if isinstance(result, LoadFailure) else None)

    def stop_waiting(self) -> None:
        self._change(waiting=None)

    def close(self) -> None:
        self._unsubscribe()

    async def _eject(self, report: LoadReport, meters: Meters) -> None:
        pid = self._engine.state.welcome.pid if self._engine.state.welcome is not None else None
        needed = {
            bar.gpu.key: _held(bar, pid) + bar.excess_bytes + HEADROOM_BYTES for bar in meters.bars if _held(bar, pid)
        }
        taker = meters.spill.taker if meters.spill is not None else None
        await self._engine.eject()
        self._change(waiting=Waiting(options=report.options, needed=needed, taker=taker), fixes=())

    def _on_engine(self, state: EngineState) -> None:
        """Whatever the person loads ends the waiting."""
        if self._relief.waiting is not None and not self._ours and state.phase is Phase.LOADING:
            self._change(waiting=None)

    def _tell_reading(self) -> None:
        """How long the chat takes to read again, as it is now."""
        tokens, speed = self._answers.context_tokens, self._answers.prefill_tok_s
        if self._relief.fixes:
            self._change(reread_tokens=tokens, reread_s=tokens / speed if speed and tokens else None)

    def _change(self, **changes: object) -> None:
        relief = msgspec.structs.replace(self._relief, **changes)
        if relief != self._relief:
            self._relief = relief
            self._subscribers.notify(relief)


def _held(bar: GpuBar, pid: int | None) -> int:
    """What the engine holds of this GPU: the driver's count, else the parts of the bar."""
    ours = bar.gpu.process(pid)
    if ours is not None and ours.dedicated_bytes is not None:
        return ours.dedicated_bytes
    return sum(each.n_bytes for each in bar.segments if each.kind not in ("other", "free"))
