"""All models on this computer: what the walk finds, split sets as one, each with its picture file."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath

import msgspec

from qwendesk.core.model_facts import ModelFacts
from qwendesk.hub.library_headers import Header, Headers
from qwendesk.hub.library_places import Origin, Place
from qwendesk.hub.library_walk import FoundFile, walk
from qwendesk.hub.pairing import header_names, pair_mmproj

_PART = re.compile(r"(?P<name>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<ending>\.gguf)", re.IGNORECASE)
_MAX_PARTS = 999
_DRAFT = re.compile(r"(?:mtp|dflash)-", re.IGNORECASE)
"""Files for speculative decoding, which are no models of their own."""
_MMPROJ = re.compile(r"mmproj", re.IGNORECASE)
_OLLAMAS_OWN = re.compile(r"qwen3\.[56](?![0-9])", re.IGNORECASE)


class LibraryFile(msgspec.Struct, frozen=True):
    """One file of a model, as it was when it was found."""

    path: str
    n_bytes: int
    mtime_ns: int


class LibraryModel(msgspec.Struct, frozen=True, kw_only=True):
    """One model on disk: a file, or a split set. Also a picture file, or another companion of a model."""

    files: tuple[LibraryFile, ...]
    """In the order of the parts; the first one is what gets loaded."""
    name: str
    """For people: the file's name without ending and part number, or what the app that owns it calls it."""
    origin: Origin
    place: str
    """The folder of the library in which it was found."""
    repo: str = ""
    """The Hub repository it came from ("owner/name"), as far as its folder tells."""
    repo_path: str = ""
    facts: ModelFacts | None = None
    """From the header (of the first part), without the tensors; `file_bytes` is that of the whole set."""
    problem: str = ""
    """Why it cannot be loaded, in a sentence; "" when nothing in header, parts or origin speaks against it."""
    missing: tuple[str, ...] = ()
    """Names of parts of the set that are not there."""
    mmproj: "LibraryModel | None" = None
    """The picture file that fits, also if it lies in another folder."""
    writable: bool = False
    """Whether the app may move or delete it: never in another app's folder."""

    @property
    def path(self) -> str:
        return self.files[0].path

    @property
    def n_bytes(self) -> int:
        """Of all parts, without the picture file."""
        return sum(file.n_bytes for file in self.files)


class Library(msgspec.Struct, frozen=True, kw_only=True):
    """What a scan found, each file once, sorted by name."""

    models: tuple[LibraryModel, ...] = ()
    """Also files that cannot be read and are not named like a companion: a half download is one."""
    mmprojs: tuple[LibraryModel, ...] = ()
    """Every picture file, paired or not."""
    others: tuple[LibraryModel, ...] = ()
    """Adapters, draft models, vocabularies."""
    unreadable: tuple[str, ...] = ()
    """Folders that exist but could not be read."""

    @property
    def everything(self) -> tuple[LibraryModel, ...]:
        return self.models + self.mmprojs + self.others


def scan(places: Sequence[Place], headers: Headers) -> Library:
    """Finds all models in `places`. Blocks (a few µs a file when its header is remembered); writes nothing there.

    A file that two places hold, or two names lead to, counts for the first.
    """
    unreadable: list[str] = []
    found: dict[str, FoundFile] = {}
    for place in places:
        for file in walk(place, unreadable):
            found.setdefault(file.real_path, file)
    library = _joined(found.values(), headers)
    headers.save()
    return msgspec.structs.replace(library, unreadable=tuple(unreadable))


def model_at(path: Path, headers: Headers) -> LibraryModel | None:
    """The model that the file at `path` belongs to, with what lies beside it; None when there is no such model file.

    For a file outside all places of the library. Not writable, since nobody gave that folder to the app.
    """
    place = Place("folder", path.parent)
    library = _joined(walk(place, [], depth=0), headers)
    wanted = str(path)
    found = next((each for each in library.everything if wanted in {file.path for file in each.files}), None)
    return None if found is None else msgspec.structs.replace(found, writable=False)


def _joined(found: Iterable[FoundFile], headers: Headers) -> Library:
    entries = [_entry(group, headers) for group in _sets(found)]
    mmprojs = [entry for entry, _ in entries if _is_mmproj(entry)]
    others = [entry for entry, _ in entries if not _is_mmproj(entry) and _is_other(entry)]
    finder = _MmprojFinder(mmprojs)
    apart = {id(entry) for entry in (*mmprojs, *others)}
    models = [finder.paired(entry, first.mmproj) for entry, first in entries if id(entry) not in apart]
    return Library(
        models=_sorted(models),
        mmprojs=_sorted(mmprojs),
        others=_sorted(others),
    )


def _sets(found: Iterable[FoundFile]) -> list[list[FoundFile]]:
    """Files that belong together, in the order of their numbers."""
    groups: dict[tuple[str, ...], list[tuple[int, FoundFile]]] = {}
    for file in found:
        path = PurePath(file.path)
        part = _part_of(path.name)
        key = (str(path.parent), part["name"].lower(), part["count"]) if part else (file.path,)
        groups.setdefault(key, []).append((int(part["number"]) if part else 1, file))
    return [[file for _, file in sorted(group, key=lambda each: each[0])] for group in groups.values()]


def _part_of(name: str) -> re.Match[str] | None:
    part = _PART.fullmatch(name)
    return part if part and 1 < int(part["count"]) <= _MAX_PARTS else None


