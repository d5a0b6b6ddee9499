"""The inspector as a person uses it: a slider reprices, what cannot be is told, a reload keeps the chat."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLineEdit, QPlainTextEdit, QSlider

from qwendesk.app.parts import build
from qwendesk.core import paths
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import Generate, Load
from qwendesk.engine.state import Phase
from qwendesk.services.engine.deciding import decide
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.meters.vram_bar import VramBar
from tests.fakes.engine import FakeEngineClient, ScriptedAnswer
from tests.ui.desk import Desk
from tools.hollow_model import write_hollow

MODEL = "Qwen3.5-35B-A3B-Q4_K_M.gguf"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A header of real dimensions; its data takes no room."""
    return write_hollow(tmp_path_factory.mktemp("inspector") / MODEL, "35b")


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test changes for the model is not another's profile."""
    for name in ("config", "data", "cache"):
        monkeypatch.setattr(paths, f"{name}_folder", lambda name=name: tmp_path / name)


class InspectorDesk(Desk):
    """The window on a PC with one 24 GB card, where the planner decides."""

    def __init__(self, keeper: ThemeKeeper) -> None:
        client = FakeEngineClient()
        card = DeviceInfo("CUDA0", "RTX 3090", "gpu", "CUDA", 24 * GIB, 23 * GIB)
        client.devices = (card, *client.devices)
        super().__init__(build(client, keeper, decide=decide), client)
        self.window.show()
        self.window.activateWindow()

    @property
    def loads(self) -> list[Load]:
        return [request for request in self.client.requests if isinstance(request, Load)]

    async def load(self, model: Path) -> None:
        before = self.parts.engine.state.report
        self.parts.engine.load_model(str(model))
        await self.until(lambda: self.parts.engine.state.report is not before)
        await self.until(lambda: self.parts.inspector.bridge.draft.plan is not None)

    def toggle(self) -> None:
        """What Ctrl+. does; an offscreen window is not always the active one, which a shortcut needs."""
        action = self.window.findChild(QAction, "action.inspector")
        assert action is not None
        assert action.shortcut().toString() == "Ctrl+."
        action.trigger()

    async def open(self, model: Path) -> None:
        await self.load(model)
        self.toggle()
        await self.until(lambda: self.is_shown("inspector.load"))

    def slide(self, name: str, stop: int) -> None:
        self.find(name, QSlider).setValue(stop)

    async def priced(self, amount_before: str) -> None:
        await self.until(lambda: self.text_of("inspector.price.0.amount") != amount_before)


@pytest.fixture
def make(qt_loop: asyncio.Runner, keeper: ThemeKeeper) -> Iterator[Callable[[], InspectorDesk]]:
    desks: list[InspectorDesk] = []

    def make() -> InspectorDesk:
        desks.append(InspectorDesk(keeper))
        return desks[-1]

    yield make
    for desk in desks:
        qt_loop.run(desk.parts.close())


async def test_it_is_closed_until_it_is_asked_for_and_says_what_it_needs(make: Callable[[], InspectorDesk]) -> None:
    desk = make()
    assert not desk.is_shown("inspector")
    desk.toggle()
    assert desk.is_shown("inspector.load.nothing")
    assert not desk.is_shown("inspector.load.reload")
    desk.click("inspector.close")
    assert not desk.is_shown("inspector")


async def test_a_slider_reprices_the_bar(make: Callable[[], InspectorDesk], model: Path) -> None:
    desk = make()
    await desk.open(model)
    assert not desk.is_shown("inspector.load.reload"), "what is loaded is what was asked for"
    amount, segments = desk.text_of("inspector.price.0.amount"), desk.find("inspector.price.0.bar", VramBar).segments
    desk.slide("inspector.load.context.n_ctx.slider", 0)
    await desk.priced(amount)
    assert desk.find("inspector.price.0.bar", VramBar).segments != segments
    assert desk.text_of("inspector.price.0.fit") == "fits"
    assert desk.find("inspector.load.context.n_ctx", QLineEdit).text() == "4096"
    assert desk.is_shown("inspector.load.context.n_ctx.mark")
    assert "Estimates" in desk.text_of("inspector.price.source")
    assert desk.is_shown("inspector.load.reload")


async def test_what_auto_chose_is_shown(make: Callable[[], InspectorDesk], model: Path) -> None:
    desk = make()
    await desk.open(model)
    desk.click("inspector.load.advanced")
    decided = desk.parts.engine.state.report.options
    assert desk.text_of("inspector.load.gpu.n_cpu_moe.auto") == f"Auto: {decided.n_cpu_moe} of 40"
    assert desk.text_of("inspector.load.context.n_ctx.auto") == f"Auto: {decided.n_ctx // 1024}K"
    assert desk.text_of("inspector.load.memory.type_k") == f"Auto: {decided.type_k}"
    assert desk.text_of("inspector.load.gpu.n_cpu_moe.flag") == "--n-cpu-moe"


