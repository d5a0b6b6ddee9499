"""Answers one prompt with several settings, one column after the other, so that they can be compared.

Columns that differ only in sampling are answered by the chat's engine. As soon as one column needs another file or
other load options, the chat's model is unloaded, an engine of its own loads what each column needs, and the chat's
model is loaded again at the end. So two models never share the memory.
"""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from qwendesk.bench.bench_engine import BenchEngine, BenchFailure
from qwendesk.bench.bench_runs import BenchRuns
from qwendesk.bench.comparison import (
    ENDED,
    RANDOM_SEED,
    Column,
    ColumnResult,
    ComparisonState,
    PromptComparison,
    check_comparison,
    differences,
)
from qwendesk.chat.question_files import answer_options, read_question
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.messages import Message
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.served_model import is_served
from qwendesk.core.settings import apply_assignments
from qwendesk.core.translation import tr
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.protocol import Delta, Finished, Generate, LoadReport, PromptProgress, RequestFailed
from qwendesk.engines.engine_service import EngineService


def draw_seed() -> int:
    """Return a random seed that is short enough to be typed."""
    return random.SystemRandom().randrange(1_000_000_000)


class CompareService:
    """Runs one comparison at a time. Call its methods on the event loop's thread."""

    def __init__(
        self,
        engine: EngineService,
        client: EngineClient,
        runs: BenchRuns,
    ) -> None:
        """`client` is that of `engine`, the chat's engine."""
        self._engine, self._client, self._runs = engine, client, runs
        self.state = Observed(ComparisonState())
        self._work: asyncio.Task[None] | None = None
        self._is_stopping = self._has_own_engine = False

    async def run(self, comparison: PromptComparison) -> None:
        """Answer the prompt with each column. The state says what came of it; a running comparison goes on."""
        if self.state.value.is_running:
            return
        columns = tuple(self._with_seed(column) for column in comparison.columns)
        comparison = msgspec.structs.replace(comparison, columns=columns)
        waiting = tuple(ColumnResult() for _ in columns)
        self.state.set(ComparisonState(comparison=comparison, results=waiting, is_running=True))
        self._is_stopping = self._has_own_engine = False
        self._work = asyncio.ensure_future(self._run(comparison))
        try:
            await self._work
        except asyncio.CancelledError:
            if not self._is_stopping:
                raise
        finally:
            self._work = None
            self._end()

    def stop(self) -> None:
        """Stop the answer that is generated, and the columns after it. What has arrived is kept."""
        if self._work is None or self._is_stopping:
            return
        self._is_stopping = True
        if self._has_own_engine:
            self._runs.stop()  # the chat's model is loaded again
        else:
            self._work.cancel()

    def _with_seed(self, column: Column) -> Column:
        """Return the column with a seed, so that an answer can be had again."""
        return msgspec.structs.replace(column, seed=draw_seed()) if column.seed == RANDOM_SEED else column

    async def _run(self, comparison: PromptComparison) -> None:
        try:
            check_comparison(comparison)
            question = await read_question(comparison.prompt, [Path(file) for file in comparison.files])
            loads = [await self._load_options(column) for column in comparison.columns]
        except QwenDeskError as error:
            self.state.update(failure=error.sentence)
            return
        state = self._engine.state
        if state.report is not None and all(load == state.requested for load in loads):
            self.state.update(uses_loaded_model=True)
            await self._answer_with_loaded(loads[0], question)
            return
        self._has_own_engine = True
        ended = await self._runs.run(tr("Compare"), lambda engine: self._answer_all(engine, loads, question))
        if isinstance(ended, BenchFailure) and not self._is_stopping:
            self.state.update(failure=ended.sentence)

    async def _load_options(self, column: Column) -> LoadOptions:
        requested = self._engine.state.requested
        as_loaded = self._engine.state.report is not None and requested is not None and requested.model == column.model
        if as_loaded and requested is not None:
            base = requested
        elif is_served(column.model):
            base = LoadOptions(model=column.model)
        else:
            base = await self._engine.options_for(Path(column.model))
        return apply_assignments(base, column.load_changes)

    async def _answer_with_loaded(self, load: LoadOptions, question: Message) -> None:
        """Answer with the chat's engine, as long as it has this model loaded."""
        for index in range(len(self.state.value.results)):
            await self._engine.wait_until_settled()  # it is restarted if it crashed with the column before
            report = self._engine.state.report
            if report is None or self._engine.state.requested != load:
                self._change(index, phase="failed", failure=tr("The model isn't loaded any more."))
            else:
                await self._answer(index, self._client, report, question)

    async def _answer_all(self, engine: BenchEngine, loads: Sequence[LoadOptions], question: Message) -> None:
        """Answer with an engine of its own, which loads each file only once for all columns that need it alike."""
        for options in dict.fromkeys(loads):
            report: LoadReport | LoadFailure | None = None
            for index in (index for index, load in enumerate(loads) if load == options):
                if report is None:
                    self._change(index, phase="loading")
                    report = await engine.load(options)
                if isinstance(report, LoadFailure):
                    self._change(index, phase="failed", failure=report.sentence)
                elif not await self._answer(index, engine.client, report, question):
                    report = None

    async def _answer(self, index: int, client: EngineClient, report: LoadReport, question: Message) -> bool:
        """Answer with one column. Return False if the engine has exited.

        Every column processes the whole prompt, so that the times can be compared.
        """
        comparison = self.state.value.comparison
        assert comparison is not None
        column = comparison.columns[index]
        overrides = {**column.settings.overrides, "seed": str(column.seed), "cache_prompt": "false"}
        settings = msgspec.structs.replace(column.settings, overrides=overrides)
        try:
            options = answer_options(settings, report)
        except QwenDeskError as error:
            self._change(index, phase="failed", failure=error.sentence)
            return True
        self._change(index, phase="processing")
        has_exited = False
        async for item in client.generate(Generate(messages=(question,), options=options)):
            result = self.state.value.results[index]
            match item:
                case PromptProgress(done=done, total=total):
                    self._change(index, fraction=done / total if total else 0.0)
                case Delta(kind="reasoning", text=piece):
                    self._change(index, phase="answering", reasoning=result.reasoning + piece)
                case Delta(text=piece):
                    self._change(index, phase="answering", text=result.text + piece)
                case Finished(stop_reason=reason, stats=stats):
                    phase = "stopped" if reason == "cancelled" else "done"
                    self._change(index, phase=phase, stop_reason=reason, stats=stats)
                case RequestFailed(sentence=sentence) | EngineExit(sentence=sentence):
                    has_exited = isinstance(item, EngineExit)
                    self._change(index, phase="failed", failure=sentence)
        await self._find_differences(index)
        return not has_exited

    async def _find_differences(self, index: int) -> None:
        """Compare the answer of a column with that of the first, which is answered before it."""
        first, text = self.state.value.results[0].text, self.state.value.results[index].text
        if index and first and text:
            self._change(index, differences=await asyncio.to_thread(differences, first, text))

    def _change(self, index: int, **changes: Any) -> None:
        results = list(self.state.value.results)
        results[index] = msgspec.structs.replace(results[index], **changes)
        self.state.update(results=tuple(results))

    def _end(self) -> None:
        results = self.state.value.results
        ended = tuple(
            each if each.phase in ENDED else msgspec.structs.replace(each, phase="stopped") for each in results
        )
        self.state.update(results=ended, is_running=False)
