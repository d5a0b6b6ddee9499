"""BrowserPages: the files with HTML or SVG of answers that the system's browser opens."""

import asyncio
import logging
import secrets
from pathlib import Path

import msgspec

from qwendesk.chat.browser_page import page_of
from qwendesk.core import paths
from qwendesk.core.errors import BadRequest
from qwendesk.core.files import reason_of, write_whole
from qwendesk.core.json_file import JsonFile
from qwendesk.core.translation import tr

_logger = logging.getLogger(__name__)


class _Explained(msgspec.Struct, frozen=True):
    is_explained: bool = False


class BrowserPages:
    """Owns the folder of the files, which are deleted when the app closes and starts.

    Methods are called on the event loop's thread.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or paths.cache_folder() / "browser-pages"
        self._note = JsonFile(paths.config_folder() / "browser-pages.json", _Explained, _Explained, keep_unusable=False)

    async def is_explained(self) -> bool:
        """Return whether the user has been told what opening a page means."""
        return (await asyncio.to_thread(self._note.read)).is_explained

    async def note_explained(self) -> None:
        await asyncio.to_thread(self._note.try_write, _Explained(is_explained=True))

    async def write(self, text: str, language: str) -> Path:
        """Write a page, under a name that nobody can guess, and return its path. Raises BadRequest."""
        path = self._folder / f"{secrets.token_hex(16)}.html"
        content = page_of(text, language, tr("From a chat in QwenDesk")).encode()
        try:
            await asyncio.to_thread(write_whole, path, content)
        except OSError as error:
            sentence = tr("The page couldn't be written: {0}.", reason_of(error, path))
            raise BadRequest(tr("Page not opened"), sentence) from error
        return path

    async def delete_all(self) -> None:
        """Delete all pages. What a program has open is left for the next time."""
        await asyncio.to_thread(_delete, self._folder)


def _delete(folder: Path) -> None:
    for file in folder.glob("*.html*"):
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            _logger.warning("%s can't be deleted: %s", file, error.strerror)
