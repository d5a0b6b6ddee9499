"""What the parts of a PC can do: a card by its name and memory, old and unusual cards, RAM; and caches with windows.

Speeds that were promised wrongly came from these. Names of cards are tried in tests/hardware/test_gpu_cards.py.
"""

import json
from pathlib import Path

import pytest

from qwendesk.cli import main as cli
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB
from qwendesk.models import offers as offers_module
from qwendesk.models.offers import Offers
from tests.fakes.engine import FakeEngineClient
from tests.field.grid import SERVER, Kind, Way, case
from tests.gguf_files import write_gemma4
from tests.window_desk import Desk
from tools.hollow_model import write_hollow

_NO_ADVICE = {
    **dict.fromkeys(SERVER, "the server's APIs advise nobody about a PC"),
    Way.MCP: "no tool tells what a PC can do",
    Way.IMPORT: "an import plans no model",
}
CARD_SPEED = Kind("A card is promised the speed of another one", _NO_ADVICE)
OLD_CARDS = Kind("Old cards and Intel's are promised the share of their bandwidth that new ones reach", _NO_ADVICE)
RAM_SPEED = Kind("The CPU is promised the same speed with any RAM", _NO_ADVICE)
WINDOW_CACHES = Kind("The KV cache of layers with a window is planned as if they kept the whole chat", _NO_ADVICE)
FOUND = "82 names tried for the issue"

SLOWER_THAN = [
    ("RTX 3060:8", "RTX 3060:12"),
    ("RTX 3080:10", "RTX 3080:12"),
    ("RTX 4000 SFF Ada Generation:20", "RTX 4000 Ada Generation:20"),
    ("NVIDIA GeForce GTX 1650:4", "NVIDIA GeForce RTX 3050:4"),
    ("Quadro P6000:24", "Quadro RTX 6000:24"),
    ("Intel(R) Arc(TM) A310 Graphics:4", "Intel(R) Arc(TM) A380 Graphics:6"),
]
"""Pairs of cards with a model and size of memory each."""


@pytest.fixture(scope="module")
def moe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_hollow(tmp_path_factory.mktemp("hardware") / "Qwen3.5-35B-A3B-Q4_K_M.gguf", "35b")


@pytest.fixture
def expected(moe: Path, capsys: pytest.CaptureFixture[str]) -> "Expected":
    return Expected(moe, capsys)


