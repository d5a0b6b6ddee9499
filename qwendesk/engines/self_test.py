"""The self-test of the engine: loads the built-in demo model and asks questions whose answers are known.

`qwendesk doctor` and the window's engine page both use it.
"""

import asyncio
import importlib.metadata
import platform
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from qwendesk import __version__
from qwendesk.core import paths
from qwendesk.core.conversation import Answer
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.failures import LoadFailure
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import DriveKind
from qwendesk.core.translation import mark, tr
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.state import WorkerExited
from qwendesk.engines.engine_choice import EngineChoice
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.load_decision import Decide
from qwendesk.engines.trial import EngineTrial
from qwendesk.hardware.drives import drive_of
from qwendesk.hub.model_folders import read_folders

_PACKAGES = ("llama-cpp-python", "PySide6-Essentials", "qasync", "msgspec", "jinja2", "Pillow", "psutil")


class Check(msgspec.Struct, frozen=True):
    """The result of one test. `detail` says what went wrong if it failed."""

    name: str
    """In English; the window translates it."""
    passed: bool
    seconds: float
    detail: str = ""


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    versions: dict[str, str]
    system_info: str
    backends: tuple[str, ...]
    devices: tuple[DeviceInfo, ...]
    engines: dict[str, str] = {}
    """State of each engine of this PC by name, such as "in use"; empty if the engines were not examined."""
    cpu_features: tuple[str, ...]
    folders: dict[str, str]
    models_drive: DriveKind = ""
    """The drive of the folder that models are downloaded to."""
    self_test: tuple[Check, ...]
    failure: LoadFailure | None
    """Reason why the demo model did not load; None if it did."""

    @property
    def passed(self) -> bool:
        return self.failure is None and all(check.passed for check in self.self_test)


# Asks a question with its pictures in a new chat, with or without thinking, and returns the answer.
AskQuestion = Callable[[str, bool, Sequence[Path]], Awaitable[Answer]]
# Returns a function that asks with this engine.
AskWith = Callable[[EngineClient, EngineService], AskQuestion]


class SelfTestState(msgspec.Struct, frozen=True):
    is_running: bool = False
    diagnosis: Diagnosis | None = None
    """Result of the latest test; None before the first."""


class SelfTest:
    """Runs one test at a time."""

    def __init__(self, make_client: Callable[[], EngineClient], ask_with: AskWith, decide: Decide) -> None:
        """`make_client` makes a separate worker, so that the loaded model stays loaded."""
        self._make_client, self._ask_with, self._decide = make_client, ask_with, decide
        self.state = Observed(SelfTestState())

    async def run(self) -> None:
        """Test the engine; return at once if a test is running."""
        if self.state.value.is_running:
            return
        self.state.update(is_running=True)
        try:
            self.state.update(diagnosis=await self._examine())
        finally:
            self.state.update(is_running=False)

    async def _examine(self) -> Diagnosis:
        client = self._make_client()
        engine = EngineService(client, decide=self._decide)
        try:
            return await examine(client, engine, self._ask_with(client, engine))
        finally:
            await engine.close()


async def examine(
    client: EngineClient, engine: EngineService, ask: AskQuestion, engines: EngineChoice | None = None
) -> Diagnosis:
    """Load the demo model and ask it questions whose answers are known. The diagnosis lists `engines`."""
    checks: list[Check] = []
    failure: LoadFailure | None = None

    async def load() -> str:
        nonlocal failure
        demo = LoadOptions(model=str(paths.demo_model()), mmproj=str(paths.demo_mmproj()))
        loaded = await engine.load(demo)
        failure = loaded if isinstance(loaded, LoadFailure) else None
        return f"{failure.title}. {failure.sentence}" if failure else ""

    checks.append(await timed(mark("load"), load))
    state = engine.state
    if failure is None:
        checks += await _self_test(client, ask)
    welcome = state.welcome
    models = read_folders().models[0]
    return Diagnosis(
        versions=versions(),
        system_info=welcome.system_info if welcome else "",
        backends=welcome.backends if welcome else (),
        devices=state.devices,
        engines={trial.name: engine_use(trial, engines.chosen) for trial in engines.trials}
        if engines is not None
        else {},
        cpu_features=state.cpu_features,
        folders={
            "resources": str(paths.resources_folder()),
            "data": str(paths.data_folder()),
            "settings": str(paths.config_folder()),
            "cache": str(paths.cache_folder()),
            "logs": str(paths.log_folder()),
            "models": models,
        },
        models_drive=await asyncio.to_thread(drive_of, Path(models)),
        self_test=tuple(checks),
        failure=failure,
    )


