"""Which of the engines on this PC is used: each is tried in a process of its own, the best that runs is chosen."""

import asyncio
import importlib.metadata
import importlib.util
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from qwendesk.core import paths
from qwendesk.core.engines import BEST_FIRST, Backend, BrokenEngine
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.subscribers import Subscribers
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.folders import find_engines, library_environment, wrong_files
from qwendesk.hardware.cpu_features import cpu_features
from qwendesk.services.engine.crash_counts import CrashCounts
from qwendesk.services.engine.trial import Trial, try_engine, why_not_here
from qwendesk.services.settings import SettingsService

INSTALLED = "installed"
"""Name of the engine that came with the Python package, where there is one: in a source tree."""
MOST_CRASHES = 2
"""An engine that crashed so often at its start is not started again until somebody asks for it."""
_LIBRARY_OF: tuple[tuple[str, Backend], ...] = (
    ("cuda", "cuda"), ("hip", "rocm"), ("metal", "metal"), ("vulkan", "vulkan"),
)  # fmt: skip
"""A word in the name of a ggml library, and the backend that it is."""


class Engines(msgspec.Struct, frozen=True):
    """Every engine on this PC as far as it is known, best first."""

    trials: tuple[Trial, ...] = ()
    chosen: str = ""
    """Name of the one that is used; "" before the first choice, and when none runs here."""
    note: str = ""
    """Why it is not the one the person asked for, in a sentence; "" if it is."""
    trying: str = ""
    """Name of the one that is being tried now."""

    @property
    def current(self) -> Trial | None:
        return self.named(self.chosen)

    def named(self, name: str) -> Trial | None:
        return next((trial for trial in self.trials if trial.name == name), None)


def engines_here(*, is_safe: bool = False) -> "EnginesService":
    """The engines of this PC: those of a bundle, those the person fetched, and in a source tree the installed one.

    `is_safe`: those for GPUs are not even started, as long as there is one for the processor.
    """
    package = importlib.util.find_spec("llama_cpp")
    libraries = Path(package.origin).parent / "lib" if package is not None and package.origin else None
    return EnginesService(
        paths.engine_places(),
        package_version(),
        has_installed=libraries is not None and libraries.is_dir(),
        installed_backend=backend_in(libraries) if libraries is not None else "cpu",
        is_safe=is_safe,
    )


def package_version() -> str:
    """Of the llama-cpp-python that this app was made with."""
    return importlib.metadata.version("llama_cpp_python")


def backend_in(libraries: Path) -> Backend:
    """What an installed engine was built for, by the names of its libraries; "cpu" if nothing tells more."""
    try:
        names = " ".join(each.name for each in libraries.iterdir())
    except OSError:
        return "cpu"
    return next((backend for word, backend in _LIBRARY_OF if f"ggml-{word}" in names), "cpu")


async def chosen_here(*, try_all: bool = False) -> "EnginesService":
    """The engines of this PC after the choice, which follows the settings; `try_all` says of each how it fares."""
    engines = engines_here()
    await engines.choose(SettingsService().options.engine, try_all=try_all)
    return engines


async def client_here() -> EngineClient:
    """A client for the best engine of this PC: what a command uses, which has nobody to show a choice to."""
    return (await chosen_here()).client()


