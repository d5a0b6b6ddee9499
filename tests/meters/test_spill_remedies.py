import asyncio

import msgspec
import pytest

from qwendesk.core.units import GIB, MIB
from qwendesk.engine.protocol import Load
from qwendesk.engine.state import Phase
from qwendesk.hardware.expert_layers import cpu_expert_layers
from qwendesk.hardware.layer_split import runs_of_layers
from qwendesk.hardware.snapshot import GpuReading
from qwendesk.meters.meter_state import GpuBar
from qwendesk.meters.spill_remedies import LoadEstimate, bytes_needed, find_remedies
from tests.fakes.gaming_pc import OPTIONS, estimated


def loads(desk) -> list:
    return [request.options for request in desk.client.requests if isinstance(request, Load)]


async def spilling(desk) -> None:
    await desk.load()
    await desk.look(2)
    desk.pc.game = 3 * GIB
    await desk.look(4)
    assert desk.meters.state.value.spill is not None


async def test_only_sufficient_remedies_with_the_fewest_layers_are_offered():
    found = {remedy.id: remedy for remedy in find_remedies(OPTIONS, {"CUDA0": 900 * MIB}, 40 * GIB, 40, estimated)}
    assert set(found) == {"experts", "vision", "kv"}
    assert found["experts"].options.n_cpu_moe == found["experts"].expert_layers == 3
    assert found["experts"].expected_tok_s == (80.0, 90.0)
    assert found["vision"].options.vision == "cpu"
    assert (found["kv"].options.type_k, found["kv"].options.type_v) == ("q8_0", "q8_0")
    more = {remedy.id: remedy for remedy in find_remedies(OPTIONS, {"CUDA0": 3 * GIB}, 40 * GIB, 40, estimated)}
    assert set(more) == {"experts"}
    assert more["experts"].expert_layers == 8
    assert find_remedies(OPTIONS, {"CUDA0": 30 * GIB}, 40 * GIB, 40, estimated) == ()


def with_drafts(options) -> LoadEstimate:
    """The gaming PC's model, whose drafts take 700 MiB of the card."""
    plain = estimated(options)
    more = 700 * MIB if options.speculative == "mtp" else 0
    return LoadEstimate({"CUDA0": plain.gpus["CUDA0"] + more}, plain.ram_bytes, plain.expected_tok_s)


async def test_drafts_off_comes_first_where_it_is_enough():
    asked = msgspec.structs.replace(OPTIONS, speculative="mtp")
    first, *others = find_remedies(asked, {"CUDA0": 700 * MIB}, 40 * GIB, 40, with_drafts)
    assert (first.id, first.options) == ("drafts", msgspec.structs.replace(asked, speculative="off"))
    assert "experts" in {remedy.id for remedy in others}
    too_little = find_remedies(asked, {"CUDA0": 701 * MIB}, 40 * GIB, 40, with_drafts)
    assert "drafts" not in {remedy.id for remedy in too_little}


async def test_without_drafts_there_are_none_to_switch_off():
    for drafts in ("off", "auto"):
        asked = msgspec.structs.replace(OPTIONS, speculative=drafts)
        assert "drafts" not in {each.id for each in find_remedies(asked, {"CUDA0": MIB}, 40 * GIB, 40, with_drafts)}


def dense(options) -> LoadEstimate:
    """A dense model whose cache is q8_0 already: 300 MiB a layer, 16 KiB a token."""
    layers = options.n_gpu_layers if isinstance(options.n_gpu_layers, int) else 41
    on_card = layers * 300 * MIB + options.n_ctx * 16 * 1024 + (GIB if options.vision == "gpu" else 0)
    return LoadEstimate({"CUDA0": on_card}, GIB, (20.0, 30.0))


def few_experts(options) -> LoadEstimate:
    """Two expert layers that can move, and pictures."""
    return estimated(msgspec.structs.replace(options, n_cpu_moe=min(options.n_cpu_moe, 2)))


async def test_experts_and_mmproj_move_together_if_neither_is_enough():
    small_cache = msgspec.structs.replace(OPTIONS, type_k="q8_0", type_v="q8_0")
    (remedy,) = find_remedies(small_cache, {"CUDA0": GIB + 700 * MIB}, None, 40, few_experts)
    assert (remedy.id, remedy.options.vision, remedy.options.n_cpu_moe, remedy.expert_layers) == ("both", "cpu", 2, 2)
    assert remedy.options.n_ctx == OPTIONS.n_ctx


