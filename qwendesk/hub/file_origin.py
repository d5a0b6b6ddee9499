"""FileOrigin: where a file on disk came from, according to its folders and the records of its download."""

import re
from pathlib import Path

import msgspec

from qwendesk.core.input_files import read_text_bounded
from qwendesk.core.links import real_path
from qwendesk.hub.finding_texts import DetailSource

_SHA256 = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_OLLAMA_BLOB = re.compile(r"sha256-(?P<sha256>[0-9a-f]{64})")
# Names in llama.cpp's own cache, before it used the Hub's layout.
_FLAT_NAME = re.compile(r"(?P<owner>[^_]+)_(?P<repo>.+?-GGUF)_(?P<path>.+\.gguf)", re.IGNORECASE)
_SMALL_TEXT_BYTES = 64 * 1024
# How many levels above a file its repository's folder is searched for.
_LEVELS = 4
_MAX_MANIFESTS = 2000


class FileOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Origin of a file. Unknown fields are ""."""

    repo: str = ""
    path: str = ""
    """Path in the repository."""
    commit: str = ""
    sha256: str = ""
    """Recorded when the file was downloaded, not computed from its bytes."""
    record: DetailSource = "folder name"
    """Place where the hash is recorded."""
    is_ollama_blob: bool = False
    ollama_model: str = ""
    """The manifest that names the blob, such as "registry.ollama.ai/library/qwen3.5/35b"."""


def origin_of(path: Path) -> FileOrigin:
    """Return the origin of a file. Reads only small files near it (Hub records, Ollama manifests), never the file."""
    return _in_hub_cache(path) or _ollama_blob(path) or _in_local_folder(path) or FileOrigin()


def _in_hub_cache(path: Path) -> FileOrigin | None:
    """Return the origin of a file in huggingface_hub's cache; None for other files.

    `path` is `models--owner--name/snapshots/<commit>/<path>`, a link to `blobs/<sha256>`, or such a blob itself.
    """
    parts = path.parts
    at = next((index for index, part in enumerate(parts) if part.startswith("models--")), None)
    if at is None or len(parts) < at + 3:
        return None
    repo = parts[at].removeprefix("models--").replace("--", "/", 1)
    if parts[at + 1] == "blobs":
        sha256 = path.name if _SHA256.fullmatch(path.name) else ""
        return FileOrigin(repo=repo, sha256=sha256, record="cache blob")
    if parts[at + 1] != "snapshots" or len(parts) < at + 4:
        return None
    blob = real_path(path)
    # A link may lead to a store that several repositories share, whose files are named by another kind of hash.
    is_own = blob.parent == real_path(Path(*parts[: at + 1])) / "blobs"
    return FileOrigin(
        repo=repo,
        path="/".join(parts[at + 3 :]),
        commit=parts[at + 2] if _COMMIT.fullmatch(parts[at + 2]) else "",
        sha256=blob.name if is_own and _SHA256.fullmatch(blob.name) else "",
        record="cache entry",
    )


def _ollama_blob(path: Path) -> FileOrigin | None:
    found = _OLLAMA_BLOB.fullmatch(path.name)
    if found is None or path.parent.name != "blobs":
        return None
    manifest = _manifest_of(path.parent.parent / "manifests", found["sha256"])
    host, _, rest = manifest.partition("/")
    return FileOrigin(
        repo=rest.rpartition("/")[0] if host in ("hf.co", "huggingface.co") else "",
        sha256=found["sha256"],
        record="ollama blob",
        is_ollama_blob=True,
        ollama_model=manifest,
    )


def _manifest_of(folder: Path, sha256: str) -> str:
    """Return the path in `folder` of the first manifest that contains this hash; "" if there is none."""
    if not folder.is_dir():
        return ""
    for count, manifest in enumerate(sorted(folder.rglob("*"))):
        if count >= _MAX_MANIFESTS:
            break
        if manifest.is_file() and f"sha256:{sha256}" in _small_text(manifest):
            return manifest.relative_to(folder).as_posix()
    return ""


def _in_local_folder(path: Path) -> FileOrigin | None:
    """Return the origin of a file in a repository's folder (`owner/name-GGUF/...`); None for other files.

    Includes the record of huggingface_hub if there is one.
    """
    repo, inside = _repo_by_folder(path)
    for folder in list(path.parents)[:_LEVELS]:
        relative = path.relative_to(folder)
        record = folder / ".cache" / "huggingface" / "download" / f"{relative}.metadata"
        lines = _small_text(record).split("\n")
        if len(lines) >= 2 and _COMMIT.fullmatch(lines[0].strip()):
            etag = lines[1].strip().strip('"')
            return FileOrigin(
                repo=repo,
                path=relative.as_posix(),
                commit=lines[0].strip(),
                sha256=etag if _SHA256.fullmatch(etag) else "",
                record="download record",
            )
    return FileOrigin(repo=repo, path=inside, record="folder name") if repo else None


def _repo_by_folder(path: Path) -> tuple[str, str]:
    for folder in list(path.parents)[: _LEVELS - 1]:
        if re.search(r"-GGUF$", folder.name, re.IGNORECASE) and folder.parent.name:
            return f"{folder.parent.name}/{folder.name}", path.relative_to(folder).as_posix()
    flat = _FLAT_NAME.fullmatch(path.name)
    return (f"{flat['owner']}/{flat['repo']}", flat["path"]) if flat else ("", "")


def _small_text(path: Path) -> str:
    """Return the text of a small file; "" if it is missing or can't be read."""
    try:
        return read_text_bounded(path, _SMALL_TEXT_BYTES)
    except OSError:
        return ""
