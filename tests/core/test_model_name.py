"""Names of models as people paste them."""

import pytest

from qwendesk.core.model_titles import ModelName, gguf_words, read_model_name

REPO = "unsloth/Qwen3.5-35B-A3B-GGUF"
FILE = "Qwen3.5-35B-A3B-Q4_K_M.gguf"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (REPO, ModelName(repo=REPO)),
        (f" {REPO}:UD-Q4_K_XL ", ModelName(repo=REPO, quant="UD-Q4_K_XL")),
        (f"https://huggingface.co/{REPO}", ModelName(repo=REPO)),
        (f"https://huggingface.co/{REPO}/tree/main", ModelName(repo=REPO)),
        (f"huggingface.co/{REPO}/blob/main/{FILE}", ModelName(repo=REPO, path=FILE)),
        (f"https://huggingface.co/{REPO}/resolve/main/BF16/{FILE}?download=true",
         ModelName(repo=REPO, path=f"BF16/{FILE}")),
        (f"https://huggingface.co/{REPO}?show_file_info={FILE}", ModelName(repo=REPO, path=FILE)),
        (f"hf.co/{REPO}:Q4_K_M", ModelName(repo=REPO, quant="Q4_K_M")),
    ],
)  # fmt: skip
def test_names_on_the_hub(text: str, name: ModelName) -> None:
    assert read_model_name(text) == name


@pytest.mark.parametrize(
    "text",
    ["", "qwen 35b", "qwen3.5", "models/a.gguf", "https://example.org/a/b", "https://huggingface.co/datasets/a/b",
     "https://huggingface.co/Qwen", "https://[", "a/b/c/d"],
)  # fmt: skip
def test_other_texts_are_searched_for(text: str) -> None:
    assert read_model_name(text) is None


def test_what_is_shown() -> None:
    assert ModelName(repo="a/b", quant="Q8_0").text == "a/b:Q8_0"
    assert ModelName(repo="a/b", path="c.gguf").text == "a/b/c.gguf"
    assert ModelName(words="qwen").text == "qwen"
    assert gguf_words("Qwen/Qwen3.5-35B-A3B-FP8") == "Qwen3.5-35B-A3B"
    assert gguf_words("cpatonn/Qwen3.5-27B-AWQ-4bit") == "Qwen3.5-27B"
