"""The model files in a folder, laid out as each app lays them out. Writes nothing."""

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from qwendesk.core.input_files import read_bounded
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.links import real_path
from qwendesk.core.model_titles import ollama_title
from qwendesk.core.translation import tr
from qwendesk.hub.file_origin import origin_of
from qwendesk.hub.library_places import FileLookup, Origin, SearchFolder
from qwendesk.hub.model_folders import is_hidden, repo_of

_logger = logging.getLogger(__name__)

# Maximum levels of folders below the searched one; the deepest layout in use has four.
_MAX_DEPTH = 8
# Limit for manifests and references, whose usual size is a few hundred bytes.
_MAX_SMALL_FILE_BYTES = 1024**2
_SHA256 = re.compile(r"[0-9a-f]{64}")
_OLLAMA_HOST, _OLLAMA_LIBRARY = "registry.ollama.ai", "library"
_HUGGING_FACE_HOSTS = ("hf.co", "huggingface.co")
_OLLAMA_MODEL = "application/vnd.ollama.image.model"
_OLLAMA_PROJECTOR = "application/vnd.ollama.image.projector"
# One of the tensors of a model that Ollama runs by MLX: it has no GGUF file.
_OLLAMA_TENSOR = "application/vnd.ollama.image.tensor"
_OTHER_WEIGHTS = ".safetensors"
# What Jan writes beside or instead of each file: the paths are absolute for files that it was shown elsewhere.
_JAN_CONFIG = "model.yml"
_JAN_FILE = re.compile(r"""^(model|mmproj)_path:[ \t]*["']?([^"'\r\n]+)""", re.MULTILINE)


class FoundModelFile(msgspec.Struct, frozen=True, kw_only=True):
    """One model file on disk, with facts from its folder and name; unknown ones are ""."""

    path: str
    """The path in its app's layout, which may be a link."""
    real_path: str
    n_bytes: int
    mtime_ns: int
    origin: Origin
    place: str
    title: str = ""
    """The owning app's name for the model, if the file name isn't one."""
    repo: str = ""
    repo_path: str = ""
    mmproj: str = ""
    """Path of the mmproj that the owning app pairs with it."""
    from_ollamas_library: bool = False


class _Layer(msgspec.Struct, rename="camel"):
    media_type: str = ""
    digest: str = ""


class _Manifest(msgspec.Struct):
    layers: list[_Layer] = []


class OtherFormat(msgspec.Struct, frozen=True):
    """A model of another app that isn't a GGUF file."""

    origin: Origin
    name: str
    """What its app calls it."""
    path: str


class VisitedFolders(msgspec.Struct):
    """The folders that were visited: those that were read, and those that couldn't be read."""

    read: list[str] = []
    unreadable: list[str] = []
    other_formats: list[OtherFormat] = []
    """The models in them that aren't GGUF files."""


def walk(place: SearchFolder, folders: VisitedFolders, depth: int = _MAX_DEPTH) -> Iterator[FoundModelFile]:
    """Yield the model files in `place`, at most `depth` levels down; none if there is no such folder.

    The visited folders are added to `folders`.
    """
    root = Path(place.path)
    if FileLookup().is_folder(root):
        yield from _Walk(place, root, folders).folder(root, depth)


