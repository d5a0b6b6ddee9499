"""Chooses one of the engines on this PC: tries each in a separate process and takes the best that runs."""

import asyncio
import importlib.metadata
import importlib.util
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from qwendesk.core import paths
from qwendesk.core.engine_manifest import BEST_FIRST, Backend, BrokenEngine, EngineFolder, EngineManifest
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.links import BehindLink, remove_tree
from qwendesk.core.observed import Observed
from qwendesk.core.options import DecidedOptions
from qwendesk.core.permissions import make_folder
from qwendesk.core.translation import join_list, tr
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.contract import BenchClient, EngineClient
from qwendesk.engine.dry_run import ask_engine
from qwendesk.engine.dry_run_protocol import Estimated
from qwendesk.engine.engine_folders import find_engines, library_environment, wrong_files
from qwendesk.engines.crash_counts import CrashCounts
from qwendesk.engines.pack_file import recover
from qwendesk.engines.trial import EngineTrial, prove_engine, reason_not_startable, try_engine, unfit_layouts
from qwendesk.hardware.cpu_features import cpu_features
from qwendesk.settings.service import SettingsService

# Name of the engine that is installed with llama-cpp-python, which only a source tree has.
INSTALLED = "installed"
# An engine that crashed this often while starting is not started again until the user asks for it.
MOST_CRASHES = 2
# Words in the names of ggml libraries, each with the backend it means. The first match counts.
_LIBRARY_OF: tuple[tuple[str, Backend], ...] = (
    ("cuda", "cuda"), ("hip", "rocm"), ("metal", "metal"), ("vulkan", "vulkan"),
)  # fmt: skip


class EngineChoice(msgspec.Struct, frozen=True):
    """The engines on this PC, best first."""

    trials: tuple[EngineTrial, ...] = ()
    chosen: str = ""
    """Name of the engine in use; "" before the first choice, and when none runs here."""
    note: str = ""
    """A sentence why this is not the engine that the user asked for; "" if it is."""
    trying: str = ""
    """Name of the engine that is being tried now; "" if none is."""

    @property
    def current(self) -> EngineTrial | None:
        return self.find(self.chosen)

    def find(self, name: str) -> EngineTrial | None:
        return next((trial for trial in self.trials if trial.name == name), None)


def installed_engines(*, is_safe: bool = False) -> "EngineChoiceService":
    """Return the engines of this PC: bundled with the app, downloaded by the user, or installed in a source tree.

    With `is_safe`, GPU engines are not started if there is a CPU engine.
    """
    package = importlib.util.find_spec("llama_cpp")
    libraries = Path(package.origin).parent / "lib" if package is not None and package.origin else None
    return EngineChoiceService(
        paths.engine_places(),
        package_version(),
        has_installed=libraries is not None and libraries.is_dir(),
        installed_backend=backend_in(libraries) if libraries is not None else "cpu",
        is_safe=is_safe,
    )


def package_version() -> str:
    """Return the version of llama-cpp-python that this app was built with."""
    return importlib.metadata.version("llama_cpp_python")


def backend_in(libraries: Path) -> Backend:
    """Return the backend of an installed engine according to the names of its libraries; "cpu" if none matches."""
    try:
        names = " ".join(each.name for each in libraries.iterdir())
    except OSError:
        return "cpu"
    return next((backend for word, backend in _LIBRARY_OF if f"ggml-{word}" in names), "cpu")


async def preferred_engine(*, try_all: bool = False) -> "EngineChoiceService":
    """Return this PC's engines after choosing the one in the settings, or the best one that runs.

    `try_all` tries every engine, to find out why each one that can't be used doesn't run.
    """
    engines = installed_engines()
    await engines.choose(SettingsService().options.engine, try_all=try_all)
    return engines


async def preferred_client() -> EngineClient:
    """Return a client for the engine in the settings."""
    return (await preferred_engine()).client()


async def every_engine_tried() -> "EngineChoice":
    """Return this PC's engines after trying each. The window's choice of engine doesn't change."""
    return (await preferred_engine(try_all=True)).engines


