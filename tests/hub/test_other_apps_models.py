"""What other apps leave on a disk beside plain GGUF files: references to files elsewhere, and other formats."""

import hashlib
import json
from pathlib import Path

from qwendesk.hub.header_cache import HeaderCache
from qwendesk.hub.library import Library, scan
from qwendesk.hub.library_places import Origin, SearchFolder
from qwendesk.hub.library_walk import OtherFormat
from tests.gguf_files import mmproj_values, model_values, tensor, write_model


def look(*places: tuple[Origin, Path]) -> Library:
    return scan([SearchFolder(origin, path) for origin, path in places], HeaderCache(places[0][1].parent / "headers"))


def gguf(path: Path, values: dict[str, object] | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_model(path, values or model_values(), [tensor("token_embd.weight", 64)])


def jans_config(folder: Path, **fields: str) -> None:
    """A model.yml as Jan writes it."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{key}: {value}\n" for key, value in fields.items()]
    (folder / "model.yml").write_text("".join([*lines, "name: Imported\n", "size_bytes: 1234\n", "embedding: false\n"]))


def test_jan_uses_a_file_elsewhere_and_so_does_the_library(tmp_path: Path) -> None:
    models, elsewhere = tmp_path / "data" / "llamacpp" / "models", tmp_path / "Downloads"
    file = gguf(elsewhere / "Qwen3.5-9B-Q4_K_M.gguf")
    pictures = gguf(tmp_path / "pictures" / "mm.gguf", mmproj_values(64))
    jans_config(models / "ann" / "my-qwen", model_path=f"'{file}'", mmproj_path=str(pictures))
    (found,) = look(("jan", models)).models
    assert (found.path, found.name, found.origin, found.writable) == (str(file), "ann/my-qwen", "jan", False)
    assert found.mmproj is not None
    assert found.mmproj.path == str(pictures)


def test_a_file_that_jan_refers_to_belongs_to_the_folder_it_is_in(tmp_path: Path) -> None:
    models, ours = tmp_path / "data" / "llamacpp" / "models", tmp_path / "ours"
    file = gguf(ours / "unsloth" / "Qwen-GGUF" / "Qwen-Q4_K_M.gguf")
    jans_config(models / "mine", model_path=str(file))
    (found,) = look(("jan", models), ("ours", ours)).models
    assert (found.name, found.origin, found.writable) == ("Qwen-Q4_K_M", "ours", True)


def test_jans_own_files_are_found_by_their_place_and_gone_ones_are_not(tmp_path: Path) -> None:
    own = tmp_path / "jan" / "unsloth" / "Qwen3.5-2B-Q4"
    gguf(own / "model.gguf")
    jans_config(own, model_path="llamacpp/models/unsloth/Qwen3.5-2B-Q4/model.gguf")
    jans_config(tmp_path / "jan" / "deleted", model_path=str(tmp_path / "gone.gguf"))
    (found,) = look(("jan", tmp_path / "jan")).models
    assert found.name == "Qwen3.5-2B-Q4"


def test_models_of_open_webuis_desktop_app(tmp_path: Path) -> None:
    """Versions until 0.0.17 have the folder huggingface, later ones don't (open-webui/desktop#181)."""
    old = gguf(tmp_path / "models" / "huggingface" / "unsloth--Qwen3.5-9B-GGUF" / "Qwen3.5-9B-Q4_K_M.gguf")
    new = gguf(tmp_path / "models" / "unsloth--Qwen3.5-0.8B-GGUF" / "Qwen3.5-0.8B-Q4_K_M.gguf")
    (tmp_path / "models" / "huggingface" / "manifest.json").write_text("[]")
    library = look(("openwebui", tmp_path / "models"))
    assert [found.path for found in library.models] == [str(new), str(old)]
    assert {(found.origin, found.writable) for found in library.models} == {("openwebui", False)}


def test_mlx_models_of_lm_studio_are_named(tmp_path: Path) -> None:
    mlx = tmp_path / "models" / "mlx-community" / "Qwen3.5-9B-4bit"
    mlx.mkdir(parents=True)
    for name in ("config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"):
        (mlx / name).write_bytes(b"{}")
    both = gguf(tmp_path / "models" / "ann" / "Mixed" / "mixed.gguf")
    both.with_name("lora.safetensors").write_bytes(b"x")
    library = look(("lmstudio", tmp_path / "models"))
    assert [found.path for found in library.models] == [str(both)]
    assert library.other_formats == (OtherFormat("lmstudio", "Qwen3.5-9B-4bit", str(mlx)),)


def test_safetensors_outside_of_chat_apps_are_not_named(tmp_path: Path) -> None:
    """The Hugging Face cache and the user's folders have speech, pictures and embeddings in that format."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "whisper.safetensors").write_bytes(b"x")
    assert look(("folder", tmp_path / "models")).other_formats == ()


def test_ollamas_models_for_mlx_are_named(tmp_path: Path) -> None:
    """Their manifest has hundreds of layers, a tensor each, and none that is a model."""
    root = tmp_path / "models"
    digests = [f"sha256:{hashlib.sha256(str(number).encode()).hexdigest()}" for number in range(3)]
    layers = [
        {"mediaType": "application/vnd.ollama.image.tensor", "digest": digest, "size": 1, "name": f"layer.{digest}"}
        for digest in digests
    ]
    manifest = root / "manifests" / "registry.ollama.ai" / "library" / "qwen3.5" / "9b-nvfp4"
    manifest.parent.mkdir(parents=True)
    (root / "blobs").mkdir()
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))
    library = look(("ollama", root))
    assert library.models == ()
    assert library.other_formats == (OtherFormat("ollama", "qwen3.5:9b-nvfp4", str(manifest)),)
