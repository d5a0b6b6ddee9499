"""Evidence: all facts on which a model file is judged, and the catalog's entry that matches them."""

import errno
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from qwendesk.core.engine_knowledge import EngineKnowledge, read_knowledge
from qwendesk.core.errors import BadModelFile
from qwendesk.core.file_names import Shard, is_mmproj_name
from qwendesk.core.input_files import open_local
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.translation import tr
from qwendesk.hub.catalog import Catalog, CatalogMatch
from qwendesk.hub.catalog_schema import CatalogModel
from qwendesk.hub.file_origin import FileOrigin, origin_of
from qwendesk.hub.finding_texts import FindingCode, FixCode, Value
from qwendesk.hub.findings import Detail, FindingFix, detail
from qwendesk.hub.gguf import join_shards
from qwendesk.hub.gguf_source import BadHeader
from qwendesk.hub.gguf_types import SUPPORTED_ARCHITECTURES
from qwendesk.hub.header_cache import HeaderCache
from qwendesk.hub.model_folders import is_hidden

_HEAD_BYTES = 1024
# How many models next to an mmproj are read. If there are more, no rule decides which model the mmproj is for.
_MAX_MODELS = 16


class HeaderError(msgspec.Struct, frozen=True):
    """Why a header can't be read: a title, and the code, case and values of the finding about it."""

    title: str
    code: FindingCode
    case: str
    values: Mapping[str, Value]


class Upstream(msgspec.Struct, frozen=True, kw_only=True):
    """The current state of one file on the Hub."""

    is_gone: bool = False
    """The repository exists, but no longer has the file."""
    n_bytes: int = 0
    sha256: str = ""
    """SHA-256; "" if the Hub gives none."""
    commit: str = ""
    """The newest commit."""
    date: str = ""
    """Time of the file's last change on the Hub (ISO 8601)."""
    local_date: str = ""
    """Upload time of the version on disk (ISO 8601); "" if its commit is unknown."""


class FileEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """One file on disk: a model, or one shard."""

    path: str
    n_bytes: int
    facts: ModelFacts | None = None
    error: HeaderError | None = None
    head: bytes = b""
    """The first KiB."""
    origin: FileOrigin = FileOrigin()
    sha256: str = ""
    """Computed from the file; "" if it wasn't computed."""
    upstream: Upstream | None = None
    """The answer of the Hub; None if it wasn't asked."""

    @property
    def known_sha256(self) -> str:
        """Return the computed hash, or else the one recorded by its download; "" if both are unknown."""
        return self.sha256 or self.origin.sha256


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All facts on which the rules judge one model, split or not."""

    files: tuple[FileEvidence, ...]
    """The file, or the existing shards in order."""
    facts: ModelFacts | None = None
    """Facts of the whole model; None if a header is broken or a shard is missing."""
    missing: tuple[str, ...] = ()
    """Names of missing shards."""
    neighbours: tuple[ModelFacts, ...] = ()
    """The mmprojs near a model, or the models near an mmproj or a draft head."""
    same_as: tuple[str, ...] = ()
    """Paths of other files with the same bytes."""
    engines: EngineKnowledge = EngineKnowledge()
    """What other releases of llama.cpp can load; empty if the app's own engines know the architecture."""

    @property
    def path(self) -> str:
        return self.files[0].path

    @property
    def name(self) -> str:
        return Path(self.path).name

    @property
    def n_bytes(self) -> int:
        return sum(file.n_bytes for file in self.files)

    @property
    def origin(self) -> FileOrigin:
        """Return the origin of the first file. Its repository and commit are valid for the whole model."""
        return self.files[0].origin

    @property
    def first_facts(self) -> ModelFacts | None:
        """Return the facts of the first shard, which has the metadata, even if others are missing or broken."""
        return self.facts or self.files[0].facts

    @property
    def is_mmproj(self) -> bool:
        """Return True for an mmproj, by its header or, if that is broken, by its name."""
        return self.facts.kind == "mmproj" if self.facts is not None else is_mmproj_name(self.name)


