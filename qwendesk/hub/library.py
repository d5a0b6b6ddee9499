"""The library: all models on this PC, each with its mmproj. A split model is one model."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath

import msgspec

from qwendesk.core.architectures import architecture_named
from qwendesk.core.file_names import Shard, is_draft_name, is_imatrix_name, is_mmproj_name
from qwendesk.core.links import real_path
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.model_titles import model_title
from qwendesk.core.translation import tr
from qwendesk.hub.companion_pairing import header_names, pair_draft_head, pair_mmproj
from qwendesk.hub.gguf_types import DRAFT_ARCHITECTURES
from qwendesk.hub.header_cache import HeaderCache, HeaderSummary
from qwendesk.hub.library_places import Origin, SearchFolder
from qwendesk.hub.library_walk import FoundModelFile, OtherFormat, VisitedFolders, walk

_OLLAMAS_OWN = re.compile(r"qwen3\.[568](?![0-9])", re.IGNORECASE)


class LibraryFile(msgspec.Struct, frozen=True):
    """One file of a model, as of the scan."""

    path: str
    n_bytes: int
    mtime_ns: int


class LibraryModel(msgspec.Struct, frozen=True, kw_only=True):
    """One model on disk: a file, or a set of shards. Also an mmproj or another file that belongs to a model."""

    files: tuple[LibraryFile, ...]
    """In the order of the shards; the first is the one to load."""
    name: str
    """Title by `model_title`."""
    origin: Origin
    place: str
    """The searched folder in which it was found."""
    repo: str = ""
    """The Hub repository it came from ("owner/name"); "" if unknown."""
    repo_path: str = ""
    facts: ModelFacts | None = None
    """From the header of the first shard, without tensors; `file_bytes` counts all shards."""
    problem: str = ""
    """Reason why it can't be loaded, in a sentence; "" if header, shards and origin are fine."""
    missing: tuple[str, ...] = ()
    """Names of missing shards."""
    mmproj: "LibraryModel | None" = None
    """The mmproj that fits, which may be in another folder."""
    draft_head: "LibraryModel | None" = None
    """The draft head in a file of its own that fits and is in the same folder."""
    writable: bool = False
    """True if the app may move or delete it: not if it is in another app's folder."""

    @property
    def path(self) -> str:
        return self.files[0].path

    @property
    def n_bytes(self) -> int:
        """Size of all shards, without the mmproj."""
        return sum(file.n_bytes for file in self.files)


