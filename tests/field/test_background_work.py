"""Work that goes on in the background survives one round that fails: the next one is done as ever."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication

from qwendesk.chat import listed_chats
from qwendesk.chat.listed_chats import DailyBackup
from qwendesk.chat.view.answer.formulas import Drawing, FormulaCache, draw
from qwendesk.hub.library_places import HostEnvironment
from qwendesk.mcp.host_connection import HostConnection
from qwendesk.mcp.host_protocol import Answered, CallTool, ProgressNote, encode_line
from qwendesk.meters import service as meters
from qwendesk.models import library_watch
from qwendesk.models.downloads import DownloadsService
from qwendesk.models.library_service import LibraryService
from qwendesk.models.library_watch import LibraryWatch
from qwendesk.models.network import NetworkService
from qwendesk.settings.service import SettingsService
from qwendesk.store.database import damage_mark
from qwendesk.store.opening import FILE_NAME, open_store
from tests.field.grid import SERVER, Kind, Way, case
from tests.mcp.servers import hostile
from tests.meters.conftest import MeterDesk

ENDS_FOR_GOOD = Kind(
    "One failure ends work in the background until the next start",
    {
        Way.CLI: "a command does its work once and ends",
        **dict.fromkeys(SERVER, "each request is answered in a task of its own"),
        Way.IMPORT: "an import runs once, in a task of its own",
    },
)
OUR_FAULT = Kind(
    "A fault of our own code counts as damage of the chats file, which is then replaced",
    {
        Way.CLI: "no command opens the chats",
        **dict.fromkeys(SERVER, "the server opens no chats"),
        Way.MCP: "MCP servers have no part in reading chats",
        Way.IMPORT: "an import only writes; what it reads is the user's file, see tests/chat/exchange",
    },
)
FOUND = "found by attack, November 2026"


class FailsOnce:
    """Raises when it is called for the first time, and tells of the later calls by `again`."""

    def __init__(self, then: Callable[..., Any]) -> None:
        self._loop = asyncio.get_running_loop()
        self._then, self.n_calls, self.again = then, 0, asyncio.Event()

    async def asynchronous(self, *given: Any) -> Any:
        self._fail_first()
        return await self._then(*given)

    def on_thread(self, *given: Any) -> Any:
        self._fail_first()
        return self._then(*given)

    def _fail_first(self) -> None:
        self.n_calls += 1
        if self.n_calls == 1:
            raise ValueError("only once")
        self._loop.call_soon_threadsafe(self.again.set)


@case(ENDS_FOR_GOOD, Way.WINDOW, report=FOUND, before="failed")
def test_a_formula_that_raises_ends_no_other(app: QApplication) -> None:
    def run(source: str, displayed: bool) -> Drawing | None:
        if source == "bad":
            raise ZeroDivisionError
        return draw(source, displayed=displayed)

    shelf = FormulaCache(None, run)
    for source in ("bad", "x^2"):
        assert shelf.get(source, displayed=False) is None
        while shelf.is_busy:
            app.processEvents()

    assert shelf.get("bad", displayed=False) is None
    assert shelf.get("x^2", displayed=False) is not None
    assert [each.name for each in threading.enumerate()].count("formulas") == 1
    shelf.deleteLater()


@case(ENDS_FOR_GOOD, Way.WINDOW, report=FOUND, before="failed")
async def test_the_meters_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meters, "EVERY_S", 0.0)
    desk = MeterDesk(tmp_path)
    sample = FailsOnce(desk.meters.sample)
    monkeypatch.setattr(desk.meters, "sample", sample.asynchronous)

    desk.meters.start()
    await sample.again.wait()
    await desk.close()


@case(ENDS_FOR_GOOD, Way.WINDOW, report=FOUND, before="failed")
async def test_the_model_folders_are_scanned_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_watch, "_SETTLE_S", 0.0)
    library = LibraryService(HostEnvironment("linux", tmp_path, {}))
    refresh = FailsOnce(library.refresh)
    monkeypatch.setattr(library, "refresh", refresh.asynchronous)

    watch = LibraryWatch(library, lambda _folders: True)
    watch.start()
    await refresh.again.wait()
    await watch.close()


@case(ENDS_FOR_GOOD, Way.WINDOW, report=FOUND, before="failed")
async def test_downloads_are_followed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = NetworkService(SettingsService(tmp_path / "settings.json"))
    library = LibraryService(HostEnvironment("linux", tmp_path, {}))
    downloads = DownloadsService(network, library, state_file=tmp_path / "downloads.json")
    downloads.start()
    has_begun = asyncio.Event()
    monkeypatch.setattr(downloads._queue, "start", has_begun.set)
    await has_begun.wait()
    read = FailsOnce(downloads._read_queue)
    monkeypatch.setattr(downloads, "_read_queue", read.asynchronous)

    downloads._changed.set()
    while not read.n_calls:  # noqa: ASYNC110 - the failure tells nobody
        await asyncio.sleep(0)
    downloads._changed.set()
    await read.again.wait()
    await downloads.close()
    network.close()


@case(ENDS_FOR_GOOD, Way.WINDOW, report=FOUND, before="failed")
async def test_chats_are_backed_up_on_the_next_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed_chats, "BACKUP_CHECK_EVERY_S", 0.0)
    back_up = FailsOnce(lambda _is_stopped: None)
    backup = DailyBackup(lambda failure: pytest.fail(failure.sentence))

    backup.start(SimpleNamespace(back_up=back_up.on_thread))  # type: ignore[arg-type]
    await back_up.again.wait()
    await backup.close()


@case(ENDS_FOR_GOOD, Way.MCP, report=FOUND, before="failed")
async def test_an_mcp_server_is_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the window does with the progress of a call fails."""

    class Process:
        stdout, stdin, returncode = asyncio.StreamReader(), None, 0

        async def wait(self) -> int:
            return 0

    def fail(_progress: ProgressNote) -> None:
        raise ValueError

    connection = HostConnection(hostile("never").config.launch({}), lambda _offer: None, lambda _connection: None)
    connection._process = Process()  # type: ignore[assignment]
    monkeypatch.setattr(connection, "_kill", lambda: asyncio.sleep(0))
    asking = asyncio.create_task(connection.ask(lambda number: CallTool(number, "go", {}), 600.0, fail))
    await asyncio.sleep(0)
    for event in (ProgressNote(1, 0.5, ""), Answered(1, "found")):
        Process.stdout.feed_data(encode_line(event))
    reading = asyncio.create_task(connection._read())

    assert (await asking).text == "found"
    Process.stdout.feed_eof()
    await reading