def gather(path: Path, headers: HeaderCache) -> Evidence:
    """Return the evidence from header, size and neighbours of the file at `path`, or of its whole set if it is a shard.

    Takes well under 0.1 s. Raises OSError if the file can't be read. Bytes that are wrong raise nothing; they are
    described in the result.
    """
    return _EvidenceReader(headers).evidence(path)


def with_duplicates(everything: Sequence[Evidence]) -> list[Evidence]:
    """Return the evidence with the paths of other files with the same bytes. Links to one file don't count."""
    groups: dict[tuple[str, ...], list[Evidence]] = {}
    for evidence in everything:
        hashes = tuple(file.sha256 for file in evidence.files)
        if all(hashes) and not evidence.missing:
            groups.setdefault(hashes, []).append(evidence)
    same = {id(each): [other for other in group if other is not each] for group in groups.values() for each in group}
    return [
        msgspec.structs.replace(
            each, same_as=tuple(other.path for other in same.get(id(each), ()) if not _is_same_file(each, other))
        )
        for each in everything
    ]


def _is_same_file(one: Evidence, other: Evidence) -> bool:
    return Path(one.path).samefile(other.path)


def model_files(path: Path) -> list[Path]:
    """Return `path` itself, or every .gguf file and Ollama blob below the folder.

    Hidden files are skipped: partial downloads, the records of huggingface_hub and deleted files.
    """
    if not path.is_dir():
        return [path]
    return [
        each
        for each in sorted(path.rglob("*"))
        if _is_model_name(each) and not any(map(is_hidden, each.relative_to(path).parts)) and each.is_file()
    ]


def _is_model_name(path: Path) -> bool:
    is_blob = path.parent.name == "blobs" and path.name.startswith("sha256-")
    return path.suffix.lower() == ".gguf" or (is_blob and _head(path).startswith(b"GGUF"))


def _head(path: Path) -> bytes:
    with open_local(path) as file:
        return file.read(_HEAD_BYTES)


class _EvidenceReader:
    """Gathers evidence and reads each file only once."""

    def __init__(self, headers: HeaderCache) -> None:
        self._headers = headers
        self._files: dict[Path, FileEvidence] = {}

    def evidence(self, path: Path) -> Evidence:
        present, missing = shards_of(path)
        files = tuple(self._file(each) for each in present)
        facts = [file.facts for file in files if file.facts is not None]
        is_whole = len(facts) == len(files) and not missing
        joined = (join_shards(facts) if len(facts) > 1 else facts[0]) if is_whole else None
        is_known = all(each.kind != "model" or each.architecture in SUPPORTED_ARCHITECTURES for each in facts)
        return Evidence(
            files=files,
            facts=joined,
            missing=missing,
            neighbours=self._neighbours(present[0], joined),
            engines=EngineKnowledge() if is_known else read_knowledge(),
        )

    def _file(self, path: Path) -> FileEvidence:
        if path not in self._files:
            self._files[path] = _read(path, self._headers)
        return self._files[path]

    def _neighbours(self, path: Path, facts: ModelFacts | None) -> tuple[ModelFacts, ...]:
        if facts is None or facts.kind not in ("model", "mmproj", "draft_head"):
            return ()
        wants_mmproj = facts.kind == "model"
        names = [
            each
            for folder in _folders_of(path)
            for each in sorted(folder.glob("*.gguf"))
            if is_mmproj_name(each.name) == wants_mmproj and each != path
        ]
        if not wants_mmproj and len(names) > _MAX_MODELS:
            return ()
        read = (self._file(each).facts for each in names)
        kind = "mmproj" if wants_mmproj else "model"
        return tuple(each for each in read if each is not None and each.kind == kind)


def _folders_of(path: Path) -> list[Path]:
    """Return the file's folder, and for a shard also the one above, as split models have their own folder."""
    return [path.parent] if Shard.parse(path.name) is None else [path.parent, path.parent.parent]


