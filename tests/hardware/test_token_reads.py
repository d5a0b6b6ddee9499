"""What a token reads: by tensors of a header, and by where they are placed."""

from qwendesk.core.model_facts import ModelFacts, TensorFacts
from qwendesk.core.options import DecidedOptions
from qwendesk.core.paths import demo_model
from qwendesk.hardware.token_reads import TokenReads, token_reads
from qwendesk.hub.gguf import read_facts

LAYERS = 4
FACTS = ModelFacts(
    path="a.gguf", file_bytes=0, kind="model", architecture="qwen35moe", block_count=LAYERS, context_length=4096,
    embedding_length=64, head_count=4, head_count_kv=2, key_length=16, value_length=16, expert_count=8,
    expert_used_count=2,
    tensors=(
        TensorFacts("token_embd.weight", "Q4_K", (64, 1000), 36_000),
        TensorFacts("output.weight", "Q6_K", (64, 1000), 52_500),
        TensorFacts("output_norm.weight", "F32", (64,), 256),
        *(
            tensor
            for layer in range(LAYERS)
            for tensor in (
                TensorFacts(f"blk.{layer}.attn_q.weight", "Q4_K", (64, 64), 2304),
                TensorFacts(f"blk.{layer}.ffn_up_exps.weight", "Q4_K", (64, 32, 8), 9216),
            )
        ),
    ),
)  # fmt: skip


def reads(*, has_gpu: bool = False, **options: object) -> TokenReads:
    return token_reads(FACTS, DecidedOptions(model="a.gguf", **options), 512, has_gpu=has_gpu)  # type: ignore[arg-type]


def test_a_token_reads_the_experts_it_uses_and_one_row_of_the_embeddings() -> None:
    found = reads()

    kinds = {(each.type, each.n_in, each.n_out): each.count for each in found.matrices}
    assert kinds == {("Q6_K", 64, 1000): 1, ("Q4_K", 64, 64): LAYERS, ("Q4_K", 64, 32): 2 * LAYERS}
    assert found.ram_bytes == 52_500 + LAYERS * (2304 + 9216 * 2 // 8)
    assert found.gpu_bytes == found.gpu_layers == 0
    assert found.n_matrices == 13


def test_embeddings_are_multiplied_where_they_are_the_output_too() -> None:
    tied = tuple(tensor for tensor in FACTS.tensors if tensor.name != "output.weight")
    facts = ModelFacts(**{name: getattr(FACTS, name) for name in FACTS.__struct_fields__} | {"tensors": tied})

    found = token_reads(facts, DecidedOptions(model="a.gguf"), 512, has_gpu=False)

    assert ("Q4_K", 64, 1000) in [(each.type, each.n_in, each.n_out) for each in found.matrices]


def test_layers_on_a_gpu_are_the_last_ones_with_the_output_first() -> None:
    assert reads(has_gpu=True).ram_bytes == 0
    half = reads(has_gpu=True, n_gpu_layers=3)
    assert (half.gpu_layers, half.gpu_bytes) == (2, 52_500 + 2 * (2304 + 2304))
    assert half.cpu_caches == 2
    assert half.gpu_cache_bytes == half.cpu_cache_bytes > 0


def test_experts_in_ram_are_read_by_the_cpu() -> None:
    found = reads(has_gpu=True, n_cpu_moe=3)

    assert [(each.n_out, each.count) for each in found.matrices] == [(32, 6)]
    assert found.cpu_caches == 0
    assert found.attention is None
    assert reads(has_gpu=True, offload_kqv=False).cpu_caches == LAYERS


def test_no_device_means_the_cpu() -> None:
    assert reads(has_gpu=True, devices=("none",)) == reads()


def test_a_long_cache_is_measured_by_a_part_of_it() -> None:
    options = DecidedOptions(model="a.gguf", n_ctx=131_072, type_k="f32")

    found = token_reads(FACTS, options, 100_000, has_gpu=False)

    assert found.attention is not None
    assert (found.attention.n_tokens, found.attention.type_k, found.n_tokens) == (16_384, "F32", 100_000)


def test_the_demo_model_has_matrices_and_caches_like_its_header() -> None:
    facts = read_facts(demo_model())

    found = token_reads(facts, DecidedOptions(model=str(demo_model())), 512, has_gpu=False)

    assert facts.file_bytes / 3 < found.ram_bytes < facts.file_bytes
    assert found.cpu_caches == facts.attention_layers
