"""The schema of resources/catalog.json. Sizes are bytes, days and times are ISO 8601 in UTC."""

from typing import Annotated, Literal

import msgspec

from qwendesk.core.model_facts import Hyperparameters

SCHEMA_VERSION = 1
"""Goes up when an old program could no longer read the file."""

Sha256 = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{64})?$")]
Day = Annotated[str, msgspec.Meta(pattern=r"^(\d{4}-\d\d-\d\d)?$")]
Time = Annotated[str, msgspec.Meta(pattern=r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)?$")]
Size = Annotated[int, msgspec.Meta(ge=0)]
FileKind = Literal["model", "mmproj", "draft", "imatrix"]


class Sampling(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One preset of a model card."""

    temperature: float
    top_p: float
    top_k: int
    min_p: float = 0.0
    presence_penalty: float = 0.0
    repeat_penalty: float = 1.0


class Model(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One model of the family, whoever quantised it."""

    id: str
    """As in file names: "Qwen3.5-35B-A3B"."""
    purpose: str
    """What it is for, in a sentence."""
    released: Day
    architecture: str
    params_b: float
    """Billions of parameters."""
    active_params_b: float
    """Billions that work on each token."""
    base_repo: str
    """The maker's own repository: source of the chat template."""
    presets: str
    """Key of `Contents.presets`."""
    hyperparameters: Hyperparameters


class Part(msgspec.Struct, frozen=True, array_like=True):
    """One part of a split set."""

    n_bytes: Size
    sha256: Sha256 = ""
    is_exact: bool = False


class CatalogFile(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One file of a repository, or one split set (then `path` is its first part)."""

    path: str
    n_bytes: Size
    """Of all parts. Rounded to three digits unless `is_exact`."""
    kind: FileKind = "model"
    quant: str = ""
    is_exact: bool = False
    sha256: Sha256 = ""
    seen: Day = ""
    """When the sources first listed it; "" for the repository's own day."""
    parts: tuple[Part, ...] = ()
    note: str = ""


class Repository(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One repository of GGUF files of one model."""

    repo: str
    model: str
    seen: Day
    """When the sources listed its files."""
    files: tuple[CatalogFile, ...]
    mmproj_repo: str = ""
    mmproj_path: str = ""
    """The picture file to take with its models; from another uploader where this one has none."""
    revision: str = ""
    """A commit that was its newest when the sources were collected."""
    is_mtp: bool = False
    """Its models carry the extra layer for speculative decoding."""
    is_base: bool = False
    """Not trained to chat."""

    @property
    def uploader(self) -> str:
        return self.repo.partition("/")[0]


class Superseded(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Bytes that were once offered at `path` and have been replaced."""

    sha256: Sha256
    repo: str
    path: str
    seen: Day
    replaced_by: Sha256 = ""
    replacement_seen: Day = ""
    reason: str = ""


class Deletion(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A file that its uploader took back."""

    repo: str
    path: str
    noticed: Day
    sha256: Sha256 = ""
    instead: str = ""
    """Path in the same repository of what replaced it."""


class Quality(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One measured number. Numbers of different series must not be compared."""

    model: str
    uploader: str
    quant: str
    measure: str
    value: float
    series: str
    source: str
    date: str = ""
    """As exact as the source is; "" when it gives none."""
    is_before_fix: bool = False
    """Measured on a file that has been replaced since: says nothing about the present one."""


class Note(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Something to know of a quant, with who says so."""

    quant: str
    text: str
    source: str
    date: str = ""
    model: str = ""
    uploader: str = ""
    instead: str = ""
    """A better quant; then this one is not recommended."""


class CutOff(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """When a repository's files were repaired. Holds for its model files, not its mmproj files."""

    repo: str
    certain_before: Time
    """A file from before this has the old tensors and the old template for certain."""
    fixed_after: Time
    """Inferred: from then on the tensors are repaired. Only together with a hash that is not the present one."""
    final_after: Time = ""
    """Inferred: from then on the template and the importance matrix are the new ones."""


class Contents(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    schema_version: int
    date: Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\d$")]
    """The newest day on which a source was seen."""
    sources: tuple[str, ...]
    models: tuple[Model, ...] = ()
    presets: dict[str, dict[str, Sampling]] = {}
    quality: tuple[Quality, ...] = ()
    notes: tuple[Note, ...] = ()
    cut_offs: tuple[CutOff, ...] = ()
    superseded: tuple[Superseded, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    repositories: tuple[Repository, ...] = ()
