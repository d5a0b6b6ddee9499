"""The speed tests of the Bench page: runs them for the chosen model, and keeps what they gave."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath

import msgspec

from qwendesk.bench.bench_engine import BenchEngine, BenchFailure
from qwendesk.bench.bench_runs import BenchRuns
from qwendesk.bench.records import BenchRecord, BenchRecords, estimate_bytes, make_record
from qwendesk.bench.share import measured_hash, row_text
from qwendesk.bench.speed_text import draft_gain
from qwendesk.bench.speeds import SpeedMeasurement, SpeedPlan, SpeedProgress
from qwendesk.bench.table import BenchRow
from qwendesk.core.devices import DeviceInfo, default_gpus
from qwendesk.core.failures import LoadFailure
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.observed import Observed
from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import LoadReport
from qwendesk.engines.engine_service import EngineService
from qwendesk.hardware.gpu_cards import find_card
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.catalog_schema import SpeedReport
from qwendesk.hub.file_hashes import hash_file
from qwendesk.models.catalog_service import CatalogService

# Files whose sizes differ by less than this factor have about the same speed.
_LIKE_SIZE = 1.15
# Returns what others reported of this model. Blocks.
FindPublished = Callable[[LoadOptions], Sequence[SpeedReport]]
# Takes the options of a load with drafts, how many times as fast answers were, and the engine's devices. Blocks.
NoteDrafts = Callable[[DecidedOptions, float, tuple[DeviceInfo, ...]], None]


class SpeedState(msgspec.Struct, frozen=True):
    """What the speed section of the Bench page shows."""

    options: LoadOptions | None = None
    """The model to measure; None if none was chosen."""
    is_running: bool = False
    progress: SpeedProgress | None = None
    n_done: int = 0
    """Number of finished tests of the run."""
    rows: tuple[BenchRow, ...] = ()
    """Of the run in progress."""
    notes: tuple[str, ...] = ()
    """Of the run in progress, or of the last one: what was left out."""
    failure: BenchFailure | LoadFailure | None = None
    """Reason why the last run ended early; None if it did not."""
    records: tuple[BenchRecord, ...] = ()
    """Earlier runs of all models on any PC, the latest first."""
    published: tuple[SpeedReport, ...] = ()

    @property
    def own_records(self) -> tuple[BenchRecord, ...]:
        """The runs of the chosen model, the latest first."""
        name = PurePath(self.options.model).name if self.options is not None else ""
        return tuple(record for record in self.records if record.file == name)


class SpeedService:
    """Owns the runs of the speed tests. Call its methods on the event loop's thread."""

    def __init__(
        self,
        runs: BenchRuns,
        records: BenchRecords,
        find_published: FindPublished = lambda _options: (),
        sha256_of: Callable[[Path], str] = hash_file,
        note_drafts: NoteDrafts = lambda _options, _gain, _devices: None,
    ) -> None:
        """`note_drafts` remembers what token drafts gained, so that chats do without those that gain nothing."""
        self._runs, self._records, self._find_published, self._sha256_of = runs, records, find_published, sha256_of
        self._note_drafts = note_drafts
        self.state = Observed(SpeedState())

    async def read(self) -> None:
        """Show the earlier runs."""
        self.state.update(records=await asyncio.to_thread(self._records.latest))

    async def choose(self, options: LoadOptions | None) -> None:
        """Show what is known of a model, which the next run measures. Do nothing while one runs."""
        state = self.state.value
        if state.is_running or options == state.options:
            return
        self.state.set(SpeedState(options=options, records=state.records))
        if options is None:
            return
        published = await asyncio.to_thread(self._find_published, options)
        if self.state.value.options == options and not self.state.value.is_running:
            self.state.update(published=tuple(published))

    async def run(self, plan: SpeedPlan) -> None:
        """Measure the chosen model. `state` has the rows as they come, and at the end the record or the failure."""
        options = self.state.value.options
        if options is None or self.state.value.is_running:
            return
        self.state.update(is_running=True, progress=None, n_done=0, rows=(), notes=(), failure=None)
        try:
            result = await self._runs.run("speed", lambda engine: self._measure(engine, options, plan))
            if isinstance(result, LoadFailure | BenchFailure):
                self.state.update(failure=result)
        finally:
            self.state.update(is_running=False, progress=None)

    async def row_of(self, record: BenchRecord) -> str:
        """Return a run of the chosen model as a row to share, with the file's hash, which may take a while."""
        options = self.state.value.options
        if options is None or PurePath(options.model).name != record.file:
            return row_text(record)
        sha256 = await asyncio.to_thread(measured_hash, record, Path(options.model), self._sha256_of)
        return row_text(record, sha256)

    def stop(self) -> None:
        """Stop the run. What was measured is kept."""
        if self.state.value.is_running:
            self._runs.stop()

    async def _measure(
        self, engine: BenchEngine, options: LoadOptions, plan: SpeedPlan
    ) -> LoadReport | LoadFailure | BenchFailure:
        measurement = SpeedMeasurement(engine, plan, add_row=self._add_row, add_note=self._add_note, show=self._show)
        try:
            return await measurement.run(options)
        finally:
            await self._keep(engine)

    async def _keep(self, engine: BenchEngine) -> None:
        state = self.state.value
        if not state.rows or engine.report is None:
            return
        planned = await asyncio.to_thread(estimate_bytes, engine.report.options, engine.devices)
        record = make_record(
            engine.report, engine.devices, engine.version, state.rows, state.notes, planned_bytes=planned
        )
        self.state.update(records=(record, *state.records), rows=())
        await asyncio.to_thread(self._records.add, record)
        gain = draft_gain(record.rows)
        if gain is not None and engine.report.options.speculative != "off":
            await asyncio.to_thread(self._note_drafts, engine.report.options, gain, engine.devices)

    def _add_row(self, row: BenchRow) -> None:
        state = self.state.value
        self.state.update(rows=(*state.rows, row), n_done=state.n_done + 1)

    def _add_note(self, sentence: str) -> None:
        self.state.update(notes=(*self.state.value.notes, sentence))

    def _show(self, progress: SpeedProgress) -> None:
        self.state.update(progress=progress)


