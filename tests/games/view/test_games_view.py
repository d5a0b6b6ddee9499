"""What the window says while a game has the memory, and the list of programs on the settings page."""

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QLineEdit, QMenu, QPushButton, QWidget

from qwendesk.core.app_options import ProgramRule
from qwendesk.core.units import GIB
from qwendesk.engine.state import Phase
from qwendesk.remote.loaded_models import USUAL_SERVERS, HeldModel
from tests.games.view.conftest import CYBERDROME, GamingWindow


def rules(gaming: GamingWindow) -> dict[str, str]:
    return {rule.name: rule.action for rule in gaming.parts.services.settings.options.game_programs}


async def unload_for_game(gaming: GamingWindow) -> None:
    await gaming.load()
    gaming.play()
    await gaming.look(6)
    assert gaming.parts.engine.state.phase is Phase.OFF


async def test_a_game_that_takes_the_memory_unloads_the_model_and_the_window_says_so(gaming: GamingWindow) -> None:
    await unload_for_game(gaming)
    assert gaming.text_of("game.title") == "Unloaded while Cyberdrome.exe runs"
    assert "your next message loads the model again" in gaming.text_of("game.sentence")
    assert gaming.text_of("model.button") == "Qwen3.5-35B-A3B-UD-Q4_K_L · unloaded for another program"
    assert "unloaded while Cyberdrome.exe runs" in gaming.parts.desktop.tray.icon.toolTip()
    gaming.end_game()
    await gaming.look(3)
    assert not gaming.has("game") or not gaming.is_shown("game")
    assert gaming.parts.desktop.tray.icon.toolTip() == "QwenDesk"
    assert gaming.text_of("model.button").endswith("loads with your next message")
    await gaming.ask("Hi")
    assert gaming.parts.chat.conversation.turns[-1].answer.text == "You said: Hi"


async def test_models_of_other_programs_are_offered_to_be_unloaded_too(gaming: GamingWindow) -> None:
    gaming.held = (HeldModel(USUAL_SERVERS[0], "qwen3:8b", 5 * GIB),)
    await unload_for_game(gaming)
    assert gaming.text_of("game.sentence").endswith("Also in memory: qwen3:8b in Ollama (5.0 GB).")
    assert gaming.text_of("game.unload") == "Unload it too"
    assert "Ask Ollama to unload." in gaming.find("game.unload", QPushButton).toolTip()
    gaming.click("game.unload")
    await gaming.until(lambda: "Also in memory" not in gaming.text_of("game.sentence"))
    assert gaming.unloaded == [*gaming.held]
    assert gaming.text_of("game.title") == "Unloaded while Cyberdrome.exe runs"


async def test_a_question_waits_and_load_anyway_answers_it(gaming: GamingWindow) -> None:
    await unload_for_game(gaming)
    gaming.send("Are you there?")
    await gaming.until(lambda: "Your question is answered" in gaming.text_of("game.sentence"))
    turn = gaming.parts.chat.conversation.turns[-1]
    assert gaming.text_of(f"thread.status.{turn.id}") == "Waiting until the other program has ended…"
    gaming.click("game.load")
    await gaming.until(lambda: bool(gaming.parts.chat.conversation.turns) and not gaming.parts.chat.busy)
    assert gaming.parts.chat.conversation.turns[-1].answer.text == "You said: Are you there?"
    assert not gaming.is_shown("game")


async def test_while_the_window_is_in_front_only_the_spill_banner_helps(gaming: GamingWindow) -> None:
    await gaming.load()
    gaming.play()
    await gaming.until(lambda: QApplication.applicationState() is Qt.ApplicationState.ApplicationActive)
    services = gaming.parts.services
    for state in (Qt.ApplicationState.ApplicationInactive, Qt.ApplicationState.ApplicationActive):
        QApplication.instance().applicationStateChanged.emit(state)
    for _ in range(6):
        await services.meters.service.sample()
        await services.game_mode.look()
    assert gaming.parts.engine.state.report is not None
    assert gaming.is_shown("spill")
    assert not gaming.has("game")


async def test_always_keep_loaded_adds_a_rule_that_the_settings_show(gaming: GamingWindow) -> None:
    await unload_for_game(gaming)
    gaming.click("game.never")
    await gaming.until(lambda: gaming.parts.engine.state.report is not None)
    assert rules(gaming) == {"Cyberdrome.exe": "keep"}
    await gaming.look(6)
    assert gaming.parts.engine.state.report is not None
    gaming.window.show_page("settings")
    assert gaming.find("settings.programs.1.action", QComboBox).currentText() == "Keep loaded"


