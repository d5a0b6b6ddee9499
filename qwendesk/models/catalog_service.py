"""The catalog in the window: reads it, looks its files up on the Hub, and tells everybody who shows it."""

import asyncio
import datetime
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from qwendesk.core.app_options import AppOptions
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.number_format import show_date
from qwendesk.core.observed import Observed
from qwendesk.core.translation import join_sentences, tr, tr_n
from qwendesk.core.weekly import is_due, repeat_hourly
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.catalog_schema import SpeedReport
from qwendesk.hub.catalog_updates import CatalogChanges, CatalogStore, LastLookUp, changes_between, look_up
from qwendesk.models.new_models import NewLookUp, NewModel, look_up_new, new_models_file, owners_of, still_new
from qwendesk.settings.service import SettingsService

if TYPE_CHECKING:
    from qwendesk.hub.remote import Hub
    from qwendesk.models.pasted_report import PastedReports


# Wait between two repositories, so that the Hub isn't asked a hundred times within a few seconds.
GAP_S = 0.5
# How long closing waits for the answer to the last request.
_CLOSING_S = 5.0


class LookUpProgress(msgspec.Struct, frozen=True):
    """Progress of the look-up that is running."""

    n_done: int
    n_questions: int
    """One for each repository, and one for each uploader; 0 until the catalog is read."""


class CatalogState(msgspec.Struct, frozen=True, kw_only=True):
    """The catalog, and when and with which result its files were looked up."""

    catalog: Catalog | None = None
    """None before it is read, and if it can't be read."""
    last: LastLookUp = LastLookUp()
    progress: LookUpProgress | None = None
    """None while nothing is looked up."""
    changes: CatalogChanges | None = None
    """Changes by the last look-up since the start; None before one has succeeded."""
    new: tuple[NewModel, ...] = ()
    """Models that came after the catalog, as far as look-ups found them."""
    n_new_models: int = 0
    """How many of them the last look-up since the start has found."""
    is_offline: bool = False


class CatalogService:
    """Owns the look-ups. Call its methods on the event loop's thread; it asks the Hub on another."""

    def __init__(
        self,
        store: CatalogStore,
        settings: SettingsService,
        connect: "Callable[[], Hub]",
        *,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
        wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
        gap_s: float = GAP_S,
    ) -> None:
        """`connect` makes the Hub to ask, on another thread. `wait` waits for a number of seconds."""
        self.store = store
        """May be used on any thread."""
        self._settings, self._connect = settings, connect
        self._now, self._wait, self._gap_s = now, wait, gap_s
        self.state = Observed(CatalogState(is_offline=settings.options.offline))
        self._new_file = new_models_file(store.folder)
        self._knows_new = False
        """Whether the state has the saved new models, or later ones."""
        self._is_metered = self._is_automatic = self._is_closing = self._is_abandoned = False
        self._stop = threading.Event()
        self._cancelled: datetime.datetime | None = None
        """When the user last cancelled a look-up."""
        self._look_up: asyncio.Task[None] | None = None
        self._schedule: asyncio.Task[None] | None = None
        self._unsubscribe = settings.subscribe(self._on_options)

    async def load(self) -> Catalog:
        """Return the catalog. Raises BadCatalog."""
        _, new = await asyncio.to_thread(lambda: (self.store.catalog, () if self._knows_new else self._new_file.read()))
        if not self._knows_new:
            self._knows_new = True
            self.state.update(new=new)
        catalog = self.store.catalog  # again, because a thread may be late
        self.state.update(catalog=catalog)
        return catalog

    async def add_reports(self, text: str, measured_on: str) -> "PastedReports":
        """Add the speeds in a pasted text to this PC's advice. See `add_reports`; raises what that raises."""
        from qwendesk.models.pasted_report import add_reports  # noqa: PLC0415 - hardly ever needed

        found = await asyncio.to_thread(add_reports, text, self.store, measured_on)
        self.state.update(catalog=self.store.catalog)
        return found

    async def remove_report(self, report: SpeedReport) -> None:
        """Remove a speed that the user has pasted. Raises QwenDeskError if that can't be saved."""
        from qwendesk.models.pasted_report import save_reports  # noqa: PLC0415 - hardly ever needed

        left = tuple(each for each in await asyncio.to_thread(self.store.read_reports) if each != report)
        await asyncio.to_thread(save_reports, left, self.store)
        self.state.update(catalog=self.store.catalog)

    def start(self) -> None:
        """Read the catalog, and from now on look its files up once a week if the user has chosen that."""
        if self._schedule is None:
            self._schedule = asyncio.get_running_loop().create_task(self._keep_current())

    def set_metered(self, is_metered: bool) -> None:
        """Set whether the connection is metered. Nothing is looked up automatically on such a connection."""
        self._is_metered = is_metered
        self._stop_unwanted()

    def look_up(self) -> None:
        """Begin to look up the files of all repositories, unless that is running or the app is offline."""
        self._begin(is_automatic=False)

    def cancel(self) -> None:
        """Stop the look-up after the request that is running. What the Hub has answered is kept.

        The weekly look-up waits for a day, because the user has just refused it.
        """
        self._cancelled = self._now()
        self._stop.set()

    async def wait_until_settled(self) -> None:
        """Return when no look-up is running."""
        while self._look_up is not None:
            await asyncio.wait([self._look_up])

    async def close(self) -> None:
        """Stop, and wait for the answer to a running request, but no more than 5 s. A later answer isn't saved."""
        self._is_closing = True
        self._unsubscribe()
        self._stop.set()
        if self._schedule is not None:
            self._schedule.cancel()
            await asyncio.wait([self._schedule])
        if self._look_up is not None:
            await asyncio.wait([self._look_up], timeout=_CLOSING_S)
        if self._look_up is not None:
            self._is_abandoned = True
            self._look_up.cancel()

    async def _keep_current(self) -> None:
        last = await asyncio.to_thread(self.store.read_last)
        self.state.update(last=last)
        try:
            await self.load()
        except QwenDeskError:
            return  # For this PC says why
        await repeat_hourly(self._begin_if_due, self._wait)

    def _begin_if_due(self) -> None:
        last = self.state.value.last
        if self._is_allowed() and is_due(self._now(), last.done, last.tried, self._cancelled):
            self._begin(is_automatic=True)

    def _is_allowed(self) -> bool:
        options = self._settings.options
        return options.look_up_weekly and not options.offline and not self._is_metered

    def _on_options(self, options: AppOptions) -> None:
        self.state.update(is_offline=options.offline)
        self._stop_unwanted()

    def _stop_unwanted(self) -> None:
        if self._settings.options.offline or (self._is_automatic and not self._is_allowed()):
            self._stop.set()

    def _begin(self, *, is_automatic: bool) -> None:
        if self._look_up is None and not self._is_closing and not self._settings.options.offline:
            self._is_automatic, self._stop = is_automatic, threading.Event()
            self.state.update(progress=LookUpProgress(0, 0), changes=None)
            self._look_up = asyncio.get_running_loop().create_task(self._run(self._stop))

    async def _run(self, stop: threading.Event) -> None:
        loop = asyncio.get_running_loop()

        def progress(n_done: int, n_questions: int) -> None:
            if not stop.is_set():
                loop.call_soon_threadsafe(self._show_progress, stop, LookUpProgress(n_done, n_questions))

        try:
            last, changes, new = await asyncio.to_thread(self._ask, stop, progress)
            self._knows_new = True
            before = {model.repo for model in self.state.value.new}
            n_new = sum(model.repo not in before for model in new)
            self.state.update(last=last, changes=changes, catalog=self.store.catalog, new=new, n_new_models=n_new)
        except QwenDeskError as error:
            last = msgspec.structs.replace(self.state.value.last, tried=self._now(), problem=error.sentence)
            self.state.update(last=last)
        finally:
            self._look_up = None
            stop.set()
            self.state.update(progress=None)

    def _show_progress(self, stop: threading.Event, progress: LookUpProgress) -> None:
        if not stop.is_set():
            self.state.update(progress=progress)

    def _ask(
        self, stop: threading.Event, progress: Callable[[int, int], None]
    ) -> tuple[LastLookUp, CatalogChanges | None, tuple[NewModel, ...]]:
        """Ask the Hub, and save what it answers. Blocks. Raises BadCatalog."""
        before, last, now = self.store.catalog, self.store.read_last(), self._now()
        known = still_new(self._new_file.read(), before)
        repos, hub = [each.repo for each in before.repositories], self._connect()
        n_all = len(repos) + len(owners_of(before))
        found = look_up(
            repos,
            self.store.updates,
            hub,
            now.date().isoformat(),
            stop,
            gap_s=self._gap_s,
            on_progress=lambda n_done: progress(n_done, n_all),
        )
        new = NewLookUp(known)
        if not found.problem and not stop.is_set():
            new = look_up_new(
                before,
                known,
                hub,
                stop,
                gap_s=self._gap_s,
                on_progress=lambda n_owners: progress(len(repos) + n_owners, n_all),
            )
        if self._is_abandoned:
            return last, None, known  # the user's data may have been deleted by now, and must not come back
        self.store.add(found.answers)
        self._new_file.try_write(new.models)
        if stop.is_set():
            return last, None, new.models
        problem = found.problem or new.problem
        last = LastLookUp(last.done if problem else now, now, problem)
        self.store.save_last(last)
        return last, None if problem else changes_between(before, self.store.catalog), new.models


