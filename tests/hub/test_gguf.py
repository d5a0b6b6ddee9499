"""What the header reader says of good files."""

import struct
from pathlib import Path

import gguf
import pytest

from qwendesk.core import paths
from qwendesk.core.errors import BadModelFile
from qwendesk.core.file_names import quant_in_name
from qwendesk.hub.gguf import facts_of, read_facts, read_file_facts
from qwendesk.hub.gguf_types import FILE_TYPES, TENSOR_TYPES, program_for_quant, quant_name
from tests.gguf_files import Q4_K, mmproj_values, model_values, tensor, write_cut, write_model
from tools.gguf_writer import Value


@pytest.mark.parametrize("path", [paths.demo_model(), paths.demo_mmproj()], ids=["model", "mmproj"])
def test_demo_files_match_the_gguf_package(path: Path) -> None:
    facts = read_facts(path)
    reader = gguf.GGUFReader(path)

    def stated(key: str) -> object:
        field = reader.get_field(key)
        return field.contents() if field is not None else None

    prefix = "clip.vision" if facts.kind == "mmproj" else facts.architecture
    assert facts.architecture == stated("general.architecture")
    assert facts.name == stated("general.name")
    assert facts.file_type == stated("general.file_type")
    assert facts.block_count == stated(f"{prefix}.block_count")
    assert facts.embedding_length == stated(f"{prefix}.embedding_length")
    assert facts.chat_template == (stated("tokenizer.chat_template") or "")
    assert facts.vocab_size == len(stated("tokenizer.ggml.tokens") or ())  # type: ignore[arg-type]
    assert [(each.name, each.type, list(each.shape), each.n_bytes) for each in facts.tensors] == [
        (each.name, each.tensor_type.name, each.shape.tolist(), each.n_bytes) for each in reader.tensors
    ]


def test_facts_of_the_demo_model() -> None:
    facts = read_facts(paths.demo_model())

    assert (facts.kind, facts.quant, facts.has_think_token) == ("model", "Q8_0", True)
    assert (facts.attention_layers, facts.recurrent_layers) == (2, 6)
    assert facts.file_bytes == paths.demo_model().stat().st_size


def test_the_demo_mmproj_fits_the_demo_model() -> None:
    facts = read_facts(paths.demo_mmproj())

    assert (facts.kind, facts.projector_type) == ("mmproj", "qwen3vl_merger")
    assert facts.projection_dim == read_facts(paths.demo_model()).embedding_length
    assert (facts.patch_size, facts.spatial_merge_size) == (16, 2)


def test_tensor_types_match_the_gguf_package() -> None:
    for kind, (block, n_bytes) in gguf.GGML_QUANT_SIZES.items():
        if kind == gguf.GGMLQuantizationType.Q8_1:
            continue  # the package says 40; the engine itself, which decides, says 36. No file has this type.
        ours = TENSOR_TYPES[int(kind)]
        assert (ours.name, ours.block, ours.n_bytes) == (kind.name, block, n_bytes)


def test_file_types_match_the_gguf_package() -> None:
    for kind in gguf.LlamaFileType:
        if kind is not gguf.LlamaFileType.GUESSED:
            assert FILE_TYPES[int(kind)] == kind.name.removeprefix("MOSTLY_").removeprefix("ALL_")


@pytest.mark.parametrize(
    ("name", "quant", "program"),
    [
        ("Ternary-Bonsai-2-27B-PQ2_0.gguf", "PQ2_0", "PrismML-Eng/llama.cpp"),
        ("Ternary-Bonsai-2-27B-PTQ1_0.gguf", "PTQ1_0", "PrismML-Eng/llama.cpp"),
        ("Qwen3.8-27B-IQ4_KS.gguf", "IQ4_KS", "ik_llama.cpp"),
        ("Qwen3.8-27B-smol-IQ2_KL-00001-of-00002.gguf", "IQ2_KL", "ik_llama.cpp"),
        ("Qwen3.8-27B-IQ5_K.gguf", "IQ5_K", "ik_llama.cpp"),
        ("Qwen3.8-27B-Q4_K_R4.gguf", "Q4_K_R4", "ik_llama.cpp"),
        ("Qwen3.8-27B-IQ4_NL.gguf", "IQ4_NL", ""),
        ("Qwen3.8-27B-IQ3_XXS.gguf", "IQ3_XXS", ""),
        ("Qwen3.8-27B-Q4_K_M.gguf", "Q4_K_M", ""),
        ("Qwen3.8-27B-UD-Q2_K_XL.gguf", "UD-Q2_K_XL", ""),
        ("Bonsai-8B-Q1_0.gguf", "Q1_0", ""),
        ("model-TQ1_0.gguf", "TQ1_0", ""),
    ],
)
def test_a_quant_of_another_program_is_known_by_its_name(name: str, quant: str, program: str) -> None:
    assert quant_in_name(name) == quant
    assert program in program_for_quant(quant)
    assert bool(program) == bool(program_for_quant(quant))


