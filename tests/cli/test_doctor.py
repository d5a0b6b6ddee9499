"""`qwendesk doctor` on a scripted engine."""

import json

import msgspec
import pytest

from qwendesk.cli import doctor as cli_doctor
from qwendesk.cli import main as cli
from qwendesk.core.failures import LoadFailure
from qwendesk.core.units import GIB
from qwendesk.engines.engine_choice import EngineChoice
from qwendesk.engines.trial import EngineTrial
from qwendesk.hardware.snapshot import GpuReading
from tests.fakes.engine import FakeEngineClient, ScriptedAnswer

RIGHT = [
    ScriptedAnswer(text="2 + 3 = 5"),
    ScriptedAnswer(reasoning="I add 2 and 3. The sum is 5.", text="2 + 3 = 5"),
    ScriptedAnswer(text="A red circle on a white background."),
]


TRIALS = (
    EngineTrial(name="vulkan", backend="vulkan", reason="The Vulkan loader is missing."),
    EngineTrial(name="cpu-avx2", backend="cpu", usable=True),
    EngineTrial(name="cpu-sse42", backend="cpu", usable=True),
)


class EnginesOfThisPc(msgspec.Struct):
    """As the choice leaves them."""

    fake: FakeEngineClient
    engines: EngineChoice

    def client(self) -> FakeEngineClient:
        return self.fake


@pytest.fixture
def engine(monkeypatch) -> FakeEngineClient:
    fake = FakeEngineClient(answers=RIGHT)

    async def chosen(*, try_all: bool) -> EnginesOfThisPc:
        assert try_all
        return EnginesOfThisPc(fake, EngineChoice(TRIALS, chosen="cpu-avx2"))

    monkeypatch.setattr(cli_doctor, "preferred_engine", chosen)
    return fake


def test_doctor_reports_a_working_engine(engine, capsys):
    assert cli.main(["doctor"]) == 0
    out = capsys.readouterr().out
    for words in (
        "0.1.0",
        "llama-cpp-python",
        "PySide6",
        "Fake CPU",
        "AVX2",
        "settings",
        "picture",
        "All tests passed",
    ):
        assert words in out
    assert "FAIL" not in out
    assert engine.closed


def test_doctor_judges_the_links_of_graphics_cards(engine, capsys, monkeypatch):
    slow = GpuReading(name="RTX 3060", total_bytes=12 * GIB, pcie_generation=1, pcie_max_generation=3, pcie_width=1)
    monkeypatch.setattr(cli_doctor, "read_gpus", lambda: (slow,))
    assert cli.main(["doctor"]) == 0
    assert "RTX 3060: At work, PCIe 3.0 ×1 carries 1.0 GB/s each way." in capsys.readouterr().out
    cli.main(["doctor", "--json"])
    assert json.loads(capsys.readouterr().out)["links"][0]["speed"] == "slow"


def test_json_has_the_test_results_devices_and_versions(engine, capsys):
    assert cli.main(["doctor", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["passed"] is True
    assert [check["name"] for check in result["self_test"]] == [
        "load", "text, thinking off", "text, thinking on", "picture",
    ]  # fmt: skip
    assert all(check["passed"] for check in result["self_test"])
    assert result["devices"][0]["name"] == "CPU"
    assert set(result["folders"]) == {"resources", "data", "settings", "cache", "logs", "models"}
    assert result["models_drive"] in ("ssd", "hdd", "")
    assert result["versions"]["qwendesk"]


def test_a_wrong_answer_fails_and_is_shown(engine, capsys):
    engine.answers[2] = ScriptedAnswer(text="A green star.")
    assert cli.main(["doctor"]) == 4
    out = capsys.readouterr().out
    assert "FAIL  picture" in out
    assert "A green star." in out


def test_missing_reasoning_fails(engine, capsys):
    engine.answers[1] = ScriptedAnswer(text="2 + 3 = 5")
    assert cli.main(["doctor"]) == 4
    assert "FAIL  text, thinking on" in capsys.readouterr().out


def test_crashing_engine_fails_and_skips_further_questions(engine, capsys):
    engine.answers[0] = ScriptedAnswer(text="2 + 3 = 5", crashes_after=1)
    assert cli.main(["doctor"]) == 4
    out = capsys.readouterr().out
    assert "stopped unexpectedly" in out
    assert out.count("Not asked, because the engine had stopped.") == 2


def test_each_engine_is_listed_with_its_state(engine, capsys):
    assert cli.main(["doctor"]) == 0
    out = capsys.readouterr().out
    for words in ("vulkan     The Vulkan loader is missing.", "cpu-avx2   in use", "cpu-sse42  runs here"):
        assert words in out


def test_a_demo_that_cannot_load_exits_3_with_the_reason(engine, capsys):
    engine.load_result = LoadFailure(
        "missing_library", "A library is missing", "Install it.", ("libcuda.so: not found",)
    )
    assert cli.main(["doctor"]) == 3
    out = capsys.readouterr().out
    assert "Install it." in out
    assert "libcuda.so: not found" in out
