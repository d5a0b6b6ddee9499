"""A new engine has to answer a question of the demo model before it is used."""

from pathlib import Path

import pytest

from qwendesk.core.engine_manifest import EngineFolder
from qwendesk.core.failures import EngineExit, LoadFailure, LoadFailureKind
from qwendesk.engine.engine_folders import read_engine
from qwendesk.engines.trial import prove_engine, trial_client
from tests.fakes.engine import FakeEngineClient, ScriptedAnswer
from tests.fakes.engine_folders import make_engine


@pytest.fixture
def engine(tmp_path: Path) -> EngineFolder:
    made = read_engine(make_engine(tmp_path, "cuda-12", "cuda"))
    assert isinstance(made, EngineFolder)
    return made


async def test_engine_that_works_passes(engine: EngineFolder) -> None:
    assert await prove_engine(engine, lambda _engine: trial_client(None)) == ""


async def test_engine_that_answers_something_else_fails(engine: EngineFolder) -> None:
    client = FakeEngineClient()
    assert await prove_engine(engine, lambda _engine: client) == "It answered a test question wrongly."
    assert not client.is_running


async def test_engine_that_dies_at_the_first_token_says_why(engine: EngineFolder) -> None:
    """0xc000001d: the CPU doesn't know an instruction of the engine."""
    client = FakeEngineClient(answers=[ScriptedAnswer(fail=EngineExit(0xC000001D, "It stopped."))])
    assert await prove_engine(engine, lambda _engine: client) == "It uses instructions that this CPU doesn't have."


@pytest.mark.parametrize(("kind", "fault"), [("out_of_vram", ""), ("illegal_instruction", "It did not load.")])
async def test_memory_that_others_take_is_no_fault_of_the_engine(
    engine: EngineFolder, kind: LoadFailureKind, fault: str
) -> None:
    client = FakeEngineClient()
    client.load_result = LoadFailure(kind, "Failed", "It did not load.")
    assert await prove_engine(engine, lambda _engine: client) == fault
