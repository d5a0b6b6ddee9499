"""Which of the engines on this PC is used: each is tried in a process of its own, the best that runs is chosen."""

import asyncio
import importlib.metadata
import importlib.util
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from qwendesk.core import paths
from qwendesk.core.engines import BrokenEngine
from qwendesk.core.files import write_whole
from qwendesk.core.subscribers import Subscribers
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.folders import find_engines, library_environment
from qwendesk.hardware.cpu_features import cpu_features
from qwendesk.services.engine.trial import Trial, try_engine, why_not_here
from qwendesk.services.settings import SettingsService

_logger = logging.getLogger(__name__)

INSTALLED = "installed"
"""Name of the engine that came with the Python package, where there is one: in a source tree."""
MOST_CRASHES = 2
"""An engine that crashed so often at its start is not started again until somebody asks for it."""
_BEST_FIRST = ("cuda", "rocm", "metal", "vulkan", "cpu")


class Engines(msgspec.Struct, frozen=True):
    """Every engine on this PC as far as it is known, best first."""

    trials: tuple[Trial, ...] = ()
    chosen: str = ""
    """Name of the one that is used; "" before the first choice, and when none runs here."""
    note: str = ""
    """Why it is not the one the person asked for, in a sentence; "" if it is."""

    @property
    def current(self) -> Trial | None:
        return next((trial for trial in self.trials if trial.name == self.chosen), None)


def engines_here() -> "EnginesService":
    """The engines of this PC: those of a bundle, those the person fetched, and in a source tree the installed one."""
    package = importlib.util.find_spec("llama_cpp")
    libraries = Path(package.origin).parent / "lib" if package is not None and package.origin else None
    return EnginesService(
        paths.engine_places(),
        importlib.metadata.version("llama_cpp_python"),
        has_installed=libraries is not None and libraries.is_dir(),
    )


async def client_here() -> EngineClient:
    """A client for the best engine of this PC: what a command uses, which has nobody to show a choice to."""
    engines = engines_here()
    await engines.choose(SettingsService().options.engine)
    return WorkerClient(environment=engines.environment)


class EnginesService:
    """Owns the choice. Methods are called on the event loop's thread."""

    def __init__(
        self,
        places: Sequence[Path],
        package_version: str,
        *,
        has_installed: bool,
        try_one: Callable[..., Awaitable[Trial]] = try_engine,
        features: Callable[[], Collection[str] | None] = cpu_features,
        crash_file: Path | None = None,
    ) -> None:
        self._places = tuple(places)
        self._package_version = package_version
        self._has_installed = has_installed
        self._try_one = try_one
        self._features = features
        self._crash_file = crash_file or paths.data_folder() / "engine-crashes.json"
        self._engines = Engines()
        self._subscribers = Subscribers[Engines]()
        self._one_choice = asyncio.Lock()

    @property
    def engines(self) -> Engines:
        return self._engines

    def subscribe(self, callback: Callable[[Engines], None]) -> Callable[[], None]:
        """Call `callback` each time something is known better. Returns what ends it."""
        return self._subscribers.add(callback)

    def environment(self) -> Mapping[str, str]:
        """What a worker's environment needs so that it loads the chosen engine."""
        current = self._engines.current
        return library_environment(current.engine if current is not None else None)

    async def choose(
        self, wanted: str = "", *, try_all: bool = False, try_again: bool = False, is_safe: bool = False
    ) -> Engines:
        """Choose the engine called `wanted` if it runs, else the best that does.

        `is_safe`: engines for GPUs are not even started, as long as there is one for the processor.
        Engines are tried best first until one runs; `try_all` tries the others too, to say why they cannot be used.
        `try_again` forgets earlier crashes.
        """
        async with self._one_choice:
            if try_again:
                self._keep_crashes({})
            candidates = await asyncio.to_thread(self._candidates)
            if is_safe:
                candidates = [trial for trial in candidates if trial.backend == "cpu"] or candidates
            if [trial.name for trial in candidates] == [INSTALLED] and not try_all:
                # The app would not start the only one there is any differently after a trial.
                return self._know(Engines((candidates[0],), INSTALLED, _note(wanted, INSTALLED, candidates)))
            candidates.sort(key=lambda trial: (trial.name != wanted, *_rank(trial)))
            done: list[Trial] = []
            chosen = ""
            for candidate in candidates:
                if chosen and not try_all:
                    done.append(candidate)
                    continue
                trial = await self._tried(candidate)
                done.append(trial)
                chosen = chosen or (trial.name if trial.usable else "")
            return self._know(Engines(tuple(sorted(done, key=_rank)), chosen, _note(wanted, chosen, done)))

    def _know(self, engines: Engines) -> Engines:
        self._engines = engines
        self._subscribers.notify(engines)
        return engines

    def _candidates(self) -> list[Trial]:
        """Every engine, those that may not even be started with their reason."""
        features = self._features()
        found = []
        if self._has_installed:
            found.append(Trial(name=INSTALLED, backend="cpu"))
        for each in find_engines(self._places):
            if isinstance(each, BrokenEngine):
                found.append(Trial(name=each.name, backend="cpu", reason=each.sentence))
            else:
                reason = why_not_here(each, self._package_version, features)
                found.append(Trial(name=each.name, backend=each.manifest.backend, engine=each, reason=reason))
        return found

    async def _tried(self, candidate: Trial) -> Trial:
        if candidate.reason:
            return candidate
        crashes = self._crashes()
        if crashes.get(candidate.name, 0) >= MOST_CRASHES:
            sentence = f"It crashed {MOST_CRASHES} times and was set aside. Try it again after a driver update."
            return msgspec.structs.replace(candidate, reason=sentence)
        # Counted before it is known: an engine that takes the whole PC down must not be started for ever.
        self._keep_crashes({**crashes, candidate.name: crashes.get(candidate.name, 0) + 1})
        trial = await self._try_one(candidate.name, candidate.backend, candidate.engine)
        if not trial.crashed:
            self._keep_crashes({key: count for key, count in crashes.items() if key != candidate.name})
        return trial

    def _crashes(self) -> dict[str, int]:
        try:
            return msgspec.json.decode(self._crash_file.read_bytes(), type=dict[str, int])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            _logger.warning("%s cannot be used, no engine counts as crashed: %s", self._crash_file, error)
            return {}

    def _keep_crashes(self, crashes: Mapping[str, int]) -> None:
        try:
            write_whole(self._crash_file, msgspec.json.encode(crashes))
        except OSError as error:
            _logger.warning("%s cannot be written: %s", self._crash_file, error)


def _rank(trial: Trial) -> tuple[int, int, str]:
    """Best first: by backend, then the one that uses more of the processor; the installed one before folders."""
    needs = len(trial.engine.manifest.cpu_needs) if trial.engine is not None else 1_000
    return _BEST_FIRST.index(trial.backend), -needs, trial.name


def _note(wanted: str, chosen: str, trials: Sequence[Trial]) -> str:
    if not wanted or wanted == chosen:
        return ""
    asked = next((trial for trial in trials if trial.name == wanted), None)
    if asked is None:
        return f'There is no engine called "{wanted}" here.'
    return f"{wanted} cannot be used. {asked.reason}"
