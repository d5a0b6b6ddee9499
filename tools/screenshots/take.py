"""Takes one set of pictures in this process: `python -m tools.screenshots.take SET PICTURE...`; see __main__.py."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path

from PIL import Image, ImageDraw
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPlainTextEdit, QWidget

from qwendesk.app.event_loop import EventLoop
from qwendesk.app.parts import Parts, build
from qwendesk.app.window.demo_tour import DemoTour
from qwendesk.chat.view.composer.pasted_content import PastedContent
from qwendesk.chat.view.thread.think_block import ThinkBlock
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.failures import EngineExit
from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.core.units import GIB
from qwendesk.engine.dry_run_protocol import Estimated
from qwendesk.engine.state import Phase
from qwendesk.engines.engine_choice import installed_engines
from qwendesk.hub.model_folders import ModelFolders
from qwendesk.meters.services import MeterSource
from qwendesk.services import Doubles
from qwendesk.widgets.theme_keeper import ThemeChoice, ThemeKeeper, current_theme
from tests.fakes.answer_stream import ScriptedAnswer
from tests.fakes.engine import FakeEngineClient, decide_by_default
from tests.fakes.gaming_pc import OPTIONS, GamingPc, engine_on, estimated, reader_of
from tools.hollow_model import write_hollow
from tools.screenshots.made_up_files import write_models
from tools.screenshots.remote_scene import remote
from tools.screenshots.server_scene import server
from tools.screenshots.stage import find, save, settle, until

_WINDOW = (1080, 720)
_README_WINDOW = (1280, 800)
_INSPECTOR_HEIGHT = 872
_COMMAND = "llama-server -hf unsloth/Qwen3.5-35B-A3B-GGUF:Q4_K_M -c 65536 --n-cpu-moe 16 -ctk q8_0 -ctv q8_0 --jinja"


async def demo(wanted: Collection[str]) -> None:
    """The real engine answers two questions."""
    engines = installed_engines()
    parts = build(engines.client(), engines=engines)
    try:
        parts.window.resize(*_README_WINDOW)
        parts.window.show()
        await engines.choose()
        parts.start()
        parts.window.load_demo()
        tour = DemoTour(parts.window.chat_page, parts.engine, parts.chat, lambda _text: None)
        if not await tour.run():
            raise RuntimeError("the demo did not answer")
        name = f"chat-{current_theme().name.lower()}"
        if name in wanted:
            await save(parts.window, name)
        if "thinking" in wanted:
            await _thinking(parts)
        if "clip" in wanted:
            await _clip(parts)
    finally:
        await parts.close()


async def _thinking(parts: Parts) -> None:
    parts.window.resize(*_WINDOW)
    block = parts.window.findChildren(ThinkBlock)[0]
    block.set_open(opened=True)
    find(parts, "thread.view").setFocus()
    await asyncio.sleep(0.3)
    message = block.parentWidget()
    if message is None:
        raise LookupError("the thought stands in no message")
    await save(message, "thinking")


async def _clip(parts: Parts) -> None:
    """An animation of a ball that rises, in the message."""
    frames = [Image.new("RGB", (640, 400), (34, 40, 60)) for _ in range(12)]
    for number, frame in enumerate(frames):
        ball = 60 + 40 * number, 320 - 24 * number
        ImageDraw.Draw(frame).ellipse((*ball, ball[0] + 70, ball[1] + 70), fill=(246, 142, 26))
    path = Path.home() / "ball.gif"
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=1000)
    composer = parts.window.chat_page.composer
    composer.pasted.emit(PastedContent(files=(path,)))
    await until(lambda: any(card.tokens for card in composer.attachments.items))
    await save(composer, "clip")


async def start(wanted: Collection[str]) -> None:
    """A gaming PC on which nothing is installed yet."""
    pc = GamingPc()
    parts = _gaming(pc)
    service = parts.services.models.first_start
    service._free_bytes = lambda _folder: 500 * GIB
    try:
        parts.window.show()
        parts.begin()
        parts.tasks.start(parts.services.models.offers.update())
        await until(lambda: parts.services.models.first_start.state.value.offers.state != "looking")
        await until(lambda: parts.services.models.first_start.state.value.free_bytes is not None)
        service.state.update(folder=r"D:\Models")
        if "first-start" in wanted:
            await save(parts.window, "first-start")
        parts.window.resize(*_README_WINDOW)
        parts.window.show_page("models")
        if "for-this-pc" in wanted:
            await save(parts.window, "for-this-pc")
    finally:
        await parts.close()


async def files(_wanted: Collection[str]) -> None:
    """Made-up model files of which some are wrong."""
    pc = GamingPc()
    parts = _gaming(pc)
    try:
        parts.window.resize(*_README_WINDOW)
        parts.window.show()
        parts.services.settings.change({"offline": True})
        folder = Path.home() / "Models"
        write_models(folder)
        await parts.services.models.library.set_folders(ModelFolders((str(folder),), other_apps=False))
        await parts.services.models.library.refresh()
        await parts.services.models.checks.wait_until_settled()
        parts.tasks.start(parts.services.models.offers.update())
        await until(lambda: parts.services.models.offers.state.value.state == "ready")
        parts.window.show_page("models")
        parts.models_page.page().show_tab("mine")
        await save(parts.window, "flagged")
    finally:
        await parts.close()


async def gaming(wanted: Collection[str]) -> None:
    """A model on a 24 GB card, and then a game."""
    pc = GamingPc()
    parts = _gaming(pc, plans=True)
    window, meters = parts.window, parts.services.meters.service
    try:
        window.show()
        parts.chats.start()
        model = write_hollow(Path.home() / Path(OPTIONS.model).name, "35b")
        asked = LoadOptions(model=str(model), n_ctx=65_536)
        await _follow_plan(pc, parts, asked)
        parts.tasks.start(parts.engine.load(asked))
        await until(lambda: parts.engine.state.phase is Phase.READY)
        await _ask(parts, "What can I plant on a north-facing balcony?")
        await _ask(parts, "And what of it survives the winter outside?")
        for _ in range(3):
            await meters.sample()
        if "meter" in wanted:
            window.resize(*_README_WINDOW)
            await asyncio.sleep(0.3)
            bar = window.meter_bar.rect()
            await save(window.meter_bar, "meter", bar.adjusted(0, 0, -(bar.width() - 740), 0))
            await save(window.meter_bar, "meter-right", bar.adjusted(bar.width() - 240, 0, 0, 0))
            window.resize(*_WINDOW)
        if "context" in wanted:
            await _context(parts)
        if "engine" in wanted:
            window.show_page("engine")
            await save(window, "engine")
            window.show_page("chat")
        pc.game = 3 * GIB
        for _ in range(4):
            await meters.sample()
        await _ask(parts, "Which of them may my cat eat?")
        await meters.sample()
        if "spill" in wanted:
            await save(window, "spill")
    finally:
        await parts.close()


async def _follow_plan(pc: GamingPc, parts: Parts, asked: LoadOptions) -> None:
    """Make the scripted engine report what the planner gives this model on this PC."""
    devices = await parts.engine.probe()
    if isinstance(devices, EngineExit):
        raise QwenDeskError("The scripted engine did not start", devices.sentence)
    planner = parts.services.planner
    planner._ask = _no_numbers
    await asyncio.to_thread(planner.decide, asked, devices)
    plan = planner.latest
    if plan is None:
        raise RuntimeError("the model does not fit on the made-up PC")
    pc.follow(plan)


async def _no_numbers(_options: DecidedOptions) -> Estimated:
    """Stand in for the engine's dry run: the engine here sees no card, so its numbers would be those of a CPU."""
    return Estimated(id=0, problem="not asked")


