"""The model files in a place, by the layout of the app whose place it is. Only looks: nothing is opened for writing."""

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from qwendesk.core.files import decode_json
from qwendesk.hub.folders import is_hidden, repo_of
from qwendesk.hub.library_places import Origin, Place
from qwendesk.hub.origin import origin_of

_logger = logging.getLogger(__name__)

_MAX_DEPTH = 8
"""Folders below a place; the deepest layout in use has four."""
_MAX_SMALL_FILE_BYTES = 1024**2
"""Manifests and references have a few hundred bytes."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_OLLAMA_HOST, _OLLAMA_LIBRARY = "registry.ollama.ai", "library"
_HUGGING_FACE_HOSTS = ("hf.co", "huggingface.co")
_OLLAMA_MODEL = "application/vnd.ollama.image.model"
_OLLAMA_PROJECTOR = "application/vnd.ollama.image.projector"


class FoundFile(msgspec.Struct, frozen=True, kw_only=True):
    """One model file on disk, and what its place and name tell of it. "" where they do not."""

    path: str
    """As the app that owns it names it; may be a link."""
    real_path: str
    n_bytes: int
    mtime_ns: int
    origin: Origin
    place: str
    title: str = ""
    """What the owning app calls the model, where the file's name does not say."""
    repo: str = ""
    repo_path: str = ""
    mmproj: str = ""
    """The path of the picture file that the owning app pairs with it."""
    from_ollamas_library: bool = False


class _Layer(msgspec.Struct, rename="camel"):
    media_type: str = ""
    digest: str = ""


class _Manifest(msgspec.Struct):
    layers: list[_Layer] = []


def walk(place: Place, unreadable: list[str], depth: int = _MAX_DEPTH) -> Iterator[FoundFile]:
    """The model files in `place` and at most `depth` folders down; none when there is no such folder.

    Folders that cannot be read are added to `unreadable`.
    """
    root = Path(place.path)
    if root.is_dir():
        yield from _Walk(place, root, unreadable).folder(root, depth)


