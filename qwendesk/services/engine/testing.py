"""Whether the engine works: the built-in demo model is loaded and asked what its answers are known for.

`qwendesk doctor` and the window's engine page ask the same questions here.
"""

import asyncio
import importlib.metadata
import platform
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from qwendesk import __version__
from qwendesk.core import paths
from qwendesk.core.conversation import Answer
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import show_bytes
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.state import WorkerEnded
from qwendesk.services.chat.service import ChatService
from qwendesk.services.engine.engines import Engines
from qwendesk.services.engine.service import EngineService
from qwendesk.services.engine.trial import Trial

_PACKAGES = ("llama-cpp-python", "PySide6-Essentials", "qasync", "msgspec", "jinja2", "Pillow", "psutil")


class Check(msgspec.Struct, frozen=True):
    """One self-test: what was tried, whether it passed, how long it took, and what came instead if it did not."""

    name: str
    passed: bool
    seconds: float
    detail: str = ""


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    versions: dict[str, str]
    system_info: str
    backends: tuple[str, ...]
    devices: tuple[DeviceInfo, ...]
    engines: dict[str, str] = {}
    """What became of each engine of this PC, by name; empty where they were not tried."""
    cpu_features: tuple[str, ...]
    folders: dict[str, str]
    self_test: tuple[Check, ...]
    failure: LoadFailure | None
    """Why the demo model did not load, if it did not."""

    @property
    def passed(self) -> bool:
        return self.failure is None and all(check.passed for check in self.self_test)


async def examine(client: EngineClient, engine: EngineService, engines: Engines | None = None) -> Diagnosis:
    """Loads the demo model and asks it what its answers are known for. `engines` are noted in the diagnosis."""
    checks: list[Check] = []
    failure: LoadFailure | None = None

    async def load() -> str:
        nonlocal failure
        demo = LoadOptions(model=str(paths.demo_model()), mmproj=str(paths.demo_mmproj()))
        loaded = await engine.load(demo)
        failure = loaded if isinstance(loaded, LoadFailure) else None
        return f"{failure.title}. {failure.sentence}" if failure else ""

    checks.append(await _timed("load", load))
    state = engine.state
    if failure is None:
        checks += await _self_test(client, engine)
    welcome = state.welcome
    return Diagnosis(
        versions=versions(),
        system_info=welcome.system_info if welcome else "",
        backends=welcome.backends if welcome else (),
        devices=state.devices,
        engines={trial.name: _fate(trial, engines.chosen) for trial in engines.trials} if engines is not None else {},
        cpu_features=state.cpu_features,
        folders={
            "resources": str(paths.resources_folder()),
            "data": str(paths.data_folder()),
            "settings": str(paths.config_folder()),
            "cache": str(paths.cache_folder()),
            "logs": str(paths.log_folder()),
        },
        self_test=tuple(checks),
        failure=failure,
    )


async def _self_test(client: EngineClient, engine: EngineService) -> list[Check]:
    """Each question in a conversation of its own; the expected words are what the demo was trained to say."""
    with tempfile.TemporaryDirectory(prefix="qwendesk-test-") as folder:
        picture = Path(folder) / "red-circle.png"
        await asyncio.to_thread(draw_red_circle, picture)

        async def asked(question: str, words: str, thought: str = "", pictures: Sequence[Path] = ()) -> str:
            chat = ChatService(client, engine)
            chat.set_thinking(bool(thought))
            turn = await chat.send(question, pictures)
            return _fault(turn.answer, words, thought)

        sum_thought, sum_words = "The sum is 5.", "2 + 3 = 5"
        questions: Mapping[str, Callable[[], Awaitable[str]]] = {
            "text, thinking off": lambda: asked("What is 2 + 3?", sum_words),
            "text, thinking on": lambda: asked("What is 2 + 3?", sum_words, sum_thought),
            "picture": lambda: asked("What is in this picture?", "red circle", pictures=[picture]),
        }
        died: list[WorkerEnded] = []
        unsubscribe = client.subscribe(lambda news: died.append(news) if isinstance(news, WorkerEnded) else None)
        checks: list[Check] = []
        for name, ask in questions.items():
            if died:
                # It would be started and crash again for each question, which can take minutes.
                checks.append(Check(name, passed=False, seconds=0.0, detail="Not asked: the engine had ended."))
            else:
                checks.append(await _timed(name, ask))
        unsubscribe()
        return checks


