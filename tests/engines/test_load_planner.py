"""The plan of a load: checked with the engine where that may change it, and never held up by it."""

import asyncio
from pathlib import Path
from typing import Literal
from unittest.mock import Mock

import msgspec
import pytest

from qwendesk.core.app_options import AppOptions
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.failures import LoadFailure
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.paths import demo_model
from qwendesk.core.plan import DriveKind, Plan
from qwendesk.core.units import GIB, MIB
from qwendesk.engine.dry_run_protocol import Estimated
from qwendesk.engine.protocol import Allocation, Devices
from qwendesk.engines.load_decision import facts_for, machine_now
from qwendesk.engines.load_planner import LoadPlanner
from qwendesk.engines.measurements import DraftSpeedups, Measurements
from qwendesk.hardware.layer_split import HEADROOM_BYTES
from qwendesk.hardware.planner import fixed_plan
from qwendesk.hub.gguf import read_facts
from tests.draft_head_model import write_demo_head, write_demo_without_head
from tools.hollow_model import write_hollow
from tools.qwen_header import REAL_SIZES

CARD = DeviceInfo("CUDA0", "Card", "gpu", "CUDA", 9 * GIB, 9 * GIB)
HERE = Devices(id=1, devices=(CARD, DeviceInfo("CPU", "A processor", "cpu", "CPU")), cpu_features=())


@pytest.fixture(autouse=True)
def enough_ram(monkeypatch: pytest.MonkeyPatch) -> None:
    """16 GB, all of it free, whatever machine this runs on."""
    memory = Mock(total=16 * GIB, available=16 * GIB)
    monkeypatch.setattr("qwendesk.engines.load_decision.psutil.virtual_memory", lambda: memory)


@pytest.fixture
def hollow(tmp_path: Path) -> LoadOptions:
    """A 9B that fits into 9 GB, a header over a hole."""
    return LoadOptions(model=str(write_hollow(tmp_path / "m.gguf", "9b")), load_mode="mmap")


class Engine:
    """Answers with our own memory and `more` on the card; remembers what it was asked."""

    def __init__(self, more: int = 0) -> None:
        self._more = more
        self.asked: list[LoadOptions] = []

    async def __call__(self, options: LoadOptions) -> Estimated:
        self.asked.append(options)
        files = facts_for(options)
        assert not isinstance(files, LoadFailure)
        memory = fixed_plan(*files, machine_now(HERE), options).memory
        rows = tuple(
            Allocation(
                device.name,
                device.weights_bytes,
                device.kv_bytes,
                device.recurrent_bytes,
                device.compute_bytes + (self._more if device.name == "CUDA0" else 0),
            )
            for device in (*memory.gpus, memory.ram)
        )
        return Estimated(id=0, allocations=rows)


async def decided(planner: LoadPlanner, options: LoadOptions) -> Plan:
    """The plan of one load, which the service would ask for on another thread."""
    result = await asyncio.to_thread(planner.decide, options, HERE)
    assert isinstance(result, LoadOptions), result
    assert planner.latest is not None
    assert planner.latest.options == result
    return planner.latest


class Drafts(Measurements):
    """Drafts were measured to make answers so many times as fast."""

    def __init__(self, speedup: float | None) -> None:
        super().__init__(drafts=DraftSpeedups())
        self.speedup = speedup

    def draft_speedup(self, *_: object) -> float | None:
        return self.speedup


def planner_with(ask, measured: Measurements | None = None, **changes) -> LoadPlanner:
    return LoadPlanner(Observed(AppOptions(reserve_gb=0.5)), measured or Measurements(), ask, **changes)


async def test_exact_numbers_change_the_decided_options(hollow: LoadOptions) -> None:
    estimate = await decided(planner_with(Engine()), hollow)
    engine = Engine(more=700 * MIB)
    planner = planner_with(engine)

    exact = await decided(planner, hollow)

    assert exact.source == "engine"
    assert exact.accuracy.startswith("All numbers are the engine's own")
    assert exact.fits
    assert exact.options.n_ctx < estimate.options.n_ctx or exact.options.type_k != estimate.options.type_k


async def test_refused_dry_run_leaves_the_estimate_with_the_reason(hollow: LoadOptions) -> None:
    async def refuse(_options: LoadOptions) -> Estimated:
        return Estimated(id=0, problem="it does not know this file.")

    plan = await decided(planner_with(refuse), hollow)

    assert plan.source == "estimate"
    assert "it does not know this file" in plan.accuracy


async def test_dry_run_is_skipped_if_it_cannot_change_the_plan(hollow: LoadOptions) -> None:
    engine = Engine()
    planner = planner_with(engine)

    await decided(planner, LoadOptions(model=str(demo_model())))
    gone = await asyncio.to_thread(planner.decide, msgspec.structs.replace(hollow, model="/gone.gguf"), HERE)

    assert engine.asked == []
    assert isinstance(gone, LoadFailure)
    assert gone.kind == "missing_file"


async def test_load_beside_a_game_leaves_the_game_its_video_memory(hollow: LoadOptions) -> None:
    """What the game uses is not free, so part of the model goes to the RAM instead of pushing the game out."""
    beside_a_game = msgspec.structs.replace(CARD, free_bytes=4 * GIB)
    here = msgspec.structs.replace(HERE, devices=(beside_a_game, *HERE.devices[1:]))

    async def refuse(_options: LoadOptions) -> Estimated:
        return Estimated(id=0, problem="it was not asked.")

    planner = planner_with(refuse)
    result = await asyncio.to_thread(planner.decide, hollow, here)

    assert isinstance(result, LoadOptions), result
    assert planner.latest is not None
    (card,) = planner.latest.memory.gpus
    assert 0 < card.total_bytes <= 4 * GIB - HEADROOM_BYTES
    assert planner.latest.options.n_gpu_layers != "all"
    assert any("layers are on the GPU" in sentence for sentence in planner.latest.why)


