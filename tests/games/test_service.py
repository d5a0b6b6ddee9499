"""What happens to the model, its chats and the questions while a program needs the card, and afterwards."""

import asyncio

import msgspec
import pytest

from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import Unload
from qwendesk.engine.state import Phase
from qwendesk.hardware.programs import RunningProgram
from tests.fakes.engine import ScriptedAnswer
from tests.games.conftest import GAME, ON_CPU, OPTIONS, GameDesk, rule

OTHER = LoadOptions(model="/models/Qwen3.5-9B.gguf")


async def unloaded(desk: GameDesk) -> None:
    """The model has made room for a listed game."""
    desk.set_options(rule("unload"))
    desk.running = (GAME,)
    assert await desk.look(2) == "unloaded Cyberdrome.exe"
    assert desk.loaded is None


async def test_a_listed_program_unloads_the_model_and_the_next_question_after_it_loads_it_again(desk: GameDesk) -> None:
    await unloaded(desk)
    desk.end_game()
    assert await desk.look(3) == ""
    assert desk.loaded is None, "the next question loads it"
    turn = await desk.chat.send("Hi")
    assert turn.answer.text
    assert desk.loaded == OPTIONS


async def test_the_model_can_come_back_without_a_question(desk: GameDesk) -> None:
    desk.set_options(rule("unload"), game_return="automatic")
    desk.running = (GAME,)
    await desk.look(2)
    desk.end_game()
    await desk.look(2)
    assert desk.engine.state.phase is Phase.OFF
    await desk.look()
    await desk.until(lambda: desk.loaded == OPTIONS)


async def test_a_question_waits_for_the_end_of_the_program(desk: GameDesk) -> None:
    await unloaded(desk)
    question = asyncio.create_task(desk.chat.send("Are you there?"))
    await desk.until(lambda: desk.engine.question_waits.value)
    await desk.look(3)
    assert desk.loaded is None
    desk.end_game()
    await desk.look(3)
    turn = await question
    assert turn.answer.text == "You said: Are you there?"
    assert desk.loaded == OPTIONS
    assert not desk.engine.question_waits.value


async def test_a_question_that_is_stopped_while_it_waits_loads_nothing(desk: GameDesk) -> None:
    await unloaded(desk)
    question = asyncio.create_task(desk.chat.send("Are you there?"))
    await desk.until(lambda: desk.engine.question_waits.value)
    await desk.chat.stop()
    assert (await question).answer.stop_reason == "cancelled"
    assert not desk.engine.question_waits.value
    desk.end_game()
    await desk.look(3)
    assert desk.loaded is None
    assert desk.engine.state.phase is Phase.OFF


async def test_load_anyway_answers_the_waiting_question_and_lasts_until_the_program_ends(desk: GameDesk) -> None:
    await unloaded(desk)
    question = asyncio.create_task(desk.chat.send("Are you there?"))
    await desk.until(lambda: desk.engine.question_waits.value)
    desk.game.load_anyway()
    assert (await question).answer.text
    assert await desk.look(4) == ""
    assert desk.loaded == OPTIONS
    desk.end_game()
    await desk.look()
    desk.running = (GAME,)
    assert await desk.look(2) == "unloaded Cyberdrome.exe", "it is started again"


async def test_load_anyway_without_a_question_loads_the_model(desk: GameDesk) -> None:
    await unloaded(desk)
    desk.game.load_anyway()
    await desk.until(lambda: desk.loaded == OPTIONS)


async def test_a_running_answer_ends_first(desk: GameDesk) -> None:
    desk.set_options(rule("unload"))
    desk.client.answers.append(ScriptedAnswer(text="slow " * 20, tokens_per_second=0.01))
    question = asyncio.create_task(desk.chat.send("Hi"))
    await desk.until(lambda: desk.engine.state.phase is Phase.ANSWERING)
    desk.running = (GAME,)
    assert await desk.look(3) == "waiting Cyberdrome.exe"
    assert desk.loaded == OPTIONS
    await desk.chat.stop()
    await question
    assert await desk.look() == "unloaded Cyberdrome.exe"


async def test_the_model_makes_room_as_soon_as_the_answer_has_ended(desk: GameDesk) -> None:
    desk.set_options(rule("unload"))
    desk.running = (GAME,)
    await desk.look(1)
    question = asyncio.create_task(desk.chat.send("Hi"))
    await desk.until(lambda: desk.chat.busy)
    desk.game.start()
    await desk.until(lambda: desk.loaded is None)
    assert (await question).answer.text == "You said: Hi"


