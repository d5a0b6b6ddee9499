"""Code of an answer as a file: what it is called, where it goes."""

import asyncio
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QWidget

from qwendesk.core.errors import BadRequest
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr

_SUFFIXES: Final = {
    "python": "py", "py": "py", "bash": "sh", "sh": "sh", "shell": "sh", "zsh": "sh", "powershell": "ps1",
    "javascript": "js", "js": "js", "typescript": "ts", "ts": "ts", "tsx": "tsx", "jsx": "jsx", "html": "html",
    "css": "css", "json": "json", "yaml": "yaml", "yml": "yaml", "toml": "toml", "xml": "xml", "sql": "sql",
    "c": "c", "cpp": "cpp", "c++": "cpp", "csharp": "cs", "cs": "cs", "c#": "cs", "java": "java", "kotlin": "kt",
    "rust": "rs", "go": "go", "ruby": "rb", "php": "php", "swift": "swift", "lua": "lua", "r": "r", "markdown": "md",
    "md": "md", "latex": "tex", "tex": "tex", "csv": "csv", "ini": "ini", "diff": "diff", "dockerfile": "dockerfile",
}  # fmt: skip


def suggested_name(language: str) -> str:
    """ "code.py" for Python; "code.txt" for a language that is not known."""
    return f"code.{_SUFFIXES.get(language.lower(), 'txt')}"


def ask_where_to_save(parent: QWidget, tasks: Tasks, text: str, language: str) -> None:
    """Open the system's dialog; the file is written when a place was chosen."""
    dialog = QFileDialog(parent, tr("Save the code as a file"))
    dialog.setObjectName("thread.savecode")
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.selectFile(suggested_name(language))
    dialog.fileSelected.connect(lambda path: tasks.start(write_code(Path(path), text)))
    dialog.open()


async def write_code(path: Path, text: str) -> None:
    """Write `text` with a line end after its last line. Raises BadRequest when the file cannot be written."""
    content = text if text.endswith("\n") else text + "\n"
    try:
        await asyncio.to_thread(path.write_text, content, encoding="utf-8")
    except OSError as error:
        sentence = tr("{0} could not be written: {1}. Choose another place.", path, error.strerror)
        raise BadRequest(tr("Not saved"), sentence) from error
