import asyncio

import msgspec
import pytest

from qwendesk.core.failures import LoadFailure
from qwendesk.core.units import GIB, MIB
from qwendesk.engine.protocol import Load
from qwendesk.engine.state import Phase
from qwendesk.hardware.snapshot import GpuReading
from qwendesk.services.meters.bars import GpuBar
from qwendesk.services.meters.relief import Price, bytes_needed, fixes
from tests.fakes.engine import ScriptedAnswer
from tests.fakes.gaming_pc import OPTIONS, priced

pytestmark = pytest.mark.asyncio


def loads(desk) -> list:
    return [request.options for request in desk.client.requests if isinstance(request, Load)]


async def spilling(desk) -> None:
    await desk.load()
    await desk.look(2)
    desk.pc.game = 3 * GIB
    await desk.look(4)
    assert desk.meters.meters.spill is not None


async def test_only_what_is_enough_is_offered_with_the_fewest_layers():
    found = {fix.id: fix for fix in fixes(OPTIONS, {"CUDA0": 900 * MIB}, 40 * GIB, 40, priced)}
    assert set(found) == {"experts", "vision", "kv"}
    assert found["experts"].options.n_cpu_moe == found["experts"].expert_layers == 3
    assert found["experts"].expected_tok_s == (80.0, 90.0)
    assert found["vision"].options.vision == "cpu"
    assert (found["kv"].options.type_k, found["kv"].options.type_v) == ("q8_0", "q8_0")
    more = {fix.id: fix for fix in fixes(OPTIONS, {"CUDA0": 3 * GIB}, 40 * GIB, 40, priced)}
    assert set(more) == {"experts"}
    assert more["experts"].expert_layers == 8
    assert fixes(OPTIONS, {"CUDA0": 30 * GIB}, 40 * GIB, 40, priced) == ()


def dense(options) -> Price:
    """A dense model whose cache is q8_0 already: 300 MiB a layer, 16 KiB a token."""
    layers = options.n_gpu_layers if isinstance(options.n_gpu_layers, int) else 41
    on_card = layers * 300 * MIB + options.n_ctx * 16 * 1024 + (GIB if options.vision == "gpu" else 0)
    return Price({"CUDA0": on_card}, GIB, (20.0, 30.0))


def few_experts(options) -> Price:
    """Two expert layers that can move, and pictures."""
    return priced(msgspec.structs.replace(options, n_cpu_moe=min(options.n_cpu_moe, 2)))


async def test_experts_and_pictures_together_where_neither_is_enough():
    small_cache = msgspec.structs.replace(OPTIONS, type_k="q8_0", type_v="q8_0")
    (fix,) = fixes(small_cache, {"CUDA0": GIB + 700 * MIB}, None, 40, few_experts)
    assert (fix.id, fix.options.vision, fix.options.n_cpu_moe, fix.expert_layers) == ("both", "cpu", 2, 2)
    assert fix.options.n_ctx == OPTIONS.n_ctx


async def test_a_dense_model_gives_context_that_the_chat_does_not_need_and_then_layers():
    asked = msgspec.structs.replace(OPTIONS, type_k="q8_0", type_v="q8_0", vision="cpu")
    (fix,) = fixes(asked, {"CUDA0": 900 * MIB}, None, 40, dense, chat_tokens=20_000)
    assert (fix.id, fix.options.n_ctx, fix.options.n_gpu_layers) == ("context", 65_536, "all")
    (fix,) = fixes(asked, {"CUDA0": 900 * MIB}, None, 40, dense, chat_tokens=60_000)
    assert (fix.id, fix.options.n_ctx, fix.cpu_layers) == ("layers", OPTIONS.n_ctx, 3)
    assert fix.options.n_gpu_layers == 38, "900 MiB are three layers of 41"


async def test_what_nothing_counts_is_given_room():
    (bar,) = [GpuBar(gpu=GpuReading(pci="a"), total_bytes=8 * GIB, used_bytes=8 * GIB - 100 * MIB)]
    assert bytes_needed((bar,), {"a": "CUDA0"}) == {}
    assert bytes_needed((bar,), {"a": "CUDA0"}, suspected=True) == {"CUDA0": 412 * MIB}


async def test_one_layer_fewer_would_not_be_enough():
    for missing in (MIB, 400 * MIB, 401 * MIB, 5 * GIB):
        (fix, *_) = fixes(OPTIONS, {"CUDA0": missing}, None, 40, priced)
        assert fix.expert_layers * 400 * MIB >= missing > (fix.expert_layers - 1) * 400 * MIB


async def test_no_fix_cuts_the_chat():
    for fix in fixes(OPTIONS, {"CUDA0": 500 * MIB}, 40 * GIB, 40, priced):
        assert fix.options.n_ctx == OPTIONS.n_ctx


async def test_ram_that_is_not_there_takes_no_experts():
    found = fixes(OPTIONS, {"CUDA0": 900 * MIB}, GIB + 100 * MIB, 40, priced)
    assert {fix.id for fix in found} == {"vision", "kv"}