async def test_pressure_unloads_the_model_until_the_program_has_ended(desk: GameDesk) -> None:
    desk.press()
    assert await desk.look() == ""
    assert await desk.look() == "unloaded Cyberdrome.exe"
    desk.pressure = msgspec.structs.replace(desk.pressure, is_short=False, programs=(), free_bytes=21 * GIB)
    assert await desk.look(5) == "unloaded Cyberdrome.exe"
    desk.end_game()
    assert await desk.look(3) == ""


async def test_while_the_user_works_with_qwendesk_pressure_unloads_nothing(desk: GameDesk) -> None:
    desk.press()
    desk.game.set_in_front(True)
    assert await desk.look(5) == ""
    desk.game.set_in_front(False)
    assert await desk.look(2) == "unloaded Cyberdrome.exe"


async def test_nothing_is_asked_of_the_system_without_need(desk: GameDesk) -> None:
    await desk.look(3)
    assert desk.looked == []
    desk.press()
    await desk.look()
    assert desk.looked == ["full screen"]
    desk.set_options(rule("keep"), game_trigger="listed")
    await desk.look()
    assert desk.looked == ["full screen"]
    desk.set_options(rule("unload"))
    desk.pressure = desk.pressure.__class__()
    await desk.look()
    assert desk.looked == ["full screen", "running"]
    desk.settings.change({"game_mode": False})
    await desk.look(2)
    assert len(desk.looked) == 2


async def test_a_model_that_the_user_loads_beside_the_program_stays(desk: GameDesk) -> None:
    await unloaded(desk)
    await desk.engine.load(OTHER)
    assert await desk.look(4) == ""
    assert desk.loaded == OTHER


async def test_a_model_that_is_loaded_while_a_listed_program_runs_stays(desk: GameDesk) -> None:
    await desk.engine.eject()
    desk.set_options(rule("unload"))
    desk.running = (GAME,)
    await desk.look(3)
    await desk.engine.load(OTHER)
    assert await desk.look(4) == ""
    assert desk.loaded == OTHER


async def test_an_ejected_model_does_not_come_back_and_a_waiting_question_says_so(desk: GameDesk) -> None:
    await unloaded(desk)
    question = asyncio.create_task(desk.chat.send("Are you there?"))
    await desk.until(lambda: desk.engine.question_waits.value)
    await desk.engine.eject()
    assert (await question).answer.error == "No model is loaded."
    assert await desk.look(2) == ""
    desk.end_game()
    await desk.look(4)
    assert desk.loaded is None


async def test_a_model_after_an_idle_unload_is_held_too(desk: GameDesk) -> None:
    await desk.engine.unload_idle()
    await unloaded(desk)
    assert desk.engine.state.questions_held
    desk.end_game()
    await desk.look(3)
    assert not desk.engine.state.questions_held
    assert desk.engine.state.idle_unloaded == OPTIONS


async def test_the_first_load_is_held_while_a_listed_program_runs(desk: GameDesk) -> None:
    await desk.engine.eject()
    desk.engine.load_with_next_message(OPTIONS)
    assert not await desk.game.holds_first_load()
    desk.set_options(rule("unload"))
    desk.running = (GAME,)
    assert await desk.game.holds_first_load()
    assert desk.shown == "unloaded Cyberdrome.exe"
    desk.end_game()
    await desk.look(3)
    await desk.chat.send("Hi")
    assert desk.loaded == OPTIONS


async def test_the_first_load_is_not_taken_for_a_choice_of_the_user(desk: GameDesk) -> None:
    await desk.engine.eject()
    desk.engine.load_with_next_message(OPTIONS)
    desk.set_options(rule("experts"))
    desk.running = (GAME,)
    assert not await desk.game.holds_first_load()
    await desk.engine.load(OPTIONS)
    assert await desk.look(2) == "experts Cyberdrome.exe"
    assert desk.loaded == ON_CPU


async def test_an_error_while_looking_is_logged_once_and_the_next_look_counts(
    desk: GameDesk, caplog: pytest.LogCaptureFixture
) -> None:
    desk.set_options(rule("unload"))
    desk.running = (GAME,)
    looks = 0

    def fail_twice() -> tuple[RunningProgram, ...]:
        nonlocal looks
        looks += 1
        if looks <= 2:
            raise PermissionError("/proc can't be read")
        return desk.running

    desk.game._sources = msgspec.structs.replace(desk.game._sources, running=fail_twice)
    desk.game.start()
    for zoom in range(101, 105):  # each change of a setting is followed by a look at once
        seen = looks
        desk.settings.change({"zoom_percent": zoom})
        await desk.until(lambda seen=seen: looks > seen)
    await desk.until(lambda: desk.loaded is None)
    assert [record.message for record in caplog.records] == ["Game mode couldn't look at other programs"]


