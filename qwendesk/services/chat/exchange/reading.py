"""A file somebody wants to import: ours, ChatGPT's, or the ZIP that ChatGPT sends. Blocking."""

import zipfile
from pathlib import Path

import msgspec

from qwendesk.services.chat.exchange.chatgpt import read_chatgpt
from qwendesk.services.chat.exchange.own_json import read_own_json
from qwendesk.services.chat.exchange.values import BadExchange, Exchanged
from qwendesk.services.chat.exchange.zip_pictures import UNREADABLE, NoPictures, ZipPictures

MOST_BYTES = 1 << 30
"""Larger files are refused: they would not fit in memory beside a model."""
_IN_ZIP = "conversations.json"


def read_exchange(path: Path, most_bytes: int = MOST_BYTES) -> Exchanged:
    """What the file holds. Raises BadExchange with a sentence for people."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return _read(_zipped(archive, path.name, most_bytes), ZipPictures(archive))
        return _read(_plain(path, most_bytes), None)
    except UNREADABLE as error:
        raise BadExchange("File not readable", f"“{path.name}” cannot be read: {error}") from error


def _read(content: bytes, pictures: ZipPictures | None) -> Exchanged:
    begins = content[:1_000].removeprefix(b"\xef\xbb\xbf").lstrip()
    content = content.removeprefix(b"\xef\xbb\xbf")
    if not begins.startswith(b"["):
        return read_own_json(content)
    read = read_chatgpt(content, pictures or NoPictures())
    return read if pictures is None else msgspec.structs.replace(read, files=pictures.files)


def _plain(path: Path, most_bytes: int) -> bytes:
    if path.stat().st_size > most_bytes:
        raise _too_large(path.name, most_bytes)
    return path.read_bytes()


def _zipped(archive: zipfile.ZipFile, name: str, most_bytes: int) -> bytes:
    """Only what is read counts: what a ZIP says of its sizes may be a lie."""
    names = [each for each in archive.namelist() if each.rsplit("/", 1)[-1] == _IN_ZIP]
    if not names:
        raise BadExchange("Not an export", f"There is no {_IN_ZIP} in “{name}”.")
    with archive.open(names[0]) as member:
        content = member.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise _too_large(name, most_bytes)
    return content


def _too_large(name: str, most_bytes: int) -> BadExchange:
    return BadExchange("File too large", f"“{name}” holds more than {most_bytes >> 20} MB, more than can be imported.")