def test_version_2_reads_like_version_3(tmp_path: Path) -> None:
    path = write_model(tmp_path / "a.gguf", model_values())
    changed = bytearray(path.read_bytes())
    struct.pack_into("<I", changed, 4, 2)
    path.write_bytes(changed)

    assert read_facts(path).name == "Made up"


@pytest.mark.parametrize(
    ("tokens", "has_both"),
    [
        (["<think>", "</think>"], True),
        (["<think>", "x"], False),
        (["<think", ">", "</think", ">"], False),
        (["a <think>", "</think> b"], False),
        (["x\x07\0\0\0\0\0\0\0<think>", "</think>"], False),
    ],
)
def test_think_tokens_count_only_as_whole_tokens(tmp_path: Path, tokens: list[str], has_both: bool) -> None:
    path = write_model(tmp_path / "a.gguf", model_values(tokenizer__ggml__tokens=tokens))

    facts = read_facts(path)

    assert (facts.vocab_size, facts.has_think_token) == (len(tokens), has_both)


class _InSmallPieces:
    """A source whose every read is counted, as ranged requests would be."""

    name = "remote.gguf"

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)
        self.bytes_read = 0

    def read(self, offset: int, length: int) -> bytes:
        piece = self._data[offset : offset + length]
        self.bytes_read += len(piece)
        return piece


def test_tokens_across_two_read_windows_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = [f"t{number}" for number in range(200)] + ["<think>"] + ["y" * 30, "</think>", "z"]
    whole = write_model(tmp_path / "a.gguf", model_values(tokenizer__ggml__tokens=tokens)).read_bytes()

    for window in range(16, 120):
        monkeypatch.setattr("qwendesk.hub.gguf_source.WINDOW_BYTES", window)
        facts = facts_of(_InSmallPieces(whole), "remote")
        assert (facts.vocab_size, facts.has_think_token) == (len(tokens), True)


def test_only_the_header_is_read(tmp_path: Path) -> None:
    weights = tensor("blk.0.ffn_up_exps.weight", 1024, 16_384)
    whole = write_model(tmp_path / "a.gguf", model_values(), [weights]).read_bytes()
    source = _InSmallPieces(whole)

    facts_of(source, "remote")

    assert source.bytes_read < len(whole) / 30


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (model_values(), "vocab"),
        (model_values(split__count=3), "model"),
        (model_values(general__type="adapter"), "adapter"),
        (model_values(general__type="imatrix"), "other"),
        (mmproj_values(64), "mmproj"),
        ({"general.architecture": "clip"}, "mmproj"),
    ],
)
def test_kind_of_file(tmp_path: Path, values: dict[str, Value], kind: str) -> None:
    assert read_file_facts(write_model(tmp_path / "a.gguf", values)).kind == kind


def test_per_layer_value_counts_by_its_maximum(tmp_path: Path) -> None:
    values = model_values(qwen35moe__attention__head_count_kv=[0, 8, 0, 2])

    assert read_facts(write_model(tmp_path / "a.gguf", values)).head_count_kv == 8


def test_attention_interval_from_listed_recurrent_layers(tmp_path: Path) -> None:
    values = model_values(qwen35moe__attention__recurrent_layers=[True, True, False])
    del values["qwen35moe.full_attention_interval"]

    assert read_facts(write_model(tmp_path / "a.gguf", values)).full_attention_interval == 3


def test_default_attention_interval_of_qwen(tmp_path: Path) -> None:
    values = model_values()
    del values["qwen35moe.full_attention_interval"]

    assert read_facts(write_model(tmp_path / "a.gguf", values)).full_attention_interval == 4


@pytest.mark.parametrize(
    ("architecture", "stated", "whole_layers"),
    [
        ("gemma3", None, [5, 11]),
        ("gpt-oss", None, [1, 3, 5, 7, 9, 11]),
        ("gemma3", 4, [3, 7, 11]),
        ("gemma4", [True] * 4 + [False] + [True] * 7, [4]),
        ("llama", None, list(range(12))),
    ],
)
def test_layers_with_sliding_windows(
    tmp_path: Path, architecture: str, stated: Value | None, whole_layers: list[int]
) -> None:
    values: dict[str, Value] = {
        "general.architecture": architecture,
        f"{architecture}.block_count": 12,
        f"{architecture}.attention.sliding_window": 512,
    }
    if stated is not None:
        values[f"{architecture}.attention.sliding_window_pattern"] = stated

    facts = read_facts(write_model(tmp_path / "a.gguf", values))

    slides = facts.sliding_layers or (False,) * 12
    assert [layer for layer, slides_here in enumerate(slides) if not slides_here] == whole_layers
    assert facts.sliding_window == 512