class EngineChoiceService:
    """Owns the choice of the engine. Call its methods on the event loop's thread."""

    def __init__(
        self,
        places: Sequence[Path],
        package_version: str,
        *,
        has_installed: bool,
        installed_backend: Backend = "cpu",
        try_one: Callable[..., Awaitable[EngineTrial]] = try_engine,
        prove_one: Callable[[EngineFolder], Awaitable[str]] = prove_engine,
        features: Callable[[], Collection[str] | None] = cpu_features,
        crash_file: Path | None = None,
        is_safe: bool = False,
    ) -> None:
        """Find engines in `places`. The last one is the user's own folder, whose engines may be deleted.

        With `is_safe`, GPU engines are not started if there is a CPU engine.
        """
        self._places = tuple(places)
        self._package_version = package_version
        self._installed_backend: Backend | None = installed_backend if has_installed else None
        self._try_one, self._prove_one = try_one, prove_one
        self._features = features
        self._is_safe = is_safe
        self._crashes = CrashCounts(crash_file or paths.data_folder() / "engine-crashes.json")
        self.observed = Observed(EngineChoice())
        self._choice_lock = asyncio.Lock()
        self._is_chosen = asyncio.Event()
        """Cleared while an engine is chosen or deleted, because no worker should start then."""
        self._is_chosen.set()

    @property
    def engines(self) -> EngineChoice:
        return self.observed.value

    @property
    def package_version(self) -> str:
        """The release of llama-cpp-python that an engine must belong to."""
        return self._package_version

    @property
    def user_folder(self) -> Path:
        """The folder of the user's own engines, which may not exist yet."""
        return self._places[-1]

    async def make_user_folder(self) -> Path:
        """Create `user_folder` if it doesn't exist, and return it. Raises QwenDeskError if it can't be created."""
        try:
            await asyncio.to_thread(make_folder, self.user_folder)
        except OSError as error:
            sentence = tr("{0} can't be created: {1}.", self.user_folder, error.strerror or error)
            raise QwenDeskError(tr("No folder for engines"), sentence) from error
        return self.user_folder

    def client(self) -> BenchClient:
        """Return a new client. Each of its workers loads the engine that is chosen when the worker starts."""
        return WorkerClient(environment=self.environment_once_chosen)

    async def environment_once_chosen(self) -> Mapping[str, str]:
        """Return `environment` after waiting for a choice in progress."""
        await self._is_chosen.wait()
        return self.environment()

    def environment(self) -> Mapping[str, str]:
        """Return the environment variables that make a worker load the chosen engine."""
        current = self.engines.current
        return library_environment(current.engine if current is not None else None)

    async def dry_run(self, options: DecidedOptions) -> Estimated:
        """Return what the chosen engine would take to load a model."""
        return await ask_engine(options, environment=self.environment())

    async def choose(self, wanted: str = "", *, try_all: bool = False) -> EngineChoice:
        """Choose the engine called `wanted` if it runs, else the best one that runs.

        Engines are tried best first until one runs; `try_all` tries the others too, to find out why they can't be
        used.
        """
        async with self._exclusive_choice():
            candidates = await asyncio.to_thread(self._candidates)
            if [trial.name for trial in candidates] == [INSTALLED] and not try_all:
                # A trial would change nothing: there is no other engine.
                return self._publish(EngineChoice((candidates[0],), INSTALLED, _note(wanted, INSTALLED, candidates)))
            order = sorted(candidates, key=lambda trial: (trial.name != wanted, *_rank(trial)))
            done: list[EngineTrial] = []
            chosen = ""
            try:
                for candidate in order:
                    if chosen and not try_all:
                        done.append(self._earlier_trial(candidate))
                        continue
                    trial = await self._try_candidate(candidate)
                    done.append(trial)
                    chosen = chosen or (trial.name if trial.usable else "")
            finally:
                self._show_trying("")
            return self._publish(EngineChoice(tuple(sorted(done, key=_rank)), chosen, _note(wanted, chosen, done)))

    async def find_engines(self) -> EngineChoice:
        """Find the engines on this PC without starting any."""
        async with self._choice_lock:
            found = [self._earlier_trial(each) for each in await asyncio.to_thread(self._candidates)]
            trials = tuple(sorted(found, key=_rank))
            return self._publish(msgspec.structs.replace(self.engines, trials=trials))

    def reason_not_startable(self, manifest: EngineManifest) -> str:
        """Return a sentence that says why an engine with this manifest must not be started; "" if it may be."""
        return reason_not_startable(manifest, self._package_version, self._features())

    async def try_unpacked(self, engine: EngineFolder) -> EngineTrial:
        """Try an engine that is not in one of the folders for engines, and have it answer a question.

        Its crashes are not counted.
        """
        unfit = await asyncio.to_thread(unfit_layouts, engine)
        if unfit:
            return EngineTrial(name=engine.name, backend=engine.manifest.backend, engine=engine, reason=unfit)
        trial = await self._try_one(engine.name, engine.manifest.backend, engine)
        fault = await self._prove_one(engine) if trial.usable else ""
        return msgspec.structs.replace(trial, usable=False, reason=fault, crashed=True) if fault else trial

    def forget_crashes(self, name: str) -> None:
        """Forget the crashes of an engine that was replaced by a new one."""
        self._crashes.forget(name)

    async def try_again(self, name: str) -> EngineTrial | None:
        """Check all files of this engine and try it, even if it crashed before. Return None if it no longer exists.

        The chosen engine doesn't change.
        """
        async with self._choice_lock:
            self._crashes.forget(name)
            candidates = await asyncio.to_thread(self._candidates)
            candidate = next((each for each in candidates if each.name == name), None)
            tried = None
            try:
                if candidate is not None:
                    self._show_trying(name)
                    tried = await self._try_candidate(await asyncio.to_thread(_check_files, candidate))
            finally:
                self._show_trying("")
            known = [
                tried if tried is not None and each.name == name else self._earlier_trial(each) for each in candidates
            ]
            trials = tuple(sorted(known, key=_rank))
            self._publish(msgspec.structs.replace(self.engines, trials=trials))
            return tried

    async def prove(self, name: str) -> EngineTrial | None:
        """Try an engine, and have it answer a question. If it can't, set it aside. The chosen engine doesn't change.

        Return None if it no longer exists.
        """
        trial = await self.try_again(name)
        if trial is None or not trial.usable or trial.engine is None:
            return trial
        # Counted in advance, as in _try_candidate.
        self._crashes.set_count(name, MOST_CRASHES)
        try:
            fault = await self._prove_one(trial.engine)
        except asyncio.CancelledError:
            self._crashes.forget(name)
            raise
        if not fault:
            self._crashes.forget(name)
            return trial
        async with self._choice_lock:
            failed = msgspec.structs.replace(trial, usable=False, reason=fault, crashed=True, is_set_aside=True)
            trials = tuple(failed if each.name == name else each for each in self.engines.trials)
            self._publish(msgspec.structs.replace(self.engines, trials=trials))
            return failed

    async def delete(self, name: str) -> None:
        """Delete an engine in the user's own folder, which no worker may be using. Raises QwenDeskError on failure."""
        async with self._exclusive_choice():
            trial = self.engines.find(name)
            if trial is None or not trial.is_own:
                raise QwenDeskError(tr("Not deleted"), tr("This engine belongs to QwenDesk and can't be deleted here."))
            try:
                await asyncio.to_thread(remove_tree, Path(trial.folder), self.user_folder)
            except BehindLink as error:
                sentence = tr("{0} was not deleted: {1}. Delete it yourself.", trial.folder, error.strerror)
                raise QwenDeskError(tr("Not deleted"), sentence) from error
            except OSError as error:
                sentence = tr(
                    "{0} could not be deleted: {1}. Another program may be using it: close other windows of QwenDesk "
                    "and try again.",
                    trial.folder, error.strerror or error,
                )  # fmt: skip
                raise QwenDeskError(tr("Not deleted"), sentence) from error
            self._crashes.forget(name)
            left = tuple(each for each in self.engines.trials if each.name != name)
            chosen = self.engines.chosen if self.engines.chosen != name else ""
            self._publish(msgspec.structs.replace(self.engines, trials=left, chosen=chosen))

    @asynccontextmanager
    async def _exclusive_choice(self) -> AsyncIterator[None]:
        """Allow one choice or deletion at a time, and let workers that are to start wait for its end."""
        async with self._choice_lock:
            self._is_chosen.clear()
            try:
                yield
            finally:
                self._is_chosen.set()

    def _publish(self, engines: EngineChoice) -> EngineChoice:
        self.observed.set(engines)
        return engines

    def _show_trying(self, name: str) -> None:
        if self.engines.trying != name:
            self._publish(msgspec.structs.replace(self.engines, trying=name))

    def _earlier_trial(self, candidate: EngineTrial) -> EngineTrial:
        """Return the result of an earlier trial in this session if the engine is unchanged, else `candidate`."""
        before = self.engines.find(candidate.name)
        is_same = before is not None and before.engine == candidate.engine and not candidate.reason
        return before if before is not None and is_same else candidate

    def _candidates(self) -> list[EngineTrial]:
        """Return the engines that may be considered. Those that must not be started have a reason."""
        found = self._find_engines()
        if not self._is_safe:
            return found
        return [trial for trial in found if trial.backend == "cpu"] or found

    def _find_engines(self) -> list[EngineTrial]:
        recover(self.user_folder)
        features = self._features()
        found = []
        if self._installed_backend is not None:
            found.append(EngineTrial(name=INSTALLED, backend=self._installed_backend))
        for each in find_engines(self._places):
            is_own = Path(each.path).parent == self.user_folder
            if isinstance(each, BrokenEngine):
                found.append(
                    EngineTrial(name=each.name, backend="cpu", folder=each.path, is_own=is_own, reason=each.sentence)
                )
            else:
                reason = reason_not_startable(each.manifest, self._package_version, features) or unfit_layouts(each)
                found.append(
                    EngineTrial(
                        name=each.name, backend=each.manifest.backend, engine=each, folder=each.path, is_own=is_own,
                        reason=reason,
                    )
                )  # fmt: skip
        return found

    async def _try_candidate(self, candidate: EngineTrial) -> EngineTrial:
        if candidate.reason:
            return candidate
        name, count = candidate.name, self._crashes.count(candidate.name)
        if count >= MOST_CRASHES:
            before = self.engines.find(name)
            if before is not None and before.is_set_aside and before.engine == candidate.engine:
                return before
            sentence = tr("It crashed {0} times and was set aside. Try it again after a driver update.", MOST_CRASHES)
            return msgspec.structs.replace(candidate, reason=sentence, is_set_aside=True)
        self._show_trying(name)
        # The crash is counted in advance: an engine that crashes the whole PC must not be started again and again.
        self._crashes.set_count(name, count + 1)
        try:
            trial = await self._try_one(name, candidate.backend, candidate.engine)
        except asyncio.CancelledError:
            self._crashes.set_count(name, count)
            raise
        trial = msgspec.structs.replace(trial, folder=candidate.folder, is_own=candidate.is_own)
        if not trial.crashed:
            self._crashes.forget(name)
            return trial
        damaged = await asyncio.to_thread(_check_files, candidate)
        return msgspec.structs.replace(trial, reason=damaged.reason or trial.reason)