def _entry(group: Sequence[FoundFile], headers: Headers) -> tuple[LibraryModel, FoundFile]:
    """The model that `group` is, and its first file."""
    first = group[0]
    name = PurePath(first.path).name
    missing = _missing(group)
    header = headers.of(first.path, first.n_bytes, first.mtime_ns)
    is_headless = bool(missing) and PurePath(missing[0]).name == _part_names(name)[0]
    facts = None if is_headless or header.facts is None else header.facts
    if facts is not None:
        facts = msgspec.structs.replace(facts, file_bytes=sum(file.n_bytes for file in group))
    part = _part_of(name)
    entry = LibraryModel(
        files=tuple(LibraryFile(file.path, file.n_bytes, file.mtime_ns) for file in group),
        name=first.title or (part["name"] if part else PurePath(first.path).stem),
        origin=first.origin,
        place=first.place,
        repo=first.repo,
        repo_path=first.repo_path,
        facts=facts,
        problem=_problem(first, header, missing),
        missing=missing,
        writable=first.origin in ("ours", "folder"),
    )
    return entry, first


def _part_names(name: str) -> list[str]:
    part = _part_of(name)
    if part is None:
        return [name]
    numbers = range(1, int(part["count"]) + 1)
    return [f"{part['name']}-{number:05}-of-{part['count']}{part['ending']}" for number in numbers]


def _missing(group: Sequence[FoundFile]) -> tuple[str, ...]:
    present = {PurePath(file.path).name.lower() for file in group}
    names = _part_names(PurePath(group[0].path).name)
    return tuple(name for name in names if name.lower() not in present)


def _problem(first: FoundFile, header: Header, missing: tuple[str, ...]) -> str:
    if missing:
        count = len(_part_names(PurePath(first.path).name))
        shown = missing[0] if len(missing) == 1 else f"{missing[0]} and {len(missing) - 1} more"
        is_missing, them = ("is missing", "it") if len(missing) == 1 else ("are missing", "them")
        return f"{len(missing)} of {count} parts {is_missing}: {shown}. Download {them} again."
    if header.facts is None:
        return header.problem
    if _is_ollamas_own(first, header):
        return (
            f"{first.title} from Ollama's library is in a form only Ollama can load: it holds model and picture "
            "encoder in one. Download the GGUF file of the same model; Ollama's stays."
        )
    return ""


def _is_ollamas_own(first: FoundFile, header: Header) -> bool:
    """Ollama converts Qwen3.5 and 3.6 by its own rules; llama.cpp cannot load that. Files from hf.co are ordinary."""
    if first.origin != "ollama" or header.facts is None or header.facts.kind != "model":
        return False
    is_qwen = header.facts.architecture.startswith("qwen35")
    by_name = first.from_ollamas_library and _OLLAMAS_OWN.match(first.title) is not None
    return is_qwen and (by_name or header.has_vision_tensors)


def _is_mmproj(entry: LibraryModel) -> bool:
    """By its header; by its name where the header cannot be read."""
    if entry.facts is not None:
        return entry.facts.kind == "mmproj"
    return _MMPROJ.search(PurePath(entry.path).name) is not None


def _is_other(entry: LibraryModel) -> bool:
    is_companion = entry.facts is not None and entry.facts.kind != "model"
    return is_companion or _DRAFT.match(PurePath(entry.path).name) is not None


def _sorted(entries: Iterable[LibraryModel]) -> tuple[LibraryModel, ...]:
    return tuple(sorted(entries, key=lambda entry: (entry.name.lower(), entry.path)))


class _MmprojFinder:
    """Picks picture files for models, looking only at those near by folder, repository or name in the header."""

    def __init__(self, mmprojs: Sequence[LibraryModel]) -> None:
        self._by_path = {entry.path: entry for entry in mmprojs}
        self._by_key: dict[tuple[str, str], list[LibraryModel]] = {}
        for entry in mmprojs:
            if entry.facts is not None:
                for key in _keys(entry, entry.facts):
                    self._by_key.setdefault(key, []).append(entry)

    def paired(self, model: LibraryModel, stated: str) -> LibraryModel:
        """`model` with its picture file; `stated` is the one that its own app pairs with it, if it does."""
        if model.facts is None:
            return model
        near: Mapping[str, LibraryModel] = {
            entry.path: entry for key in _keys(model, model.facts) for entry in self._by_key.get(key, [])
        }
        if model.origin == "ollama":
            near = {stated: self._by_path[stated]} if stated in self._by_path else {}
        near = {path: entry for path, entry in near.items() if not _other_source(model, entry)}
        named = [entry for name in header_names(model.facts) for entry in self._by_key.get(("name", name), [])]
        # Those of the same name come first anyway; without them a folder of hundreds would be compared with itself.
        for some in ([entry for entry in named if entry.path in near], list(near.values())):
            facts = [entry.facts for entry in some if entry.facts is not None]
            own = [entry.path for entry in some if _same_source(model, entry)]
            best = pair_mmproj(model.facts, facts, own)
            if best is not None:
                return msgspec.structs.replace(model, mmproj=near[best.path])
        return model


def _keys(entry: LibraryModel, facts: ModelFacts) -> list[tuple[str, str]]:
    """What files that may belong together share at least one of."""
    keys = [("folder", str(Path(entry.path).parent)), *(("name", name) for name in sorted(header_names(facts)))]
    return [("repo", f"{entry.place} {entry.repo}"), *keys] if entry.repo else keys


def _other_source(model: LibraryModel, mmproj: LibraryModel) -> bool:
    """They come from two repositories (side by side in llama.cpp's flat cache), and no header says it is one model."""
    if not model.repo or not mmproj.repo or model.repo == mmproj.repo or not model.facts or not mmproj.facts:
        return False
    return header_names(model.facts).isdisjoint(header_names(mmproj.facts))


def _same_source(model: LibraryModel, mmproj: LibraryModel) -> bool:
    return bool(model.repo) and (model.repo, model.place) == (mmproj.repo, mmproj.place)