def find_published(options: LoadOptions, *, engine: EngineService, catalog: CatalogService) -> Sequence[SpeedReport]:
    """Return what others reported of this model on cards like those of the engine. Blocks."""
    files = engine.read_files(options)
    if isinstance(files, LoadFailure):
        return ()
    return published_speeds(catalog.store.catalog, files[0], options.model, engine.state.devices)


def published_speeds(
    catalog: Catalog, facts: ModelFacts, file_name: str, devices: Sequence[DeviceInfo]
) -> tuple[SpeedReport, ...]:
    """Return the reports of a file of this model and about this size, those of the shortest chats first.

    They are all from the same graphics cards: from those of this PC if there are any, else from those with the most
    reports. Reports of older engines never count.
    """
    model = catalog.model_of(facts.name, facts.basename, file_name)
    if model is None:
        return ()
    found = [
        report
        for report in catalog.contents.speeds
        if not report.has_old_engine and report.model == model.id and _is_like(report.n_bytes, facts.file_bytes)
    ]
    cards = Counter((report.gpus, report.gpu_gb) for report in found)
    if not cards:
        return ()
    own = [each for each in cards if _is_of(*each, devices)]
    chosen = own[0] if own else cards.most_common(1)[0][0]
    of_them = (each for each in found if (each.gpus, each.gpu_gb) == chosen)
    return tuple(sorted(of_them, key=lambda each: (each.depth, each.tok_s)))


def _is_like(one: int, other: int) -> bool:
    low, high = sorted((one, other))
    return high <= _LIKE_SIZE * low


def _is_of(names: Sequence[str], gib: float, devices: Sequence[DeviceInfo]) -> bool:
    """Return whether these cards with this much memory each are those of this PC."""
    reported = [find_card(name, round(gib * GIB)) for name in names]
    here = [find_card(device.description or device.name, device.total_bytes) for device in default_gpus(devices)]
    return len(reported) == len(here) and all(
        one is not None and other is not None and one.is_like(other) for one, other in zip(reported, here, strict=True)
    )
