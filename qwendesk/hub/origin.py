"""Where a file on disk came from, as far as folders and the notes beside it tell without asking anyone."""

import re
from pathlib import Path

import msgspec

_SHA256 = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_OLLAMA_BLOB = re.compile(r"sha256-(?P<sha256>[0-9a-f]{64})")
_FLAT_NAME = re.compile(r"(?P<owner>[^_]+)_(?P<repo>.+?-GGUF)_(?P<path>.+\.gguf)", re.IGNORECASE)
"""How llama.cpp named files in its own cache before it used the Hub's layout."""
_NOTE_LIMIT_BYTES = 64 * 1024
_LEVELS = 4
"""How far above a file its repository's folder is looked for."""
_MAX_MANIFESTS = 2000


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Texts are "" where nothing tells."""

    repo: str = ""
    path: str = ""
    """Within the repository."""
    commit: str = ""
    sha256: str = ""
    """What the file was said to be when it was fetched; not computed from its bytes."""
    stated_by: str = ""
    """What says so, for people."""
    is_ollama_blob: bool = False
    ollama_model: str = ""
    """The manifest that names the blob: "registry.ollama.ai/library/qwen3.5/35b"."""


def origin_of(path: Path) -> Origin:
    """Reads only small notes near the file (Hub records, Ollama manifests), never the file."""
    return _in_hub_cache(path) or _ollama_blob(path) or _in_local_folder(path) or Origin()


def _in_hub_cache(path: Path) -> Origin | None:
    """`models--owner--name/snapshots/<commit>/<path>` -> `blobs/<sha256>`, or the blob itself."""
    parts = path.parts
    at = next((index for index, part in enumerate(parts) if part.startswith("models--")), None)
    if at is None or len(parts) < at + 3:
        return None
    repo = parts[at].removeprefix("models--").replace("--", "/", 1)
    if parts[at + 1] == "blobs":
        sha256 = path.name if _SHA256.fullmatch(path.name) else ""
        return Origin(repo=repo, sha256=sha256, stated_by="its name in the Hugging Face cache")
    if parts[at + 1] != "snapshots" or len(parts) < at + 4:
        return None
    blob = path.resolve()
    # A store shared between repositories names its files by another hash, in folders of their own.
    is_own = blob.parent == Path(*parts[: at + 1]).resolve() / "blobs"
    return Origin(
        repo=repo,
        path="/".join(parts[at + 3 :]),
        commit=parts[at + 2] if _COMMIT.fullmatch(parts[at + 2]) else "",
        sha256=blob.name if is_own and _SHA256.fullmatch(blob.name) else "",
        stated_by="its place in the Hugging Face cache",
    )


def _ollama_blob(path: Path) -> Origin | None:
    found = _OLLAMA_BLOB.fullmatch(path.name)
    if found is None or path.parent.name != "blobs":
        return None
    manifest = _manifest_of(path.parent.parent / "manifests", found["sha256"])
    host, _, rest = manifest.partition("/")
    return Origin(
        repo=rest.rpartition("/")[0] if host in ("hf.co", "huggingface.co") else "",
        sha256=found["sha256"],
        stated_by="its name among Ollama's blobs",
        is_ollama_blob=True,
        ollama_model=manifest,
    )


def _manifest_of(folder: Path, sha256: str) -> str:
    """The first manifest that mentions these bytes, as a path below `folder`; "" when none does."""
    if not folder.is_dir():
        return ""
    for count, manifest in enumerate(sorted(folder.rglob("*"))):
        if count >= _MAX_MANIFESTS:
            break
        if manifest.is_file() and f"sha256:{sha256}" in _note(manifest):
            return manifest.relative_to(folder).as_posix()
    return ""


def _in_local_folder(path: Path) -> Origin | None:
    """A repository's folder (`owner/name-GGUF/...`), with the Hub library's record of the download if there is one."""
    repo, inside = _repo_by_folder(path)
    for folder in list(path.parents)[:_LEVELS]:
        relative = path.relative_to(folder)
        record = folder / ".cache" / "huggingface" / "download" / f"{relative}.metadata"
        lines = _note(record).split("\n")
        if len(lines) >= 2 and _COMMIT.fullmatch(lines[0].strip()):
            etag = lines[1].strip().strip('"')
            return Origin(
                repo=repo,
                path=relative.as_posix(),
                commit=lines[0].strip(),
                sha256=etag if _SHA256.fullmatch(etag) else "",
                stated_by="the Hub's record of its download beside it",
            )
    return Origin(repo=repo, path=inside, stated_by="its folder's name") if repo else None


def _repo_by_folder(path: Path) -> tuple[str, str]:
    for folder in list(path.parents)[: _LEVELS - 1]:
        if re.search(r"-GGUF$", folder.name, re.IGNORECASE) and folder.parent.name:
            return f"{folder.parent.name}/{folder.name}", path.relative_to(folder).as_posix()
    flat = _FLAT_NAME.fullmatch(path.name)
    return (f"{flat['owner']}/{flat['repo']}", flat["path"]) if flat else ("", "")


def _note(path: Path) -> str:
    """The text of a small file; "" when there is none, or it is none."""
    try:
        if not path.is_file() or path.stat().st_size > _NOTE_LIMIT_BYTES:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
