"""Offers remedies while a model spills, applies the chosen one, and loads an ejected model again."""

import asyncio
from collections.abc import Mapping

import msgspec

from qwendesk.core.failures import LoadFailure
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.engine.answer_meter import AnswerMeter
from qwendesk.engine.protocol import LoadReport
from qwendesk.engine.state import EngineState, Phase
from qwendesk.engines.engine_service import EngineService
from qwendesk.hardware.spill import HEADROOM_BYTES, SpillState
from qwendesk.meters.meter_state import GpuBar, MeterState
from qwendesk.meters.spill_remedies import (
    EjectedModel,
    EstimateLoad,
    RemedyId,
    RemedyState,
    SpillRemedy,
    bytes_needed,
    find_remedies,
)

# How many samples in a row must show enough free memory before an ejected model is loaded again.
_FREE_SAMPLES = 3


class RemedyService:
    """Owns the remedies. Its methods are called on the event loop's thread."""

    def __init__(self, engine: EngineService, answers: AnswerMeter, estimate: EstimateLoad) -> None:
        self._engine, self._answers, self._estimate = engine, answers, estimate
        self.state = Observed(RemedyState())
        self._unsubscribe = engine.subscribe(self._on_engine)
        self._is_applying = False

    async def offer(self, meters: MeterState, devices: Mapping[str, str]) -> None:
        """Find the remedies for the spill that `meters` show. `devices` are the engine's names by GPU key."""
        report = self._engine.state.local_report
        if meters.spill is None or report is None:
            self.state.update(remedies=())
            return
        ram = meters.snapshot.system.ram_available_bytes if meters.snapshot is not None else None
        needed = bytes_needed(meters.bars, devices, suspected=meters.spill.state is SpillState.SUSPECTED)
        found = await asyncio.to_thread(
            find_remedies, report.options, needed, ram, report.n_layers, self._estimate, self._answers.context_tokens
        )
        if self._engine.state.local_report is not report:
            return
        self.state.update(remedies=(*found, SpillRemedy(id="eject", consumer=meters.spill.consumer)))
        self._update_reread_time()

    async def apply(self, remedy_id: RemedyId, meters: MeterState) -> LoadReport | LoadFailure | None:
        """Apply a remedy after the current answer, by a reload or by ejecting. Return None if it can't be applied."""
        state, report = self.state.value, self._engine.state.local_report
        remedy = next((each for each in state.remedies if each.id == remedy_id), None)
        if remedy is None or report is None or state.pending is not None:
            return None
        self.state.update(pending=remedy_id, failure=None)
        try:
            await self._answers.wait_until_idle()
            if self._engine.state.local_report is not report:
                return None  # the user loaded another model in the meantime
            self._is_applying = True
            if remedy.options is None:
                await self._eject(report, meters)
                return None
            return await self._load(remedy.options)
        finally:
            self._is_applying = False
            self.state.update(pending=None)

    async def update(self, meters: MeterState) -> None:
        """Process a new sample. Load the ejected model again once its memory has stayed free for a while."""
        if self.state.value.remedies:
            self._update_reread_time()
        ejected = self.state.value.ejected
        if ejected is None or meters.snapshot is None:
            return
        free = {gpu.key: gpu.headroom_bytes for gpu in meters.snapshot.gpus}
        is_free = all((free.get(key) or 0) >= n_bytes for key, n_bytes in ejected.needed.items())
        samples = ejected.free_samples + 1 if is_free else 0
        self.state.update(ejected=msgspec.structs.replace(ejected, free_samples=samples))
        if samples >= _FREE_SAMPLES:
            await self.load_again()

    async def load_again(self) -> None:
        """Load the ejected model now, even if too little memory is free."""
        ejected = self.state.value.ejected
        if ejected is not None:
            self.state.update(ejected=None)
            await self._load(ejected.options)

    def stop_waiting(self) -> None:
        """Stop waiting for memory, and leave the ejected model unloaded."""
        self.state.update(ejected=None)

    def close(self) -> None:
        self._unsubscribe()

    async def _load(self, options: LoadOptions) -> LoadReport | LoadFailure:
        result = await self._engine.load(options)
        self.state.update(failure=result if isinstance(result, LoadFailure) else None)
        return result

    async def _eject(self, report: LoadReport, meters: MeterState) -> None:
        welcome = self._engine.state.welcome
        held = {
            bar.gpu.key: (bar, _held_bytes(bar, welcome.pid if welcome is not None else None)) for bar in meters.bars
        }
        needed = {key: n_bytes + bar.excess_bytes + HEADROOM_BYTES for key, (bar, n_bytes) in held.items() if n_bytes}
        consumer = meters.spill.consumer if meters.spill is not None else None
        await self._engine.eject()
        ejected = EjectedModel(options=report.options, needed=needed, consumer=consumer)
        self.state.update(ejected=ejected, remedies=())

    def _on_engine(self, state: EngineState) -> None:
        """Stop waiting for memory as soon as the user loads a model."""
        if self.state.value.ejected is not None and not self._is_applying and state.phase is Phase.LOADING:
            self.state.update(ejected=None)

    def _update_reread_time(self) -> None:
        """Update how long it would take to process the chat again at its current length."""
        tokens, speed = self._answers.context_tokens, self._answers.prefill_tok_s
        self.state.update(reread_tokens=tokens, reread_s=tokens / speed if speed and tokens else None)


def _held_bytes(bar: GpuBar, pid: int | None) -> int:
    """Return the engine's bytes on this GPU: what the driver counts, else the model's segments of the bar."""
    process = bar.gpu.process(pid)
    if process is not None and process.dedicated_bytes is not None:
        return process.dedicated_bytes
    return sum(each.n_bytes for each in bar.segments if each.kind not in ("other", "free"))
