"""Reads the text of an attached text, code, PDF or Office file, which a question quotes. All functions block."""

import types
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from qwendesk.chat.documents.pdf import pdf_text
from qwendesk.core.errors import BadRequest
from qwendesk.core.input_files import FileTooLarge, open_regular, read_bounded
from qwendesk.core.messages import DocumentPart
from qwendesk.core.text_decoding import HEAD_BYTES, decode_text, is_text
from qwendesk.core.translation import tr
from qwendesk.core.units import MIB, show_bytes
from qwendesk.decoding.documents import UNITS, document_format, read_pieces

# About four million tokens: more than any context length, and small enough to be read at once.
MAX_TEXT_BYTES = 16 * MIB
_TEXT_ENDINGS = "txt text log csv tsv srt vtt tex bib org rst adoc env cfg conf properties lock diff patch"
_CODE_ENDINGS = {
    "python": "py pyi pyw", "javascript": "js mjs cjs jsx", "typescript": "ts tsx", "c": "c h", "cpp": "cpp cc cxx hpp",
    "csharp": "cs", "java": "java", "kotlin": "kt kts", "go": "go", "rust": "rs", "ruby": "rb", "php": "php",
    "swift": "swift", "scala": "scala", "lua": "lua", "perl": "pl pm", "r": "r", "julia": "jl", "dart": "dart",
    "bash": "sh bash zsh", "powershell": "ps1 psm1", "bat": "bat cmd", "sql": "sql", "html": "html htm", "css": "css",
    "scss": "scss", "xml": "xml svg", "json": "json jsonl ipynb", "yaml": "yaml yml", "toml": "toml", "ini": "ini",
    "markdown": "md markdown", "cmake": "cmake", "glsl": "glsl vert frag", "cuda": "cu cuh", "zig": "zig",
    "haskell": "hs", "elixir": "ex exs", "vue": "vue", "svelte": "svelte", "jinja": "jinja j2", "gdscript": "gd",
}  # fmt: skip

# Language by file extension, in lower case and without the dot; "" for plain text.
LANGUAGE_OF: Mapping[str, str] = types.MappingProxyType(
    {ending: language for language, endings in _CODE_ENDINGS.items() for ending in endings.split()}
    | dict.fromkeys(_TEXT_ENDINGS.split(), "")
)

DOCUMENT_ENDINGS = tuple(UNITS)
_NAMES_WITHOUT_ENDING: Mapping[str, str] = types.MappingProxyType(
    {"makefile": "makefile", "dockerfile": "dockerfile", "license": ""}
)


def read_document(path: Path, pages: Sequence[int] = (), encoding: str = "") -> DocumentPart:
    """Return the file as part of a question. For a PDF, `pages` are the pages to read; all if none is given.

    `encoding` is that of a text, one of ENCODINGS; "" finds it. Raises BadRequest if the file isn't text, is too large
    or can't be read.
    """
    name = path.name.encode("utf-8", "replace").decode()
    if is_pdf(path.name) and not path.is_dir():
        text, n_pages = pdf_text(path, pages)
        return DocumentPart(name, text.encode("utf-8", "replace").decode(), pages=n_pages)
    if document_format(path.name) and not path.is_dir():
        return DocumentPart(name, _document_text(path).encode("utf-8", "replace").decode())
    try:
        if path.is_dir():
            raise BadRequest(tr("A folder"), tr("{0} is a folder. Attach the files in it instead.", path.name))
        raw = read_bounded(path, MAX_TEXT_BYTES)
    except FileTooLarge as error:
        size, most = show_bytes(error.size_bytes), show_bytes(MAX_TEXT_BYTES)
        sentence = tr("{0} has {1}. You can attach text files up to {2}.", path.name, size, most)
        raise BadRequest(tr("File too large"), sentence) from error
    except OSError as error:
        sentence = tr("{0} can't be read: {1}.", path.name, error.strerror or error)
        raise BadRequest(tr("File not readable"), sentence) from error
    if not raw.strip():
        raise BadRequest(tr("File is empty"), tr("{0} is empty.", path.name))
    decoded = decode_text(raw, encoding)
    if decoded is None:
        sentence = tr(
            "{0} is not a text file. You can attach pictures, PDF, Office documents, text and code.", path.name
        )
        raise BadRequest(tr("Not a text file"), sentence)
    return DocumentPart(name, decoded.text, language=language_of(path.name) or "", encoding=decoded.encoding)


def is_document(path: Path) -> bool:
    """Return whether a file can be quoted, judged by its name or, if that isn't known, by its first bytes."""
    if document_format(path.name) or language_of(path.name) is not None:
        return True
    try:
        with open_regular(path) as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return False
    return bool(head) and is_text(head)


def language_of(name: str) -> str | None:
    """Return the language of a file by its name; "" for plain text, None if unknown."""
    path = PurePath(name)
    ending = path.suffix.lower().lstrip(".")
    return LANGUAGE_OF.get(ending) if ending else _NAMES_WITHOUT_ENDING.get(path.name.lower())


def is_pdf(name: str) -> bool:
    return document_format(name) == "pdf"


def _document_text(path: Path) -> str:
    """Return the text of an Office document or e-book, with the names of its sheets above them."""
    pieces = read_pieces(path)
    return "\n\n".join("\n".join(filter(None, (piece.name, piece.text))) for piece in pieces if piece.text)
