"""Saves code of an answer as a file."""

import asyncio
from pathlib import Path
from typing import Final

from PySide6.QtWidgets import QWidget

from qwendesk.core.errors import BadRequest
from qwendesk.core.translation import tr
from qwendesk.widgets.file_dialogs import ask_where_to_save
from qwendesk.widgets.tasks import window_tasks

_SUFFIXES: Final = {
    "python": "py", "py": "py", "bash": "sh", "sh": "sh", "shell": "sh", "zsh": "sh", "powershell": "ps1",
    "javascript": "js", "js": "js", "typescript": "ts", "ts": "ts", "tsx": "tsx", "jsx": "jsx", "html": "html",
    "css": "css", "json": "json", "yaml": "yaml", "yml": "yaml", "toml": "toml", "xml": "xml", "sql": "sql",
    "c": "c", "cpp": "cpp", "c++": "cpp", "csharp": "cs", "cs": "cs", "c#": "cs", "java": "java", "kotlin": "kt",
    "rust": "rs", "go": "go", "ruby": "rb", "php": "php", "swift": "swift", "lua": "lua", "r": "r", "markdown": "md",
    "md": "md", "latex": "tex", "tex": "tex", "csv": "csv", "ini": "ini", "diff": "diff", "dockerfile": "dockerfile",
}  # fmt: skip


def suggested_name(language: str) -> str:
    """Return a file name such as "code.py" for Python; "code.txt" for an unknown language."""
    return f"code.{_SUFFIXES.get(language.lower(), 'txt')}"


def ask_to_save_code(parent: QWidget, text: str, language: str) -> None:
    """Open the system's save dialog, and write the file once a location is chosen."""

    def save(path: str) -> None:
        window_tasks().start(write_code(Path(path), text))

    ask_where_to_save(parent, "thread.savecode", tr("Save the code as a file"), suggested_name(language), save)


async def write_code(path: Path, text: str) -> None:
    """Write `text` with a newline after its last line. Raise BadRequest if the file cannot be written."""
    content = text if text.endswith("\n") else text + "\n"
    try:
        # As the model wrote it: with Windows' line ends, a shell script would not run.
        await asyncio.to_thread(path.write_text, content, encoding="utf-8", newline="\n")
    except OSError as error:
        sentence = tr("Couldn't save {0}: {1}. Choose another location.", path, error.strerror or error)
        raise BadRequest(tr("Not saved"), sentence) from error
