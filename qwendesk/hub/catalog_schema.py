"""The schema of resources/catalog.json. Sizes are in bytes; days and times are ISO 8601 in UTC."""

from typing import Annotated, Literal

import msgspec

from qwendesk.core.model_facts import Hyperparameters

# Increased when older versions can't read the file any more.
SCHEMA_VERSION = 3

Sha256 = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{64})?$")]
Day = Annotated[str, msgspec.Meta(pattern=r"^(\d{4}-\d\d-\d\d)?$")]
Time = Annotated[str, msgspec.Meta(pattern=r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)?$")]
Size = Annotated[int, msgspec.Meta(ge=0)]
FileKind = Literal["model", "mmproj", "draft", "imatrix"]
# Perplexity of a text, and two comparisons with the unquantized model: the mean Kullback-Leibler divergence of the next
# token's probabilities, and how often the likeliest token is the same, in percent.
Measure = Literal["perplexity", "KL divergence", "same top token"]
# "" if the source doesn't name the engine's backend.
SpeedBackend = Literal["cuda", "vulkan", "metal", "rocm", "cpu", ""]


class Sampling(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One preset of a model card."""

    temperature: float
    top_p: float
    top_k: int
    min_p: float = 0.0
    presence_penalty: float = 0.0
    repeat_penalty: float = 1.0


class Licence(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a model's maker allows."""

    name: str
    source: str
    restriction: str = ""
    """Restriction of the licence, in a sentence; "" if it allows all usual use."""
    date: str = ""
    """Of the source, as precise as it gives it."""


class CatalogModel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One model of the family, from any uploader."""

    id: str
    """As in file names, such as "Qwen3.5-35B-A3B"."""
    purpose: str
    """Strength of the model, in a sentence."""
    cpu_purpose: str = ""
    """The same on a PC without a GPU; "" if it doesn't differ."""
    problem: str = ""
    """Problem that users report, in a sentence; shown if nothing weighs more."""
    problem_source: str = ""
    released: Day
    architecture: str
    params_b: float
    """Billions of parameters."""
    active_params_b: float
    """Billions of parameters used for each token."""
    base_repo: str
    """The maker's repository, which has the chat template."""
    formats: tuple[str, ...] = ()
    """Suffixes of the maker's repositories in other formats, such as "-FP8"."""
    is_on_mlx: bool = False
    """True if public projects use its folders of mlx-community, in 4 and in 8 bit."""
    rank: int = 0
    """Place among the models that may be recommended first, 1 for the best; 0 for one that isn't."""
    presets: str
    """Key of `Contents.presets`."""
    hyperparameters: Hyperparameters
    licence: Licence


class Part(msgspec.Struct, frozen=True, array_like=True):
    """One shard of a split model."""

    n_bytes: Size
    sha256: Sha256 = ""
    is_exact: bool = False


class CatalogFile(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One model file of a repository. For a split model `path` is its first shard."""

    path: str
    n_bytes: Size
    """Of all shards. Rounded to three digits unless `is_exact`."""
    kind: FileKind = "model"
    quant: str = ""
    is_exact: bool = False
    sha256: Sha256 = ""
    seen: Day = ""
    """Day on which the sources first listed it; "" if it is the repository's `seen`."""
    parts: tuple[Part, ...] = ()
    note: str = ""


class Repository(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One repository of GGUF files of one model."""

    repo: str
    model: str
    seen: Day
    """Day on which the sources listed its files."""
    files: tuple[CatalogFile, ...]
    mmproj_repo: str = ""
    mmproj_path: str = ""
    """Path of the mmproj for its models in `mmproj_repo`, which is another uploader's if this one has no mmproj."""
    revision: str = ""
    """Its newest commit when the sources were collected."""
    is_mtp: bool = False
    """Its models have the extra layer for speculative decoding, and the repository's name says so."""
    mtp: Literal["inside", "separate", ""] = ""
    """Place of that layer: inside the model files, or in a file of its own; "" if that isn't known."""
    is_base: bool = False
    """Not trained to chat."""

    @property
    def uploader(self) -> str:
        return self.repo.partition("/")[0]


class Superseded(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Bytes that were offered at `path` and have been replaced."""

    sha256: Sha256
    repo: str
    path: str
    seen: Day
    replaced_by: Sha256 = ""
    replacement_seen: Day = ""
    reason: str = ""


class WithdrawnFile(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A file that its uploader withdrew."""

    repo: str
    path: str
    noticed: Day
    sha256: Sha256 = ""
    instead: str = ""
    """Path of its replacement in the same repository."""


class Quality(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One measured value. Values of different series must not be compared."""

    model: str
    uploader: str
    quant: str
    measure: Measure
    value: float
    series: str
    source: str
    date: str = ""
    """As precise as the source gives it; "" if it gives none."""
    is_before_fix: bool = False
    """Measured on a file that has been replaced since."""


class Benchmark(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """A published figure of an unquantized model. Higher is better; only figures of the same name compare."""

    name: str
    """Such as "GPQA Diamond"."""
    model: str
    score: float
    source: str
    date: str
    """As precise as the source gives it."""
    is_independent: bool = False
    """Not measured by the model's maker."""


class SpeedReport(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """The speed of generation that somebody measured on one PC."""

    model: str
    gpus: tuple[str, ...] = ()
    """The name of each card; empty for a CPU alone."""
    gpu_gb: float = 0.0
    """Memory of each card in GiB; where the GPU shares the RAM, all of the RAM."""
    ram_gb: float = 0.0
    """0 if the source doesn't say."""
    ram_kind: str = ""
    """Such as "DDR4-2667", on which the speed of weights in RAM depends; "" if the source doesn't say."""
    ram_channels: int = 0
    """0 if the source doesn't say."""
    backend: SpeedBackend = ""
    quant: str
    n_bytes: Size
    """Size of the file, of all shards: of the catalog's file with this quant where the source names no size."""
    tok_s: float
    most_tok_s: float = 0.0
    """Upper end if the source gives a range; else 0."""
    depth: int = 0
    """Tokens in the chat when it was measured. 0 is a new chat."""
    n_ctx: int = 0
    """The context that the model was loaded with; 0 if unknown."""
    cache_type: str = ""
    """Of the KV cache; "" if unknown."""
    placement: Literal["vram", "experts", "layers", "cpu", "disk", ""] = ""
    """Place of the weights, as in `FitLabel.kind`; "" if unknown."""
    on_cpu: int | None = None
    """Expert layers, or else layers, in RAM; None if unknown."""
    engine: str = "llama.cpp"
    """The program that it was measured with."""
    has_old_engine: bool = False
    """Measured before the engine computed the recurrent layers on this kind of GPU. Not valid any more."""
    is_unusual: bool = False
    """Measured with what other PCs don't have, such as an overclocked card. `remark` says what."""
    is_pasted: bool = False
    """Pasted by the user. The catalog that ships has no such report."""
    date: str = ""
    """As precise as the source gives it."""
    source: str
    remark: str = ""
    """What was assumed or was special. It's shown with the report."""

    @property
    def range(self) -> tuple[float, float]:
        return self.tok_s, self.most_tok_s or self.tok_s


class QuantNote(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A remark about a quant, with its source."""

    quant: str
    text: str
    source: str
    date: str = ""
    model: str = ""
    uploader: str = ""
    instead: str = ""
    """A better quant, if there is one. The quant of this note is then not recommended."""


class CutOff(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """When a repository's model files (not its mmproj files) were repaired."""

    repo: str
    certain_before: Time
    """Older files certainly have the old tensors and the old template."""
    fixed_after: Time
    """Inferred: the tensors are repaired from this time on. Counts only for files whose hash isn't the current one."""
    final_after: Time = ""
    """Inferred: template and importance matrix are the new ones from this time on."""


class Contents(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    schema_version: int
    date: Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\d$")]
    """The newest day on which a source was read."""
    sources: tuple[str, ...]
    models: tuple[CatalogModel, ...] = ()
    presets: dict[str, dict[str, Sampling]] = {}
    quality: tuple[Quality, ...] = ()
    benchmarks: tuple[Benchmark, ...] = ()
    speeds: tuple[SpeedReport, ...] = ()
    """Of llama.cpp alone."""
    other_speeds: tuple[SpeedReport, ...] = ()
    """Of engines that QwenDesk doesn't have, for models that they run much faster."""
    notes: tuple[QuantNote, ...] = ()
    cut_offs: tuple[CutOff, ...] = ()
    superseded: tuple[Superseded, ...] = ()
    deletions: tuple[WithdrawnFile, ...] = ()
    repositories: tuple[Repository, ...] = ()