async def test_switching_game_mode_off_gives_the_model_back(desk: GameDesk) -> None:
    await unloaded(desk)
    desk.settings.change({"game_mode": False})
    assert await desk.look() == ""
    await desk.chat.send("Hi")
    assert desk.loaded == OPTIONS


async def test_experts_move_to_the_cpu_and_back(desk: GameDesk) -> None:
    desk.set_options(rule("experts"))
    desk.running = (GAME,)
    assert await desk.look(2) == "experts Cyberdrome.exe"
    assert desk.loaded == ON_CPU
    assert (await desk.chat.send("Hi")).answer.text == "You said: Hi"
    assert await desk.look(3) == "experts Cyberdrome.exe"
    desk.end_game()
    assert await desk.look(3) == ""
    await desk.until(lambda: desk.loaded == OPTIONS)
    assert await desk.look(3) == ""


async def test_experts_on_the_cpu_that_are_not_enough_are_unloaded_and_the_model_comes_back_as_it_was(
    desk: GameDesk,
) -> None:
    desk.settings.change({"game_action": "experts"})
    desk.press()
    assert await desk.look(2) == "experts Cyberdrome.exe"
    desk.press(2 * GIB)
    assert await desk.look(2) == "unloaded Cyberdrome.exe"
    desk.end_game()
    await desk.look(3)
    await desk.chat.send("Hi")
    assert desk.loaded == OPTIONS


async def test_a_model_whose_experts_cannot_move_is_unloaded(desk: GameDesk) -> None:
    desk.moved = None
    desk.set_options(rule("experts"))
    desk.running = (GAME,)
    assert await desk.look(2) == "unloaded Cyberdrome.exe"
    assert await desk.look(3) == "unloaded Cyberdrome.exe"
    assert len([each for each in desk.client.requests if isinstance(each, Unload)]) == 1
    desk.end_game()
    assert await desk.look(3) == ""


async def test_a_failed_move_of_the_experts_unloads_the_model(desk: GameDesk) -> None:
    desk.set_options(rule("experts"))
    desk.client.load_result = LoadFailure("out_of_ram", "Not enough RAM", "Close other programs.")
    desk.running = (GAME,)
    assert await desk.look(2) == "unloaded Cyberdrome.exe"
    desk.client.load_result = None
    desk.end_game()
    await desk.look(3)
    await desk.chat.send("Hi")
    assert desk.loaded == OPTIONS


async def test_back_to_the_gpu_while_the_program_runs(desk: GameDesk) -> None:
    desk.set_options(rule("experts"))
    desk.running = (GAME,)
    await desk.look(2)
    desk.game.load_anyway()
    await desk.until(lambda: desk.loaded == OPTIONS)
    assert await desk.look(3) == ""
    assert desk.loaded == OPTIONS


async def test_the_user_loads_another_model_while_the_experts_move(desk: GameDesk) -> None:
    desk.set_options(rule("experts"))
    desk.running = (GAME,)
    await desk.look()
    desk.client.load_delay_s = 60
    look = asyncio.create_task(desk.game.look())
    await desk.until(lambda: desk.engine.state.phase is Phase.LOADING)
    desk.client.load_delay_s = 0
    await desk.engine.load(OTHER)
    await look
    assert await desk.look(3) == ""
    assert desk.loaded == OTHER


async def test_rules_are_added_changed_and_deleted(desk: GameDesk) -> None:
    desk.game.set_rule(" Cyberdrome.exe ", "unload")
    desk.game.set_rule("blender", "experts")
    desk.game.set_rule("cyberdrome", "keep")
    desk.game.set_rule("", "keep")
    assert desk.settings.options.game_programs == (rule("keep", "cyberdrome"), rule("experts", "blender"))
    desk.game.set_rule("Blender.exe", None)
    assert desk.settings.options.game_programs == (rule("keep", "cyberdrome"),)
    desk.running = (GAME, RunningProgram(5, "qwendesk-engine"))
    assert await desk.game.started_names() == ("Cyberdrome.exe",)
