"""What a sound file can be used for: architecture, template, pictures, drafts, Ollama, better quants."""

import shutil
from pathlib import Path

import gguf
import pytest

from qwendesk.core.model_facts import is_broken_template
from qwendesk.hub.catalog_schema import QuantNote
from qwendesk.hub.evidence import model_files, with_duplicates
from qwendesk.hub.file_hashes import hash_file
from qwendesk.hub.gguf_types import SUPPORTED_ARCHITECTURES
from tests.gguf_files import tensor
from tests.hub.verified import (
    BROKEN_TEMPLATE,
    FIXED_TEMPLATE,
    REPO,
    catalog,
    codes,
    findings,
    gather_all,
    mmproj,
    qwen,
    split,
    unsloth,
    with_hashes,
)  # fmt: skip
from tests.links import skip_without_links

Q4 = "Qwen3.5-35B-A3B-Q4_K_M.gguf"


def test_every_architecture_of_the_gguf_package_is_known() -> None:
    assert set(gguf.MODEL_ARCH_NAMES.values()) - {"clip", "mmproj"} <= SUPPORTED_ARCHITECTURES


def test_an_unknown_architecture_is_a_warning(tmp_path: Path) -> None:
    found = findings(qwen(tmp_path / "flux1-dev-Q8_0.gguf", general__architecture="flux", general__name="flux"))

    assert set(found) == {"unsupported-arch"}
    assert found["unsupported-arch"].severity == "warning"


@pytest.mark.parametrize(
    ("template", "is_broken"),
    [
        (BROKEN_TEMPLATE, True),
        (FIXED_TEMPLATE, False),
        ("{% for a, b in tool_call.arguments | items %}{% endfor %}", True),
        ("{% for a, b in tool_call['arguments']|items %}{% endfor %}", True),
        ("{%- if tool_call.arguments is  mapping -%}{% for a, b in tool_call.arguments|items %}", False),
        ("{% if tool_call.arguments is string %}..{% else %}{% for a in tool_call.arguments|items %}", False),
        ("{# tool_call.arguments is mapping #}{% for a in tool_call.arguments|items %}", True),
        ("{# tool_call.arguments|items #}{{ messages }}", False),
        ("{{ tool_call.arguments | tojson }}", False),
        ("", False),
    ],
)
def test_template_is_judged_by_its_text(template: str, is_broken: bool) -> None:
    assert is_broken_template(template) is is_broken


@pytest.mark.parametrize("name", ["Tiny 3M", "Gemma 3 270m", "Italic 7B", "Kitchat 2B"])
def test_a_model_without_a_template_is_a_base_model(tmp_path: Path, name: str) -> None:
    found = findings(qwen(tmp_path / "tiny.gguf", tokenizer__chat_template="", general__name=name))["no-template"]
    assert found.message == "This is a base model: it continues text and wasn't trained to chat."


@pytest.mark.parametrize(
    "name", ["Tiny-3M-Instruct", "gemma-3-270m-it", "llama-2-7b-chat.Q4_K_M", "sha256-" + "a" * 64]
)
def test_a_file_whose_name_says_that_it_chats_is_no_base_model(tmp_path: Path, name: str) -> None:
    found = findings(qwen(tmp_path / f"{name}.gguf", tokenizer__chat_template="", general__name=""))["no-template"]
    assert found.message == "This file has no chat template, so QwenDesk uses a built-in one."


def test_an_mmproj_of_another_width_does_not_fit(tmp_path: Path) -> None:
    model, pictures = qwen(tmp_path / Q4), mmproj(tmp_path / "mmproj-F16.gguf", width=128)

    for path in (model, pictures):
        found = findings(path)
        assert found["mmproj-mismatch"].severity == "warning"
        assert "128" in found["mmproj-mismatch"].evidence
        assert "64" in found["mmproj-mismatch"].evidence
    fix = findings(model)["mmproj-mismatch"].fix
    assert fix is not None
    assert (fix.kind, fix.repo, fix.path) == ("fetch_mmproj", REPO, "mmproj-F16.gguf")


def test_an_mmproj_that_fits_one_model_of_the_folder_is_good(tmp_path: Path) -> None:
    pictures = mmproj(tmp_path / "mmproj-F16.gguf")
    qwen(tmp_path / "Other-9B-Q4_K_M.gguf", general__name="Other-9B", qwen35moe__embedding_length=128)
    model = qwen(tmp_path / Q4)

    assert findings(pictures) == {}
    assert findings(model) == {}


def test_an_mmproj_of_another_size_with_the_same_width_does_not_fit(tmp_path: Path) -> None:
    qwen(tmp_path / Q4)

    assert "mmproj-mismatch" in codes(mmproj(tmp_path / "mmproj-Qwen3.5-2B-F16.gguf"))


