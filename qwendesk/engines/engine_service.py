"""Loads and unloads the one model in the engine worker, and restarts a crashed worker.

Loading replaces every "auto" option, based on the file's header and the memory that is free now.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec

from qwendesk.core import paths
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.observed import Observed
from qwendesk.core.options import DecidedOptions, LoadOptions, decided_options
from qwendesk.core.served_model import is_served
from qwendesk.core.translation import tr
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.load_failures import cancelled_load, classify_load
from qwendesk.engine.protocol import Devices, LoadReport, Welcome
from qwendesk.engine.state import (
    EngineEvent,
    EngineState,
    IdleUnloaded,
    LoadAsked,
    LoadFailed,
    QuestionsHeld,
    SavingStates,
    WorkerExited,
    reduce,
)
from qwendesk.engines.crash_counts import MOST_RESTARTS, RESTARTS_WITHIN_S, RestartLimit
from qwendesk.engines.load_decision import Decide, OptionsFor, ReadFiles, facts_for, find_step, with_companions
from qwendesk.engines.load_decision import decide as decide_by_header
from qwendesk.hardware.ladder import StepDown


async def _nothing() -> None:
    pass


class EngineService:
    """Loads and ejects a model, and restarts a crashed engine. Call its methods on the event loop's thread."""

    def __init__(
        self,
        client: EngineClient,
        *,
        decide: Decide = decide_by_header,
        check: Decide = decide_by_header,
        read_files: ReadFiles = facts_for,
        options_for: OptionsFor = with_companions,
        with_saved_options: Callable[[LoadOptions], LoadOptions] = lambda options: options,
        before_unload: Callable[[], Awaitable[None]] = _nothing,
        until_idle: Callable[[], Awaitable[None]] = _nothing,
        reads_before_unload: bool = False,
    ) -> None:
        """`check` decides as `decide` does, for a step down that is only offered."""
        self._client = client
        self._decide, self._check = decide, check
        self.read_files = read_files
        """Reads the headers of a model and its vision file; blocks."""
        self.options_for = options_for
        """Returns the options with which a model file is loaded."""
        self.with_saved_options = with_saved_options
        """Returns the options with the changes that the user saved for their model."""
        self.before_unload = before_unload
        """Awaited before a loaded model is unloaded, to save what is in its memory."""
        self.until_idle = until_idle
        """Awaited before the window's model replaces one that another program uses."""
        self.read_before_unload = read_files if reads_before_unload else None
        """Reads the headers of the files to load before the loaded model is unloaded for them."""
        self.observed = Observed(EngineState())
        self.retry = Observed[StepDown | None](None)
        """The step down to offer after a failed load; None until it is known, or if there is none."""
        self._restarts = RestartLimit()
        self._to_restore: LoadOptions | None = None
        """Options to load again after a crash; None during a load and when there should be no model."""
        self._decided: DecidedOptions | None = None
        self._latest_ticket = 0
        """Incremented by every load and cancelled load. A load gives up when its number is no longer the latest."""
        self._load_lock = asyncio.Lock()
        self._loads: set[asyncio.Task[LoadReport | LoadFailure]] = set()
        """The loads that run or wait. Each has a task of its own, so that none is left half done."""
        self._is_settled = asyncio.Event()
        self._is_settled.set()
        self._n_waiting = 0
        self.question_waits = Observed(False)
        """Whether a question waits for a load or, while questions are held, for their release."""
        self._tasks: set[asyncio.Task[Any]] = set()
        """Unloads and searches for a retry, which whoever waits for them can't cancel."""
        self._unsubscribe = client.subscribe(self._on_event)

    @property
    def state(self) -> EngineState:
        return self.observed.value

    @property
    def was_load_requested(self) -> bool:
        """Whether a load was requested since the app started, successful or not."""
        return self._latest_ticket > 0

    def subscribe(self, callback: Callable[[EngineState], None]) -> Callable[[], None]:
        """Call `callback` with each new state until the returned function is called."""
        return self.observed.subscribe(callback)

    async def load(self, options: LoadOptions, *, for_others: bool = False) -> LoadReport | LoadFailure:
        """Load a model in a fresh worker. A load that still runs is cancelled first.

        `for_others` loads it for another program: `reload_idle` brings the window's model back for the next question.
        If the caller is cancelled, so is the load, unless a question waits for it.
        """
        own = self.state.requested if self.state.report is not None else None
        task = self._start_load(options, (self.state.idle_unloaded or own) if for_others else None)
        ticket = self._latest_ticket
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            if ticket == self._latest_ticket and not self._n_waiting:
                await self.cancel_load()
            raise
        return cancelled_load() if task.cancelled() else task.result()

    async def load_file(self, model: Path) -> LoadReport | LoadFailure:
        """Load a model file with the options that `options_for` returns."""
        return await self.load(await self.options_for(model))

    async def load_demo(self) -> LoadReport | LoadFailure:
        """Load the built-in demo model with the options that the user saved for it."""
        demo = LoadOptions(model=str(paths.demo_model()), mmproj=str(paths.demo_mmproj()))
        return await self.load(self.with_saved_options(demo))

    async def load_mmproj(self, mmproj: Path) -> None:
        """Load the current model again with this vision projector; do nothing without a model."""
        requested = self.state.requested
        if requested is not None:
            await self.load(msgspec.structs.replace(self.with_saved_options(requested), mmproj=str(mmproj)))

    async def reload(self) -> LoadReport | LoadFailure:
        """Load the most recently requested model again, with "auto" decided anew; the demo model if there was none."""
        requested = self.state.idle_unloaded or self.state.requested
        return await (self.load_demo() if requested is None else self.load(self.with_saved_options(requested)))

    async def reload_if_loaded(self, model: str) -> None:
        """Load the model again if it is loaded, because its saved options have changed."""
        if self.state.report is not None and self.state.report.options.model == model:
            await self.reload()

    async def wait_for_retry(self) -> StepDown | None:
        """Return the step down to offer after a failed load, once it is known; None if there is none."""
        if self._tasks:
            await asyncio.wait(self._tasks)
        return self.retry.value

    async def load_retry(self) -> None:
        """Load with the step down that `retry` offers after a failed load; do nothing if there is none."""
        if self.retry.value is not None:
            await self.load(self.retry.value.options)

    async def probe(self) -> Devices | EngineExit:
        """Return the engine's compute devices. Waits for a load in progress; starts a worker if none is running."""
        async with self._load_lock:
            return await self._client.probe()

    async def cancel_load(self) -> None:
        """Cancel the load in progress, if any: its `load` returns a failure of kind "cancelled"."""
        if self._loads:
            self._latest_ticket += 1
            await self._client.cancel_load()

    async def eject(self) -> None:
        """Unload the model by stopping the worker, which frees all its memory."""
        self._apply(IdleUnloaded(None))
        self._to_restore = None
        self._settle()
        await self.cancel_load()
        await self._unload_to_the_end()

    async def unload_idle(self) -> None:
        """Unload the model as `eject` does, but remember it: `reload_idle` loads it again for the next question.

        A model that is already unloaded this way stays remembered. The worker is stopped in either case.
        """
        if self.state.report is not None:
            self._apply(IdleUnloaded(self.state.idle_unloaded or self.state.requested))
            self._to_restore = None
        if self.state.idle_unloaded is not None:
            await self._unload_to_the_end()

    def load_with_next_message(self, options: LoadOptions) -> None:
        """Remember a model that isn't loaded: `reload_idle` loads it for the next question."""
        self._apply(IdleUnloaded(options))

    def reload_idle(self) -> bool:
        """Start loading the remembered model; return False if there is none.

        Uses its previous options with what the user has saved since. Wait for the end of the load with
        `wait_until_settled`. While questions are held, the load starts when they are released. An answer for another
        program ends before its model is replaced.
        """
        if self.state.idle_unloaded is None:
            return False
        if self.state.questions_held:
            self._is_settled.clear()
        else:
            self._start_load(self.with_saved_options(self.state.idle_unloaded), waits=self.state.report is not None)
        return True

    def hold_questions(self) -> None:
        """Let questions to an unloaded model wait until `release_questions`, or until the user loads a model."""
        self._apply(QuestionsHeld(held=True))

    def release_questions(self, *, load: bool = False) -> None:
        """End `hold_questions`. If a question waits, or with `load`, start loading the remembered model."""
        self._apply(QuestionsHeld(held=False))
        if not ((load or self.question_waits.value) and self.reload_idle()):
            self._settle()

    async def wait_until_settled(self) -> None:
        """Wait until nothing is being loaded or restarted, and no question is held."""
        if self._is_settled.is_set():
            return
        self._n_waiting += 1
        self.question_waits.set(True)
        try:
            await self._is_settled.wait()
        finally:
            self._n_waiting -= 1
            self.question_waits.set(self._n_waiting > 0)

    async def close(self) -> None:
        """Stop the worker and all tasks, even if the caller is cancelled. The service can't be used afterwards."""
        self._to_restore = None
        self._latest_ticket += 1
        await asyncio.shield(self._close())

    async def _close(self) -> None:
        await self._cancel_tasks()
        self._is_settled.set()
        await self._client.close()
        self._unsubscribe()
        await self._cancel_tasks()

    def _settle(self) -> None:
        """Let those go on who wait for loads, if none is running."""
        if not self._loads:
            self._is_settled.set()

    def _start_load(
        self, options: LoadOptions, own: LoadOptions | None = None, *, waits: bool = False
    ) -> "asyncio.Task[LoadReport | LoadFailure]":
        """Start a load in the background. `wait_until_settled` waits for it from now on.

        `own` is the window's model if this one is for another program. With `waits`, answers end before it.
        """
        self._latest_ticket += 1
        self._to_restore = None
        self._is_settled.clear()
        task = asyncio.get_running_loop().create_task(
            self._load_in_turn(self._latest_ticket, options, own, waits=waits)
        )
        self._loads.add(task)
        task.add_done_callback(self._on_load_end)
        return task

    def _on_load_end(self, task: "asyncio.Task[LoadReport | LoadFailure]") -> None:
        self._loads.discard(task)
        self._settle()

    async def _load_in_turn(
        self, ticket: int, options: LoadOptions, own: LoadOptions | None, *, waits: bool
    ) -> LoadReport | LoadFailure:
        if waits:
            await self.until_idle()
        if self._load_lock.locked():
            await self._client.cancel_load()
        async with self._load_lock:
            return await self._load(ticket, options, own)

    async def _load(self, ticket: int, options: LoadOptions, own: LoadOptions | None) -> LoadReport | LoadFailure:
        if self.state.report is not None or self.state.idle_unloaded is not None:
            bad = await self._header_failure(options)
            if bad is not None and ticket == self._latest_ticket:
                self._to_restore = self.state.requested
                if own is None:  # a failure of another program's model is none of the window's
                    self._apply(LoadFailed(bad))
                return bad
        if ticket == self._latest_ticket and self.state.report is not None:
            await self._unload(ticket)
        if ticket != self._latest_ticket:
            if len(self._loads) == 1:  # it was given up before the loaded model was unloaded, which therefore stays
                self._to_restore = self.state.requested
            return cancelled_load()
        self._apply(LoadAsked(options, own))
        await asyncio.sleep(0)  # so that the window can draw this state before the engine is asked
        result = await self._try_load(ticket, options)
        if ticket != self._latest_ticket:
            result = cancelled_load()
        if isinstance(result, LoadReport):
            self._to_restore = options
            return result
        if self.state.failure is None:
            self._apply(LoadFailed(result))
        # Stopping the worker frees whatever a failed load left in its memory.
        await self._client.unload()
        return result

    async def _header_failure(self, options: LoadOptions) -> LoadFailure | None:
        """Return what is wrong with the files by their headers, so that the loaded model isn't unloaded for them."""
        if self.read_before_unload is None or is_served(options.model):
            return None
        files = await asyncio.to_thread(self.read_before_unload, options)
        return files if isinstance(files, LoadFailure) else None

    async def _unload_to_the_end(self) -> None:
        """Unload the model, even if the caller is cancelled meanwhile."""
        await asyncio.shield(self._start_task(self._unload(self._latest_ticket)))

    async def _unload(self, ticket: int) -> None:
        """Unload the model, unless a load is requested after `ticket` and before it is ready: that load does it."""
        if self.state.report is not None:
            self._apply(SavingStates(saving=True))
            try:
                await self.before_unload()
            finally:
                self._apply(SavingStates(saving=False))
        if ticket == self._latest_ticket:
            await self._client.unload()

    async def _try_load(self, ticket: int, options: LoadOptions) -> LoadReport | LoadFailure:
        self._decided = None
        if is_served(options.model):  # the server has decided
            return await self._client.load(decided_options(options))
        devices = await self._client.probe()
        if isinstance(devices, EngineExit):
            return classify_load(devices, options)
        decided = await asyncio.to_thread(self._decide, options, devices)
        if isinstance(decided, LoadFailure):
            return decided
        if ticket != self._latest_ticket:
            return cancelled_load()
        self._decided = decided
        result = await self._client.load(decided)
        if isinstance(result, LoadFailure) and result.kind == "out_of_vram" and ticket == self._latest_ticket:
            # Another program took memory since the plan was made: what is free now decides what to offer.
            await self._client.probe()
        return result

    def _on_event(self, event: EngineEvent) -> None:
        if isinstance(event, LoadAsked):
            return  # `_load` has already applied it, with the requested options instead of the decided ones
        lost = self._to_restore if self.state.report is not None else None
        if isinstance(event, WorkerExited) and event.engine_exit is not None and lost is not None:
            event = self._restart_after(event.engine_exit, lost)
        self._apply(event)

    def _restart_after(self, engine_exit: EngineExit, options: LoadOptions) -> WorkerExited:
        """Load `options` again, unless restarts were too frequent. Return the event to show to users."""
        if self._restarts.allow(asyncio.get_running_loop().time()):
            self._start_load(options, self.state.idle_unloaded)
            return WorkerExited(engine_exit)
        self._to_restore = None
        sentence = tr(
            "{0} That was {1} times within {2} s, so it was not started again. Load the model once more, or choose "
            "other settings.",
            engine_exit.sentence, MOST_RESTARTS + 1, RESTARTS_WITHIN_S,
        )  # fmt: skip
        return WorkerExited(msgspec.structs.replace(engine_exit, sentence=sentence))

    async def _search_retry(self, failed: EngineState) -> None:
        """Set `retry` to what may be tried after a failed load."""
        if failed.failure is None or failed.requested is None or failed.failure.kind == "cancelled":
            return
        if is_served(failed.requested.model):
            return
        if failed.failure.kind == "engine_crashed" and self._decided is None:
            return  # the engine crashed before it opened the model, so no option helps
        await self._is_settled.wait()  # until the load has listed the memory that is free after its failure
        options = self._decided or failed.requested
        devices = Devices(id=0, devices=self.state.devices, cpu_features=self.state.cpu_features)
        step = await asyncio.to_thread(find_step, options, failed.failure, devices, self.read_files, self._check)
        if self.state.failure is failed.failure:
            self.retry.set(step)

    def _start_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _cancel_tasks(self) -> None:
        tasks = (*self._loads, *self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _apply(self, event: EngineEvent) -> None:
        state = reduce(self.state, event)
        if isinstance(event, Welcome) and self._loads and state.requested is not None and state.failure is None:
            # The worker has started but the load continues, so subscribers should not see an idle engine. After a
            # failure, it was only started to list the memory that is free now.
            state = reduce(state, LoadAsked(state.requested, state.idle_unloaded))
        if state.failure is not self.state.failure:
            self.retry.set(None)
        self.observed.set(state)
        if isinstance(event, LoadFailed):
            self._start_task(self._search_retry(state))
