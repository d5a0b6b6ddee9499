"""Which picture file the app takes for a model."""

import msgspec

from qwendesk.core import paths
from qwendesk.core.model_facts import ModelFacts
from qwendesk.hub.companion_pairing import mmproj_mismatch, pair_mmproj
from qwendesk.hub.gguf import read_facts


def model(path: str, name: str = "", width: int = 2048) -> ModelFacts:
    return ModelFacts(
        path=path, file_bytes=1, kind="model", architecture="qwen35moe", name=name, embedding_length=width
    )


def mmproj(path: str, name: str = "", width: int = 2048, quant: str = "F16") -> ModelFacts:
    return ModelFacts(
        path=path,
        file_bytes=1,
        kind="mmproj",
        architecture="clip",
        name=name,
        projection_dim=width,
        projector_type="qwen3vl_merger",
        quant=quant,
    )


def test_the_demo_files_belong_together() -> None:
    demo, pictures = read_facts(paths.demo_model()), read_facts(paths.demo_mmproj())

    assert mmproj_mismatch(demo, pictures) is None
    assert pair_mmproj(demo, [pictures]) == pictures


def test_another_width_is_refused_with_both_numbers() -> None:
    mismatch = mmproj_mismatch(model("/a/m.gguf", width=2048), mmproj("/a/mmproj-F16.gguf", width=5120))

    assert mismatch is not None
    assert "5,120" in mismatch.message
    assert "2,048" in mismatch.message
    assert pair_mmproj(model("/a/m.gguf"), [mmproj("/a/mmproj-F16.gguf", width=5120)]) is None


def test_model_is_not_accepted_as_vision_file() -> None:
    mismatch = mmproj_mismatch(model("/a/m.gguf"), model("/a/other.gguf"))

    assert mismatch is not None
    assert "other.gguf isn't a vision file" in mismatch.message


def test_projectors_of_other_families_are_not_checked() -> None:
    other = msgspec.structs.replace(mmproj("/a/mmproj.gguf", width=768), projector_type="gemma3")

    assert mmproj_mismatch(model("/a/m.gguf"), other) is None


def test_the_same_file_name_in_another_folder_is_not_taken() -> None:
    assert pair_mmproj(model("/a/m.gguf", "Qwen3.5-35B-A3B"), [mmproj("/b/mmproj-F16.gguf")]) is None


def test_mmproj_in_another_folder_is_taken_if_its_header_names_the_model() -> None:
    pictures = mmproj("/b/mmproj-F16.gguf", "Qwen3.5 35B A3B")

    assert pair_mmproj(model("/a/m.gguf", "Qwen3.5-35B-A3B"), [pictures]) == pictures


def test_named_mmproj_wins_over_a_neighbour() -> None:
    right, neighbour = mmproj("/a/x.gguf", "Qwen3.5-27B"), mmproj("/a/a.gguf", "Something else")

    assert pair_mmproj(model("/a/m.gguf", "Qwen3.5-27B"), [neighbour, right]) == right


def test_f16_is_preferred() -> None:
    files = [mmproj(f"/a/mmproj-{quant}.gguf", quant=quant) for quant in ("F32", "BF16", "F16", "Q8_0")]

    chosen = pair_mmproj(model("/a/m.gguf"), files)

    assert chosen is not None
    assert chosen.quant == "F16"
