"""Titles of models, and the names by which people ask for one: a Hub link, "owner/repo:QUANT" or a file.

Not by its header: people write anything there.
"""

import functools
import re
from pathlib import Path, PurePath
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from qwendesk.core import file_names, paths
from qwendesk.core.served_model import served_model, served_name
from qwendesk.core.translation import tr

_BLOB = re.compile(r"sha256-[0-9a-f]{64}")
# Some uploaders write "Qwen_Qwen3.6-27B" for what its maker and the catalog call "Qwen3.6-27B".
_REPEATED_OWNER = re.compile(r"^([A-Za-z]+)_(?=\1)")
_OLLAMA_HOST, _OLLAMA_LIBRARY = "registry.ollama.ai", "library"
_MAX_MANIFEST_BYTES = 1024**2


def model_title(model: str) -> str:
    """Return what to call a model, written as in `LoadOptions.model`.

    That is the name of its file without ending and shard number, or what its app or server calls it. The file of a
    model of Ollama is named by a hash, and one of Jan is "model.gguf" in a folder with the model's name.
    """
    served = served_model(model)
    if served is not None:
        return served_name(served.name) or served.address.partition("://")[2]
    if paths.is_demo(model):
        return tr("Built-in demo")
    name = _REPEATED_OWNER.sub("", file_names.model_name(model))
    if _BLOB.fullmatch(name):
        return _title_of_blob(model) or name
    path = PurePath(model)
    is_jans = name.lower() == "model" and path.parent.parent.name != "snapshots"
    return path.parent.name or name if is_jans else name


def title_without_quant(model: str) -> str:
    """Return `model_title` without the quant at its end."""
    title = model_title(model)
    quants = () if served_model(model) is not None else file_names.quants_in(title)
    bare = title[: -len(quants[-1])].rstrip("-._: ") if quants and title.upper().endswith(quants[-1]) else title
    return bare or title


def ollama_title(manifest: Path) -> str:
    """Return the name that `ollama list` shows for the model of `manifests/<host>/<namespace>/<model>/<tag>`."""
    host, namespace, name, tag = manifest.parts[-4:]
    if host != _OLLAMA_HOST:
        return f"{host}/{namespace}/{name}:{tag}"
    return f"{name}:{tag}" if namespace == _OLLAMA_LIBRARY else f"{namespace}/{name}:{tag}"


@functools.lru_cache(maxsize=64)
def _title_of_blob(path: str) -> str:
    """Return Ollama's name of the model in a blob, from the first manifest that names it; "" if none does."""
    from qwendesk.core.input_files import read_bounded  # noqa: PLC0415 - few models are Ollama's

    digest = PurePath(path).name.replace("-", ":", 1).encode()
    for manifest in sorted(Path(path).parent.parent.glob("manifests/*/*/*/*")):
        try:
            if digest in read_bounded(manifest, _MAX_MANIFEST_BYTES):
                return ollama_title(manifest)
        except OSError:
            continue
    return ""


_REPO = r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*"
_NAMED = re.compile(rf"({_REPO})(?::([\w.-]+))?")
_HOSTS = ("huggingface.co", "www.huggingface.co", "hf.co")
_FORMAT_SUFFIX = re.compile(r"-(FP8|AWQ|GPTQ|Int4|Int8|NVFP4|MXFP4|bf16|GGUF|MLX|\d+bit)(?=-|$)", re.IGNORECASE)


class ModelName(msgspec.Struct, frozen=True):
    """A model as somebody named it. Either `file` or `repo` is set, or only `words`."""

    file: str = ""
    """Path of a GGUF file on a PC."""
    repo: str = ""
    """Repository on Hugging Face, owner/name."""
    path: str = ""
    """A file in the repository; "" if none was named."""
    quant: str = ""
    """The quant to choose in the repository; "" if none was named."""
    words: str = ""
    """Words to search for, if the name is not one of Hugging Face."""

    @property
    def text(self) -> str:
        """The name as it is shown."""
        if self.repo:
            return f"{self.repo}/{self.path}" if self.path else f"{self.repo}:{self.quant}" if self.quant else self.repo
        return self.file or self.words


def read_model_name(text: str) -> ModelName | None:
    """Return the model on Hugging Face that `text` names; None if it is something else, such as words to search for."""
    text = text.strip()
    if not text or any(character.isspace() for character in text):
        return None
    link = _read_link(text)
    if link is not None:
        return link
    named = _NAMED.fullmatch(text)
    if named is None or named[1].lower().endswith(".gguf"):
        return None
    return ModelName(repo=named[1], quant=named[2] or "")


def gguf_words(repo: str) -> str:
    """Return what to search for to find GGUF files of the model in `repo`, which is in another format."""
    return _FORMAT_SUFFIX.sub("", repo.rpartition("/")[2])


def _read_link(text: str) -> ModelName | None:
    with_scheme = text if "://" in text else f"https://{text}"
    try:
        parts = urlsplit(with_scheme)
        host = parts.hostname
    except ValueError:
        return None
    if host not in _HOSTS:
        return None
    pieces = [unquote(piece) for piece in parts.path.split("/") if piece]
    if len(pieces) < 2 or pieces[0] in ("datasets", "spaces", "collections", "docs", "models", "papers", "blog"):
        return None
    named = _NAMED.fullmatch("/".join(pieces[:2]))
    if named is None:
        return None
    path = "/".join(pieces[4:]) if len(pieces) > 4 and pieces[2] in ("blob", "resolve", "raw") else ""
    shown = parse_qs(parts.query).get("show_file_info", [""])[0]
    return ModelName(repo=named[1], path=path or shown, quant=named[2] or "")