async def test_what_is_done_already_or_impossible_is_not_offered():
    dense = msgspec.structs.replace(OPTIONS, vision="cpu", type_k="q8_0", type_v="q8_0")

    def flat(_options) -> Price:
        return Price({"CUDA0": 20 * GIB}, GIB)

    assert fixes(dense, {"CUDA0": MIB}, 40 * GIB, 40, flat) == ()
    assert fixes(OPTIONS, {"CUDA0": MIB}, 40 * GIB, 40, lambda _options: None) == ()
    without_flash = msgspec.structs.replace(OPTIONS, flash_attn="off")
    assert "kv" not in {fix.id for fix in fixes(without_flash, {"CUDA0": MIB}, 40 * GIB, 40, priced)}


async def test_a_spill_gets_its_fixes_and_a_calm_pc_has_none(desk):
    await spilling(desk)
    assert [fix.id for fix in desk.relief.relief.fixes] == ["experts", "eject"], "1.6 GiB are missing"
    assert desk.relief.relief.fixes[-1].taker.name == "Cyberdrome.exe"
    desk.pc.game = 0
    await desk.look(4)
    assert desk.relief.relief.fixes == ()


async def test_a_fix_is_one_reload_after_the_answer_and_the_chat_stays(desk):
    await spilling(desk)
    desk.client.answers.append(ScriptedAnswer(text="one two three", tokens_per_second=None))
    asked = asyncio.create_task(desk.chat.send("Count"))
    await desk.until(lambda: desk.answers.answering)
    applied = asyncio.create_task(desk.relief.apply("experts", desk.meters.meters))
    desk.pc.shrink(2 * GIB)
    turn = await asked
    assert turn.answer.text == "one two three", "the answer was not cut"
    await applied
    assert len(loads(desk)) == 2
    assert loads(desk)[1].n_cpu_moe > 0
    assert loads(desk)[1].n_ctx == OPTIONS.n_ctx
    assert len(desk.chat.conversation.turns) == 1
    assert desk.relief.relief.pending is None
    assert await desk.look(4) == "fits fits fits fits"
    second = await desk.chat.send("Again")
    assert second.answer.text == "You said: Again"


async def test_a_second_click_changes_nothing(desk):
    await spilling(desk)
    desk.answers.began()
    first = asyncio.create_task(desk.relief.apply("experts", desk.meters.meters))
    await asyncio.sleep(0)
    assert desk.relief.relief.pending == "experts"
    assert await desk.relief.apply("kv", desk.meters.meters) is None
    desk.answers.ended()
    await first
    assert len(loads(desk)) == 2


async def test_a_model_chosen_meanwhile_wins(desk):
    await spilling(desk)
    desk.answers.began()
    applied = asyncio.create_task(desk.relief.apply("experts", desk.meters.meters))
    await asyncio.sleep(0)
    other = msgspec.structs.replace(OPTIONS, model="/models/other.gguf")
    await desk.engine.load(other)
    desk.answers.ended()
    assert await applied is None
    assert loads(desk)[-1] == other


async def test_a_fix_that_does_not_load_says_why(desk):
    await spilling(desk)
    desk.client.load_result = LoadFailure("out_of_ram", "Not enough memory", "Close other programs.")
    await desk.relief.apply("experts", desk.meters.meters)
    assert desk.relief.relief.failure == desk.client.load_result


async def test_ejected_until_the_game_closes(desk):
    await spilling(desk)
    await desk.relief.apply("eject", desk.meters.meters)
    assert desk.engine.state.phase is Phase.OFF
    waiting = desk.relief.relief.waiting
    assert waiting.taker.name == "Cyberdrome.exe"
    await desk.look(5)
    assert desk.engine.state.phase is Phase.OFF, "the game still runs"
    desk.pc.game = 0
    await desk.look(2)
    assert desk.engine.state.phase is Phase.OFF, "it may be between two levels"
    await desk.look(1)
    assert desk.engine.state.phase is Phase.READY
    assert loads(desk)[-1] == OPTIONS
    assert desk.relief.relief.waiting is None


async def test_what_the_person_loads_ends_the_waiting(desk):
    await spilling(desk)
    await desk.relief.apply("eject", desk.meters.meters)
    await desk.engine.load(msgspec.structs.replace(OPTIONS, model="/models/small.gguf"))
    assert desk.relief.relief.waiting is None
    desk.pc.game = 0
    await desk.look(5)
    assert loads(desk)[-1].model == "/models/small.gguf"


async def test_waiting_can_be_given_up_or_cut_short(desk):
    await spilling(desk)
    await desk.relief.apply("eject", desk.meters.meters)
    await desk.relief.load_again()
    assert desk.engine.state.phase is Phase.READY
    await desk.look(4)
    await desk.relief.apply("eject", desk.meters.meters)
    desk.relief.stop_waiting()
    desk.pc.game = 0
    await desk.look(5)
    assert desk.engine.state.phase is Phase.OFF


async def test_reading_the_chat_again_has_a_time_once_the_speed_is_known(desk):
    await desk.load()
    desk.answers.context_tokens, desk.answers.prefill_tok_s = 12_000, 480.0
    await desk.look(2)
    desk.answers.context_tokens, desk.answers.prefill_tok_s = 12_000, 480.0
    desk.pc.game = 3 * GIB
    await desk.look(4)
    assert desk.relief.relief.reread_s == 25.0
