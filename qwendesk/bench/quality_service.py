"""Scores a text with a model, as perplexity or as divergence from a base, and keeps the scores."""

import asyncio
import tempfile
from pathlib import Path, PurePath
from typing import Literal

import msgspec

from qwendesk.bench.bench_engine import BenchEngine, BenchFailure, ShowFraction
from qwendesk.bench.bench_runs import BenchRuns
from qwendesk.bench.records import BenchRecord, make_record
from qwendesk.core import paths
from qwendesk.core.benchmarks import TextScore, TextTest
from qwendesk.core.failures import LoadFailure
from qwendesk.core.files import write_whole
from qwendesk.core.json_file import JsonFile
from qwendesk.core.observed import Observed
from qwendesk.core.options import CacheType, LoadOptions
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import LoadReport
from qwendesk.engines.load_decision import Decide

_MOST_KEPT = 50


class QualityPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What to score."""

    text: str = ""
    """Path of a text file; "" is the user guide, which every PC has."""
    n_ctx: int = 512
    most_chunks: int = 20
    """0 for all."""
    cache_type: Literal["auto"] | CacheType = "auto"
    """Of the KV cache; "auto" as the model's options say."""
    base: str = ""
    """Path of a base to compare with; "" for none."""
    save_base: str = ""
    """File to save a base in; "" for none."""


class QualityRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A scored text, without folders."""

    model: BenchRecord
    """Record of the load, without rows."""
    text: str
    """Name of the text file; "" for the user guide."""
    n_ctx: int
    base: str = ""
    """Name of the base; "" for none."""
    score: TextScore


class _QualityFile(msgspec.Struct, frozen=True):
    records: tuple[QualityRecord, ...] = ()


class QualityState(msgspec.Struct, frozen=True):
    """What the quality test shows."""

    options: LoadOptions | None = None
    """The model to score; None if none was chosen."""
    is_running: bool = False
    fraction: float = 0.0
    failure: BenchFailure | LoadFailure | None = None
    saved_base: str = ""
    """Path of the base that the last run saved; "" for none."""
    records: tuple[QualityRecord, ...] = ()
    """All that are kept, of every model, the latest first: they are there to be compared."""


class QualityService:
    """Owns the runs of the quality test. Call its methods on the event loop's thread."""

    def __init__(self, runs: BenchRuns, decide: Decide, file: Path | None = None) -> None:
        """`decide` is a planner that leaves SCORING_BYTES free."""
        self._runs, self._decide = runs, decide
        path = file or paths.data_folder() / "bench-quality.json"
        self._file = JsonFile(path, _QualityFile, _QualityFile)
        self.state = Observed(QualityState())

    async def read(self) -> None:
        """Show what is kept."""
        kept = await asyncio.to_thread(self._file.read)
        self.state.update(records=kept.records)

    def choose(self, options: LoadOptions | None) -> None:
        """Score this model from the next run on."""
        if not self.state.value.is_running:
            self.state.update(options=options)

    async def run(self, plan: QualityPlan) -> None:
        """Score the text with the chosen model."""
        options = self.state.value.options
        if options is None or self.state.value.is_running:
            return
        self.state.update(is_running=True, fraction=0.0, failure=None, saved_base="")
        if plan.cache_type != "auto":
            options = msgspec.structs.replace(options, type_k=plan.cache_type, type_v=plan.cache_type)
        try:
            result = await self._runs.run("quality", lambda engine: self._score(engine, options, plan))
            if isinstance(result, QualityRecord):
                await self._keep(result)
                self.state.update(saved_base=plan.save_base)
            else:
                self.state.update(failure=result)
        finally:
            self.state.update(is_running=False)

    def stop(self) -> None:
        if self.state.value.is_running:
            self._runs.stop()

    async def _score(
        self, engine: BenchEngine, options: LoadOptions, plan: QualityPlan
    ) -> QualityRecord | LoadFailure | BenchFailure:
        with tempfile.TemporaryDirectory(prefix="qwendesk-bench-", ignore_cleanup_errors=True) as folder:
            text = plan.text or await asyncio.to_thread(self._write_guide, Path(folder))
            test = TextTest(
                path=text, n_ctx=plan.n_ctx, most_chunks=plan.most_chunks, base=plan.base, save_base=plan.save_base
            )
            result = await measure_quality(
                engine, options, test, self._decide, lambda fraction: self.state.update(fraction=fraction)
            )
        if not isinstance(result, QualityResult):
            return result
        return QualityRecord(
            model=make_record(result.report, engine.devices, engine.version, ()),
            text=PurePath(plan.text).name,
            n_ctx=plan.n_ctx,
            base=PurePath(plan.base).name,
            score=result.score,
        )

    async def _keep(self, record: QualityRecord) -> None:
        records = (record, *self.state.value.records)[:_MOST_KEPT]
        self.state.update(records=records)
        await asyncio.to_thread(self._file.try_write, _QualityFile(records))

    def _write_guide(self, folder: Path) -> str:
        path = folder / "guide.txt"
        write_whole(path, guide_text().encode())
        return str(path)


def guide_text() -> str:
    """Return all pages of the English guide. Blocks."""
    pages = sorted(paths.guide_folder().glob("*.md"))
    return "\n\n".join(page.read_text(encoding="utf-8") for page in pages)


# Memory that scoring takes beyond the loaded model, at most: a second context with rows of logits. The planner leaves
# it free.
SCORING_BYTES = GIB
_SHORTEST_CONTEXT = 512


class QualityResult(msgspec.Struct, frozen=True):
    """A score, and how the model was loaded for it."""

    report: LoadReport
    score: TextScore


async def measure_quality(
    engine: BenchEngine, options: LoadOptions, test: TextTest, decide: Decide | None, show: ShowFraction
) -> QualityResult | LoadFailure | BenchFailure:
    """Load a model without its vision file and score a text.

    `decide` is a planner that leaves SCORING_BYTES free; None if the engine's own does.
    """
    wanted = msgspec.structs.replace(
        options, mmproj="", speculative="off", n_ctx=max(test.n_ctx, _SHORTEST_CONTEXT), chat_states_mib=0
    )
    report = await engine.load(wanted, decide)
    if isinstance(report, LoadFailure):
        return report
    score = await engine.score(test, show)
    return score if isinstance(score, BenchFailure) else QualityResult(report, score)