class _Walk:
    """One pass over one place."""

    def __init__(self, place: Place, root: Path, unreadable: list[str]) -> None:
        self._place = place
        self._root = root
        self._unreadable = unreadable
        self._entered: set[str] = set()

    def folder(self, folder: Path, depth: int) -> Iterator[FoundFile]:
        """Everything below `folder`. A link to a folder is followed, but no folder is entered twice."""
        real = os.path.realpath(folder)
        if real in self._entered:
            return
        self._entered.add(real)
        folders, files = self._entries(folder)
        names = {each.name for each in folders}
        if {"manifests", "blobs"} <= names:
            yield from self._ollama(folder)
        elif folder.name.startswith("models--") and "snapshots" in names:
            yield from self._hub_repo(folder)
        else:
            yield from (found for path in files if (found := self._plain(path)) is not None)
            if depth > 0:
                for each in folders:
                    yield from self.folder(each, depth - 1)

    def _entries(self, folder: Path) -> tuple[list[Path], list[Path]]:
        """Folders, and files that end in .gguf; hidden ones left out, both by name."""
        folders: list[Path] = []
        files: list[Path] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if is_hidden(entry.name):
                        continue
                    if entry.name.lower().endswith(".gguf"):
                        files.append(folder / entry.name)
                    elif entry.is_dir():
                        folders.append(folder / entry.name)
        except OSError as error:
            _logger.info("%s cannot be read: %s", folder, error)
            self._unreadable.append(str(folder))
        return sorted(folders), sorted(files)

    def _plain(self, path: Path) -> FoundFile | None:
        found = self._found(path)
        if found is None:
            return None
        if self._place.origin == "jan" and path.stem.lower() == "model":
            return msgspec.structs.replace(found, title=path.parent.name)
        if self._place.origin in ("ours", "lmstudio") and (known := repo_of(self._root, path)):
            return msgspec.structs.replace(found, repo=known[0], repo_path=known[1])
        return _with_origin(found)

    def _found(self, path: Path) -> FoundFile | None:
        """None when it is no file (any more), or a link that leads nowhere, as of an unfinished download."""
        try:
            status = path.stat()
        except OSError:
            return None
        if not path.is_file():
            return None
        return FoundFile(
            path=str(path),
            real_path=os.path.realpath(path),
            n_bytes=status.st_size,
            mtime_ns=status.st_mtime_ns,
            origin=self._place.origin,
            place=str(self._root),
        )

    def _hub_repo(self, folder: Path) -> Iterator[FoundFile]:
        """`models--owner--name/snapshots/<commit>/...`, the current commit first."""
        current = self._small_text(folder / "refs" / "main").decode("ascii", errors="replace").strip()
        snapshots, _ = self._entries(folder / "snapshots")
        for snapshot in sorted(snapshots, key=lambda each: (each.name != current, each.name)):
            for path in self._below(snapshot, _MAX_DEPTH):
                found = self._found(path)
                if found is not None:
                    yield _with_origin(found)

    def _below(self, folder: Path, depth: int) -> Iterator[Path]:
        folders, files = self._entries(folder)
        yield from files
        if depth > 0:
            for each in folders:
                yield from self._below(each, depth - 1)

    def _ollama(self, root: Path) -> Iterator[FoundFile]:
        """`manifests/<host>/<namespace>/<model>/<tag>` name their blobs by hash."""
        for manifest in sorted((root / "manifests").glob("*/*/*/*")):
            try:
                layers = decode_json(self._small_text(manifest), _Manifest).layers
            except msgspec.DecodeError as error:
                _logger.info("%s is no manifest: %s", manifest, error)
                continue
            blobs = {layer.media_type: _blob(root, layer.digest) for layer in reversed(layers)}
            model, projector = blobs.get(_OLLAMA_MODEL), blobs.get(_OLLAMA_PROJECTOR)
            found = self._found(model) if model is not None else None
            if model is None or found is None:
                continue
            host, namespace, name, tag = manifest.parts[-4:]
            named = msgspec.structs.replace(
                found,
                title=_ollama_title(host, namespace, name, tag),
                repo=f"{namespace}/{name}" if host in _HUGGING_FACE_HOSTS else "",
            )
            pictures = self._found(projector) if projector is not None else None
            if projector is not None and pictures is not None:
                yield msgspec.structs.replace(pictures, title=f"{named.title} (pictures)", repo=named.repo)
                named = msgspec.structs.replace(named, mmproj=pictures.path)
            in_library = (host, namespace) == (_OLLAMA_HOST, _OLLAMA_LIBRARY)
            yield msgspec.structs.replace(named, from_ollamas_library=in_library)

    def _small_text(self, path: Path) -> bytes:
        """The bytes of a small file; none when there is no such file or it is not small."""
        try:
            return path.read_bytes() if path.stat().st_size <= _MAX_SMALL_FILE_BYTES else b""
        except OSError:
            return b""


def _with_origin(found: FoundFile) -> FoundFile:
    known = origin_of(Path(found.path))
    return msgspec.structs.replace(found, repo=known.repo, repo_path=known.path)


def _blob(root: Path, digest: str) -> Path | None:
    """Where the blob of that digest lies; None for a text that is no digest (and might lead elsewhere)."""
    kind, _, number = digest.partition(":")
    return root / "blobs" / f"sha256-{number}" if kind == "sha256" and _SHA256.fullmatch(number) else None


def _ollama_title(host: str, namespace: str, name: str, tag: str) -> str:
    """As `ollama list` shows it."""
    if host != _OLLAMA_HOST:
        return f"{host}/{namespace}/{name}:{tag}"
    return f"{name}:{tag}" if namespace == _OLLAMA_LIBRARY else f"{namespace}/{name}:{tag}"