def shards_of(path: Path) -> tuple[list[Path], tuple[str, ...]]:
    """Return the existing shards of the model at `path`, and the names of the missing ones."""
    shard = Shard.parse(path.name)
    if shard is None:
        return [path], ()
    paths = [path.with_name(name) for name in shard.siblings]
    present = [each for each in paths if each.is_file() or each == path]
    return present, tuple(each.name for each in paths if each not in present)


def _read(path: Path, headers: HeaderCache) -> FileEvidence:
    if path.exists() and not path.is_file():
        # Opening a pipe would wait for a writer.
        raise OSError(errno.EINVAL, tr("not an ordinary file"), str(path))
    head = _head(path)
    facts, error = None, None
    try:
        facts = headers.read_file_facts(path)
    except BadHeader as failure:
        error = HeaderError(failure.title, failure.code, failure.case, failure.finding_values)
    except BadModelFile as failure:
        # The file was deleted or locked since its first bytes were read.
        error = HeaderError(failure.title, "not-gguf", "unreadable", {"reason": failure.sentence})
    return FileEvidence(
        path=str(path),
        n_bytes=path.stat().st_size,
        facts=facts,
        error=error,
        head=head,
        origin=origin_of(path.absolute()),
    )


UNSLOTH = "unsloth"
_UD_NAME = re.compile(r"(?<![A-Za-z0-9])UD-", re.IGNORECASE)


def unsloth_detail(evidence: Evidence) -> Detail | None:
    """Return the detail that shows that Unsloth made the file; None if there is none."""
    repo, facts = evidence.origin.repo, evidence.first_facts
    if repo.lower().startswith(f"{UNSLOTH}/"):
        return detail("unsloth-repo", repo=repo)
    if facts is not None and facts.quantized_by:
        return detail("unsloth-quantizer") if facts.quantized_by.strip().lower() == UNSLOTH else None
    if facts is not None and UNSLOTH in facts.imatrix_file.lower():
        return detail("unsloth-imatrix", file=facts.imatrix_file)
    return detail("unsloth-name") if not repo and _UD_NAME.search(evidence.name) else None


def model_of(evidence: Evidence, catalog: Catalog) -> CatalogModel | None:
    """Return the catalog's model, by repository, header or file name."""
    repository = catalog.repository(evidence.origin.repo)
    if repository is not None:
        return catalog.model(repository.model)
    facts = evidence.first_facts
    names = (facts.name, facts.basename) if facts is not None else ()
    return catalog.model_of(evidence.origin.repo, *names, evidence.name)


def current_file(evidence: Evidence, catalog: Catalog) -> CatalogMatch | None:
    """Return the current file on the Hub of which this is a copy or an older version."""
    origin = evidence.origin
    if origin.repo and origin.path:
        return catalog.find_file(origin.repo, origin.path)
    for sha256 in filter(None, (file.known_sha256 for file in evidence.files)):
        same = catalog.find_by_sha256(sha256)
        if len(same) == 1:
            return same[0]
        replaced = catalog.superseded(sha256)
        if replaced is not None:
            return catalog.find_file(replaced.repo, replaced.path)
    named = [found for found in catalog.find_by_name(evidence.name) if not found.repository.is_mtp]
    if unsloth_detail(evidence):
        named = [found for found in named if found.repository.uploader == UNSLOTH]
    return named[0] if len(named) == 1 else None


def download_again(evidence: Evidence, catalog: Catalog) -> FindingFix:
    """Return the fix that downloads an intact copy of the same file, or, if none is known, opens its repository."""
    return _download(evidence, catalog, "download_again")


def download_current(evidence: Evidence, catalog: Catalog) -> FindingFix:
    """Return the fix that downloads the current version of the file; otherwise like `download_again`."""
    return _download(evidence, catalog, "download_current")


def _download(evidence: Evidence, catalog: Catalog, code: FixCode) -> FindingFix:
    current, origin = current_file(evidence, catalog), evidence.origin
    if current is not None:
        return FindingFix(code, current.repository.repo, current.file.path, current.file.n_bytes)
    if origin.repo and origin.path:
        return FindingFix(code, origin.repo, origin.path)
    return FindingFix("find_on_hub", origin.repo)