class Expected:
    """The speed that `qwendesk plan` expects of a PC, all of the model on its card or with its CPU."""

    def __init__(self, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._model, self._capsys = str(model), capsys

    def __call__(self, *arguments: str) -> tuple[float, float]:
        cli.main(["plan", self._model, "--json", "--ram", "64", *arguments])
        low, high = json.loads(self._capsys.readouterr().out)["expected_tok_s"]
        return low, high

    def of_card(self, card: str) -> tuple[float, float]:
        return self("--gpu", card, "--set", "n_gpu_layers=all", "--set", "n_cpu_moe=0", "--set", "n_ctx=4096")


@case(CARD_SPEED, Way.CLI, report=FOUND, before="failed")
@pytest.mark.parametrize(("slower", "faster"), SLOWER_THAN)
def test_a_card_with_slower_memory_is_slower(slower: str, faster: str, expected: Expected) -> None:
    slow, fast = expected.of_card(slower), expected.of_card(faster)

    assert slow[0] < fast[0]
    assert slow[1] < fast[1]


@case(OLD_CARDS, Way.CLI, report="intel/llm-scaler#371", before="failed")
@pytest.mark.parametrize(
    ("card", "reported"),
    [("Intel(R) Arc(TM) Pro B70 Graphics:32", 32), ("AMD Instinct MI50/MI60:32", 45), ("Tesla V100-SXM2-32GB:32", 38)],
)
def test_cards_with_slow_kernels_are_promised_what_users_report(card: str, reported: float, expected: Expected) -> None:
    low, high = expected.of_card(card)

    assert low < reported < high < 2 * reported


@case(RAM_SPEED, Way.CLI, report="bkataru.github.io/igllama/showcase: 18.4 with DDR5-6000", before="failed")
def test_the_kind_of_ram_counts(expected: Expected) -> None:
    unknown = expected("--vram", "0")
    ddr4, ddr5 = (expected("--vram", "0", "--ram-kind", kind) for kind in ("DDR4-3200", "DDR5-6000"))

    assert ddr4[0] < ddr5[0] < 18.4 < ddr5[1]
    assert ddr4[1] < ddr5[1]
    assert unknown[0] <= ddr4[0]
    assert expected("--vram", "0", "--ram-kind", "DDR4-3200x8")[1] > ddr5[1]


GEMMA_4 = [
    ([4, 4, 4, 4, 4, 1] * 2, 0, 10 * 1024 * 4 * 256 * 4 + 2 * 32_768 * 1 * 512 * 4),
    ([2] * 12, 6, 5 * 1024 * 2 * 256 * 4 + 32_768 * 2 * 512 * 4),
]
"""KV heads of each layer, layers that use the caches of others, and the bytes that the engine makes for 32K tokens."""


@case(WINDOW_CACHES, Way.CLI, report="gemma 4 planned 2.7 to 5.2 times too large", before="failed")
@pytest.mark.parametrize(("heads_kv", "n_shared", "n_bytes"), GEMMA_4)
def test_plan_knows_the_caches_of_gemma(
    heads_kv: list[int], n_shared: int, n_bytes: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write_gemma4(tmp_path / "gemma4.gguf", heads_kv, n_shared)

    cli.main(["plan", str(model), "--json", "--gpu", "RTX 3060:12", "--ram", "32", "--set", "n_ctx=32768"])

    (gpu,) = json.loads(capsys.readouterr().out)["devices"]
    assert gpu["kv_bytes"] == pytest.approx(n_bytes, rel=0.02)


@case(WINDOW_CACHES, Way.WINDOW, report="gemma 4 planned 2.7 to 5.2 times too large", before="failed")
@pytest.mark.parametrize(("heads_kv", "n_shared", "n_bytes"), GEMMA_4)
async def test_the_options_of_a_load_know_the_caches_of_gemma(
    client: FakeEngineClient, desk: Desk, heads_kv: list[int], n_shared: int, n_bytes: int, tmp_path: Path
) -> None:
    client.devices = (card("NVIDIA GeForce RTX 3060", 12),)
    model = write_gemma4(tmp_path / "gemma4.gguf", heads_kv, n_shared)

    shown = await desk.parts.services.pending_load.preview(LoadOptions(model=str(model), n_ctx=32_768, type_k="f16"))

    assert shown.plan is not None
    rows = (*shown.plan.memory.gpus, shown.plan.memory.ram)
    assert sum(row.kv_bytes for row in rows) == pytest.approx(n_bytes, rel=0.02)


def speed_of(offers: Offers, model: str) -> float:
    """Return the middle of the speed of a model's recommended file."""
    (offer,) = (each for each in offers.offers if each.id == model)
    assert offer.recommended is not None
    assert offer.recommended.speed is not None
    low, high = offer.recommended.speed.start
    return (low * high) ** 0.5


def card(description: str, gib: float, backend: str = "CUDA") -> DeviceInfo:
    return DeviceInfo(f"{backend}0", description, "gpu", backend, int(gib * GIB), int(gib * GIB))


@case(CARD_SPEED, Way.WINDOW, report=FOUND, before="failed")
@case(OLD_CARDS, Way.WINDOW, report="intel/llm-scaler#371", before="failed")
async def test_for_this_pc_expects_what_the_card_can(client: FakeEngineClient, desk: Desk) -> None:
    offers = desk.parts.services.models.offers
    speeds = {}
    for device in (
        card("NVIDIA GeForce RTX 3060", 8),
        card("NVIDIA GeForce RTX 3060 Ti", 8),
        card("Intel(R) Arc(TM) A750 Graphics", 8, "Vulkan"),
        card("AMD Radeon RX 6600", 8, "Vulkan"),
    ):
        client.devices = (device,)
        speeds[device.description] = speed_of(await offers.refresh(), "Qwen3.5-9B")

    assert 1.4 < speeds["NVIDIA GeForce RTX 3060 Ti"] / speeds["NVIDIA GeForce RTX 3060"] < 2
    assert speeds["Intel(R) Arc(TM) A750 Graphics"] < 1.5 * speeds["AMD Radeon RX 6600"], (
        "it has 2.3 times the bandwidth"
    )


@case(RAM_SPEED, Way.WINDOW, report="bkataru.github.io/igllama/showcase: 18.4 with DDR5-6000", before="failed")
async def test_for_this_pc_asks_the_firmware_for_the_ram(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    offers, speeds = desk.parts.services.models.offers, []
    for gb_s in (38.4, 96.0):
        monkeypatch.setattr(offers_module, "ram_bandwidth_here", lambda found=gb_s * 1e9: (found, found))
        speeds.append(speed_of(await offers.refresh(), "Qwen3.5-4B"))

    assert speeds[1] == pytest.approx(2.5 * speeds[0], rel=0.1)