def date_text(catalog_date: str, last: LastLookUp, today: datetime.date) -> str:
    """Return the catalog's date, and when its files were last checked for updates.

    A look-up from before the catalog isn't mentioned, because the catalog doesn't use its answers.
    """
    looked_up = last.done.astimezone().date() if last.done is not None else None
    if looked_up is None or looked_up < datetime.date.fromisoformat(catalog_date):
        return tr("Catalog of {0}.", show_date(catalog_date))
    days = max((today - looked_up).days, 0)
    if days == 0:
        return tr("Catalog of {0}. Checked today.", show_date(catalog_date))
    return tr_n(
        "Catalog of {1}. Checked {0} day ago.",
        "Catalog of {1}. Checked {0} days ago.",
        days,
        show_date(catalog_date),
    )


def result_text(state: CatalogState) -> str:
    """Return how the look-up goes on or ended, or why there can be none; "" if there is nothing to tell."""
    progress, last, changes = state.progress, state.last, state.changes
    if progress is not None and progress.n_questions:
        return tr("Checking for updates: {0} of {1}…", progress.n_done, progress.n_questions)
    if progress is not None:
        return tr("Checking for updates…")
    if state.is_offline:
        return tr("QwenDesk is offline, so it can't check for updates.")
    if last.problem and last.tried is not None:
        day = show_date(last.tried.astimezone().date())
        return tr("The check of {0} failed. {1}", day, last.problem)
    if changes is None:
        return ""
    parts = [
        tr_n("{0} model is new.", "{0} models are new.", state.n_new_models) if state.n_new_models else "",
        tr_n("{0} file is new.", "{0} files are new.", changes.n_new) if changes.n_new else "",
        tr_n("{0} file was replaced.", "{0} files were replaced.", changes.n_replaced) if changes.n_replaced else "",
        tr_n("{0} file was removed.", "{0} files were removed.", changes.n_removed) if changes.n_removed else "",
    ]
    return join_sentences(*parts) or tr("Nothing has changed.")
