"""The requests and results of a benchmark, as values: the speed of a test, and how well a text is predicted."""

import statistics
from collections.abc import Sequence

import msgspec


class SpeedTest(msgspec.Struct, frozen=True, kw_only=True, tag="speed"):
    """Process `n_prompt` tokens or decode `n_gen` tokens, with `depth` tokens in memory before them.

    As in llama-bench, the tokens are random ones, nothing is sampled, and each repetition begins with the same memory.
    With `text`, it is processed after the depth, and what is timed is an answer of `n_gen` tokens: the likeliest ones,
    with drafts if the model was loaded with them. Drafts need such a text: nobody can guess random tokens.
    """

    n_prompt: int = 0
    n_gen: int = 0
    depth: int = 0
    repeats: int = 5
    text: str = ""
    """Text that may contain control tokens, such as a question in the model's own chat format."""

    @property
    def kind(self) -> str:
        """The name of the test without the depth, in llama-bench's words: "pp512", "tg128"; "text128" for a text."""
        if self.text:
            return f"text{self.n_gen}"
        return "+".join(f"{kind}{count}" for kind, count in (("pp", self.n_prompt), ("tg", self.n_gen)) if count)

    @property
    def name(self) -> str:
        """The name of the test with the depth, such as "tg128 @ d2048"."""
        return f"{self.kind} @ d{self.depth}" if self.depth else self.kind

    @property
    def n_timed(self) -> int:
        """How many tokens are timed in each repetition."""
        return self.n_gen if self.text else self.n_prompt + self.n_gen


class SpeedSamples(msgspec.Struct, frozen=True, kw_only=True, tag="speed"):
    """The speeds of all repetitions of a test, in tokens per second."""

    tok_s: tuple[float, ...]
    drafted: int = 0
    """Tokens drafted in all repetitions together; 0 without drafts."""
    accepted: int = 0
    """Drafted tokens that became part of the answers."""

    @property
    def median(self) -> float:
        return statistics.median(self.tok_s)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.tok_s)

    @property
    def spread(self) -> float:
        """The standard deviation of the repetitions, as llama-bench shows it after ±; 0.0 for a single one."""
        return spread_of(self.tok_s)

    @property
    def acceptance(self) -> float | None:
        """The share of drafted tokens that were accepted; None without drafts."""
        return self.accepted / self.drafted if self.drafted else None


class TextTest(msgspec.Struct, frozen=True, kw_only=True, tag="text"):
    """Predict the second half of each chunk of a text, as llama-perplexity does.

    With `save_base`, the distributions are written to that file. With `base`, they are compared with those in that
    file, which another quant or cache type of the same model made from the same text.
    """

    path: str
    """A UTF-8 text file."""
    n_ctx: int = 512
    """Tokens in a chunk."""
    most_chunks: int = 0
    """Maximum number of chunks; 0 for all."""
    base: str = ""
    save_base: str = ""


class Divergence(msgspec.Struct, frozen=True, kw_only=True):
    """How far the distributions of a model are from those of a base: Kullback-Leibler divergences in nats."""

    mean: float
    error: float
    """Standard error of the mean."""
    median: float
    p99: float
    """99% of the tokens have less."""
    maximum: float
    same_top: float
    """Share of the tokens for which both find the same token likeliest."""
    base_perplexity: float


class TextScore(msgspec.Struct, frozen=True, kw_only=True, tag="text"):
    """How well a text is predicted."""

    n_chunks: int
    n_tokens: int
    """Number of predicted tokens."""
    perplexity: float
    error: float
    """Standard error of the perplexity, as llama-perplexity gives it."""
    divergence: Divergence | None = None
    """None without a base."""


class Matrix(msgspec.Struct, frozen=True):
    """Matrices of one kind that a token is multiplied with, one after the other."""

    type: str
    """A ggml type such as "Q4_K"."""
    n_in: int
    n_out: int
    count: int = 1


class Attention(msgspec.Struct, frozen=True, kw_only=True):
    """A layer's look at the KV cache."""

    type_k: str
    """A ggml type such as "F16"."""
    type_v: str
    key_length: int
    value_length: int
    n_heads: int
    n_heads_kv: int
    n_tokens: int


class StreamTest(msgspec.Struct, frozen=True, kw_only=True):
    """Have the CPU read what a token of the loaded model reads, and do nothing else: the limit of its speed.

    The matrices have the model's types and shapes, and lie in a buffer that is larger than the caches of a CPU.
    """

    matrices: tuple[Matrix, ...]
    attention: Attention | None = None
    """One layer's; None without a KV cache on the CPU."""
    n_threads: int
    buffer_bytes: int = 256 * 1024**2


class StreamSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """Medians of the passes."""

    ram_bytes_s: float
    """Bytes per second that the RAM gives to a plain reader with these threads."""
    matrices_s: float
    """Seconds for all matrices."""
    step_s: float
    """Seconds to begin and end one operation, however small."""
    attention_s: float = 0.0
    """Seconds for one layer's look at the KV cache."""


BenchTest = SpeedTest | TextTest
BenchResult = SpeedSamples | TextScore


def spread_of(values: Sequence[float]) -> float:
    """Return the standard deviation of a sample; 0.0 for a single value."""
    return statistics.stdev(values) if len(values) > 1 else 0.0