def _check_files(candidate: EngineTrial) -> EngineTrial:
    """Return `candidate`, with a reason if its files differ from its manifest. Reads all files."""
    if candidate.engine is None or candidate.reason:
        return candidate
    wrong = wrong_files(candidate.engine)
    if not wrong:
        return candidate
    return msgspec.structs.replace(
        candidate,
        reason=tr("These files are damaged or were changed: {0}. Install the engine again.", join_list(wrong)),
    )


def _rank(trial: EngineTrial) -> tuple[int, bool, int, str]:
    """Return the sort key for best first: by backend, then the installed engine, then by most CPU features used.

    Another release of llama.cpp comes after the engines of this app's release: the user chooses it by name.
    """
    needs = len(trial.engine.manifest.cpu_needs) if trial.engine is not None else 1_000
    is_other_release = trial.engine is not None and bool(trial.engine.manifest.release)
    return BEST_FIRST.index(trial.backend), is_other_release, -needs, trial.name


def _note(wanted: str, chosen: str, trials: Sequence[EngineTrial]) -> str:
    if not wanted or wanted == chosen:
        return ""
    asked = next((trial for trial in trials if trial.name == wanted), None)
    if asked is None:
        return tr('There is no engine named "{0}" here.', wanted)
    return tr("{0} can't be used. {1}", wanted, asked.reason)
