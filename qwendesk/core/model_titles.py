"""What to call a model, everywhere: by its file, its app or its server.

Not by its header: people write anything there.
"""

import functools
import re
from pathlib import Path, PurePath

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
