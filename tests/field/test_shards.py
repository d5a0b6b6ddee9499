"""A file of a split model that is given by hand: a later shard, a renamed one, and names with dots."""

import json
import shutil
from pathlib import Path

import pytest

from qwendesk.cli import main as cli
from qwendesk.core.errors import BadModelFile, QwenDeskError
from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.engines.load_decision import facts_for, with_companions
from qwendesk.hub.gguf import read_facts
from qwendesk.hub.model_folders import default_models_folder
from tests.fakes.engine import FakeEngineClient
from tests.field.grid import SERVER, Kind, Way, case
from tests.field.serving import served
from tests.gguf_files import model_values, tensor, write_model
from tests.window_desk import Desk

LATER_SHARD = Kind(
    "A later or renamed shard is loaded, planned or served as if it were the model",
    {Way.MCP: "an MCP server names no model files", Way.IMPORT: "an import names no model files"},
)
STEM = "Qwen3.5-4B.v1.2-Q4_K_M"


def split_model(folder: Path, stem: str = STEM) -> list[Path]:
    """A model in three shards, whose headers say so."""
    shards = []
    for number in range(3):
        place = {"split.no": number, "split.count": 3, "split.tensors.count": 3}
        values = (
            model_values(**{key.replace(".", "__"): value for key, value in place.items()}) if not number else place
        )
        path = folder / f"{stem}-{number + 1:05}-of-00003.gguf"
        shards.append(write_model(path, values, [tensor(f"blk.{number}.ffn_up.weight", 64, 64 * 64)]))
    return shards


@case(LATER_SHARD, Way.CLI, report="issue 29, item 15", before="failed")
def test_plan_of_a_later_shard_counts_the_whole_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = []
    for shard in split_model(tmp_path):
        assert cli.main(["plan", str(shard), "--ram", "16", "--vram", "0", "--json"]) == 0
        made = json.loads(capsys.readouterr().out)
        weights.append((made["options"]["model"], sum(device["weights_bytes"] for device in made["devices"])))
    assert len(set(weights)) == 1
    assert weights[0][0].endswith("-00001-of-00003.gguf")


@case(LATER_SHARD, Way.CLI, report="issue 29, item 15", before="failed")
async def test_qwendesk_serve_with_a_later_shard_loads_the_first(tmp_path: Path) -> None:
    shards = split_model(tmp_path)
    async with served(FakeEngineClient(), "--model", str(shards[2])) as server:
        status, answer = await server.ask()
        assert (status, answer["model"]) == (200, STEM)
        assert server.services.engine.state.report.options.model == str(shards[0])


@case(LATER_SHARD, Way.CLI, report="issue 29, item 15", before="failed")
@pytest.mark.parametrize(
    ("number", "name", "words"),
    [
        (1, "second.gguf", ("second.gguf is shard 2 of 3", "-00001-of-00003.gguf")),
        (0, "first.gguf", ("first.gguf is shard 1 of 3", "Name it first-00001-of-00003.gguf")),
        (1, f"{STEM}-00002-of-00003.gguf", ("is shard 2 of 3", f"Shard 1, {STEM}-00001-of-00003.gguf, isn't in")),
        (2, f"{STEM}-00001-of-00003.gguf", ("is shard 3 of 3",)),
    ],
)
async def test_shard_that_is_alone_or_renamed_is_named_and_nothing_is_served(
    tmp_path: Path, number: int, name: str, words: tuple[str, ...]
) -> None:
    (tmp_path / "whole").mkdir()
    lone = shutil.copy(split_model(tmp_path / "whole")[number], tmp_path / name)
    with pytest.raises(QwenDeskError) as refused:
        async with served(FakeEngineClient(), "--model", str(lone)):
            pass
    with pytest.raises(BadModelFile, match="shard"):
        read_facts(Path(lone))
    assert all(word in refused.value.sentence for word in words), refused.value.sentence


@case(LATER_SHARD, *SERVER, report="issue 29, item 15", before="failed")
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
async def test_split_model_is_one_model_by_its_name_without_numbers(path: str) -> None:
    folder = default_models_folder()
    folder.mkdir(parents=True)
    shards = split_model(folder)
    async with served(FakeEngineClient()) as server:
        listed = [each["id"] for each in (await server.get("/v1/models"))[1]["data"]]
        assert [each for each in listed if STEM in each] == [STEM]
        for name in (STEM, shards[0].name):
            status, answer = await server.ask(path, model=name)
            assert (status, answer["model"]) == (200, STEM)
        assert server.services.engine.state.report.options.model == str(shards[0])
    shutil.rmtree(folder)


@case(LATER_SHARD, Way.WINDOW, report="issue 29, item 15", before="held")
async def test_later_shard_that_is_dropped_loads_the_first(desk: Desk, tmp_path: Path) -> None:
    shards = split_model(tmp_path)
    desk.window.load_model(str(shards[1]))
    await desk.until(lambda: desk.parts.engine.state.report is not None and _model(desk) == str(shards[0]))


def _model(desk: Desk) -> str:
    report = desk.parts.engine.state.report
    return "" if report is None else report.options.model


async def test_command_line_without_a_library_takes_shard_1_too(tmp_path: Path) -> None:
    shards = split_model(tmp_path)
    assert (await with_companions(shards[1])).model == str(shards[0])
    facts = facts_for(LoadOptions(model=str(shards[0])))
    assert not isinstance(facts, LoadFailure)
    assert len(facts[0].tensors) == 3
