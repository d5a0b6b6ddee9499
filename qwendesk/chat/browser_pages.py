"""BrowserPages: the pages with HTML or SVG of answers that the system's browser opens. They load nothing and run
nothing.

What the model wrote may be what a hostile text told it to write, with something of the user in an address. So:

- The answer's text is only ever the value of one attribute, `srcdoc` of an iframe. Whatever it says, the page around it
  stays the same, with the policy as the first element of the head.
- The policy is the first element of the document in the frame too, which inherits the outer one in any case. A policy
  of the answer can only forbid more.
- A policy does not stop a page from going elsewhere: by <meta http-equiv=refresh>, a form, or a link. The frame's empty
  `sandbox` does: no scripts, forms, pop-ups or automatic refresh, and the page around can't be replaced. Where the
  frame itself would go is again forbidden by the policy.
- Neither stops a <link> that only looks up a name (dns-prefetch, preconnect), and names can tell something. A policy
  forbids all other links already, so none is left.
"""

import asyncio
import html
import logging
import re
import secrets
from pathlib import Path
from typing import Final

import msgspec

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
        """Delete all pages. A file that a program has open is left for the next time."""
        await asyncio.to_thread(_delete, self._folder)


def _delete(folder: Path) -> None:
    for file in folder.glob("*.html*"):
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            _logger.warning("%s can't be deleted: %s", file, error.strerror)


POLICY: Final = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_MORE: Final = "base-uri 'none'; form-action 'none'"
_METAS: Final = (
    f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    f'<meta http-equiv="Content-Security-Policy" content="{_MORE}">'
    '<meta charset="utf-8">'
    '<meta http-equiv="x-dns-prefetch-control" content="off">'
    '<meta name="referrer" content="no-referrer">'
)
_LINK: Final = re.compile(r"<(?=link(?:[\s/>]|\Z))", re.IGNORECASE)
# Nothing is tried twice, so that a long text without an end doesn't stop the window.
_PROLOG: Final = re.compile(
    r"\A\s*+(?:<\?xml[^>]*+>\s*+)?(?:<!DOCTYPE\s[^>\[]*+(?:\[[^\]]*+\])?[^>]*+>\s*+)?", re.IGNORECASE
)
_HTML, _SVG = ("html", "htm", "xhtml"), ("svg", "xml")


def is_page(language: str, text: str) -> bool:
    """Return whether code of an answer can be shown as a page; `language` is that of its fence."""
    name = language.lower()
    return name in _HTML or name == "svg" or (name == "xml" and _is_svg(text))


def page_of(text: str, language: str, title: str) -> str:
    """Return the page that shows HTML or SVG. Its bytes must be written as UTF-8, with the byte order mark it has."""
    text = text.removeprefix("\ufeff").encode("utf-8", "replace").decode("utf-8")
    if language.lower() in _SVG or _is_svg(text):
        # An HTML page may contain <svg>, but no XML declaration and no document type before it.
        text = f"<title>{html.escape(title)}</title><body>{_PROLOG.sub('', text)}"
    inner = f"<!doctype html><html><head>{_METAS}{_LINK.sub('<no-', text)}"
    return (
        f"\ufeff<!doctype html><html><head>{_METAS}<title>{html.escape(title)}</title>"
        "<style>html, body { margin: 0; height: 100%; background: white } "
        "iframe { display: block; width: 100%; height: 100%; border: 0 }</style></head>"
        f'<body><iframe sandbox="" srcdoc="{html.escape(inner)}"></iframe></body></html>\n'
    )


def _is_svg(text: str) -> bool:
    return bool(re.match(r"<svg[\s>]", _PROLOG.sub("", text), re.IGNORECASE))
