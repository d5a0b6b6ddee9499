"""What is known of a file, gathered before any judgement: header, size, neighbours, records, and its hash if asked."""

import errno
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from qwendesk.core.errors import BadModelFile
from qwendesk.core.model_facts import ModelFacts
from qwendesk.hub.folders import is_hidden
from qwendesk.hub.gguf import join_parts, read_part
from qwendesk.hub.origin import Origin, origin_of
from qwendesk.hub.upstream import Upstream

_HEAD_BYTES = 1024
_PART = re.compile(r"(?P<name>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.IGNORECASE)
_MAX_MODELS = 16
"""Models read beside a picture file; with more of them, which one it is for is not judged."""


class HeaderError(msgspec.Struct, frozen=True):
    """Why a header cannot be read; `kind` and `sentence` as BadModelFile has them."""

    kind: str
    title: str
    sentence: str


class FileEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """One file on disk: a model in one piece, or one part of a split set."""

    path: str
    n_bytes: int
    facts: ModelFacts | None = None
    error: HeaderError | None = None
    head: bytes = b""
    """The first KiB."""
    origin: Origin = Origin()
    sha256: str = ""
    """Computed from the file; "" when it was not asked for."""
    upstream: Upstream | None = None
    """What the Hub said of this file; None when it was not asked."""

    @property
    def known_sha256(self) -> str:
        """Computed, or else as its download recorded it; "" when neither is known."""
        return self.sha256 or self.origin.sha256


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All that the rules look at for one model file, or one split set."""

    files: tuple[FileEvidence, ...]
    """The file; or the parts that are there, in order."""
    facts: ModelFacts | None = None
    """Of the whole set; None when a header is broken or a part is missing."""
    missing: tuple[str, ...] = ()
    """Names of parts that are not there."""
    neighbours: tuple[ModelFacts, ...] = ()
    """For a model the picture files near it, for a picture file the models near it."""
    same_as: tuple[str, ...] = ()
    """Paths of other files with the same bytes."""

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
    def origin(self) -> Origin:
        """Where the first file came from; repository and commit are those of the whole set."""
        return self.files[0].origin

    @property
    def first_facts(self) -> ModelFacts | None:
        """Of the first part, which holds the metadata; also when others are missing or broken."""
        return self.facts or self.files[0].facts

    @property
    def is_mmproj(self) -> bool:
        """By its header, or by its name where the header is broken."""
        return self.facts.kind == "mmproj" if self.facts is not None else is_mmproj_name(self.name)


def gather(path: Path) -> Evidence:
    """What header, size and neighbours of the file at `path` tell; of the whole set when it is part of one.

    Takes well under 0.1 s. Raises OSError when the file cannot be read; what its bytes are wrong about is a value.
    """
    return _Gathering().evidence(path)


def gather_all(paths: Iterable[Path]) -> list[Evidence]:
    """As `gather` for each of `paths`, reading every header only once. A set of several `paths` appears once."""
    gathering = _Gathering()
    found: dict[str, Evidence] = {}
    for path in paths:
        evidence = gathering.evidence(path)
        found.setdefault(evidence.path, evidence)
    return list(found.values())


def with_hashes(evidence: Evidence, hash_of: Callable[[Path], str]) -> Evidence:
    """The same with the SHA-256 of every file; `hash_of` may raise OSError or HashCancelled."""
    files = tuple(msgspec.structs.replace(file, sha256=hash_of(Path(file.path))) for file in evidence.files)
    return msgspec.structs.replace(evidence, files=files)


def with_duplicates(everything: Sequence[Evidence]) -> list[Evidence]:
    """The same, each knowing the paths of the others with the same bytes. Links to one file are no duplicates."""
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
    """The model files `path` stands for: itself, or every .gguf file and Ollama blob below the folder.

    What is hidden is passed over: downloads under way, the Hub library's records and deleted files lie there.
    """
    if not path.is_dir():
        return [path]
    return [
        each
        for each in sorted(path.rglob("*"))
        if _is_model_name(each) and not any(map(is_hidden, each.relative_to(path).parts)) and each.is_file()
    ]


def is_mmproj_name(name: str) -> bool:
    return "mmproj" in name.lower()


def _is_model_name(path: Path) -> bool:
    is_blob = path.parent.name == "blobs" and path.name.startswith("sha256-")
    return path.suffix.lower() == ".gguf" or (is_blob and _head(path).startswith(b"GGUF"))


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD_BYTES)


class _Gathering:
    """Reads headers, each once."""

    def __init__(self) -> None:
        self._files: dict[Path, FileEvidence] = {}

    def evidence(self, path: Path) -> Evidence:
        present, missing = _parts_of(path)
        files = tuple(self._file(each) for each in present)
        facts = [file.facts for file in files if file.facts is not None]
        is_whole = len(facts) == len(files) and not missing
        joined = (join_parts(facts) if len(facts) > 1 else facts[0]) if is_whole else None
        return Evidence(files=files, facts=joined, missing=missing, neighbours=self._neighbours(present[0], joined))

    def _file(self, path: Path) -> FileEvidence:
        if path not in self._files:
            self._files[path] = _read(path)
        return self._files[path]

    def _neighbours(self, path: Path, facts: ModelFacts | None) -> tuple[ModelFacts, ...]:
        if facts is None or facts.kind not in ("model", "mmproj"):
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
    """The file's folder; and the one above for a split set, which lies in a folder of its own in its repository."""
    is_part = _PART.fullmatch(path.name) is not None
    return [path.parent, path.parent.parent] if is_part else [path.parent]


def _parts_of(path: Path) -> tuple[list[Path], tuple[str, ...]]:
    """The files of the set that `path` belongs to, and the names of those that are missing."""
    found = _PART.fullmatch(path.name)
    if found is None or not 1 < int(found["count"]) <= 999:
        return [path], ()
    names = [f"{found['name']}-{number:05}-of-{found['count']}.gguf" for number in range(1, int(found["count"]) + 1)]
    paths = [path.with_name(name) if name.lower() != path.name.lower() else path for name in names]
    present = [each for each in paths if each.is_file() or each == path]
    return present, tuple(each.name for each in paths if each not in present)


def _read(path: Path) -> FileEvidence:
    if path.exists() and not path.is_file():
        # Opening a pipe would wait for whoever writes into it.
        raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
    head = _head(path)
    facts, error = None, None
    try:
        facts = read_part(path)
    except BadModelFile as failure:
        error = HeaderError(failure.kind, failure.title, failure.sentence)
    return FileEvidence(
        path=str(path),
        n_bytes=path.stat().st_size,
        facts=facts,
        error=error,
        head=head,
        origin=origin_of(path.absolute()),
    )