def test_mmprojs_are_found_above_the_folder_of_a_set(tmp_path: Path) -> None:
    parts = split(tmp_path / REPO / "Q4_K_M")
    mmproj(tmp_path / REPO / "mmproj-F16.gguf", general__name="Qwen3.5-35B-A3B")

    assert findings(parts[0]) == {}


def test_missing_mmproj_is_an_info(tmp_path: Path) -> None:
    found = findings(qwen(tmp_path / Q4))["no-mmproj"]

    assert found.severity == "info"
    assert found.fix is not None
    assert found.fix.path == "mmproj-F16.gguf"
    assert findings(qwen(tmp_path / "llama.gguf", general__architecture="llama")) == {}


@pytest.mark.parametrize("name", ["mtp-Qwen3.6-35B-A3B-Q4_0.gguf", "dflash-Qwen3.6-27B-Q8_0.gguf"])
def test_draft_files_are_not_models(tmp_path: Path, name: str) -> None:
    found = findings(qwen(tmp_path / name))

    assert set(found) == {"draft-file"}
    assert found["draft-file"].severity == "info"


def test_a_model_with_a_draft_layer_is_a_model(tmp_path: Path) -> None:
    path = qwen(tmp_path / "unsloth" / "Qwen3.6-35B-A3B-MTP-GGUF" / "Qwen3.6-35B-A3B-Q4_K_M.gguf")

    assert codes(path) == set()


def ollama(folder: Path, manifest: str, **changes: str) -> Path:
    blob = qwen(folder / "blobs" / "new", **changes)
    sha256 = hash_file(blob)
    named = blob.rename(blob.with_name(f"sha256-{sha256}"))
    note = folder / "manifests" / manifest
    note.parent.mkdir(parents=True)
    note.write_text(f'{{"layers":[{{"digest":"sha256:{sha256}"}}]}}', encoding="utf-8")
    return named


def test_only_qwen_files_of_the_ollama_library_are_flagged(tmp_path: Path) -> None:
    own = ollama(tmp_path / "own", "registry.ollama.ai/library/qwen3.5/35b")
    hub = ollama(tmp_path / "hub", "hf.co/unsloth/Qwen3.5-35B-A3B-GGUF/Q4_K_M")
    llama = ollama(tmp_path / "llama", "registry.ollama.ai/library/llama3/8b", general__architecture="llama")

    assert findings(own)["ollama-blob"].severity == "warning"
    assert "library/qwen3.5/35b" in findings(own)["ollama-blob"].evidence
    assert codes(hub) == set()
    assert codes(llama) == set()


def test_ollama_file_without_manifest_is_recognised_by_vision_tensors(tmp_path: Path) -> None:
    inside = [tensor("token_embd.weight", 64, 4), tensor("v.patch_embd.weight", 64)]
    blob = qwen(tmp_path / "blobs" / f"sha256-{'a' * 64}", inside)

    assert codes(blob) == {"ollama-blob"}
    assert codes(qwen(tmp_path / "blobs" / f"sha256-{'b' * 64}")) == set()


def test_recommended_quant_is_named(tmp_path: Path) -> None:
    note = QuantNote(
        "Q4_K_S",
        "UD-Q4_K_L is smaller and as good.",
        "a test",
        model="Qwen3.5-35B-A3B",
        uploader="unsloth",
        instead="UD-Q4_K_L",
    )
    plain = QuantNote("Q4_K_M", "Fine.", "a test")
    known = catalog(notes=[note, plain])
    name = "Qwen3.5-35B-A3B-Q4_K_S.gguf"

    found = findings(unsloth(tmp_path / name, general__file_type=14), known)["quant-not-recommended"]

    assert (found.severity, found.source) == ("info", "a test")
    assert codes(qwen(tmp_path / name, general__file_type=14), known) == set()
    assert codes(unsloth(tmp_path / Q4), known) == set()


def test_duplicate_is_reported_but_not_a_link(tmp_path: Path) -> None:
    skip_without_links(tmp_path)
    one = qwen(tmp_path / "a" / Q4)
    shutil.copyfile(one, tmp_path / "copy.gguf")
    (tmp_path / "link.gguf").symlink_to(one)

    everything = with_duplicates([with_hashes(each) for each in gather_all(model_files(tmp_path))])
    same = {Path(each.path).name: {Path(other).name for other in each.same_as} for each in everything}

    assert same == {Q4: {"copy.gguf"}, "copy.gguf": {Q4, "link.gguf"}, "link.gguf": {"copy.gguf"}}
    assert "duplicate" in codes(everything[0])