def _fate(trial: Trial, chosen: str) -> str:
    if trial.name == chosen:
        return "in use"
    return "runs here" if trial.usable else trial.reason or "not tried"


def _fault(answer: Answer, words: str, thought: str) -> str:
    """What is wrong with an answer; empty when it is as expected."""
    if answer.error:
        return answer.error
    if words not in answer.text:
        return f'expected "{words}", got "{answer.text}"'
    if bool(thought) != bool(answer.reasoning) or thought not in answer.reasoning:
        return f'expected the thought "{thought}", got "{answer.reasoning}"'
    return ""


async def _timed(name: str, run: Callable[[], Awaitable[str]]) -> Check:
    """`run` returns what is wrong, or nothing."""
    started = time.monotonic()
    fault = await run()
    return Check(name, not fault, round(time.monotonic() - started, 3), fault)


def draw_red_circle(path: Path) -> None:
    """A red circle on white, 128 pixels square: a size and shape the demo names reliably."""
    from PIL import Image, ImageDraw  # noqa: PLC0415 - only a test draws; commands start faster without it

    image = Image.new("RGB", (128, 128), "white")
    ImageDraw.Draw(image).ellipse((28, 28, 100, 100), fill=(220, 30, 30))
    image.save(path)


def versions() -> dict[str, str]:
    """Of the app, Python, the system, and the libraries that matter; "not installed" where one is missing."""
    found = {"qwendesk": __version__, "python": platform.python_version(), "system": platform.platform()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def report_of(diagnosis: Diagnosis) -> str:
    """The diagnosis as text for people."""
    sections: list[tuple[str, list[str]]] = [
        ("Versions", _table(diagnosis.versions)),
        ("Engine", _table({"backends": ", ".join(diagnosis.backends) or "none", "built for": diagnosis.system_info})),
        *([("Engines", _table(diagnosis.engines))] if diagnosis.engines else []),
        ("Devices", [_device_line(device) for device in diagnosis.devices] or ["none found"]),
        ("CPU features", [", ".join(diagnosis.cpu_features) or "none reported"]),
        ("Folders", _table(diagnosis.folders)),
        ("Self-test with the demo model", [_check_line(check) for check in diagnosis.self_test]),
    ]
    if diagnosis.failure is not None and diagnosis.failure.engine_lines:
        sections.append(("The engine's own lines", list(diagnosis.failure.engine_lines[-20:])))
    text = "\n\n".join("\n".join([title, *(f"  {line}" for line in lines)]) for title, lines in sections)
    verdict = "All tests passed." if diagnosis.passed else "Something is wrong, see above."
    return f"{text}\n\n{verdict}\n"


def _table(rows: dict[str, Any]) -> list[str]:
    width = max(map(len, rows))
    return [f"{key:<{width}}  {value}" for key, value in rows.items()]


def _device_line(device: DeviceInfo) -> str:
    known = device.free_bytes is not None and device.total_bytes is not None
    memory = f"{show_bytes(device.free_bytes or 0)} of {show_bytes(device.total_bytes or 0)} free" if known else ""
    return f"{device.name}: {device.description} ({device.kind}{', ' + memory if memory else ''})"


def _check_line(check: Check) -> str:
    detail = f"  {check.detail}" if check.detail else ""
    return f"{'pass' if check.passed else 'FAIL'}  {check.name}  {check.seconds:.2f} s{detail}"
