"""Reads a file to be imported, in pieces: JSON of QwenDesk or another program, or a ZIP of it. Blocks."""

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from qwendesk.chat.exchange.foreign_chats import CHATGPT, LM_STUDIO, OPEN_WEBUI, read_foreign_chats, read_foreign_head
from qwendesk.chat.exchange.json_stream import BadJson, FileTooLong, JsonStream, Readable
from qwendesk.chat.exchange.own_json import read_head, read_own_chats
from qwendesk.chat.exchange.pictures import ImportedPictures
from qwendesk.chat.exchange.values import (
    FOR_READING,
    MAX_ARCHIVE_DIRECTORY_BYTES,
    MAX_FILE_BYTES,
    NOT_AN_EXPORT,
    READING_ENDINGS,
    BadExchange,
    ReadChat,
)
from qwendesk.chat.exchange.zip_pictures import (
    UNREADABLE,
    EmbeddedPictures,
    Pictures,
    ZipPictures,
    archive_directory_bytes,
    open_member,
)
from qwendesk.core.chats import Folder
from qwendesk.core.input_files import open_regular
from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes

_IN_ZIP = "conversations.json"
# The files with chats in a ZIP: ChatGPT's, which are several since 2026 (chatgpt-data-viewer#1), Open WebUI's, or
# LM Studio's, one for each chat.
_WITH_CHATS = re.compile(
    r"conversations(-\d{1,6})?\.json|chat-export-[^/]{1,200}\.json|(?!\._)[^/]{1,200}\.conversation\.json"
)
# Fields of QwenDesk's own format, of which others have none.
_OWN = ("format", "chats")


class ExchangeReader:
    """Reads a file twice: first completely, so that nothing of a damaged file is imported, then chat by chat.

    All methods raise BadExchange. The pictures of the file are added to `pictures`.
    """

    def __init__(self, path: Path, pictures: ImportedPictures, max_bytes: int = MAX_FILE_BYTES) -> None:
        self._name = path.name
        self._pictures = pictures
        self._max_bytes = max_bytes
        self._position: Callable[[], int] = lambda: 0
        self._is_own = False
        self.folders: tuple[Folder, ...] = ()
        """Set by `check`."""
        with ExitStack() as undo, self._translated_errors():
            file = undo.enter_context(io.BufferedReader(open_regular(path)))
            if path.suffix.lower() in READING_ENDINGS:
                raise BadExchange(tr("Chats not imported"), tr(FOR_READING))
            self._file = file
            self._archive = undo.enter_context(self._opened_archive()) if zipfile.is_zipfile(file) else None
            if self._archive is None:
                self._refuse_above_limit(file.seek(0, io.SEEK_END))
            self._close = undo.pop_all()

    def close(self) -> None:
        self._close.close()

    @property
    def position(self) -> int:
        """Bytes read so far in the current pass."""
        return self._position()

    def check(self) -> Iterator[None]:
        """Read the whole file, its pictures and folders. Yield from time to time, so that it can be stopped."""
        with self._translated_errors():
            self._is_own = self._archive is None and self._looks_own()
            for stream in self._streams():
                if self._is_own:
                    for folders in read_head(stream, self._pictures):
                        self.folders = folders
                        yield
                elif stream.peek() in (b"[", b"{"):
                    yield from read_foreign_head(stream)
                else:
                    raise BadExchange(tr("Chats not imported"), tr(NOT_AN_EXPORT))

    def chats(self) -> Iterator[ReadChat]:
        """Yield the chats of a checked file."""
        with self._translated_errors():
            any_chat = any_unreadable = False
            for read in self._chats():
                is_unreadable = read.problem == "unreadable"
                any_chat, any_unreadable = any_chat or not is_unreadable, any_unreadable or is_unreadable
                yield read
            if any_unreadable and not any_chat and not self._is_own:
                raise BadExchange(tr("Chats not imported"), tr(NOT_AN_EXPORT))

    def _chats(self) -> Iterator[ReadChat]:
        pictures: Pictures = EmbeddedPictures(self._pictures)
        if self._archive is not None:
            pictures = ZipPictures(self._archive, self._pictures)
        for stream in self._streams():
            if self._is_own:
                yield from read_own_chats(stream, self._pictures)
            else:
                yield from read_foreign_chats(stream, pictures)

    def _looks_own(self) -> bool:
        """Return whether the file is an object without the fields of other programs."""
        (stream,) = self._streams()
        if stream.peek() != b"{":
            return False
        fields = (key for key in stream.members() if key in (*_OWN, CHATGPT, OPEN_WEBUI, LM_STUDIO))
        return next(fields, "format") in _OWN

    def _streams(self) -> Iterator[JsonStream]:
        """Yield each file with chats, which is open until the next one."""
        if self._archive is None:
            self._file.seek(0)
            yield self._begun(self._file, self._max_bytes)
            return
        bytes_left = self._max_bytes
        for member in self._members(self._archive):
            with open_member(self._archive, member) as file:
                stream = self._begun(file, bytes_left)
                yield stream
                bytes_left -= stream.position

    def _begun(self, file: Readable, limit_bytes: int) -> JsonStream:
        stream = JsonStream(file, limit_bytes)
        self._position = lambda: stream.position
        return stream

    def _opened_archive(self) -> zipfile.ZipFile:
        size = archive_directory_bytes(self._file)
        if size > MAX_ARCHIVE_DIRECTORY_BYTES:
            found, limit = show_bytes(size), show_bytes(MAX_ARCHIVE_DIRECTORY_BYTES)
            sentence = tr("The file list in {0} has {1}. QwenDesk can read up to {2}.", self._name, found, limit)
            raise BadExchange(tr("File too large"), sentence)
        return zipfile.ZipFile(self._file)

    def _members(self, archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
        """Return the files with chats, in the order of their names."""
        members = [each for each in archive.infolist() if _WITH_CHATS.fullmatch(each.filename.rpartition("/")[2])]
        self._refuse_above_limit(sum(member.file_size for member in members))
        if members:
            return sorted(members, key=lambda member: member.filename)
        if any(name.lower().endswith(READING_ENDINGS) for name in archive.namelist()):
            raise BadExchange(tr("Chats not imported"), tr(FOR_READING))
        raise BadExchange(tr("Chats not imported"), tr("{0} doesn't contain {1}.", self._name, _IN_ZIP))

    def _refuse_above_limit(self, size_bytes: int) -> None:
        if size_bytes > self._max_bytes:
            found, limit = show_bytes(size_bytes), show_bytes(self._max_bytes)
            sentence = tr("{0} contains {1} of chats. QwenDesk can import up to {2}.", self._name, found, limit)
            raise BadExchange(tr("File too large"), sentence)

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Translate errors of reading the file into BadExchange."""
        try:
            yield
        except FileTooLong as error:
            limit = show_bytes(self._max_bytes)
            sentence = tr("{0} contains more than {1} of chats, which is the limit.", self._name, limit)
            raise BadExchange(tr("File too large"), sentence) from error
        except BadJson as error:
            sentence = tr("{0} is damaged, or not an export of chats.", self._name)
            raise BadExchange(tr("Chats not imported"), sentence) from error
        except UNREADABLE as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            sentence = tr("{0} can't be read: {1}.", self._name, reason)
            raise BadExchange(tr("Chats not imported"), sentence) from error
