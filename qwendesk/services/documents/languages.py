"""Which files are text, and what a fence in Markdown calls their language."""

import types
from collections.abc import Mapping
from pathlib import PurePath

_TEXT = "txt text log csv tsv srt vtt tex bib org rst adoc env cfg conf properties lock diff patch"
_CODE = {
    "python": "py pyi pyw", "javascript": "js mjs cjs jsx", "typescript": "ts tsx", "c": "c h", "cpp": "cpp cc cxx hpp",
    "csharp": "cs", "java": "java", "kotlin": "kt kts", "go": "go", "rust": "rs", "ruby": "rb", "php": "php",
    "swift": "swift", "scala": "scala", "lua": "lua", "perl": "pl pm", "r": "r", "julia": "jl", "dart": "dart",
    "bash": "sh bash zsh", "powershell": "ps1 psm1", "bat": "bat cmd", "sql": "sql", "html": "html htm", "css": "css",
    "scss": "scss", "xml": "xml svg", "json": "json jsonl ipynb", "yaml": "yaml yml", "toml": "toml", "ini": "ini",
    "markdown": "md markdown", "cmake": "cmake", "glsl": "glsl vert frag", "cuda": "cu cuh", "zig": "zig",
    "haskell": "hs", "elixir": "ex exs", "vue": "vue", "svelte": "svelte", "jinja": "jinja j2", "gdscript": "gd",
}  # fmt: skip

LANGUAGE_OF: Mapping[str, str] = types.MappingProxyType(
    {ending: language for language, endings in _CODE.items() for ending in endings.split()}
    | dict.fromkeys(_TEXT.split(), "")
)
"""Language by file ending, lower case, without the dot; "" for plain text."""

PDF_ENDING = "pdf"
_NAMES: Mapping[str, str] = types.MappingProxyType({"makefile": "makefile", "dockerfile": "dockerfile", "license": ""})


def language_of(name: str) -> str | None:
    """The language of a file of this name; "" for plain text, None when the name says nothing."""
    path = PurePath(name)
    ending = path.suffix.lower().lstrip(".")
    return LANGUAGE_OF.get(ending) if ending else _NAMES.get(path.name.lower())


def is_pdf(name: str) -> bool:
    return PurePath(name).suffix.lower() == f".{PDF_ENDING}"