async def test_dense_model_gives_up_unused_context_and_then_layers():
    asked = msgspec.structs.replace(OPTIONS, type_k="q8_0", type_v="q8_0", vision="cpu")
    (remedy,) = find_remedies(asked, {"CUDA0": 900 * MIB}, None, 40, dense, chat_tokens=20_000)
    assert (remedy.id, remedy.options.n_ctx, remedy.options.n_gpu_layers) == ("context", 65_536, "all")
    (remedy,) = find_remedies(asked, {"CUDA0": 900 * MIB}, None, 40, dense, chat_tokens=60_000)
    assert (remedy.id, remedy.options.n_ctx, remedy.cpu_layers) == ("layers", OPTIONS.n_ctx, 3)
    assert remedy.options.n_gpu_layers == 38, "900 MiB are three layers of 41"


async def test_uncounted_memory_gets_a_margin():
    (bar,) = [GpuBar(gpu=GpuReading(pci="a"), total_bytes=8 * GIB, used_bytes=8 * GIB - 100 * MIB)]
    assert bytes_needed((bar,), {"a": "CUDA0"}) == {}
    assert bytes_needed((bar,), {"a": "CUDA0"}, suspected=True) == {"CUDA0": 412 * MIB}


def two_cards(options) -> LoadEstimate:
    """Two cards that share a mixture of 40 layers, 450 MiB of experts each; the caches are q8_0 already."""
    moved = cpu_expert_layers(options, 40)
    runs = runs_of_layers(options, 40, 2)
    on_cards = [sum(450 * MIB for layer in run if layer not in moved) for run in runs]
    return LoadEstimate({"CUDA0": on_cards[0], "CUDA1": on_cards[1]}, len(moved) * 450 * MIB, (20.0, 30.0))


@pytest.mark.parametrize(("short", "layers"), [("CUDA0", (0, 1, 2)), ("CUDA1", (0, 25, 26))])
async def test_experts_leave_the_card_that_spills(short: str, layers: tuple[int, ...]):
    asked = msgspec.structs.replace(
        OPTIONS, type_k="q8_0", type_v="q8_0", vision="off", n_cpu_moe=1, tensor_split=(60.0, 40.0)
    )
    (remedy,) = find_remedies(asked, {short: 800 * MIB}, None, 40, two_cards)
    assert (remedy.id, remedy.expert_layers) == ("experts", 2)
    assert cpu_expert_layers(remedy.options, 40) == layers


@pytest.mark.parametrize(("ram_free_gib", "layers"), [(40, 3), (12, 3), (8, 3), (2.4, 3), (2.3, None)])
async def test_little_free_ram_hides_no_working_remedy(ram_free_gib: float, layers: int | None):
    """40 expert layers of 0.45 GiB: three free enough, and need 1.35 GiB of RAM beside the GiB that is left free."""
    layer = 45 * GIB // 100

    def mixture(options) -> LoadEstimate:
        moved = options.n_cpu_moe if isinstance(options.n_cpu_moe, int) else 0
        return LoadEstimate({"CUDA0": 20 * GIB - moved * layer}, GIB + moved * layer)

    def dense(options) -> LoadEstimate:
        on_cpu = 41 - options.n_gpu_layers if isinstance(options.n_gpu_layers, int) else 0
        return LoadEstimate({"CUDA0": 20 * GIB - on_cpu * layer}, GIB + on_cpu * layer)

    asked = msgspec.structs.replace(OPTIONS, type_k="q8_0", type_v="q8_0", vision="cpu")
    ram = int(ram_free_gib * GIB)
    experts = find_remedies(asked, {"CUDA0": GIB}, ram, 40, mixture)
    assert [(remedy.id, remedy.expert_layers) for remedy in experts] == ([("experts", layers)] if layers else [])
    whole = find_remedies(asked, {"CUDA0": GIB}, ram, 40, dense)
    assert [(remedy.id, remedy.cpu_layers) for remedy in whole] == ([("layers", layers)] if layers else [])