class _Walk:
    """One walk through one place."""

    def __init__(self, place: SearchFolder, root: Path, folders: VisitedFolders) -> None:
        self._place = place
        self._root = root
        self._folders = folders
        self._entered: set[str] = set()

    def folder(self, folder: Path, depth: int) -> Iterator[FoundModelFile]:
        """Yield everything below `folder`. Links are followed, but no folder is entered twice."""
        real = str(real_path(folder))
        if real in self._entered:
            return
        self._entered.add(real)
        folders, files = self._entries(folder)
        names = {each.name for each in folders}
        if self._place.origin == "jan" and (folder / _JAN_CONFIG).is_file():
            yield from self._jans(folder, files)
        elif {"manifests", "blobs"} <= names:
            yield from self._ollama(folder)
        elif folder.name.startswith("models--") and "snapshots" in names:
            yield from self._hub_repo(folder)
        else:
            yield from (found for path in files if (found := self._plain(path)) is not None)
            if depth > 0:
                for each in folders:
                    yield from self.folder(each, depth - 1)

    def _entries(self, folder: Path) -> tuple[list[Path], list[Path]]:
        """Return the folders and the .gguf files in a folder, sorted by name, without hidden ones."""
        folders: list[Path] = []
        files: list[Path] = []
        has_other_weights = False
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if is_hidden(entry.name):
                        continue
                    if entry.name.lower().endswith(".gguf"):
                        files.append(folder / entry.name)
                    elif entry.name.lower().endswith(_OTHER_WEIGHTS):
                        has_other_weights = True
                    elif entry.is_dir():
                        folders.append(folder / entry.name)
            self._folders.read.append(str(folder))
        except OSError as error:
            _logger.info("%s cannot be read: %s", folder, error)
            self._folders.unreadable.append(str(folder))
        if has_other_weights and not files:
            self._note_other_format(folder, folder.name)
        return sorted(folders), sorted(files)

    def _note_other_format(self, path: Path, name: str) -> None:
        """Note a model of an app whose folder holds models that chat. The Hugging Face cache has any kind of them."""
        if self._place.origin in ("lmstudio", "jan", "ollama", "openwebui"):
            self._folders.other_formats.append(OtherFormat(self._place.origin, name, str(path)))

    def _jans(self, folder: Path, files: list[Path]) -> Iterator[FoundModelFile]:
        """Yield the files of one model of Jan: those in its folder, or those elsewhere that its model.yml names."""
        named = dict(_JAN_FILE.findall(self._small_text(folder / _JAN_CONFIG).decode("utf-8", errors="replace")))
        elsewhere = {kind: Path(path.strip()) for kind, path in named.items() if Path(path.strip()).is_absolute()}
        model = self._found(elsewhere["model"]) if "model" in elsewhere else None
        mmproj = self._found(elsewhere["mmproj"]) if "mmproj" in elsewhere else None
        yield from (found for path in files if (found := self._plain(path)) is not None)
        if mmproj is not None:
            yield mmproj
        if model is not None:
            title = folder.relative_to(self._root).as_posix()
            yield msgspec.structs.replace(_with_origin(model), title=title, mmproj=mmproj.path if mmproj else "")

    def _plain(self, path: Path) -> FoundModelFile | None:
        found = self._found(path)
        if found is None:
            return None
        if self._place.origin in ("ours", "lmstudio") and (known := repo_of(self._root, path)):
            return msgspec.structs.replace(found, repo=known[0], repo_path=known[1])
        return _with_origin(found)

    def _found(self, path: Path) -> FoundModelFile | None:
        """Return the file at `path`; None if it is gone, not a file, or a broken link of an unfinished download."""
        try:
            status = path.stat()
        except OSError:
            return None
        if not path.is_file():
            return None
        return FoundModelFile(
            path=str(path),
            real_path=str(real_path(path)),
            n_bytes=status.st_size,
            mtime_ns=status.st_mtime_ns,
            origin=self._place.origin,
            place=str(self._root),
        )

    def _hub_repo(self, folder: Path) -> Iterator[FoundModelFile]:
        """Yield the files of `models--owner--name/snapshots/<commit>/...`, the current commit first."""
        current = self._small_text(folder / "refs" / "main").decode("ascii", errors="replace").strip()
        snapshots, _ = self._entries(folder / "snapshots")
        for snapshot in sorted(snapshots, key=lambda each: (each.name != current, each.name)):
            for path in self._files_below(snapshot, _MAX_DEPTH):
                found = self._found(path)
                if found is not None:
                    yield _with_origin(found)

    def _files_below(self, folder: Path, depth: int) -> Iterator[Path]:
        folders, files = self._entries(folder)
        yield from files
        if depth > 0:
            for each in folders:
                yield from self._files_below(each, depth - 1)

    def _ollama(self, root: Path) -> Iterator[FoundModelFile]:
        """Yield the blobs that `manifests/<host>/<namespace>/<model>/<tag>` name by hash."""
        manifests = root / "manifests"
        self._folders.read.append(str(manifests))
        for pattern in ("*", "*/*", "*/*/*"):
            self._folders.read += sorted(str(path) for path in manifests.glob(pattern) if path.is_dir())
        for manifest in sorted(manifests.glob("*/*/*/*")):
            try:
                layers = decode_json(self._small_text(manifest), _Manifest).layers
            except msgspec.DecodeError as error:
                _logger.info("%s is no manifest: %s", manifest, error)
                continue
            blobs = {layer.media_type: _blob(root, layer.digest) for layer in reversed(layers)}
            if _OLLAMA_TENSOR in blobs:
                self._note_other_format(manifest, ollama_title(manifest))
                continue
            model, projector = blobs.get(_OLLAMA_MODEL), blobs.get(_OLLAMA_PROJECTOR)
            found = self._found(model) if model is not None else None
            if model is None or found is None:
                continue
            host, namespace, name, _ = manifest.parts[-4:]
            named = msgspec.structs.replace(
                found,
                title=ollama_title(manifest),
                repo=f"{namespace}/{name}" if host in _HUGGING_FACE_HOSTS else "",
            )
            mmproj = self._found(projector) if projector is not None else None
            if mmproj is not None:
                yield msgspec.structs.replace(mmproj, title=tr("{0} (vision file)", named.title), repo=named.repo)
                named = msgspec.structs.replace(named, mmproj=mmproj.path)
            in_library = (host, namespace) == (_OLLAMA_HOST, _OLLAMA_LIBRARY)
            yield msgspec.structs.replace(named, from_ollamas_library=in_library)

    def _small_text(self, path: Path) -> bytes:
        """Return the bytes of a small file; none if it is missing or too large."""
        try:
            return read_bounded(path, _MAX_SMALL_FILE_BYTES)
        except OSError:
            return b""


def _with_origin(found: FoundModelFile) -> FoundModelFile:
    known = origin_of(Path(found.path))
    return msgspec.structs.replace(found, repo=known.repo, repo_path=known.path)


def _blob(root: Path, digest: str) -> Path | None:
    """Return the path of a blob; None for a text that isn't a digest, because it could lead to another folder."""
    kind, _, number = digest.partition(":")
    return root / "blobs" / f"sha256-{number}" if kind == "sha256" and _SHA256.fullmatch(number) else None
