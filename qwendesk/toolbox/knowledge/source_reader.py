"""Reads what a citation stands for: the text of the file around the place, with the place found again if it moved."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from qwendesk.core.citations import Citation, Source
from qwendesk.core.translation import tr
from qwendesk.decoding.documents import document_format, render_pages
from qwendesk.toolbox.folder_access import FolderAccess
from qwendesk.toolbox.knowledge.file_texts import FilePart, NoText, UnreadableFile, read_parts
from qwendesk.toolbox.tool import ToolError

LINES_AROUND: Final = 300
"""How many lines before and after the place are shown at most."""
_PAGE_PIXELS = 1600
"""The longest side of a page that is drawn."""
_CUT_OFF = "…"
_SHORTEST_PIECE = 300
"""Only a line that is longer than a passage is given in pieces."""


async def read_source(citation: Citation, folders: Sequence[str]) -> Source:
    """Return the text around a citation, from a file in one of the picked folders.

    If the file can't be read any more, these are the lines that the search found, with the reason.
    """
    return await asyncio.to_thread(_read, citation, folders)


async def read_page(source: Source) -> bytes:
    """Return the page of a PDF that a citation is on, as the content of a PNG file. Raise BadRequest if it can't."""
    pages = await asyncio.to_thread(render_pages, Path(source.file), (source.citation.at,), _PAGE_PIXELS)
    return pages[0]


def _read(citation: Citation, folders: Sequence[str]) -> Source:
    try:
        file = FolderAccess(folders).find(citation.path)
        parts = read_parts(file)
        part = next((each for each in parts if each.at == citation.at), None)
        if part is not None:
            return _around(citation, part, str(file))
        obstacle = tr("The file has changed: this part is no longer in it.")
    except ToolError:
        obstacle = tr("The file is no longer in a folder of this chat.")
    except NoText:
        obstacle = tr("The file has no text any more.")
    except UnreadableFile as error:
        obstacle = str(error)
    return Source(citation, citation.found, citation.first, cited=citation.first, obstacle=obstacle)


def _around(citation: Citation, part: FilePart, file: str) -> Source:
    cited = _place_now(citation, part.lines)
    start = max(0, (cited or citation.first) - 1 - LINES_AROUND)
    end = (cited or citation.first) + len(citation.found) + LINES_AROUND
    lines = part.lines[start:end]
    is_document = bool(document_format(file))
    return Source(citation, lines, start + 1, cited, part.name, file, is_document=is_document)


def _place_now(citation: Citation, lines: Sequence[str]) -> int:
    """Return the number of the line where the cited lines begin now, the nearest to where they were; 0: nowhere."""
    found = citation.found
    starts = range(len(lines) - len(found) + 1)
    for start in sorted(starts, key=lambda start: abs(start - (citation.first - 1))):
        if all(map(_is_same, found, lines[start : start + len(found)])):
            return start + 1 if any(line.strip() for line in found) else 0
    return 0


def _is_same(found: str, line: str) -> bool:
    """Return whether the search may have given a line so: whole, or one piece of a long one."""
    if found == line:
        return True
    piece = found.removesuffix(_CUT_OFF).strip()
    return bool(piece) and piece in line and (found.endswith(_CUT_OFF) or len(piece) >= _SHORTEST_PIECE)