class EnginesService:
    """Owns the choice. Methods are called on the event loop's thread."""

    def __init__(
        self,
        places: Sequence[Path],
        package_version: str,
        *,
        has_installed: bool,
        installed_backend: Backend = "cpu",
        try_one: Callable[..., Awaitable[Trial]] = try_engine,
        features: Callable[[], Collection[str] | None] = cpu_features,
        crash_file: Path | None = None,
        is_safe: bool = False,
    ) -> None:
        """The last of `places` is the person's own: what lies there may be deleted.

        `is_safe`: engines for GPUs are not even started, as long as there is one for the processor.
        """
        self._places = tuple(places)
        self._package_version = package_version
        self._installed_backend: Backend | None = installed_backend if has_installed else None
        self._try_one = try_one
        self._features = features
        self._is_safe = is_safe
        self._crashes = CrashCounts(crash_file or paths.data_folder() / "engine-crashes.json")
        self._engines = Engines()
        self._subscribers = Subscribers[Engines]()
        self._one_choice = asyncio.Lock()
        self._is_chosen = asyncio.Event()
        """Not set while a choice is made, or a folder deleted: no worker should start then."""
        self._is_chosen.set()

    @property
    def engines(self) -> Engines:
        return self._engines

    @property
    def package_version(self) -> str:
        """The release of llama-cpp-python that an engine must belong to."""
        return self._package_version

    @property
    def own_place(self) -> Path:
        """The folder that engines of the person's own lie in. It may not exist yet."""
        return self._places[-1]

    async def make_own_place(self) -> Path:
        """`own_place`, made if it was not there. Raises QwenDeskError when it cannot be made."""
        try:
            await asyncio.to_thread(lambda: self.own_place.mkdir(parents=True, exist_ok=True))
        except OSError as error:
            sentence = f"{self.own_place} cannot be made: {error.strerror or error}."
            raise QwenDeskError("No folder for engines", sentence) from error
        return self.own_place

    def subscribe(self, callback: Callable[[Engines], None]) -> Callable[[], None]:
        """Call `callback` each time something is known better. Returns what ends it."""
        return self._subscribers.add(callback)

    def client(self) -> EngineClient:
        """A new client, whose workers load the engine that is chosen when they start."""
        return WorkerClient(environment=self.environment_once_chosen)

    async def environment_once_chosen(self) -> Mapping[str, str]:
        """`environment`, after a choice that is being made now."""
        await self._is_chosen.wait()
        return self.environment()

    def environment(self) -> Mapping[str, str]:
        """What a worker's environment needs so that it loads the engine chosen last."""
        current = self._engines.current
        return library_environment(current.engine if current is not None else None)

    async def choose(self, wanted: str = "", *, try_all: bool = False, try_again: bool = False) -> Engines:
        """Choose the engine called `wanted` if it runs, else the best that does.

        Engines are tried best first until one runs; `try_all` tries the others too, to say why they cannot be used.
        `try_again` forgets earlier crashes.
        """
        async with self._choosing():
            if try_again:
                self._crashes.forget_all()
            candidates = await asyncio.to_thread(self._candidates)
            if [trial.name for trial in candidates] == [INSTALLED] and not try_all:
                # The app would not start the only one there is any differently after a trial.
                return self._know(Engines((candidates[0],), INSTALLED, _note(wanted, INSTALLED, candidates)))
            order = sorted(candidates, key=lambda trial: (trial.name != wanted, *_rank(trial)))
            done: list[Trial] = []
            chosen = ""
            try:
                for candidate in order:
                    if chosen and not try_all:
                        done.append(self._as_known(candidate))
                        continue
                    trial = await self._tried(candidate)
                    done.append(trial)
                    chosen = chosen or (trial.name if trial.usable else "")
            finally:
                self._show_trying("")
            return self._know(Engines(tuple(sorted(done, key=_rank)), chosen, _note(wanted, chosen, done)))

    def forget_crashes(self, name: str) -> None:
        """The engine of that name is a new one: what the one before did says nothing of it."""
        self._crashes.forget(name)

    async def try_again(self, name: str) -> Trial | None:
        """Try this one, whatever it did before, and read its files whole. The choice stays; None if it is gone."""
        async with self._one_choice:
            self._crashes.forget(name)
            candidates = await asyncio.to_thread(self._candidates)
            candidate = next((each for each in candidates if each.name == name), None)
            tried = None
            try:
                if candidate is not None:
                    self._show_trying(name)
                    tried = await self._tried(await asyncio.to_thread(_whole, candidate))
            finally:
                self._show_trying("")
            known = [tried if tried is not None and each.name == name else self._as_known(each) for each in candidates]
            trials = tuple(sorted(known, key=_rank))
            self._know(msgspec.structs.replace(self._engines, trials=trials))
            return tried

    async def delete(self, name: str) -> None:
        """Take away a folder of the person's own. No worker may use it. Raises QwenDeskError when that fails."""
        async with self._choosing():
            trial = self._engines.named(name)
            if trial is None or not trial.is_own:
                raise QwenDeskError("Not deleted", "This engine belongs to the app and is not deleted here.")
            try:
                await asyncio.to_thread(shutil.rmtree, trial.folder)
            except OSError as error:
                sentence = (
                    f"{trial.folder} could not be deleted: {error.strerror or error}. Another program may use it: "
                    "close other windows of QwenDesk and try again."
                )
                raise QwenDeskError("Not deleted", sentence) from error
            self._crashes.forget(name)
            left = tuple(each for each in self._engines.trials if each.name != name)
            chosen = self._engines.chosen if self._engines.chosen != name else ""
            self._know(msgspec.structs.replace(self._engines, trials=left, chosen=chosen))

    @asynccontextmanager
    async def _choosing(self) -> AsyncIterator[None]:
        """One at a time, while workers that are to start wait."""
        async with self._one_choice:
            self._is_chosen.clear()
            try:
                yield
            finally:
                self._is_chosen.set()

    def _know(self, engines: Engines) -> Engines:
        self._engines = engines
        self._subscribers.notify(engines)
        return engines

    def _show_trying(self, name: str) -> None:
        if self._engines.trying != name:
            self._know(msgspec.structs.replace(self._engines, trying=name))

    def _as_known(self, candidate: Trial) -> Trial:
        """What an earlier trial of this session said of it, if it is still the same folder."""
        before = self._engines.named(candidate.name)
        is_same = before is not None and before.engine == candidate.engine and not candidate.reason
        return before if before is not None and is_same else candidate

    def _candidates(self) -> list[Trial]:
        """Every engine that may be used now, those that may not even be started with their reason."""
        found = self._found()
        if not self._is_safe:
            return found
        return [trial for trial in found if trial.backend == "cpu"] or found

    def _found(self) -> list[Trial]:
        features = self._features()
        found = []
        if self._installed_backend is not None:
            found.append(Trial(name=INSTALLED, backend=self._installed_backend))
        for each in find_engines(self._places):
            is_own = Path(each.path).parent == self.own_place
            if isinstance(each, BrokenEngine):
                found.append(
                    Trial(name=each.name, backend="cpu", folder=each.path, is_own=is_own, reason=each.sentence)
                )
            else:
                reason = why_not_here(each, self._package_version, features)
                found.append(
                    Trial(
                        name=each.name, backend=each.manifest.backend, engine=each, folder=each.path, is_own=is_own,
                        reason=reason,
                    )
                )  # fmt: skip
        return found

    async def _tried(self, candidate: Trial) -> Trial:
        if candidate.reason:
            return candidate
        name, count = candidate.name, self._crashes.of(candidate.name)
        if count >= MOST_CRASHES:
            sentence = f"It crashed {MOST_CRASHES} times and was set aside. Try it again after a driver update."
            return msgspec.structs.replace(candidate, reason=sentence, is_set_aside=True)
        self._show_trying(name)
        # Counted before it is known: an engine that takes the whole PC down must not be started for ever.
        self._crashes.put(name, count + 1)
        try:
            trial = await self._try_one(name, candidate.backend, candidate.engine)
        except asyncio.CancelledError:
            self._crashes.put(name, count)
            raise
        trial = msgspec.structs.replace(trial, folder=candidate.folder, is_own=candidate.is_own)
        if not trial.crashed:
            self._crashes.forget(name)
            return trial
        damaged = await asyncio.to_thread(_whole, candidate)
        return msgspec.structs.replace(trial, reason=damaged.reason or trial.reason)


def _whole(candidate: Trial) -> Trial:
    """With a reason if the content of its files is not what its manifest says. Reads everything."""
    if candidate.engine is None or candidate.reason:
        return candidate
    wrong = wrong_files(candidate.engine)
    if not wrong:
        return candidate
    return msgspec.structs.replace(candidate, reason=f"{', '.join(wrong)} was changed or is damaged: fetch it again.")


def _rank(trial: Trial) -> tuple[int, int, str]:
    """Best first: by backend, then the one that uses more of the processor; the installed one before folders."""
    needs = len(trial.engine.manifest.cpu_needs) if trial.engine is not None else 1_000
    return BEST_FIRST.index(trial.backend), -needs, trial.name


def _note(wanted: str, chosen: str, trials: Sequence[Trial]) -> str:
    if not wanted or wanted == chosen:
        return ""
    asked = next((trial for trial in trials if trial.name == wanted), None)
    if asked is None:
        return f'There is no engine called "{wanted}" here.'
    return f"{wanted} cannot be used. {asked.reason}"
