"""Recognizes text that is a command line, a Modelfile, a link to a model, or "owner/repo:QUANT"."""

import re
from typing import Literal

from qwendesk.core.command_reader import ReadCommand, read_command
from qwendesk.core.model_name import read_model_name

PastedKind = Literal["", "command", "modelfile", "model"]

_LONGEST = 8000
"""Longer texts, in characters, are documents."""
_MODELFILE = re.compile(r"(?:\s*#[^\n]*\n|\s*\n)*[ \t]*FROM[ \t]+\S+[ \t]*(?:\r?\n|$)", re.IGNORECASE)
_OTHER_INSTRUCTION = re.compile(r"^[ \t]*(PARAMETER|SYSTEM|TEMPLATE|ADAPTER)[ \t]+\S", re.IGNORECASE | re.MULTILINE)
_DOCKER_INSTRUCTION = re.compile(r"^[ \t]*(RUN|COPY|CMD|ENTRYPOINT|WORKDIR)[ \t]+\S", re.MULTILINE)
_PROGRAM = re.compile(r"\b(llama-[a-z]+(-[a-z]+)?|ollama|vllm)\b")
_SUBCOMMAND = re.compile(r"\b(ollama(\.exe)? (run|pull|create)|vllm serve)[ \t]+\S")
_FLAG = re.compile(r"(^|\s)--?[A-Za-z]")
_QUANT = re.compile(r"(UD-)?(I?Q\d|TQ\d|BF16|F16|MXFP4|NVFP4)", re.IGNORECASE)


def command_name(text: str) -> str:
    """Return the program that a pasted command is for, such as "llama-server"."""
    found = _PROGRAM.search(text)
    return found[0] if found is not None else "llama.cpp"


def pasted_kind(text: str) -> PastedKind:
    """Return what `text` is as a whole. Prose about these programs, SQL, a Dockerfile or a path in code is ""."""
    text = text.strip()
    if not text or len(text) > _LONGEST:
        return ""
    name = read_model_name(text)
    if name is not None:
        is_link = "huggingface.co/" in text or "hf.co/" in text
        return "model" if is_link or _QUANT.match(name.quant) or name.repo.lower().endswith("-gguf") else ""
    if _MODELFILE.match(text):
        return "modelfile" if _OTHER_INSTRUCTION.search(text) and not _DOCKER_INSTRUCTION.search(text) else ""
    found = read_command(text)
    return "command" if found is not None and _is_command(text, found) else ""


def _is_command(text: str, found: ReadCommand) -> bool:
    """Return True if the text has a subcommand, or flags of which at least one means something."""
    if text.startswith("-"):
        return False
    means_something = bool(found.load or found.answer or (found.model is not None and found.model.text))
    return _SUBCOMMAND.search(text) is not None or (_FLAG.search(text) is not None and means_something)