async def inspector(wanted: Collection[str]) -> None:
    """The load options of a model before its first load, and a command that was pasted there."""
    parts = _gaming(GamingPc())
    try:
        parts.window.show()
        parts.chats.start()
        model = write_hollow(Path.home() / "Qwen3.5-35B-A3B-Q4_K_M.gguf", "35b")
        parts.model_actions.show_options(str(model))
        pending = parts.services.pending_load
        await until(lambda: pending.pending.plan is not None)
        panel = find(parts, "inspector")
        parts.window.resize(_WINDOW[0], _INSPECTOR_HEIGHT)
        if "options" in wanted:
            await save(panel, "options")
        if "paste" in wanted:
            await _pasted(parts)
    finally:
        await parts.close()


async def _pasted(parts: Parts) -> None:
    QTest.mouseClick(find(parts, "inspector.paste"), Qt.MouseButton.LeftButton)
    field = find(parts, "command.text")
    if isinstance(field, QPlainTextEdit):
        field.setPlainText(_COMMAND)
    await settle()
    await save(field.window(), "paste")


def _gaming(pc: GamingPc, *, plans: bool = False) -> Parts:
    """Return the app on this PC. With `plans` the planner decides about loads, else they are as they were asked for."""
    client = engine_on(pc)
    client.answers = list(_ANSWERS)
    client.devices = (*client.devices[:-1], DeviceInfo("CPU", "A processor with 8 cores", "cpu", "CPU"))
    source = MeterSource(reader=reader_of(pc), estimate_load=estimated, platform="win32")
    fake = FakeEngineClient()
    decide = None if plans else decide_by_default
    parts = build(client, decide=decide, doubles=Doubles(meters=source, make_client=lambda: fake))
    parts.services.models.offers._ram_bytes = 64 * GIB
    parts.window.resize(*_WINDOW)
    return parts