async def test_what_cannot_be_together_is_told_and_cannot_be_loaded(
    make: Callable[[], InspectorDesk], model: Path
) -> None:
    desk = make()
    await desk.open(model)
    bridge = desk.parts.inspector.bridge
    bridge.change("type_v", "q8_0")
    desk.click("inspector.load.advanced")
    desk.find("inspector.load.memory.flash_attn.off", QAbstractButton).click()
    assert "needs flash attention" in desk.text_of("inspector.load.sentence")
    assert not desk.find("inspector.load.reload", QAbstractButton).isEnabled()
    n_loads = len(desk.loads)
    bridge.reload()
    bridge.reset("flash_attn")
    await desk.until(lambda: desk.find("inspector.load.reload", QAbstractButton).isEnabled())
    assert len(desk.loads) == n_loads


async def test_what_does_not_fit_says_how_much_and_is_not_loaded(
    make: Callable[[], InspectorDesk], model: Path
) -> None:
    desk = make()
    await desk.open(model)
    bridge = desk.parts.inspector.bridge
    for key, value in (("n_gpu_layers", "all"), ("n_cpu_moe", 0), ("type_k", "f32"), ("n_ctx", 262_144)):
        bridge.change(key, value)
    await desk.until(lambda: desk.text_of("inspector.price.0.fit").endswith("GB over"))
    assert not desk.find("inspector.load.reload", QAbstractButton).isEnabled()
    desk.click("inspector.load.reset")
    await desk.until(lambda: desk.text_of("inspector.price.0.fit") == "fits")
    assert not desk.is_shown("inspector.load.reload"), "nothing is left to apply"


async def test_a_reload_waits_for_the_answer_and_keeps_the_chat(make: Callable[[], InspectorDesk], model: Path) -> None:
    desk = make()
    await desk.open(model)
    desk.slide("inspector.load.context.n_ctx.slider", 2)
    await desk.until(lambda: desk.find("inspector.load.reload", QAbstractButton).isEnabled())
    desk.client.answers.append(ScriptedAnswer(text="One two three.", tokens_per_second=20.0))
    desk.send("Count")
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.ANSWERING)
    before = desk.parts.engine.state.report
    desk.click("inspector.load.reload")
    await desk.until(lambda: "when the answer has ended" in desk.text_of("inspector.load.sentence"))
    assert desk.parts.chat.busy
    await desk.until(lambda: desk.parts.engine.state.report not in (before, None))
    assert desk.loads[-1].options.n_ctx == 16_384
    (turn,) = desk.parts.chat.conversation.turns
    assert turn.answer.text == "One two three."
    await desk.until(lambda: not desk.is_shown("inspector.load.reload"))


async def test_what_was_changed_holds_after_a_restart(make: Callable[[], InspectorDesk], model: Path) -> None:
    desk = make()
    await desk.open(model)
    desk.slide("inspector.load.context.n_ctx.slider", 1)
    await desk.until(lambda: "n_ctx" in desk.parts.inspector.bridge.draft.changed)
    again = make()
    await again.load(model)
    assert again.loads[-1].options.n_ctx == 8_192
    assert again.parts.inspector.bridge.draft.changed == {"n_ctx"}


async def test_the_command_is_copied_and_stands_on_the_engine_page(
    make: Callable[[], InspectorDesk], model: Path
) -> None:
    desk = make()
    await desk.open(model)
    desk.parts.inspector.bridge.change("n_ctx", 16_384)
    text = desk.find("inspector.command.text", QPlainTextEdit)
    await desk.until(lambda: "--ctx-size 16384" in text.toPlainText())
    desk.find("inspector.command.copy", QAbstractButton).click()
    assert QGuiApplication.clipboard().text() == text.toPlainText()
    assert text.toPlainText() == desk.find("engine.command.text", QPlainTextEdit).toPlainText()
    desk.find("inspector.command.ollama", QAbstractButton).click()
    assert "PARAMETER num_ctx 16384" in text.toPlainText()


async def test_search_finds_a_flag_by_its_llama_cpp_name(make: Callable[[], InspectorDesk], model: Path) -> None:
    desk = make()
    await desk.open(model)
    assert not desk.has("inspector.load.gpu.tensor_split")
    desk.find("inspector.load.search", QLineEdit).setText("tensor-split")
    assert desk.is_shown("inspector.load.gpu.tensor_split.row")
    assert not desk.is_shown("inspector.load.memory.aim.row")
    desk.find("inspector.load.search", QLineEdit).clear()
    assert desk.is_shown("inspector.load.memory.aim.row")
    assert not desk.is_shown("inspector.load.gpu.tensor_split.row")


async def test_sampling_is_changed_for_this_chat_alone(make: Callable[[], InspectorDesk], model: Path) -> None:
    desk = make()
    await desk.open(model)
    desk.click("inspector.tab.sampling")
    field = desk.find("inspector.sampling.sampling.temperature", QLineEdit)
    usual = field.text()
    field.selectAll()
    QTest.keyClicks(field, "0.3")
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert desk.is_shown("inspector.sampling.sampling.temperature.mark")
    await desk.ask("Hi")
    asked = [request for request in desk.client.requests if isinstance(request, Generate)]
    assert asked[-1].options.temperature == 0.3
    desk.click("inspector.sampling.sampling.temperature.reset")
    assert field.text() == usual
    assert desk.parts.chat.settings.overrides == {}


async def test_a_narrow_window_folds_it_away(make: Callable[[], InspectorDesk], model: Path) -> None:
    desk = make()
    await desk.open(model)
    desk.window.resize(880, 700)
    await desk.until(lambda: not desk.is_shown("inspector"))
    desk.toggle()
    assert desk.is_shown("inspector")
