"""Crash reports. They stay on this PC and never contain message text. The next start offers to show and save them."""

import datetime
import faulthandler
import io
import logging
import os
import platform
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Literal

import msgspec
import psutil

from qwendesk import __version__
from qwendesk.core import paths
from qwendesk.core.failures import EngineExit
from qwendesk.core.files import write_whole
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.links import link_to
from qwendesk.core.options import LoadOptions
from qwendesk.core.permissions import create_own, make_folder
from qwendesk.core.processes import is_running
from qwendesk.core.redaction import redact_user_paths

_logger = logging.getLogger(__name__)

# Older reports are deleted, so that repeated crashes don't fill the disk.
MOST_REPORTS = 20
_LOG_LINES = 60
_REPORT = re.compile(r"crash-\d{8}T\d{12}-(app|engine)\.json")
_MARK = re.compile(r"running-\d{1,10}\.json")
# Options that name files.
_FILES = frozenset({"model", "mmproj", "chat_template_file", "lora"})

CrashOf = Literal["app", "engine"]


class CrashReport(msgspec.Struct, frozen=True, kw_only=True):
    """One crash: versions, options without folders, and lines of logs, which contain no message text."""

    of: CrashOf
    time: str
    """UTC, ISO 8601."""
    version: str
    system: str
    sentence: str
    options: dict[str, str] = {}
    lines: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the report as text, for users to read and send."""
        head = [f"QwenDesk {self.version}", self.system, f"{self.time}: {self.sentence}"]
        options = [f"  {key} = {value}" for key, value in self.options.items()]
        lines = [*head, *(["Options:", *options] if options else []), "Log:", *self.lines, ""]
        return redact_user_paths("\n".join(lines))


class _Running(msgspec.Struct, frozen=True):
    """The mark of a running app; if its process no longer runs, the app has crashed."""

    pid: int
    started_s: float
    """Start of the process (Unix time in seconds), because the system may reuse its id for another process."""
    time: str
    version: str


class CrashReports:
    """Owns the folder of the reports. Call all methods on one thread; the files are small."""

    def __init__(
        self, folder: Path | None = None, log: Path | None = None, now: Callable[[], datetime.datetime] | None = None
    ) -> None:
        self._folder = folder or paths.log_folder() / "crashes"
        self._log = log or paths.log_folder() / "window.log"
        self._now = now or (lambda: datetime.datetime.now(datetime.UTC))
        self._fault_file: IO[str] | None = None

    def begin(self) -> None:
        """Report earlier runs that crashed, and mark this one as running. Never raises."""
        if (link := self._find_link()) is not None:
            _logger.warning("Crash reports are off: %s is a link to %s", link, os.path.realpath(link))
            return
        try:
            make_folder(self._folder)
            for mark in self._files(_MARK):
                self._report_crash_of(mark)
            me = psutil.Process()
            running = _Running(me.pid, me.create_time(), self._now().isoformat(timespec="seconds"), __version__)
            write_whole(self._mark_path(me.pid), msgspec.json.encode(running))
            self._fault_file = io.TextIOWrapper(create_own(self._fault_path(me.pid)), encoding="utf-8")
            faulthandler.enable(self._fault_file)
        except OSError as error:
            _logger.warning("Crash reports are off: %s", error)

    def end(self) -> None:
        """Delete the mark, because the app quits normally."""
        if self._fault_file is not None:
            faulthandler.disable()
            self._fault_file.close()
            self._fault_file = None
        self._delete_mark(os.getpid())

    def save_engine_crash(self, engine_exit: EngineExit, options: LoadOptions | None) -> None:
        """Save a report of why the engine process crashed."""
        self._save_report(
            self._make_report("engine", engine_exit.sentence, _changed_options(options), engine_exit.engine_lines)
        )

    def unannounced(self) -> tuple[CrashReport, ...]:
        """Return the reports of which the user has not been told, oldest first."""
        try:
            last = self._announced.read_text(encoding="utf-8")
        except OSError:
            last = ""
        return tuple(report for path, report in self.pending() if path.name > last)

    def mark_announced(self) -> None:
        """Note that the user has been told of all reports. Never raises."""
        files = self._files(_REPORT)
        try:
            if files:
                write_whole(self._announced, files[-1].name.encode())
        except OSError as error:
            _logger.warning("%s could not be written: %s", self._announced, error)

    def pending(self) -> tuple[tuple[Path, CrashReport], ...]:
        """Return the reports that were not deleted, oldest first, with their files."""
        found = []
        for path in self._files(_REPORT):
            try:
                found.append((path, decode_json(path.read_bytes(), CrashReport)))
            except (OSError, msgspec.DecodeError) as error:
                _logger.warning("%s is not a crash report: %s", path, error)
        return tuple(found)

    def save(self, report: CrashReport, target: Path) -> None:
        """Write the report as text to `target`. Raises OSError."""
        write_whole(target, report.text().encode())

    def save_all(self, reports: Sequence[CrashReport], target: str) -> None:
        """Write several reports to one text file, the newest first. Raises OSError."""
        write_whole(Path(target), "\n\n".join(report.text() for report in reversed(reports)).encode())

    def dismiss(self) -> None:
        """Delete all reports."""
        for path, _ in self.pending():
            path.unlink(missing_ok=True)

    def _report_crash_of(self, mark: Path) -> None:
        """Save a report for the mark of a process that no longer runs."""
        try:
            running = decode_json(mark.read_bytes(), _Running)
        except msgspec.DecodeError:
            mark.unlink(missing_ok=True)
            return
        if is_running(running.pid, running.started_s):
            return
        sentence = f"QwenDesk {running.version}, started {running.time}, didn't close properly."
        lines = (*_last_lines(self._fault_path(running.pid)), *_last_lines(self._log))
        self._save_report(self._make_report("app", sentence, {}, lines))
        self._delete_mark(running.pid)

    def _make_report(self, of: CrashOf, sentence: str, options: dict[str, str], lines: tuple[str, ...]) -> CrashReport:
        return CrashReport(
            of=of,
            time=self._now().isoformat(timespec="seconds"),
            version=__version__,
            system=f"{platform.system()} {platform.release()} {platform.machine()}, Python {platform.python_version()}",
            sentence=redact_user_paths(sentence),
            options={key: redact_user_paths(value) for key, value in options.items()},
            lines=tuple(redact_user_paths(line) for line in lines),
        )

    def _save_report(self, report: CrashReport) -> None:
        if self._find_link() is not None:
            return
        stamp = self._now().strftime("%Y%m%dT%H%M%S%f")
        try:
            write_whole(self._folder / f"crash-{stamp}-{report.of}.json", msgspec.json.encode(report))
            for old in self._files(_REPORT)[:-MOST_REPORTS]:
                old.unlink(missing_ok=True)
        except OSError as error:
            _logger.warning("A crash report could not be saved: %s", error)

    def _find_link(self) -> Path | None:
        """Return the link through which the folder is reached, if any. No reports are saved then."""
        return link_to(self._folder, self._folder)

    def _files(self, name: re.Pattern[str]) -> list[Path]:
        """Return the files in the folder whose names match `name`, oldest first."""
        if self._find_link() is not None:
            return []
        return sorted(path for path in self._folder.glob("*.json") if name.fullmatch(path.name))

    def _delete_mark(self, pid: int) -> None:
        if self._find_link() is not None:
            return
        for path in (self._mark_path(pid), self._fault_path(pid)):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                _logger.warning("%s could not be deleted: %s", path, error)

    @property
    def _announced(self) -> Path:
        """The file with the name of the newest report of which the user has been told."""
        return self._folder / "announced.txt"

    def _mark_path(self, pid: int) -> Path:
        return self._folder / f"running-{pid}.json"

    def _fault_path(self, pid: int) -> Path:
        return self._folder / f"faults-{pid}.txt"


def _changed_options(options: LoadOptions | None) -> dict[str, str]:
    """Return the options that differ from the defaults, as text; files are named without their folders."""
    if options is None:
        return {}
    plain = LoadOptions(model="")
    changed = {
        key: value for key in options.__struct_fields__ if (value := getattr(options, key)) != getattr(plain, key)
    }
    return {key: _file_names(value) if key in _FILES else str(value) for key, value in changed.items()}


def _file_names(value: str | tuple[str, ...]) -> str:
    files = (value,) if isinstance(value, str) else value
    return ", ".join(Path(file).name for file in files)


def _last_lines(path: Path) -> tuple[str, ...]:
    try:
        return tuple(path.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:])
    except OSError:
        return ()