async def _ask(parts: Parts, question: str) -> None:
    turns = len(parts.chat.conversation.turns)
    composer = parts.window.chat_page.composer
    composer.text.setPlainText(question)
    composer.text.submitted.emit()
    await until(lambda: len(parts.chat.conversation.turns) > turns and not parts.chat.busy)


async def _context(parts: Parts) -> None:
    """The sheet is a window of its own, beside what opens it."""
    QTest.mouseClick(find(parts, "meter.context"), Qt.MouseButton.LeftButton)
    await until(lambda: bool(_sheets(parts)))
    sheet = _sheets(parts)[-1]
    await asyncio.sleep(0.5)
    await save(sheet, "context")
    sheet.close()


def _sheets(parts: Parts) -> list[QWidget]:
    return parts.window.findChildren(QWidget, "context.sheet")


_FULL_SPEED, _SPILLED_SPEED = 110.0, 9.0
"""Tokens per second as the reports give them for a 24 GB card, and with a part of the model in shared memory."""
_ANSWERS = (
    ScriptedAnswer(
        reasoning="North-facing means little direct sun. Ferns, hostas and heuchera stand that; so does mint.",
        text="A north-facing balcony has shade for most of the day. These do well there:\n\n"
        "| plant | height | water |\n|---|---|---|\n"
        "| Hosta | 40 cm | keep moist |\n| Fern | 60 cm | keep moist |\n| Coral bells | 30 cm | moderate |\n"
        "| Mint | 40 cm | a lot |\n\nBegin with the hosta: it forgives most mistakes.\n",
        tokens_per_second=_FULL_SPEED,
    ),
    ScriptedAnswer(
        reasoning="Hosta and coral bells are hardy in pots if the pot does not freeze through.",
        text="Hostas, coral bells and most ferns. Wrap the pots in fleece, stand them on wood, and water a little on "
        "days without frost. Mint dies back and comes again in spring.\n",
        tokens_per_second=_FULL_SPEED,
    ),
    ScriptedAnswer(
        reasoning="Hosta is toxic for cats. Ferns of the genus Nephrolepis and coral bells are not.",
        text="Not the hosta: it makes cats ill. Coral bells and sword ferns are harmless, and so is a leaf of mint.\n",
        tokens_per_second=_SPILLED_SPEED,
    ),
)
_SETS: dict[str, tuple[ThemeChoice, Callable[[Collection[str]], Awaitable[None]]]] = {
    "demo-dark": ("dark", demo),
    "demo-light": ("light", demo),
    "start": ("dark", start),
    "files": ("dark", files),
    "gaming": ("dark", gaming),
    "inspector": ("dark", inspector),
    "server": ("dark", server),
    "remote": ("dark", remote),
}


def main() -> int:
    app = QApplication.instance() or QApplication(["qwendesk"])
    if not isinstance(app, QApplication):
        raise TypeError("another kind of Qt application runs already")
    app.setQuitOnLastWindowClosed(False)
    theme, scene = _SETS[sys.argv[1]]

    async def run() -> None:
        ThemeKeeper(app, theme)
        await scene(sys.argv[2:])

    with asyncio.Runner(loop_factory=lambda: EventLoop(app)) as runner:
        runner.run(run())
    return 0


if __name__ == "__main__":
    sys.exit(main())