async def test_experts_on_the_cpu_are_shown_with_the_way_back(gaming: GamingWindow) -> None:
    gaming.parts.services.game_mode._move_experts = gaming_experts
    await gaming.load()
    gaming.parts.services.settings.change({"game_action": "experts"})
    gaming.play()
    await gaming.look(6)
    assert gaming.text_of("game.title") == "Experts on the CPU while Cyberdrome.exe runs"
    assert gaming.text_of("game.load") == "Back to the GPU"
    gaming.click("game.load")
    await gaming.until(lambda: gaming.parts.engine.state.requested.n_cpu_moe == 0)


async def gaming_experts(report):
    return report.options.__class__(model=report.options.model, n_cpu_moe=40, load_mode="none")


async def test_rules_leads_to_the_settings(gaming: GamingWindow) -> None:
    await unload_for_game(gaming)
    gaming.click("game.rules")
    assert gaming.window.page == "settings"
    section = gaming.find("settings.games", QWidget)
    await gaming.until(lambda: not section.visibleRegion().isEmpty())


async def test_a_dismissed_notice_comes_back_when_it_says_something_new(gaming: GamingWindow) -> None:
    await unload_for_game(gaming)
    gaming.click("game.dismiss")
    await gaming.look(2)
    assert not gaming.is_shown("game")
    gaming.send("Are you there?")
    await gaming.until(lambda: gaming.is_shown("game"))


async def test_programs_are_added_by_name_changed_and_removed(gaming: GamingWindow) -> None:
    gaming.window.show_page("settings")
    field = gaming.find("settings.programs.field", QLineEdit)
    QTest.keyClicks(field, "eldenring.exe")
    gaming.click("settings.programs.add")
    QTest.keyClicks(field, "blender")
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert field.text() == ""
    assert rules(gaming) == {"eldenring.exe": "unload", "blender": "unload"}
    choice = gaming.find("settings.programs.2.action", QComboBox)
    assert [choice.itemText(index) for index in range(choice.count())] == ["Unload", "Experts to RAM", "Keep loaded"]
    choice.setCurrentIndex(1)
    choice.activated.emit(1)
    assert rules(gaming) == {"eldenring.exe": "unload", "blender": "experts"}
    await gaming.until(lambda: gaming.is_shown("settings.programs.1.remove"))
    assert gaming.find("settings.programs.2.action", QComboBox) is choice
    gaming.click("settings.programs.1.remove")
    assert rules(gaming) == {"blender": "experts"}
    await gaming.parts.services.settings.close()


async def test_without_a_gpu_experts_are_not_offered(gaming: GamingWindow) -> None:
    gaming.client.devices = gaming.client.devices[1:]
    gaming.parts.services.settings.change({"game_programs": (ProgramRule("blender", "unload"),)})
    gaming.window.show_page("settings")
    await gaming.parts.engine.probe()
    choice = gaming.find("settings.programs.1.action", QComboBox)
    assert [choice.itemText(index) for index in range(choice.count())] == ["Unload", "Keep loaded"]


async def test_a_program_that_uses_the_gpu_is_chosen_from_a_menu(gaming: GamingWindow) -> None:
    gaming.play()
    await gaming.look()
    gaming.window.show_page("settings")
    gaming.click("settings.programs.choose")
    await gaming.until(lambda: gaming.is_shown("settings.programs.menu"))
    menu = gaming.find("settings.programs.menu", QMenu)
    assert [action.text() for action in menu.actions()] == ["Cyberdrome.exe"], "the desktop itself is not offered"
    QTest.mouseClick(menu, Qt.MouseButton.LeftButton, pos=menu.actionGeometry(menu.actions()[0]).center())
    assert rules(gaming) == {CYBERDROME.name: "unload"}
    menu.close()


async def test_without_gpu_programs_those_started_last_are_offered(gaming: GamingWindow) -> None:
    gaming.running = (CYBERDROME,)
    gaming.window.show_page("settings")
    gaming.click("settings.programs.choose")
    await gaming.until(lambda: gaming.is_shown("settings.programs.menu"))
    menu = gaming.find("settings.programs.menu", QMenu)
    assert [action.text() for action in menu.actions()] == ["Cyberdrome.exe"]
    assert menu.pos() != QPoint(0, 0)
    menu.close()


async def test_the_search_finds_the_list_of_programs(gaming: GamingWindow) -> None:
    gaming.window.show_page("settings")
    search = gaming.find("settings.search", QLineEdit)
    QTest.keyClicks(search, "steam")
    assert gaming.is_shown("settings.programs")
    search.clear()
    QTest.keyClicks(search, "token")
    assert not gaming.is_shown("settings.programs")