async def test_the_drive_of_a_model_is_asked_if_its_table_stays_there(tmp_path: Path, hollow: LoadOptions) -> None:
    small = msgspec.structs.replace(
        REAL_SIZES["flash-next"], block_count=8, expert_count=16, ngram_rows=60_000_000, vocab_size=1000
    )
    with_table = LoadOptions(model=str(write_hollow(tmp_path / "table.gguf", small)), load_mode="mmap")
    asked: list[Path] = []

    def hard_disk(place: Path) -> DriveKind:
        asked.append(place)
        return "hdd"

    plan = await decided(planner_with(Engine(), find_drive=hard_disk), with_table)
    await decided(planner_with(Engine(), find_drive=hard_disk), hollow)

    assert asked == [Path(with_table.model)], "the drive of a model without a table doesn't matter"
    assert "hard disk" in plan.label
    assert any("Move the model to an SSD" in sentence for sentence in plan.why)


@pytest.fixture
def with_head(tmp_path: Path) -> LoadOptions:
    """A 4B with a draft head, which fits into 9 GB with room to spare."""
    return LoadOptions(
        model=str(write_hollow(tmp_path / "mtp.gguf", "4b", nextn_layers=1)), load_mode="mmap", n_ctx=8192
    )


@pytest.mark.parametrize(
    ("speedup", "speculative", "why"),
    [
        (None, "mtp", "is tried in your answers"),
        (1.62, "mtp", "Token drafts are on: answers were measured 1.62 times as fast."),
        (0.9, "off", "Token drafts are off: answers were measured 0.90 times as fast with them."),
    ],
)
async def test_auto_drafts_where_that_was_faster_or_was_never_measured(
    with_head: LoadOptions, speedup: float | None, speculative: str, why: str
) -> None:
    plan = await decided(planner_with(Engine(), Drafts(speedup)), with_head)
    assert plan.options.speculative == speculative
    assert why in plan.why[-1]


async def test_auto_drafts_nothing_where_the_head_would_take_memory_from_the_model(tmp_path: Path) -> None:
    """A 9B on a card of 9 GB: with the head, less would be left for the context."""
    tight = LoadOptions(model=str(write_hollow(tmp_path / "mtp.gguf", "9b", nextn_layers=1)), load_mode="mmap")
    plan = await decided(planner_with(Engine(), Drafts(2.0)), tight)
    assert plan.options.speculative == "off"
    assert "leave less for the model" in plan.why[-1]


async def test_a_choice_of_the_user_and_a_file_without_a_head_are_left_alone(
    with_head: LoadOptions, hollow: LoadOptions
) -> None:
    planner = planner_with(Engine(), Drafts(2.0))
    assert (await decided(planner, msgspec.structs.replace(with_head, speculative="off"))).options.speculative == "off"
    assert (await decided(planner, hollow)).options.speculative == "off"


@pytest.fixture
def demo_beside_a_head(tmp_path: Path) -> LoadOptions:
    model = write_demo_without_head(tmp_path / "demo.gguf")
    head = write_demo_head(tmp_path / "mtp-demo.gguf")
    return LoadOptions(model=str(model), draft_model=str(head))


async def test_auto_tries_a_head_in_a_file_of_its_own_and_plans_its_memory(demo_beside_a_head: LoadOptions) -> None:
    planner = planner_with(Engine(), Drafts(None))
    plan = await decided(planner, demo_beside_a_head)
    assert (plan.options.speculative, plan.options.draft_model) == ("mtp", demo_beside_a_head.draft_model)
    head = read_facts(Path(demo_beside_a_head.draft_model))
    drafts = sum(device.draft_bytes for device in (*plan.memory.gpus, plan.memory.ram))
    assert drafts > sum(tensor.n_bytes for tensor in head.tensors), "its weights and its cache"

    alone = await decided(planner, msgspec.structs.replace(demo_beside_a_head, draft_model=""))
    assert alone.options.speculative == "off"


@pytest.mark.parametrize("speculative", ["auto", "mtp"])
async def test_a_head_that_does_not_fit_is_left_out_with_a_sentence(
    demo_beside_a_head: LoadOptions, speculative: Literal["auto", "mtp"]
) -> None:
    write_demo_head(Path(demo_beside_a_head.draft_model), n_layers=12)
    asked = msgspec.structs.replace(demo_beside_a_head, speculative=speculative)
    plan = await decided(planner_with(Engine(), Drafts(None)), asked)
    assert plan.options.draft_model == ""
    assert plan.why[-1] == (
        "The draft head mtp-demo.gguf is for another model than demo.gguf. The model is loaded without it."
    )


async def test_a_head_that_is_gone_is_left_out_with_a_sentence(demo_beside_a_head: LoadOptions) -> None:
    gone = msgspec.structs.replace(demo_beside_a_head, draft_model=f"{demo_beside_a_head.draft_model}.gone")
    plan = await decided(planner_with(Engine(), Drafts(None)), gone)
    assert "mtp-demo.gguf.gone could not be found" in plan.why[-1]
    assert plan.options.draft_model == ""
