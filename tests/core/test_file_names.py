"""What the names of model files say, as uploaders write them."""

import pytest

from qwendesk.core.file_names import (
    Shard,
    billions_in,
    is_draft_name,
    is_first_shard,
    is_helper_name,
    is_mmproj_name,
    model_name,
    quant_in_name,
    quants_in,
    sizes_in,
)


def test_a_shard_names_its_whole_set() -> None:
    shard = Shard.parse("BF16/Qwen3.5-122B-A10B-BF16-00002-of-00003.GGUF")

    assert shard == Shard("BF16/Qwen3.5-122B-A10B-BF16", 2, 3, ".GGUF")
    assert shard.siblings[0] == "BF16/Qwen3.5-122B-A10B-BF16-00001-of-00003.GGUF"
    assert len(shard.siblings) == 3
    assert not shard.is_first


@pytest.mark.parametrize(
    "name",
    [
        "model.gguf",
        "model-00001-of-00001.gguf",
        "model-00004-of-00003.gguf",
        "model-00000-of-00003.gguf",
        "model-00001-of-99999.gguf",
        "model-1-of-2.gguf",
        "-00001-of-00002.gguf",
    ],
)
def test_names_without_shard_numbers_are_whole_files(name: str) -> None:
    assert Shard.parse(name) is None
    assert not is_first_shard(name)


def test_only_shard_one_is_first() -> None:
    assert is_first_shard("a/b-00001-of-00002.gguf")
    assert not is_first_shard("a/b-00002-of-00002.gguf")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/models/Qwen3.5-9B-Q8_0-00001-of-00002.gguf", "Qwen3.5-9B-Q8_0"),
        ("C:\\Models\\Qwen3.5-9B-Q8_0.GGUF", "Qwen3.5-9B-Q8_0"),
        ("UD-Q4_K_XL/Qwen3.5-4B-UD-Q4_K_XL.gguf", "Qwen3.5-4B-UD-Q4_K_XL"),
        ("no ending", "no ending"),
    ],
)
def test_a_model_is_named_without_folder_shard_and_ending(path: str, name: str) -> None:
    assert model_name(path) == name


@pytest.mark.parametrize(
    ("file", "quant"),
    [
        ("/models/Qwen3.5-35B-A3B-Q4_K_M.gguf", "Q4_K_M"),
        ("Qwen3.5-35B-A3B-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"),
        ("qwen3.5-35b-a3b-ud-iq2_xxs.gguf", "UD-IQ2_XXS"),
        ("Qwen3.5-27B-IQ4_XS.gguf", "IQ4_XS"),
        ("Qwen3.5-27B-IQ4_NL.gguf", "IQ4_NL"),
        ("Qwen3.6-27B-Uncensored-Q6_K_P.gguf", "Q6_K_P"),
        ("Qwen3.5-9B.i1-Q6_K.gguf", "Q6_K"),
        ("Qwen3.5-9B-Q4_0_4_4.gguf", "Q4_0_4_4"),
        ("model-MXFP4_MOE.gguf", "MXFP4_MOE"),
        ("model-TQ1_0.gguf", "TQ1_0"),
        ("model-NVFP4.gguf", "NVFP4"),
        ("x-BF16.gguf", "BF16"),
        ("Qwen3.5-9B-Q8_0-00001-of-00002.gguf", "Q8_0"),
        ("mmproj-F16.gguf", "F16"),
        ("UD-Q4_K_XL/model.gguf", ""),
        ("anything.gguf", ""),
        ("FAQ4_K.gguf", ""),
        ("Qwen3.8-27B-GSQ-RCO-IQ3_S.gguf", "GSQ-RCO-IQ3_S"),
        ("Qwen3.8-27B-GSQ-RCO-IQ3_S-mtp.gguf", "GSQ-RCO-IQ3_S-MTP"),
        ("Qwen3.8-Flash-Next-GSQ-RCO-IQ3_XXS-00001-of-00002.gguf", "GSQ-RCO-IQ3_XXS"),
        ("Qwen3.6-27B-MTP-Q8_0.gguf", "Q8_0"),
        ("Qwen3.6-35B-A3B-UD-IQ4_NL_XL.gguf", "UD-IQ4_NL_XL"),
    ],
)
def test_the_quant_is_read_from_the_file_name(file: str, quant: str) -> None:
    assert quant_in_name(file) == quant


def test_every_quant_of_a_path_is_found() -> None:
    assert quants_in("UD-Q4_K_XL/model-Q8_0.gguf") == ("UD-Q4_K_XL", "Q8_0")


@pytest.mark.parametrize(
    ("text", "sizes", "billions"),
    [
        ("unsloth/Qwen3.5-35B-A3B-GGUF", {"35B-A3B"}, 35.0),
        ("Qwen3.5-0.8B", {"0.8B"}, 0.8),
        ("qwen3.5-4b-q8_0", {"4B"}, 4.0),
        ("Qwen3.5", frozenset(), None),
    ],
)
def test_sizes_are_read_from_a_name(text: str, sizes: set[str], billions: float | None) -> None:
    assert sizes_in(text) == sizes
    assert billions_in(text) == billions


def test_companions_are_known_by_their_names() -> None:
    assert is_mmproj_name("repo/mmproj-Qwen3.5-F16.gguf")
    assert not is_mmproj_name("mmproj/model.gguf")
    assert is_draft_name("x/mtp-Qwen3.6-27B.gguf")
    assert is_draft_name("DFlash-q8_0.gguf")
    assert not is_draft_name("Qwen3.6-27B-mtp-.gguf")


@pytest.mark.parametrize(
    ("file", "is_helper"),
    [
        ("MTP/mtp-Qwen3.8-27B-Q4_0.gguf", True),
        ("Qwen3.8-27B-DFlash2-Q8_0.gguf", True),
        ("dflash-Qwen3.6-27B-BF16.gguf", True),
        ("Qwen3-0.6B-DRAFT-Q4_0.gguf", True),
        ("Qwen3.5-27B_eagle3.gguf", True),
        ("imatrix_unsloth.gguf", True),
        ("Qwen_Qwen3.5-35B-A3B-imatrix.gguf", True),
        ("mmproj-F16.gguf", True),
        ("Qwen3.6-27B-MTP-Q8_0.gguf", False),
        ("Qwen3.5-9B-imatrix-Q4_K_M.gguf", False),
        ("Overdrafted-4B-Q8_0.gguf", False),
        ("Qwen3.8-27B-UD-Q4_K_XL.gguf", False),
    ],
)
def test_files_that_only_help_models_are_known_by_their_names(file: str, is_helper: bool) -> None:
    assert is_helper_name(file) is is_helper
