"""Reads a file to be imported, in pieces: QwenDesk's JSON, ChatGPT's JSON or ChatGPT's ZIP. Blocks."""

import io
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from qwendesk.chat.exchange.chatgpt import read_chatgpt_chats, read_chatgpt_head
from qwendesk.chat.exchange.json_stream import BadJson, FileTooLong, JsonStream
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
    NoPictures,
    ZipPictures,
    archive_directory_bytes,
    open_member,
)
from qwendesk.core.chats import Folder
from qwendesk.core.input_files import open_regular
from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes

_IN_ZIP = "conversations.json"


class ExchangeReader:
    """Reads a file twice: first completely, so that nothing of a damaged file is imported, then chat by chat.

    All methods raise BadExchange. The pictures of the file are added to `pictures`.
    """

    def __init__(self, path: Path, pictures: ImportedPictures, max_bytes: int = MAX_FILE_BYTES) -> None:
        self._name = path.name
        self._pictures = pictures
        self._max_bytes = max_bytes
        self._position: Callable[[], int] = lambda: 0
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
        with self._translated_errors(), self._stream() as stream:
            if stream.peek() == b"[":
                yield from read_chatgpt_head(stream)
            elif stream.peek() == b"{":
                for folders in read_head(stream, self._pictures):
                    self.folders = folders
                    yield
            else:
                raise BadExchange(tr("Chats not imported"), tr(NOT_AN_EXPORT))

    def chats(self) -> Iterator[ReadChat]:
        """Yield the chats of a checked file."""
        with self._translated_errors(), self._stream() as stream:
            if stream.peek() == b"{":
                yield from read_own_chats(stream, self._pictures)
                return
            pictures = NoPictures() if self._archive is None else ZipPictures(self._archive, self._pictures)
            any_chat = any_unreadable = False
            for read in read_chatgpt_chats(stream, pictures):
                is_unreadable = read.problem == "unreadable"
                any_chat, any_unreadable = any_chat or not is_unreadable, any_unreadable or is_unreadable
                yield read
            if any_unreadable and not any_chat:
                raise BadExchange(tr("Chats not imported"), tr(NOT_AN_EXPORT))

    @contextmanager
    def _stream(self) -> Iterator[JsonStream]:
        with ExitStack() as undo:
            if self._archive is not None:
                member = undo.enter_context(open_member(self._archive, self._member(self._archive)))
                stream = JsonStream(member, self._max_bytes)
            else:
                self._file.seek(0)
                stream = JsonStream(self._file, self._max_bytes)
            self._position = lambda: stream.position
            yield stream

    def _opened_archive(self) -> zipfile.ZipFile:
        size = archive_directory_bytes(self._file)
        if size > MAX_ARCHIVE_DIRECTORY_BYTES:
            found, limit = show_bytes(size), show_bytes(MAX_ARCHIVE_DIRECTORY_BYTES)
            sentence = tr("The file list in {0} has {1}. QwenDesk can read up to {2}.", self._name, found, limit)
            raise BadExchange(tr("File too large"), sentence)
        return zipfile.ZipFile(self._file)

    def _member(self, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
        for member in archive.infolist():
            if member.filename.rpartition("/")[2] == _IN_ZIP:
                self._refuse_above_limit(member.file_size)
                return member
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
            sentence = tr("{0} is damaged, or not an export of QwenDesk or ChatGPT.", self._name)
            raise BadExchange(tr("Chats not imported"), sentence) from error
        except UNREADABLE as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            sentence = tr("{0} can't be read: {1}.", self._name, reason)
            raise BadExchange(tr("Chats not imported"), sentence) from error