async def test_fewest_sufficient_layers_are_moved():
    for missing in (MIB, 400 * MIB, 401 * MIB, 5 * GIB):
        (remedy, *_) = find_remedies(OPTIONS, {"CUDA0": missing}, None, 40, estimated)
        assert remedy.expert_layers * 400 * MIB >= missing > (remedy.expert_layers - 1) * 400 * MIB


async def test_no_remedy_shortens_the_context_below_the_chat():
    for remedy in find_remedies(OPTIONS, {"CUDA0": 500 * MIB}, 40 * GIB, 40, estimated):
        assert remedy.options.n_ctx == OPTIONS.n_ctx


async def test_experts_do_not_move_to_missing_ram():
    found = find_remedies(OPTIONS, {"CUDA0": 900 * MIB}, GIB + 100 * MIB, 40, estimated)
    assert {remedy.id for remedy in found} == {"vision", "kv"}


async def test_applied_and_impossible_remedies_are_not_offered():
    dense = msgspec.structs.replace(OPTIONS, vision="cpu", type_k="q8_0", type_v="q8_0")

    def flat(_options) -> LoadEstimate:
        return LoadEstimate({"CUDA0": 20 * GIB}, GIB)

    assert find_remedies(dense, {"CUDA0": MIB}, 40 * GIB, 40, flat) == ()
    assert find_remedies(OPTIONS, {"CUDA0": MIB}, 40 * GIB, 40, lambda _options: None) == ()
    without_flash = msgspec.structs.replace(OPTIONS, flash_attn="off")
    assert "kv" not in {remedy.id for remedy in find_remedies(without_flash, {"CUDA0": MIB}, 40 * GIB, 40, estimated)}


async def test_remedies_are_offered_only_during_a_spill(desk):
    await spilling(desk)
    assert [remedy.id for remedy in desk.remedies.state.value.remedies] == ["experts", "eject"], "1.6 GiB are missing"
    assert desk.remedies.state.value.remedies[-1].consumer.name == "Cyberdrome.exe"
    desk.pc.game = 0
    await desk.look(4)
    assert desk.remedies.state.value.remedies == ()


async def test_a_second_click_changes_nothing(desk):
    await spilling(desk)
    desk.answers.note_start()
    first = asyncio.create_task(desk.remedies.apply("experts", desk.meters.state.value))
    await asyncio.sleep(0)
    assert desk.remedies.state.value.pending == "experts"
    assert await desk.remedies.apply("kv", desk.meters.state.value) is None
    desk.answers.note_end()
    await first
    assert len(loads(desk)) == 2


async def test_model_chosen_meanwhile_cancels_the_remedy(desk):
    await spilling(desk)
    desk.answers.note_start()
    applied = asyncio.create_task(desk.remedies.apply("experts", desk.meters.state.value))
    await asyncio.sleep(0)
    other = msgspec.structs.replace(OPTIONS, model="/models/other.gguf")
    await desk.engine.load(other)
    desk.answers.note_end()
    assert await applied is None
    assert loads(desk)[-1] == other


async def test_load_by_the_user_ends_the_waiting(desk):
    await spilling(desk)
    await desk.remedies.apply("eject", desk.meters.state.value)
    await desk.engine.load(msgspec.structs.replace(OPTIONS, model="/models/small.gguf"))
    assert desk.remedies.state.value.ejected is None
    desk.pc.game = 0
    await desk.look(5)
    assert loads(desk)[-1].model == "/models/small.gguf"


async def test_waiting_can_be_cancelled_or_ended_early(desk):
    await spilling(desk)
    await desk.remedies.apply("eject", desk.meters.state.value)
    await desk.remedies.load_again()
    assert desk.engine.state.phase is Phase.READY
    await desk.look(4)
    await desk.remedies.apply("eject", desk.meters.state.value)
    desk.remedies.stop_waiting()
    desk.pc.game = 0
    await desk.look(5)
    assert desk.engine.state.phase is Phase.OFF


async def test_time_to_reread_the_chat_is_known_once_measured(desk):
    await desk.load()
    desk.answers.context_tokens, desk.answers.prefill_tok_s = 12_000, 480.0
    await desk.look(2)
    desk.answers.context_tokens, desk.answers.prefill_tok_s = 12_000, 480.0
    desk.pc.game = 3 * GIB
    await desk.look(4)
    assert desk.remedies.state.value.reread_s == 25.0