@case(OUR_FAULT, Way.WINDOW, report=FOUND, before="failed")
@pytest.mark.parametrize("fault", [b"\xff".decode, lambda: int("one"), lambda: 1 / 0])
def test_a_fault_of_a_reader_is_no_damage_of_the_file(fault: Callable[[], object], tmp_path: Path) -> None:
    store, _report = open_store(tmp_path)
    assert store is not None
    database = store._database

    with pytest.raises((UnicodeDecodeError, ValueError, ZeroDivisionError)):
        database.read(lambda _connection: fault())
    with pytest.raises((UnicodeDecodeError, ValueError, ZeroDivisionError)):
        database.write(lambda _connection: fault()).result()
    store.close()

    assert not damage_mark(tmp_path / FILE_NAME).exists()


@case(OUR_FAULT, Way.WINDOW, report=FOUND, before="failed")
def test_an_sqlite_that_lacks_what_we_need_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, _report = open_store(tmp_path)
    assert store is not None
    store.close()

    def no_such_module(connection: Any) -> None:
        connection.execute("CREATE VIRTUAL TABLE t USING fts99 (text)")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr("qwendesk.store.database.Database.__init__.__defaults__", ((no_such_module,) * 2,))
        store, report = open_store(tmp_path)

    assert store is None
    assert report is not None
    assert not list(tmp_path.glob("damaged-*"))
    again, report = open_store(tmp_path)
    assert again is not None
    assert report is None
    again.close()