class Library(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a scan: each file once, sorted by name."""

    models: tuple[LibraryModel, ...] = ()
    """Includes unreadable files, such as partial downloads, unless they are named like an mmproj or draft model."""
    mmprojs: tuple[LibraryModel, ...] = ()
    """Every mmproj, paired with a model or not."""
    others: tuple[LibraryModel, ...] = ()
    """Adapters, draft heads, draft models, vocabularies."""
    unreadable: tuple[str, ...] = ()
    """Folders that exist but couldn't be read."""
    folders: tuple[str, ...] = ()
    """Folders that were read, each once. They are watched for new models."""
    other_formats: tuple[OtherFormat, ...] = ()
    """Models of other apps that aren't GGUF files."""

    @property
    def everything(self) -> tuple[LibraryModel, ...]:
        return self.models + self.mmprojs + self.others


class OpenedFile(msgspec.Struct, frozen=True):
    """A model file that the user opened from anywhere."""

    path: str
    owner: Origin = "opened"
    """The app whose folder it is in, which isn't searched; "opened" for none."""


def scan(places: Sequence[SearchFolder], headers: HeaderCache, opened: Sequence[OpenedFile] = ()) -> Library:
    """Find all models in `places`, and the files `opened` elsewhere with what belongs to them.

    Blocks; takes a few µs for each file whose header is cached. Writes nothing there. A file in two places, or with two
    names, belongs to the first.
    """
    folders = VisitedFolders()
    found: dict[str, FoundModelFile] = {}
    files = [file for place in places for file in walk(place, folders)]
    # A file that an app only refers to belongs to the folder it is in, if that is searched too.
    for file in sorted(files, key=lambda file: not Path(file.path).is_relative_to(file.place)):
        found.setdefault(file.real_path, file)
    library = _with_opened(_joined(found.values(), headers), opened, set(found), folders, headers)
    headers.save()
    return msgspec.structs.replace(
        library,
        unreadable=tuple(folders.unreadable),
        folders=tuple(dict.fromkeys(folders.read)),
        other_formats=tuple(folders.other_formats),
    )


def model_at(path: Path, headers: HeaderCache) -> LibraryModel | None:
    """Return the model of the file at `path` with its mmproj; None if there is no such model file.

    For files outside the library's folders. The model isn't writable, because the folder doesn't belong to the app.
    """
    found = _in_its_folder(str(path), VisitedFolders(), headers)
    return None if found is None else msgspec.structs.replace(found, writable=False)


def _in_its_folder(path: str, folders: VisitedFolders, headers: HeaderCache) -> LibraryModel | None:
    """Return the model of a file, paired with the companions in the same folder."""
    place = SearchFolder("opened", Path(path).parent)
    library = _joined(walk(place, folders, depth=0), headers)
    return next((each for each in library.everything if path in {file.path for file in each.files}), None)


def _with_opened(
    library: Library, opened: Sequence[OpenedFile], known: set[str], folders: VisitedFolders, headers: HeaderCache
) -> Library:
    """Return the library with the models that were opened as files. `known` are the real paths of its own files."""
    models, mmprojs = {each.path: each for each in library.models}, {each.path: each for each in library.mmprojs}
    for file in opened:
        if str(real_path(Path(file.path))) in known:
            continue
        model = _in_its_folder(file.path, folders, headers)
        if model is None or _is_mmproj(model) or _is_other(model):
            continue
        if file.owner != "opened":
            model = msgspec.structs.replace(model, origin=file.owner, writable=False)
        models.setdefault(model.path, model)
        if model.mmproj is not None:
            mmprojs.setdefault(model.mmproj.path, model.mmproj)
    return msgspec.structs.replace(library, models=_sorted(models.values()), mmprojs=_sorted(mmprojs.values()))


def _joined(found: Iterable[FoundModelFile], headers: HeaderCache) -> Library:
    entries = [_entry(group, headers) for group in _sets(found)]
    mmprojs = [entry for entry, _ in entries if _is_mmproj(entry)]
    others = [entry for entry, _ in entries if not _is_mmproj(entry) and _is_other(entry)]
    finder = _MmprojFinder(mmprojs)
    apart = {id(entry) for entry in (*mmprojs, *others)}
    heads = _heads_by_folder(others)
    models = [
        _with_draft_head(finder.paired(entry, first.mmproj), heads)
        for entry, first in entries
        if id(entry) not in apart
    ]
    return Library(
        models=_sorted(models),
        mmprojs=_sorted(mmprojs),
        others=_sorted(others),
    )


def _sets(found: Iterable[FoundModelFile]) -> list[list[FoundModelFile]]:
    """Return groups of files that belong together, in the order of their shard numbers."""
    groups: dict[tuple[str, ...], list[tuple[int, FoundModelFile]]] = {}
    for file in found:
        path = PurePath(file.path)
        shard = Shard.parse(path.name)
        key = (file.path,) if shard is None else (str(path.parent), shard.base.lower(), str(shard.count))
        groups.setdefault(key, []).append((1 if shard is None else shard.number, file))
    return [[file for _, file in sorted(group, key=lambda each: each[0])] for group in groups.values()]


def _entry(group: Sequence[FoundModelFile], headers: HeaderCache) -> tuple[LibraryModel, FoundModelFile]:
    """Return the model of `group`, and its first file."""
    first = group[0]
    name = PurePath(first.path).name
    missing = _missing(group)
    header = headers.summary(first.path, first.n_bytes, first.mtime_ns)
    is_headless = bool(missing) and PurePath(missing[0]).name == _shard_names(name)[0]
    facts = None if is_headless or header.facts is None else header.facts
    if facts is not None:
        facts = msgspec.structs.replace(facts, file_bytes=sum(file.n_bytes for file in group))
    entry = LibraryModel(
        files=tuple(LibraryFile(file.path, file.n_bytes, file.mtime_ns) for file in group),
        name=first.title or model_title(first.path),
        origin=first.origin,
        place=first.place,
        repo=first.repo,
        repo_path=first.repo_path,
        facts=facts,
        problem=_problem(first, header, missing),
        missing=missing,
        writable=first.origin in ("ours", "folder", "opened"),
    )
    return entry, first


def _shard_names(name: str) -> tuple[str, ...]:
    shard = Shard.parse(name)
    return (name,) if shard is None else shard.siblings


def _missing(group: Sequence[FoundModelFile]) -> tuple[str, ...]:
    present = {PurePath(file.path).name.lower() for file in group}
    names = _shard_names(PurePath(group[0].path).name)
    return tuple(name for name in names if name.lower() not in present)


def _problem(first: FoundModelFile, header: HeaderSummary, missing: tuple[str, ...]) -> str:
    if missing:
        total = len(_shard_names(PurePath(first.path).name))
        shown = missing[0] if len(missing) == 1 else tr("{0} and {1} more", missing[0], len(missing) - 1)
        return tr("Missing shards ({0} of {1}): {2}. Download the model again.", len(missing), total, shown)
    if header.facts is None:
        return header.problem
    if _is_ollamas_own(first, header):
        return tr("{0} from Ollama's library only loads in Ollama. Download the GGUF file of the model.", first.title)
    return ""


def _is_ollamas_own(first: FoundModelFile, header: HeaderSummary) -> bool:
    """Return True for a Qwen of Ollama's own library, which llama.cpp can't load. Files from hf.co are fine."""
    if first.origin != "ollama" or header.facts is None or header.facts.kind != "model":
        return False
    is_qwen = architecture_named(header.facts.architecture).is_of_qwen35
    by_name = first.from_ollamas_library and _OLLAMAS_OWN.match(first.title) is not None
    return is_qwen and (by_name or header.has_vision_tensors)


def _is_mmproj(entry: LibraryModel) -> bool:
    """Return True for an mmproj, by its header or, if that can't be read, by its name."""
    if entry.facts is not None:
        return entry.facts.kind == "mmproj"
    return is_mmproj_name(entry.path)


def _is_other(entry: LibraryModel) -> bool:
    facts = entry.facts
    is_companion = facts is not None and (facts.kind != "model" or facts.architecture in DRAFT_ARCHITECTURES)
    return is_companion or is_draft_name(entry.path) or is_imatrix_name(entry.path)


def _heads_by_folder(others: Iterable[LibraryModel]) -> dict[Path, dict[str, LibraryModel]]:
    """Return the draft heads by folder and path."""
    found: dict[Path, dict[str, LibraryModel]] = {}
    for entry in others:
        if entry.facts is not None and entry.facts.kind == "draft_head" and not entry.problem:
            found.setdefault(Path(entry.path).parent, {})[entry.path] = entry
    return found


def _with_draft_head(model: LibraryModel, heads: Mapping[Path, Mapping[str, LibraryModel]]) -> LibraryModel:
    near = heads.get(Path(model.path).parent)
    if model.facts is None or not near:
        return model
    head = pair_draft_head(model.facts, (each.facts for each in near.values() if each.facts is not None))
    return model if head is None else msgspec.structs.replace(model, draft_head=near[head.path])


def _sorted(entries: Iterable[LibraryModel]) -> tuple[LibraryModel, ...]:
    return tuple(sorted(entries, key=lambda entry: (entry.name.lower(), entry.path)))


class _MmprojFinder:
    """Finds the mmproj of a model among those in the same folder or repository, or with the same name in the header."""

    def __init__(self, mmprojs: Sequence[LibraryModel]) -> None:
        self._by_path = {entry.path: entry for entry in mmprojs}
        self._by_key: dict[tuple[str, str], list[LibraryModel]] = {}
        for entry in mmprojs:
            if entry.facts is not None:
                for key in _keys(entry, entry.facts):
                    self._by_key.setdefault(key, []).append(entry)

    def paired(self, model: LibraryModel, stated: str) -> LibraryModel:
        """Return `model` with its mmproj; `stated` is the path of the mmproj that the owning app pairs with it."""
        if model.facts is None:
            return model
        near: Mapping[str, LibraryModel] = {
            entry.path: entry for key in _keys(model, model.facts) for entry in self._by_key.get(key, [])
        }
        if stated or model.origin == "ollama":
            near = {stated: self._by_path[stated]} if stated in self._by_path else {}
        near = {path: entry for path, entry in near.items() if not _other_source(model, entry)}
        named = [entry for name in header_names(model.facts) for entry in self._by_key.get(("name", name), [])]
        # Files of the same name are preferred anyway. Trying them first avoids comparing all pairs in a large folder.
        for some in ([entry for entry in named if entry.path in near], list(near.values())):
            facts = [entry.facts for entry in some if entry.facts is not None]
            own = [entry.path for entry in some if entry.path == stated or _same_source(model, entry)]
            best = pair_mmproj(model.facts, facts, own)
            if best is not None:
                return msgspec.structs.replace(model, mmproj=near[best.path])
        return model


def _keys(entry: LibraryModel, facts: ModelFacts) -> list[tuple[str, str]]:
    """Return the keys of a file. Files that belong together have at least one key in common."""
    keys = [("folder", str(Path(entry.path).parent)), *(("name", name) for name in sorted(header_names(facts)))]
    return [("repo", f"{entry.place} {entry.repo}"), *keys] if entry.repo else keys


def _other_source(model: LibraryModel, mmproj: LibraryModel) -> bool:
    """Return True if both come from different repositories and their headers name no common model.

    llama.cpp's flat cache has the files of many repositories in one folder.
    """
    if not model.repo or not mmproj.repo or model.repo == mmproj.repo or not model.facts or not mmproj.facts:
        return False
    return header_names(model.facts).isdisjoint(header_names(mmproj.facts))


def _same_source(model: LibraryModel, mmproj: LibraryModel) -> bool:
    return bool(model.repo) and (model.repo, model.place) == (mmproj.repo, mmproj.place)
