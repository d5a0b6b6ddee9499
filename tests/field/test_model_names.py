"""One model has one name everywhere, which its header doesn't give: people write anything there."""

import hashlib
import json
from pathlib import Path

import msgspec
import pytest
from PySide6.QtWidgets import QAbstractButton

from qwendesk.bench.records import BenchRecord, make_record
from qwendesk.cli import main as cli
from qwendesk.core import paths
from qwendesk.core.model_titles import model_title, title_without_quant
from qwendesk.core.options import LoadOptions
from qwendesk.engine.state import Phase
from qwendesk.hub.model_folders import ModelFolders, write_folders
from qwendesk.widgets.display_texts import model_label
from tests.fakes.engine import DEMO_REPORT
from tests.field.grid import SERVER, Kind, Way, case
from tests.gguf_files import model_values, tensor, write_model
from tests.window_desk import Desk

SEVERAL_NAMES = Kind(
    "One model has several names",
    {
        **dict.fromkeys(SERVER, "a client gets the id by which it may ask for the model again"),
        Way.MCP: "an MCP server is told no model's name",
        Way.IMPORT: "an import keeps the names that the export has",
    },
)
RUBBISH = "Smollm2 135M 8k Lc100K Mix1 Ep2"


def ollama_model(root: Path) -> Path:
    """The blob of a model that Ollama calls "ann/bird:9b-q4_K_M"."""
    digest = hashlib.sha256(b"bird").hexdigest()
    manifest = root / "manifests" / "registry.ollama.ai" / "ann" / "bird" / "9b-q4_K_M"
    manifest.parent.mkdir(parents=True)
    layers = [{"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}"}]
    manifest.write_text(json.dumps({"layers": layers}))
    (root / "blobs").mkdir()
    return write_model(
        root / "blobs" / f"sha256-{digest}", model_values(general__name=RUBBISH), [tensor("token_embd.weight", 64)]
    )


@case(SEVERAL_NAMES, Way.WINDOW, report="issue 29, item 16", before="failed")
@pytest.mark.parametrize("kind", ["file", "ollama"])
async def test_a_loaded_model_has_one_name(desk: Desk, tmp_path: Path, kind: str) -> None:
    if kind == "ollama":
        model, title, quant = ollama_model(tmp_path), "ann/bird:9b", "Q4_K_M"
    else:
        model, title, quant = tmp_path / "Qwen_Qwen3.5-9B-Q8_0.gguf", "Qwen3.5-9B", "Q8_0"
        write_model(model, model_values(general__name=RUBBISH), [])
    desk.client.report = msgspec.structs.replace(DEMO_REPORT, name=RUBBISH)
    await desk.parts.engine.load(LoadOptions(model=str(model)))
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.READY)

    assert title in desk.text_of("welcome.text")
    await desk.ask("hello")

    assert desk.parts.chat.conversation.turns[0].answer.model == title
    assert f"{title} · {quant} · " in model_label(desk.parts.engine.state)
    shown = [each.text() for each in desk.window.findChildren(QAbstractButton)]
    assert any(text.startswith(title) for text in shown)
    assert not any(RUBBISH in text or "sha256" in text for text in shown)


@case(SEVERAL_NAMES, Way.WINDOW, Way.CLI, report="issue 29, item 16", before="failed")
def test_a_measurement_keeps_the_name_of_its_model(tmp_path: Path) -> None:
    """It keeps no folder, where the name of a blob of Ollama would be found."""
    options = msgspec.structs.replace(DEMO_REPORT.options, model=str(ollama_model(tmp_path)))
    report = msgspec.structs.replace(DEMO_REPORT, options=options, name=RUBBISH)

    kept = msgspec.json.encode(make_record(report, (), "1", ()))

    record = msgspec.json.decode(kept, type=BenchRecord)
    assert record.title == "ann/bird:9b-q4_K_M"
    assert record.file.startswith("sha256-")
    assert str(tmp_path).encode() not in kept


@case(SEVERAL_NAMES, Way.CLI, report="issue 29, item 16", before="held")
def test_the_command_line_lists_a_model_by_the_name_of_the_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paths, "config_folder", lambda: tmp_path / "settings")
    monkeypatch.setattr(paths, "cache_folder", lambda: tmp_path / "cache")
    write_folders(ModelFolders((str(tmp_path / "ollama"),)))
    blob = ollama_model(tmp_path / "ollama")

    assert cli.main(["models", "list", "--json"]) == 0

    listed = {each["path"]: each["name"] for each in json.loads(capsys.readouterr().out)["models"]}
    assert listed[str(blob)] == "ann/bird:9b-q4_K_M" == model_title(str(blob))


@pytest.mark.parametrize(
    ("path", "title", "bare"),
    [
        ("/m/Qwen3.6-27B-UD-Q4_K_XL.gguf", "Qwen3.6-27B-UD-Q4_K_XL", "Qwen3.6-27B"),
        ("/m/Big-BF16-00001-of-00002.gguf", "Big-BF16", "Big"),
        ("/jan/models/Qwen3-8B/model.gguf", "Qwen3-8B", "Qwen3-8B"),
        ("/hub/models--a--b/snapshots/0123/model.gguf", "model", "model"),
        ("/m/Q4_K_M.gguf", "Q4_K_M", "Q4_K_M"),
        ("/m/v1.2.x.GGUF", "v1.2.x", "v1.2.x"),
        ("C:\\m\\Qwen_Qwen3.5-9B-Q8_0.gguf", "Qwen3.5-9B-Q8_0", "Qwen3.5-9B"),
        ("http://192.168.1.4:8080#/srv/bird-Q8_0.gguf", "bird-Q8_0", "bird-Q8_0"),
        ("http://192.168.1.4:8080#", "192.168.1.4:8080", "192.168.1.4:8080"),
    ],
)
def test_a_title_comes_from_file_app_or_server(path: str, title: str, bare: str) -> None:
    assert (model_title(path), title_without_quant(path)) == (title, bare)
