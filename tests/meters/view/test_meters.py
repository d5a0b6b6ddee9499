"""The meters in the window: bar, chip, history, and a spill from the banner to the reload."""

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QLabel, QToolButton, QWidget

from qwendesk.core.failures import LoadFailure
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import Load
from qwendesk.engine.state import Phase
from qwendesk.meters.view import meter_text
from qwendesk.meters.view.history_popup import HistoryChart
from qwendesk.widgets.vram_bar import VramBar
from tests.fakes.engine import FakeEngineClient, ScriptedAnswer
from tests.fakes.gaming_pc import OPTIONS
from tests.meters.view.conftest import GamingDesk

MakeDesk = Callable[..., GamingDesk]


def loads(desk: GamingDesk) -> list:
    return [request.options for request in desk.client.requests if isinstance(request, Load)]


async def test_meter_of_a_fitting_model(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    assert not desk.is_shown("meter.memory"), "nothing was looked at yet"
    await desk.load()
    await desk.look(2)
    assert desk.text_of("meter.state") == "Fits"
    assert desk.text_of("meter.memory.text") == "22.1 / 24 GB"
    assert desk.text_of("meter.gpu") == "GPU 97% · 312 W · 71 °C"
    ram = meter_text.segments_text(desk.parts.services.meters.service.state.value.ram)
    assert desk.text_of("meter.ram") == f"RAM {ram}", "as on the Engine page"
    tip = desk.find("meter.memory", VramBar).toolTip()
    for words in ("RTX 3090", "Weights: 18.0 GB", "Pictures: 1.0 GB", "Other apps: 600 MB", "Free: 1.9 GB"):
        assert words in tip
    assert "PCIe 4.0 ×16" in desk.find("meter.gpu", QLabel).toolTip()
    assert not desk.is_shown("spill")


async def test_chip_shows_the_engine_without_a_model(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    await desk.look()
    assert desk.text_of("meter.state") == "No model"
    assert desk.text_of("meter.memory.text") == "0.6 / 24 GB"
    await desk.load()
    await desk.look()
    desk.client.kill()
    assert desk.text_of("meter.state") == "Engine stopped"
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.READY)


async def test_near_limit_shows_a_chip_but_no_banner(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    await desk.load()
    await desk.look()
    desk.pc.game = 1700 * 1024**2
    await desk.look(3)
    assert desk.text_of("meter.state") == "Near limit"
    assert not desk.is_shown("spill")


async def test_meter_without_gpu_shows_ram_and_threads(make_gaming_desk: MakeDesk) -> None:
    desk = make_gaming_desk(has_card=False)
    await desk.load()
    await desk.look()
    assert desk.text_of("meter.state") == "CPU only"
    assert desk.text_of("meter.memory.name") == "RAM"
    ram = meter_text.segments_text(desk.parts.services.meters.service.state.value.ram)
    assert desk.text_of("meter.memory.text") == ram
    assert "8 threads" in desk.text_of("meter.device")
    assert not desk.is_shown("meter.gpu")


async def test_each_of_several_gpus_has_a_bar_of_its_own(make_gaming_desk: MakeDesk) -> None:
    desk = make_gaming_desk(has_second_card=True)
    desk.window.resize(1600, 800)
    await desk.load()
    await desk.look(2)

    assert desk.text_of("meter.gpu.0.text") == "RTX 3090 #1 · 22.1 / 24 GB · 97% · 312 W"
    assert desk.text_of("meter.gpu.1.text") == "RTX 3090 #2 · 9.0 / 24 GB · 41% · 128 W"
    first, second = (desk.find(f"meter.gpu.{number}.memory", VramBar) for number in range(2))
    assert first.segments != second.segments
    assert "Weights: 18.0 GB" in first.toolTip()
    assert "RTX 3090 #2" in second.toolTip()
    assert not desk.is_shown("meter.memory")
    assert not desk.is_shown("meter.gpu")


@pytest.mark.parametrize("width", [560, 900, 1280])
async def test_bars_of_several_gpus_say_less_where_there_is_less_room(make_gaming_desk: MakeDesk, width: int) -> None:
    desk = make_gaming_desk(has_second_card=True)
    desk.window.resize(width, 800)
    await desk.load()
    await desk.look(2)

    for number in range(2):
        label = desk.find(f"meter.gpu.{number}.text", QLabel)
        assert label.fontMetrics().horizontalAdvance(label.text()) <= label.width()
        assert f"#{number + 1}" in label.text() or "GB" in label.text()
    assert desk.is_shown("meter.state")


async def test_the_history_has_a_line_for_each_gpu(make_gaming_desk: MakeDesk) -> None:
    desk = make_gaming_desk(has_second_card=True)
    await desk.load()
    await desk.look(2)
    desk.click("meter.gpu.1.memory")

    history = desk.window.meter_bar.history
    assert "Video memory used, of 24 + 24 GB" in [label.text() for label in history.findChildren(QLabel)]
    legend = desk.find("meter.history.legend", QLabel).text()
    assert "RTX 3090 #1 · 22.1 / 24 GB" in legend
    assert "RTX 3090 #2 · 9.0 / 24 GB" in legend
    assert history.findChildren(HistoryChart)[0].n_lines == 2
    points = desk.parts.services.meters.service.state.value.history
    assert all(sorted(round(each / GIB) for each in point.used_by_gpu.values()) == [9, 22] for point in points[-2:])


async def test_remedy_button_reloads_once_and_keeps_the_chat(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    await desk.load()
    await desk.ask("Which plane is this?")
    await desk.spill()
    assert desk.is_shown("spill")
    assert desk.text_of("meter.state") == "Spilling"
    assert desk.text_of("meter.memory.text") == "24.0 + 1.1 GB shared"
    assert desk.text_of("spill.title") == "VRAM spills"
    sentence = desk.text_of("spill.sentence")
    assert "1.1 GB of the model sits in shared memory" in sentence
    assert "times slower" in sentence
    assert "Cyberdrome.exe has taken 3.0 GB" in sentence
    assert desk.text_of("spill.experts") == "5 expert layers to CPU, about 80–90 tok/s"
    assert desk.text_of("spill.eject") == "Eject until Cyberdrome.exe closes"
    assert not desk.has("spill.kv"), "a smaller cache would not be enough"
    assert "Sysmem" not in desk.text_of("spill.note")
    before = len(loads(desk))
    desk.pc.shrink(2 * GIB)
    desk.click("spill.experts")
    await desk.until(lambda: len(loads(desk)) > before and desk.parts.engine.state.phase is Phase.READY)
    assert loads(desk)[-1].n_cpu_moe == 5
    assert loads(desk)[-1].n_ctx == OPTIONS.n_ctx
    assert len(loads(desk)) == before + 1, "one reload"
    await desk.look(3)
    assert not desk.is_shown("spill")
    assert desk.text_of("meter.state") == "Fits"
    await desk.ask("And how fast is it?")
    assert [turn.question.text for turn in desk.parts.chat.conversation.turns] == [
        "Which plane is this?",
        "And how fast is it?",
    ]


async def test_banner_is_shown_on_every_page_beside_the_sidebar(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    await desk.spill()
    banner = desk.find("spill", QWidget)
    assert desk.window.chat_page.isAncestorOf(banner), "beside the list, not over it"
    assert desk.is_shown("spill")
    desk.window.show_page("engine")
    assert desk.is_shown("spill")
    desk.window.show_page("chat")
    assert desk.window.chat_page.isAncestorOf(banner)
    assert desk.is_shown("spill")


async def test_remedy_waits_for_the_answer(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    await desk.spill()
    desk.client.answers.append(ScriptedAnswer(text="one two three four", tokens_per_second=50))
    before = len(loads(desk))
    desk.send("Count")
    await desk.until(lambda: desk.parts.services.meters.service.state.value is not None and desk.parts.chat.busy)
    await desk.until(lambda: bool(desk.parts.chat.conversation.turns[-1].answer.text))
    desk.click("spill.experts")
    await desk.until(lambda: not desk.find("spill.experts", QAbstractButton).isEnabled())
    assert desk.text_of("spill.note") in ("Applies when this answer is finished.", "Applying…")
    await desk.until(lambda: len(loads(desk)) > before and desk.parts.engine.state.phase is Phase.READY)
    assert desk.parts.chat.conversation.turns[-1].answer.text == "one two three four"


async def test_a_dismissed_banner_returns_only_when_the_state_changes(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    await desk.spill()
    desk.click("spill.dismiss")
    desk.pc.game += 200 * 1024**2
    await desk.look(3)
    assert not desk.is_shown("spill")
    assert desk.text_of("meter.state") == "Spilling"
    desk.pc.game = 0
    await desk.look(4)
    desk.pc.game = 3 * 1024**3
    await desk.look(4)
    assert desk.is_shown("spill")


async def test_measured_slowdown_is_shown(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    desk.speeds.note(OPTIONS, 0, 112.0)
    desk.speeds.note(OPTIONS, 100_000, 112.0)
    await desk.spill()
    answer = ScriptedAnswer(text=" ".join(["word"] * 16))  # 15 tokens after the first, in the fake's one second
    desk.client.answers.append(answer)
    await desk.ask("Write")
    await desk.look()
    assert "from 112 to 15 tok/s" in desk.text_of("spill.sentence")


async def test_model_stays_ejected_until_the_game_closes(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    await desk.spill()
    desk.click("spill.eject")
    await desk.until(lambda: desk.has("spill.load_again"))
    assert desk.text_of("spill.title") == "Model ejected for now"
    assert "Cyberdrome.exe" in desk.text_of("spill.sentence")
    await desk.look(4)
    assert desk.parts.engine.state.phase is Phase.OFF
    desk.pc.game = 0
    await desk.look(3)
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.READY)
    await desk.look(2)
    assert not desk.is_shown("spill")


async def test_failed_remedy_says_why(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    await desk.spill()
    desk.client.load_result = LoadFailure("out_of_ram", "Not enough memory", "Close other programs.")
    desk.click("spill.experts")
    await desk.until(lambda: desk.is_shown("spill") and desk.text_of("spill.title") == "Not enough memory")
    assert desk.text_of("spill.sentence") == "Close other programs."


async def test_the_history_opens_by_mouse_and_by_key(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    await desk.spill()
    desk.click("meter.memory")
    history = desk.window.meter_bar.history
    assert history.isVisible()
    legend = desk.find("meter.history.legend", QLabel).text()
    assert "Weights" in legend
    assert "Shared memory" in legend
    assert desk.text_of("meter.history.speed") == "No answers yet"
    await desk.look()
    history.close()
    desk.find("meter.memory", VramBar).setFocus()
    desk.press(Qt.Key.Key_Space)
    assert history.isVisible()
    history.close()


async def test_predicted_and_actual_memory_are_shown(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    await desk.load()
    await desk.look(7)
    await desk.until(lambda: bool(desk.parts.services.meters.comparer.comparisons.value))
    words = meter_text.compared_text(desk.parts.services.meters.comparer.comparisons.value)
    assert words.endswith("actual 21.5 GB"), "what the driver says the worker holds"
    assert words in desk.find("meter.memory", VramBar).toolTip()
    desk.click("meter.memory")
    assert desk.text_of("meter.history.compared") == f"This model: {words}"
    desk.window.meter_bar.history.close()
    page = desk.parts.engine_page.page()
    assert words in [label.text() for label in page.findChildren(QLabel)]
    desk.parts.window.eject()
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.OFF)
    await desk.look()
    assert words not in [label.text() for label in page.findChildren(QLabel) if not label.isHidden()]


async def test_narrow_window_keeps_the_important_values(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    await desk.load()
    await desk.look()
    desk.window.resize(600, 500)
    await desk.until(lambda: not desk.is_shown("meter.gpu"))
    assert desk.is_shown("meter.state")
    assert desk.is_shown("meter.memory")
    assert desk.find("meter.bar", QWidget).width() <= desk.window.width()


@pytest.mark.parametrize("has_card", [True, False])
@pytest.mark.parametrize("width", [560, 700, 960])
async def test_no_text_of_the_bar_is_cut(make_gaming_desk: MakeDesk, width: int, *, has_card: bool) -> None:
    desk = make_gaming_desk(has_card=has_card)
    desk.window.resize(width, 500)
    await desk.load()
    await desk.look(2)
    desk.client.answers.append(ScriptedAnswer(text="word " * 900))
    await desk.ask("A question")
    await desk.look()
    bar = desk.find("meter.bar", QWidget)
    await desk.until(lambda: bar.width() == width)
    bar.layout().activate()
    shown = [each for kind in (QLabel, QToolButton) for each in bar.findChildren(kind) if each.isVisible()]
    assert [label.text() for label in shown if label.width() < label.sizeHint().width()] == []
    assert desk.find("meter.context", QToolButton) in shown
    assert max(label.geometry().right() for label in shown) < width


async def test_meters_know_when_the_window_is_hidden(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    seen = []
    desk.window.seen.connect(seen.append)
    desk.window.hide()
    desk.window.show()
    assert seen == [False, True]


async def test_the_engine_page_shows_hardware_and_tests_the_engine(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    await desk.load()
    await desk.look()
    desk.press(Qt.Key.Key_3, Qt.KeyboardModifier.ControlModifier)
    assert desk.is_shown("engine.page")
    assert desk.is_shown("engine.memory.0.bar")
    assert desk.text_of("engine.memory.0.amount") == desk.text_of("meter.memory.text")
    page = desk.parts.engine_page.page()
    texts = " ".join(label.text() for label in page.findChildren(QLabel))
    for words in ("NVIDIA GeForce RTX 3090", "driver 575.64", "CUDA0", "AVX2", "llama-cpp-python 0.3.36"):
        assert words in texts
    desk.test_client = FakeEngineClient(
        answers=[
            ScriptedAnswer(text="2 + 3 = 5"),
            ScriptedAnswer(reasoning="The sum is 5.", text="2 + 3 = 5"),
            ScriptedAnswer(text="A red circle."),
        ]
    )
    desk.click("engine.test")
    await desk.until(lambda: "All tests passed." in desk.text_of("engine.result"))
    assert desk.test_client.closed
    assert desk.parts.engine.state.phase is Phase.READY, "the loaded model stays where it is"


async def test_copied_diagnostics_contain_no_messages(gaming_desk: GamingDesk, app) -> None:
    desk = gaming_desk
    await desk.load()
    await desk.ask("My secret question")
    await desk.look()
    desk.window.show_page("engine")
    desk.click("engine.copy")
    text = app.clipboard().text()
    for words in ("NVIDIA GeForce RTX 3090", "575.64", "qwendesk", "AVX2", "Backends"):
        assert words in text
    assert "secret" not in text