def test_layers_of_gemma_4_differ(tmp_path: Path) -> None:
    """Its layers with a sliding window have other heads, and its last layers use the caches of earlier ones."""
    values: dict[str, Value] = {
        "general.architecture": "gemma4",
        "gemma4.block_count": 6,
        "gemma4.attention.head_count_kv": [16, 16, 4, 16, 16, 4],
        "gemma4.attention.key_length": 512,
        "gemma4.attention.key_length_swa": 256,
        "gemma4.attention.value_length_swa": 256,
        "gemma4.attention.shared_kv_layers": 2,
    }
    facts = read_facts(write_model(tmp_path / "a.gguf", values))

    assert facts.layer_heads_kv == (16, 16, 4, 16, 16, 4)
    assert (facts.key_length, facts.sliding_key_length, facts.sliding_value_length) == (512, 256, 256)
    assert facts.shared_kv_layers == 2


def test_next_token_layers_have_no_kv_cache(tmp_path: Path) -> None:
    values = model_values(qwen35moe__block_count=41, qwen35moe__nextn_predict_layers=1)

    facts = read_facts(write_model(tmp_path / "a.gguf", values))

    assert (facts.attention_layers, facts.nextn_layers) == (10, 1)


def test_projector_width_is_that_of_its_last_layer(tmp_path: Path) -> None:
    path = write_model(tmp_path / "a.gguf", mmproj_values(768), [tensor("mm.2.bias", 2048)])

    assert read_facts(path).projection_dim == 2048


def test_quantised_tensors_are_measured_in_blocks(tmp_path: Path) -> None:
    path = write_model(tmp_path / "a.gguf", model_values(), [tensor("blk.0.w.weight", 512, 3, kind=Q4_K)])

    [facts] = read_facts(path).tensors

    assert (facts.type, facts.shape, facts.n_bytes) == ("Q4_K", (512, 3), 2 * 144 * 3)


@pytest.mark.parametrize(
    ("file_type", "file_name", "quant"),
    [
        (15, "Qwen3.5-35B-A3B-Q4_K_M.gguf", "Q4_K_M"),
        (15, "Qwen3.5-35B-A3B-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"),
        (15, "Qwen3.5-35B-A3B-UD-Q4_K_L-00001-of-00002.gguf", "UD-Q4_K_L"),
        (15, "my favourite.gguf", "Q4_K_M"),
        (15, "model-Q8_0.gguf", "Q4_K_M"),
        (1024 + 15, "my favourite.gguf", "Q4_K_M"),
        (38, "Qwen3.5-35B-A3B-MXFP4_MOE.gguf", "MXFP4_MOE"),
        (23, "qwen-ud-iq3_xxs.gguf", "UD-IQ3_XXS"),
        (1, "mmproj-F16.gguf", "F16"),
        (32, "mmproj-F16.gguf", "BF16"),
        (-1, "model.Q5_K_S.gguf", "Q5_K_S"),
        (-1, "model.gguf", ""),
        (999, "model.gguf", ""),
    ],
)
def test_quant_names(file_type: int, file_name: str, quant: str) -> None:
    assert quant_name(file_type, file_name) == quant


def split_set(folder: Path, parts: int = 3) -> list[Path]:
    """A split model: the first part has the metadata and no tensors, the others one tensor each."""
    paths_of_parts = [folder / f"Big-Q4_K_M-{number:05}-of-{parts:05}.gguf" for number in range(1, parts + 1)]
    write_model(paths_of_parts[0], model_values(split__count=parts, split__no=0))
    for number, path in enumerate(paths_of_parts[1:], 1):
        values: dict[str, Value] = {"split.count": parts, "split.no": number}
        write_model(path, values, [tensor(f"blk.{number}.w.weight", 32)])
    return paths_of_parts


def test_the_first_shard_gives_the_facts_of_the_whole_model(tmp_path: Path) -> None:
    parts = split_set(tmp_path)

    facts = read_facts(parts[0])

    assert [each.name for each in facts.tensors] == ["blk.1.w.weight", "blk.2.w.weight"]
    assert facts.file_bytes == sum(part.stat().st_size for part in parts)
    assert (facts.kind, facts.name, facts.quant) == ("model", "Made up", "Q4_K_M")


def test_a_broken_shard_is_found(tmp_path: Path) -> None:
    parts = split_set(tmp_path)
    write_cut(parts[2], parts[2].read_bytes(), parts[2].stat().st_size - 100)

    with pytest.raises(BadModelFile, match=parts[2].name) as caught:
        read_facts(parts[0])

    assert caught.value.kind == "truncated"
