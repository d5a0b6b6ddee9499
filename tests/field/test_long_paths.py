"""Files whose paths have more than 260 characters. Windows allows them only where LongPathsEnabled is on.

Where they are refused, the app says so with their length, and never that such a file is missing. Elsewhere they work.
Run these cases by the Windows Python too: `sudo make windows-test PYTEST_ARGS=tests/field/test_long_paths.py`.
"""

import errno
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qwendesk.chat.documents.document_reader import read_document
from qwendesk.chat.exchange.values import BadExchange
from qwendesk.cli import main as cli
from qwendesk.core.errors import BadRequest
from qwendesk.core.files import reason_of
from qwendesk.core.paths import demo_model
from qwendesk.hub.model_import import ImportItem, NotImported, import_files
from tests.chat.exchange.kit import Kit, gpt_chat, gpt_node
from tests.field.grid import SERVER, Kind, Way, case

LONG_PATHS = Kind(
    "Windows refuses a path of over 260 characters, and the file is said to be missing",
    {
        **dict.fromkeys(SERVER, "a request has texts and pictures, and no paths"),
        Way.MCP: "an MCP server opens its files itself",
    },
)
FOUND = "Windows' limit of 260 characters, by the code; to be run there"
TOO_LONG = "characters, too long for this Windows"
_DEEP = ("a folder with a long name, as archives and backups have them",) * 5


def of_any_length(path: Path) -> Path:
    return Path(f"\\\\?\\{path}") if sys.platform == "win32" else path


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """A folder with a path of more than 305 characters, made in the way that Windows always allows."""
    folder = tmp_path.joinpath(*_DEEP)
    of_any_length(folder).mkdir(parents=True)
    yield folder
    shutil.rmtree(of_any_length(tmp_path / _DEEP[0]))


def write(path: Path, content: bytes) -> Path:
    of_any_length(path).write_bytes(content)
    return path


def is_refused(path: Path) -> bool:
    """Return whether this system refuses the path of a file that is there."""
    return not path.exists()


@case(LONG_PATHS, Way.WINDOW, report=FOUND, before="failed")
def test_a_document_is_read_or_its_path_is_too_long(deep: Path) -> None:
    path = write(deep / "notes.txt", b"Buy bread.")
    if is_refused(path):
        with pytest.raises(BadRequest, match=TOO_LONG):
            read_document(path)
    else:
        assert read_document(path).text == "Buy bread."


@case(LONG_PATHS, Way.WINDOW, Way.CLI, report=FOUND, before="failed")
def test_a_model_is_asked_or_its_path_is_too_long(deep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(deep / "model.gguf", demo_model().read_bytes())
    refused, status = is_refused(path), cli.main(["ask", "--model", str(path), "Hello"])
    assert (status != 0) == refused
    assert (TOO_LONG in capsys.readouterr().err) == refused


@case(LONG_PATHS, Way.IMPORT, report=FOUND, before="failed")
async def test_chats_are_imported_or_their_path_is_too_long(deep: Path, tmp_path: Path) -> None:
    path = write(deep / "conversations.json", json.dumps([gpt_chat(gpt_node("q", None, text="Hello"))]).encode())
    (tmp_path / "store").mkdir()
    kit = await Kit(tmp_path / "store").start()
    try:
        if is_refused(path):
            with pytest.raises(BadExchange, match=TOO_LONG):
                await kit.exchange.import_from(path)
        else:
            assert (await kit.exchange.import_from(path)).chats == 1
    finally:
        await kit.chat_list.close()


@case(LONG_PATHS, Way.WINDOW, report=FOUND, before="held")
async def test_an_export_is_written_or_its_path_is_too_long(deep: Path, tmp_path: Path) -> None:
    is_long_refused = is_refused(write(deep / "probe", b""))
    (tmp_path / "store").mkdir()
    kit = await Kit(tmp_path / "store").start()
    try:
        await kit.chat("Hello", "1")
        if is_long_refused:
            with pytest.raises(BadExchange, match=TOO_LONG):
                await kit.exchange.export(deep / "chats.json", "json")
        else:
            assert await kit.exchange.export(deep / "chats.json", "json") == 1
    finally:
        await kit.chat_list.close()


@case(LONG_PATHS, Way.WINDOW, Way.CLI, report=FOUND, before="held")
def test_a_model_is_imported_or_its_target_is_too_long(deep: Path) -> None:
    is_long_refused = is_refused(write(deep / "probe", b""))
    outcome = import_files([ImportItem(str(demo_model()), str(deep / "model.gguf"))])
    assert isinstance(outcome, NotImported) == is_long_refused
    assert not isinstance(outcome, NotImported) or TOO_LONG in outcome.sentence


@case(LONG_PATHS, Way.WINDOW, Way.CLI, report=FOUND, before="held")
def test_the_reason_has_the_length_and_a_way_out() -> None:
    missing, path = FileNotFoundError(errno.ENOENT, "No such file or directory"), Path("x" * 300)
    assert reason_of(missing, path, on_windows=True).startswith(f"path of 300 {TOO_LONG} (try a folder nearer")
    assert reason_of(missing, path, on_windows=False) == "No such file or directory"
    assert reason_of(missing, Path("x" * 200), on_windows=True) == "No such file or directory"
