"""The meters in the window: bar, chip, history, and a spill from the banner to the reload."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QLabel, QWidget

from qwendesk.core.failures import LoadFailure
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import Load
from qwendesk.engine.state import Phase
from qwendesk.ui.frame.actions import COMMANDS
from qwendesk.ui.meters import texts
from qwendesk.ui.meters.vram_bar import VramBar
from tests.fakes.engine import FakeEngineClient, ScriptedAnswer
from tests.fakes.gaming_pc import OPTIONS
from tests.ui.meters.conftest import GamingDesk

MakeDesk = Callable[..., GamingDesk]


def loads(desk: GamingDesk) -> list:
    return [request.options for request in desk.client.requests if isinstance(request, Load)]


async def test_a_model_that_fits(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    assert not desk.is_shown("meter.memory"), "nothing was looked at yet"
    await desk.load()
    await desk.look(2)
    assert desk.text_of("meter.state") == "Fits"
    assert desk.text_of("meter.memory.text") == "22.1 / 24 GB"
    assert desk.text_of("meter.gpu") == "GPU 97% · 312 W · 71 °C"
    assert desk.text_of("meter.ram") == "RAM 18.0 / 64 GB"
    tip = desk.find("meter.memory", VramBar).toolTip()
    for words in ("RTX 3090", "Weights: 18.0 GB", "Pictures: 1.0 GB", "Other apps: 600 MB", "Free: 1.9 GB"):
        assert words in tip
    assert "PCIe 4.0 ×16" in desk.find("meter.gpu", QLabel).toolTip()
    assert not desk.is_shown("spill")


async def test_before_a_model_and_after_it_the_chip_tells_of_the_engine(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    await desk.look()
    assert desk.text_of("meter.state") == "No model"
    assert desk.text_of("meter.memory.text") == "0.6 / 24 GB"
    await desk.load()
    await desk.look()
    desk.client.kill()
    assert desk.text_of("meter.state") == "Engine stopped"
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.READY)


async def test_near_the_limit_is_a_chip_and_no_banner(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    await desk.load()
    await desk.look()
    desk.pc.game = 1700 * 1024**2
    await desk.look(3)
    assert desk.text_of("meter.state") == "Near limit"
    assert not desk.is_shown("spill")


async def test_without_a_card_it_says_cpu_only_with_ram_and_threads(make_gaming_desk: MakeDesk) -> None:
    desk = make_gaming_desk(has_card=False)
    await desk.load()
    await desk.look()
    assert desk.text_of("meter.state") == "CPU only"
    assert desk.text_of("meter.memory.name") == "RAM"
    assert desk.text_of("meter.memory.text") == "18.0 / 64 GB"
    assert "8 threads" in desk.text_of("meter.device")
    assert not desk.is_shown("meter.gpu")


async def test_from_the_spill_to_one_reload_with_the_chat_intact(gaming_desk: GamingDesk) -> None:
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
    assert "Cyberdrome.exe took 3.0 GB" in sentence
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


async def test_the_banner_leaves_the_list_of_chats_alone_and_follows_to_other_pages(gaming_desk: GamingDesk) -> None:
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


async def test_a_fix_waits_for_the_answer(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    await desk.spill()
    desk.client.answers.append(ScriptedAnswer(text="one two three four", tokens_per_second=50))
    before = len(loads(desk))
    desk.send("Count")
    await desk.until(lambda: desk.parts.meters.bridge.meters is not None and desk.parts.chat.busy)
    await desk.until(lambda: bool(desk.parts.chat.conversation.turns[-1].answer.text))
    desk.click("spill.experts")
    await desk.until(lambda: not desk.find("spill.experts", QAbstractButton).isEnabled())
    assert "Applied" in desk.text_of("spill.note") or "applied" in desk.text_of("spill.note")
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


async def test_the_measured_cost_is_told(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    desk.speeds.note(OPTIONS, 0, 112.0)
    desk.speeds.note(OPTIONS, 100_000, 112.0)
    await desk.spill()
    answer = ScriptedAnswer(text=" ".join(["word"] * 16))  # 15 tokens after the first, in the fake's one second
    desk.client.answers.append(answer)
    await desk.ask("Write")
    await desk.look()
    assert "112 → 15 tok/s" in desk.text_of("spill.sentence")


async def test_windows_hears_of_the_driver_s_setting(make_gaming_desk: MakeDesk) -> None:
    desk = make_gaming_desk(platform="win32")
    await desk.spill()
    assert "Prefer No Sysmem Fallback" in desk.text_of("spill.note")


async def test_ejected_until_the_game_closes(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    await desk.spill()
    desk.click("spill.eject")
    await desk.until(lambda: desk.has("spill.load_again"))
    assert desk.text_of("spill.title") == "The model is ejected for now"
    assert "Cyberdrome.exe" in desk.text_of("spill.sentence")
    await desk.look(4)
    assert desk.parts.engine.state.phase is Phase.OFF
    desk.pc.game = 0
    await desk.look(3)
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.READY)
    await desk.look(2)
    assert not desk.is_shown("spill")


async def test_a_fix_that_fails_says_why(gaming_desk: GamingDesk) -> None:
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
    history = desk.parts.meters.history
    assert history.isVisible()
    legend = desk.find("meter.history.legend", QLabel).text()
    assert "Weights" in legend
    assert "Shared memory" in legend
    assert desk.text_of("meter.history.speed") == "No answer was written"
    await desk.look()
    history.close()
    desk.find("meter.memory", VramBar).setFocus()
    desk.press(Qt.Key.Key_Space)
    assert history.isVisible()
    history.close()


async def test_predicted_and_real_stand_side_by_side(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    await desk.load()
    await desk.look(7)
    await desk.until(lambda: bool(desk.parts.meters.measuring.latest))
    words = texts.compared_text(desk.parts.meters.measuring.latest)
    assert words.endswith("real 21.5 GB"), "what the driver says the worker holds"
    assert words in desk.find("meter.memory", VramBar).toolTip()
    desk.click("meter.memory")
    assert desk.text_of("meter.history.compared") == f"This load: {words}"
    desk.parts.meters.history.close()
    page = desk.parts.engine_page.page
    assert words in [label.text() for label in page.findChildren(QLabel)]
    desk.parts.engine.eject()
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.OFF)
    await desk.look()
    assert words not in [label.text() for label in page.findChildren(QLabel) if not label.isHidden()]


async def test_a_narrow_window_keeps_what_matters(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    await desk.load()
    await desk.look()
    desk.window.resize(600, 500)
    await desk.until(lambda: not desk.is_shown("meter.gpu"))
    assert desk.is_shown("meter.state")
    assert desk.is_shown("meter.memory")
    assert desk.find("meter.bar", QWidget).width() <= desk.window.width()


async def test_a_hidden_window_is_told_to_the_meters(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    seen = []
    desk.window.seen.connect(seen.append)
    desk.window.hide()
    desk.window.show()
    assert seen == [False, True]


async def test_every_button_of_the_banner_explains_itself(gaming_desk: GamingDesk) -> None:
    await gaming_desk.spill()
    for name in ("spill.experts", "spill.eject", "spill.dismiss", "meter.memory"):
        button = gaming_desk.find(name, QAbstractButton)
        assert button.accessibleName()
        assert button.toolTip()
        assert button.focusPolicy() & Qt.FocusPolicy.TabFocus


async def test_the_engine_page_shows_hardware_and_tests_the_engine(gaming_desk: GamingDesk) -> None:
    desk = gaming_desk
    await desk.load()
    await desk.look()
    desk.press(Qt.Key.Key_3, Qt.KeyboardModifier.ControlModifier)
    assert desk.is_shown("engine.page")
    page = desk.parts.engine_page.page
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


async def test_copied_diagnostics_have_everything_but_what_was_said(gaming_desk: GamingDesk, app) -> None:
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


def test_the_engine_page_has_its_key() -> None:
    assert COMMANDS["page_engine"].shortcut == "Ctrl+3"
