"""Recognizes text that is a command line, a Modelfile, a link to a model, or "owner/repo:QUANT"."""

import re
from typing import TYPE_CHECKING, Literal

from qwendesk.core.file_names import model_name, quant_in_name
from qwendesk.core.model_titles import ModelName, read_model_name

if TYPE_CHECKING:
    from qwendesk.commands.command_reader import ReadCommand

PastedKind = Literal["", "command", "modelfile", "model"]

# Longer texts, in characters, are documents.
LONGEST_COMMAND = 8000
_MODELFILE = re.compile(r"(?:\s*#[^\n]*\n|\s*\n)*[ \t]*FROM[ \t]+\S+[ \t]*(?:\r?\n|$)", re.IGNORECASE)
_OTHER_INSTRUCTION = re.compile(r"^[ \t]*(PARAMETER|SYSTEM|TEMPLATE|ADAPTER)[ \t]+\S", re.IGNORECASE | re.MULTILINE)
_DOCKER_INSTRUCTION = re.compile(r"^[ \t]*(RUN|COPY|CMD|ENTRYPOINT|WORKDIR)[ \t]+\S", re.MULTILINE)
_PROGRAM = re.compile(
    r"\b(llama-(?!cpp)[a-z]+(-[a-z]+)?|ollama|vllm|sglang|mlx_lm|(hf|huggingface-cli)(?= download))\b"
)
_SUBCOMMAND = re.compile(r"\b(ollama(\.exe)? (run|pull|create)|vllm serve|(hf|huggingface-cli) download)\s+\S")
_FLAG = re.compile(r"(^|\s)(--?|[\u2010-\u2015])[A-Za-z]")
# A line of a compose file, whose service may be described by variables alone.
_IMAGE = re.compile(r"^[^\S\n]*(- )?image:\s*\S", re.MULTILINE)
# The end of a line that goes on, where a field of one line has joined the lines.
_CONTINUED = re.compile(r"[\\^`](?=\s+-)")
_QUANT = re.compile(r"(UD-)?(I?Q\d|TQ\d|BF16|F16|MXFP4|NVFP4)", re.IGNORECASE)


def command_name(text: str) -> str:
    """Return the program that a pasted command is for, such as "llama-server"."""
    found = _PROGRAM.search(text)
    return found[0] if found is not None else "llama.cpp"


def pasted_kind(text: str) -> PastedKind:
    """Return what `text` is as a whole. Prose about these programs, SQL, a Dockerfile or a path in code is ""."""
    text = text.strip()
    if not text or len(text) > LONGEST_COMMAND:
        return ""
    name = read_model_name(text)
    if name is not None:
        is_link = "huggingface.co/" in text or "hf.co/" in text
        return "model" if is_link or _QUANT.match(name.quant) or name.repo.lower().endswith("-gguf") else ""
    if _MODELFILE.match(text):
        return "modelfile" if _OTHER_INSTRUCTION.search(text) and not _DOCKER_INSTRUCTION.search(text) else ""
    # Imported only now, because most pasted text is none of all that.
    from qwendesk.commands.command_reader import read_command  # noqa: PLC0415

    found = read_command(text)
    return "command" if found is not None and _is_command(text, found) else ""


def named_model(text: str) -> ModelName | None:
    """Return the model on Hugging Face that `text` names, by itself or in a command.

    Return words to search for if a command names a file, or a model of Ollama's library; None if it names no model.
    """
    name = read_model_name(text)
    if name is not None or pasted_kind(text) not in ("command", "modelfile"):
        return name
    from qwendesk.commands.command_reader import read_command  # noqa: PLC0415

    found = read_command(_CONTINUED.sub(" ", text))
    name = found.model if found is not None else None
    if name is None or not name.file:
        return name
    title = model_name(name.file)
    return ModelName(words=title.removesuffix(quant_in_name(name.file)).strip("-_. "))


def _is_command(text: str, found: "ReadCommand") -> bool:
    """Return True if the text has a subcommand, or flags of which at least one means something."""
    if text.startswith("-"):
        return False
    means_something = bool(found.load or found.answer or (found.model is not None and found.model.text))
    if _IMAGE.search(text):
        return means_something or found.program == "ollama"
    return _SUBCOMMAND.search(text) is not None or (_FLAG.search(text) is not None and means_something)
