"""Reads how people name a model: a Hub link, "owner/repo:QUANT", "hf.co/owner/repo:QUANT" or a file."""

import re
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

_REPO = r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*"
_NAMED = re.compile(rf"({_REPO})(?::([\w.-]+))?")
_HOSTS = ("huggingface.co", "www.huggingface.co", "hf.co")
_FORMAT_SUFFIX = re.compile(r"-(FP8|AWQ|GPTQ|Int4|Int8|NVFP4|MXFP4|bf16|GGUF)(?=-|$)", re.IGNORECASE)


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
