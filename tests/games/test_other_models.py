"""While a game needs the card: what Ollama and LM Studio hold is offered to be unloaded too, and only then."""

from qwendesk.remote.loaded_models import USUAL_SERVERS, HeldModel
from tests.games.conftest import GAME, GameDesk, rule

OLLAMAS, STUDIOS = HeldModel(USUAL_SERVERS[0], "qwen3:8b", 1), HeldModel(USUAL_SERVERS[1], "qwen3.5-9b", 2)


async def play(desk: GameDesk, action: str = "unload") -> None:
    desk.held = (OLLAMAS, STUDIOS)
    desk.set_options(rule(action))
    desk.running = (GAME,)
    await desk.look(2)


async def test_models_of_others_are_offered_and_nothing_is_unloaded_before_a_click(desk: GameDesk) -> None:
    await play(desk)
    await desk.look(3)
    assert desk.game.state.value.others == (OLLAMAS, STUDIOS)
    assert desk.looked.count("held elsewhere") == 1
    assert not [each for each in desk.looked if each.startswith("unload")]


async def test_they_are_asked_once_room_was_made_and_not_before(desk: GameDesk) -> None:
    desk.held = (OLLAMAS,)
    await desk.look(4)
    assert "held elsewhere" not in desk.looked
    assert desk.game.state.value.others == ()


async def test_moving_experts_offers_them_too(desk: GameDesk) -> None:
    await play(desk, "experts")
    assert desk.shown == "experts Cyberdrome.exe"
    assert desk.game.state.value.others == (OLLAMAS, STUDIOS)


async def test_a_click_unloads_all_and_names_what_was_refused(desk: GameDesk) -> None:
    await play(desk)
    desk.refusals = {STUDIOS.name: "LM Studio didn't unload qwen3.5-9b."}
    await desk.game.unload_others()
    state = desk.game.state.value
    assert desk.looked[-2:] == ["unload qwen3:8b", "unload qwen3.5-9b"]
    assert (state.others, state.problem) == ((STUDIOS,), "LM Studio didn't unload qwen3.5-9b.")
    desk.refusals = {}
    await desk.game.unload_others()
    state = desk.game.state.value
    assert (state.status, state.others, state.problem) == ("unloaded", (), "")


async def test_the_next_game_asks_anew(desk: GameDesk) -> None:
    await play(desk)
    desk.end_game()
    assert await desk.look(3) == ""
    assert desk.game.state.value.others == ()
    await desk.chat.send("Hi")
    await desk.look()
    desk.held, desk.running = (), (GAME,)
    assert await desk.look(2) == "unloaded Cyberdrome.exe"
    assert desk.game.state.value.others == ()
    assert desk.looked.count("held elsewhere") == 2
