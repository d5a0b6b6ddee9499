"""The first start on a PC where LM Studio, Ollama, Open WebUI, Jan and llama.cpp left models."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton

from qwendesk.core.units import show_bytes
from qwendesk.hub.library_places import HostEnvironment
from qwendesk.hub.model_folders import ModelFolders
from tests.gguf_files import model_values, tensor, write_model
from tests.models.view.start_desk import first_start
from tests.window_desk import Desk


def gguf(path: Path, name: str, width: int = 64) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_model(path, model_values(general__name=name), [tensor("token_embd.weight", width, 64)])


def ollama_model(root: Path, name: str, width: int = 64) -> Path:
    made = gguf(root / "blobs" / "made.gguf", name, width)
    digest = hashlib.sha256(made.read_bytes()).hexdigest()
    blob = made.rename(made.with_name(f"sha256-{digest}"))
    manifest = root / "manifests" / name
    manifest.parent.mkdir(parents=True, exist_ok=True)
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}", "size": 1}
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": [layer]}))
    return blob


def fill_home(home: Path) -> None:
    """What the five programs leave on Linux, in their own layouts."""
    lm_studio, ollama = home / ".lmstudio" / "models", home / ".ollama" / "models"
    gguf(lm_studio / "unsloth" / "Qwen3.5-9B-GGUF" / "Qwen3.5-9B-Q4_K_M.gguf", "A", 512)
    mlx = lm_studio / "mlx-community" / "Qwen3.5-9B-4bit" / "model.safetensors"
    mlx.parent.mkdir(parents=True)
    mlx.write_bytes(b"x")
    ollama_model(ollama, "hf.co/unsloth/Qwen3.5-2B-GGUF/Q4_K_M", 128)
    ollama_model(ollama, "registry.ollama.ai/library/qwen3.5/9b")
    gguf(home / ".config/open-webui/models/unsloth--Qwen3.5-0.8B-GGUF/Qwen3.5-0.8B-Q4_K_M.gguf", "C")
    jan = home / ".local/share/Jan/data/llamacpp/models/mine"
    jan.mkdir(parents=True)
    elsewhere = gguf(home / "Downloads" / "Qwen3.5-4B-Q4_K_M.gguf", "D")
    (jan / "model.yml").write_text(f"model_path: {elsewhere}\nname: mine\n")
    gguf(home / ".cache/llama.cpp/ggml-org_Qwen3.5-A-GGUF_Qwen3.5-A-Q4_K_M.gguf", "E")


def every_file(home: Path) -> dict[Path, tuple[bytes, int]]:
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in home.rglob("*") if path.is_file()}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


async def start_at(make_desk: Callable[[], Desk], home: Path) -> Desk:
    desk = await first_start(make_desk)
    library = desk.parts.services.models.library
    library._machine = HostEnvironment("linux", home, {})
    await library.set_folders(ModelFolders((str(home / "ours"),)))
    return desk


async def test_models_of_five_programs_are_listed_and_one_click_loads_one(
    make_desk: Callable[[], Desk], home: Path
) -> None:
    fill_home(home)
    before = every_file(home)
    desk = await start_at(make_desk, home)
    words = desk.text_of("start.files.words")
    largest = home / ".lmstudio/models/unsloth/Qwen3.5-9B-GGUF/Qwen3.5-9B-Q4_K_M.gguf"
    assert words.startswith(f"Qwen3.5-9B-Q4_K_M, {show_bytes(largest.stat().st_size)} and 4 more · ")
    for app in ("LM Studio", "Ollama", "Open WebUI", "Jan", "llama.cpp"):
        assert app in words
    assert not desk.is_shown("start.found")
    desk.click("start.files")
    assert desk.is_shown("start.found")
    names = {app: desk.text_of(f"start.found.{app}.1.name") for app in ("lmstudio", "ollama", "openwebui", "jan")}
    assert list(names.values()) == [
        "Qwen3.5-9B-Q4_K_M",
        "hf.co/unsloth/Qwen3.5-2B-GGUF:Q4_K_M",
        "Qwen3.5-0.8B-Q4_K_M",
        "mine",
    ]
    assert desk.text_of("start.found.lmstudio.why.1").endswith("only LM Studio loads them: Qwen3.5-9B-4bit.")
    assert desk.text_of("start.found.ollama.why.1").startswith("qwen3.5:9b from Ollama's library only loads in Ollama.")
    await desk.until(lambda: desk.find("start.found.jan.1.load", QPushButton).height() > 0)
    desk.click("start.found.jan.1.load")
    await desk.until(lambda: desk.parts.engine.state.report is not None)
    wanted = desk.parts.engine.state.requested
    assert wanted is not None
    assert wanted.model == str(home / "Downloads" / "Qwen3.5-4B-Q4_K_M.gguf")
    assert every_file(home) == before


async def test_the_list_closes_again_and_leads_to_all_models(make_desk: Callable[[], Desk], home: Path) -> None:
    fill_home(home)
    desk = await start_at(make_desk, home)
    assert desk.text_of("start.files") == "Show all"
    desk.click("start.files")
    assert desk.text_of("start.files") == "Hide"
    desk.click("start.files")
    assert not desk.is_shown("start.found")
    desk.click("start.files")
    desk.click("start.found.all")
    assert desk.parts.models_page.page().shown_tab == "mine"


async def test_a_pc_where_nothing_loads_says_why(make_desk: Callable[[], Desk], home: Path) -> None:
    ollama_model(home / ".ollama" / "models", "registry.ollama.ai/library/qwen3.5/9b")
    desk = await start_at(make_desk, home)
    assert desk.text_of("start.files.words") == "Nothing that loads here · Ollama"
    assert not desk.is_shown("start.use")
    assert desk.text_of("start.files") == "Show why"
    desk.click("start.files")
    assert "only loads in Ollama" in desk.text_of("start.found.ollama.why.1")
    assert desk.window.findChild(QPushButton, "start.found.ollama.1.load") is None


async def test_many_models_are_counted(make_desk: Callable[[], Desk], home: Path) -> None:
    for number in range(7):
        gguf(home / f".lmstudio/models/unsloth/Qwen-GGUF/Qwen-{number}.gguf", str(number))
    desk = await start_at(make_desk, home)
    desk.click("start.files")
    assert desk.text_of("start.found.lmstudio.more") == "And 2 more models."