async def _self_test(client: EngineClient, ask: AskQuestion) -> list[Check]:
    """Ask each question in a separate chat. The demo model was trained to give the expected words."""
    with tempfile.TemporaryDirectory(prefix="qwendesk-test-") as folder:
        picture = Path(folder) / "red-circle.png"
        await asyncio.to_thread(draw_red_circle, picture)

        async def fault_in_answer(question: str, words: str, reasoning: str = "", pictures: Sequence[Path] = ()) -> str:
            return _fault(await ask(question, bool(reasoning), pictures), words, reasoning)

        sum_reasoning, sum_words = "The sum is 5.", "2 + 3 = 5"
        questions: Mapping[str, Callable[[], Awaitable[str]]] = {
            mark("text, thinking off"): lambda: fault_in_answer("What is 2 + 3?", sum_words),
            mark("text, thinking on"): lambda: fault_in_answer("What is 2 + 3?", sum_words, sum_reasoning),
            mark("picture"): lambda: fault_in_answer("What is in this picture?", "red circle", pictures=[picture]),
        }
        exits: list[WorkerExited] = []
        unsubscribe = client.subscribe(lambda event: exits.append(event) if isinstance(event, WorkerExited) else None)
        checks: list[Check] = []
        for name, question in questions.items():
            if exits:
                # Otherwise the engine would be started for each question and crash again, which can take minutes.
                checks.append(
                    Check(name, passed=False, seconds=0.0, detail=tr("Not asked, because the engine had stopped."))
                )
            else:
                checks.append(await timed(name, question))
        unsubscribe()
        return checks


def engine_use(trial: EngineTrial, chosen: str) -> str:
    """Return whether an engine is in use, runs here, or why it can't be used."""
    if trial.name == chosen:
        return "in use"
    return "runs here" if trial.usable else trial.reason or "not tried"


def _fault(answer: Answer, words: str, reasoning: str) -> str:
    """Return what is wrong with an answer; "" if it is as expected."""
    if answer.error:
        return answer.error
    if words not in answer.text:
        return tr('expected the answer "{0}", got "{1}"', words, answer.text)
    if bool(reasoning) != bool(answer.reasoning) or reasoning not in answer.reasoning:
        return tr('expected the thinking "{0}", got "{1}"', reasoning, answer.reasoning)
    return ""


async def timed(name: str, run: Callable[[], Awaitable[str]]) -> Check:
    """Run a test and measure its time. `run` returns what is wrong, or "" if the test passed."""
    started = time.monotonic()
    fault = await run()
    return Check(name, not fault, round(time.monotonic() - started, 3), fault)


def draw_red_circle(path: Path) -> None:
    """Write an image of a red circle on white, 128 x 128 pixels, which the demo model recognizes reliably."""
    from PIL import Image, ImageDraw  # noqa: PLC0415 - only a test draws; commands start faster without it

    image = Image.new("RGB", (128, 128), "white")
    ImageDraw.Draw(image).ellipse((28, 28, 100, 100), fill=(220, 30, 30))
    image.save(path)


def versions() -> dict[str, str]:
    """Return the versions of the app, Python, the system and the main libraries, or "not installed"."""
    found = {"qwendesk": __version__, "python": platform.python_version(), "system": platform.platform()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found
