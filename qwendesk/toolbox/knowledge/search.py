"""Searches the folders of a chat for the best passages, each with a number to cite, and reads what a citation stands
for.
"""

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from qwendesk.core.citations import INDENT, Citation, Source
from qwendesk.core.tool_context import CallContext
from qwendesk.core.translation import tr
from qwendesk.decoding.documents import document_format, render_pages
from qwendesk.toolbox.folder_access import FolderAccess
from qwendesk.toolbox.knowledge.file_texts import FilePart, NoText, UnreadableFile, lines_word, read_parts, unit_of
from qwendesk.toolbox.knowledge.folder_indexes import FolderIndexes, SearchedFolder
from qwendesk.toolbox.knowledge.index_file import Hit, IndexFile, Passage, all_words, any_word, query_words
from qwendesk.toolbox.shown_text import from_codes
from qwendesk.toolbox.tool import ToolError

MOST_PLACES = 12
# How many lines before and after a passage are shown with it.
_NEIGHBOUR_LINES = 2
# A longer line is cut off where it is only a neighbour.
_NEIGHBOUR_CHARACTERS = 200
_ROOM_FOR_NOTES = 500


class _Found(msgspec.Struct, frozen=True):
    file: Path
    hit: Hit
    index: IndexFile


async def search_folders(indexes: FolderIndexes, query: str, context: CallContext) -> str:
    """Return the best places for `query` in the folders of the chat. Raise ToolError."""
    words = query_words(query)
    if not words:
        raise ToolError("Give at least one word to look for.")
    access = FolderAccess(context.settings.tool_folders)
    folders = [str(folder) for folder in access.folders]
    searched = await indexes.updated(folders, in_memory=context.is_incognito)
    if not searched:
        reasons = (state.note for state in indexes.states.value.values() if state.phase == "failed")
        raise ToolError(next(reasons, "The folder is still being read for the first time. Try again later."))
    try:
        return await asyncio.to_thread(
            found_places, access, searched, words, context.n_citations + 1, context.most_characters
        )
    except sqlite3.Error as error:
        raise ToolError(f"The folder can't be searched now: {error}.") from None
    except asyncio.CancelledError:
        for each in searched:
            each.index.stop()
        raise


def found_places(
    access: FolderAccess,
    searched: Sequence[SearchedFolder],
    words: tuple[str, ...],
    first_number: int,
    most_characters: int,
) -> str:
    """Return the places with numbers from `first_number` on. Raise ToolError if there are none. Blocks."""
    notes = list(_notes(searched))
    found = _find(access, searched, all_words(words))
    if not found:
        found = _find(access, searched, any_word(words))
        notes.insert(0, "No place has all of the words; these have some of them.")
    if not found:
        n_files = sum(each.state.n_files for each in searched)
        nothing = f"Nothing in {n_files} files contains any of: {' '.join(words)}. Try other words, also in the "
        raise ToolError("\n".join([f"{nothing}language of the files.", *notes[1:]]))
    blocks: list[str] = []
    room = most_characters - _ROOM_FOR_NOTES
    for number, each in enumerate(found, first_number):
        block = _block(access, each, number)
        if blocks and len(block) > room:
            break
        blocks.append(block[: max(room, 0)] if not blocks else block)
        room -= len(block) + 2
    return "\n\n".join([*blocks, *(f"({note})" for note in notes)])


def _find(access: FolderAccess, searched: Sequence[SearchedFolder], expression: str) -> list[_Found]:
    """Return the best places, each once, without those that tools may not see any more."""
    hits = [
        (hit.score, _Found(each.folder / from_codes(hit.path), hit, each.index))
        for each in searched
        for hit in each.index.find(expression, 2 * MOST_PLACES)
    ]
    places: dict[tuple[Path, int, int], _Found] = {}
    for _, found in sorted(hits, key=lambda pair: pair[0]):
        passage = found.hit.passage
        if access.may_see(found.file):
            places.setdefault((found.file.resolve(), passage.at, passage.first), found)
    return list(places.values())[:MOST_PLACES]


def _block(access: FolderAccess, found: _Found, number: int) -> str:
    """Return a place with its header. Its text is indented, so that no file can imitate a header."""
    passage, name = found.hit.passage, found.file.name
    before = found.index.neighbour(found.hit.passage_id, -1)
    after = found.index.neighbour(found.hit.passage_id, 1)
    first, lines = passage.first, passage.text.split("\n")
    last = passage.last
    if before is not None and before.last == first - 1:
        shown = _cut(before)[-_NEIGHBOUR_LINES:]
        first, lines = first - len(shown), [*shown, *lines]
    if after is not None and after.first == last + 1:
        shown = _cut(after)[:_NEIGHBOUR_LINES]
        last, lines = last + len(shown), [*lines, *shown]
    citation = Citation(
        number=number,
        path=access.shown(found.file.resolve()),
        first=first,
        last=last,
        lines=lines_word(name),
        unit=unit_of(name) if passage.at else "",
        at=passage.at,
    )
    title = [f"{INDENT}({passage.name})"] if passage.name else []
    return "\n".join([citation.header, *title, *(INDENT + line for line in lines)])


def _cut(passage: Passage) -> list[str]:
    lines = passage.text.split("\n")
    return [line if len(line) <= _NEIGHBOUR_CHARACTERS else f"{line[:_NEIGHBOUR_CHARACTERS]}…" for line in lines]


def _notes(searched: Sequence[SearchedFolder]) -> Iterator[str]:
    for each in searched:
        state, name = each.state, each.folder.name
        if state.phase in ("waiting", "listing", "reading"):
            yield f"{name} is still being read, {round(100 * state.fraction)}% is done: there may be more."
        elif state.phase == "failed":
            yield f"{name} could not be looked through. {state.note}"
        elif state.note:
            yield f"{name} has more files than can be searched."
        if state.n_problems:
            yield f"{state.n_problems} files in {name} could not be read."


# How many lines before and after the place are shown at most.
LINES_AROUND: Final = 300
# The longest side of a page that is drawn.
_PAGE_PIXELS = 1600
_CUT_OFF = "…"
# Only a line that is longer than a passage is given in pieces.
_SHORTEST_PIECE = 300


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
        access = FolderAccess(folders)
        file = access.find(citation.path)
        parts = read_parts(file, access.open)
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
