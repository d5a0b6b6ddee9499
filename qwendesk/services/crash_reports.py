"""What is kept of a crash, on this PC alone: never a word of a message. The next start offers to show and save it."""

import datetime
import faulthandler
import logging
import os
import platform
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Literal

import msgspec
import psutil

from qwendesk import __version__
from qwendesk.core import paths
from qwendesk.core.failures import EngineDeath
from qwendesk.core.files import decode_json, write_whole
from qwendesk.core.options import LoadOptions
from qwendesk.core.person import without_this_person

_logger = logging.getLogger(__name__)

MOST_REPORTS = 20
"""Older ones are deleted; a crash in a loop must not fill the disk."""
_LOG_LINES = 60
_FILES = frozenset({"model", "mmproj", "chat_template_file", "lora"})
"""Options that name files."""

CrashOf = Literal["app", "engine"]


class CrashReport(msgspec.Struct, frozen=True, kw_only=True):
    """One crash. Holds versions, options without folders, and lines of logs, which hold no message text."""

    of: CrashOf
    time: str
    """UTC, ISO 8601."""
    version: str
    system: str
    sentence: str
    options: dict[str, str] = {}
    lines: tuple[str, ...] = ()

    def text(self) -> str:
        """The report as people read and send it."""
        head = [f"QwenDesk {self.version}", self.system, f"{self.time}: {self.sentence}"]
        options = [f"  {key} = {value}" for key, value in self.options.items()]
        lines = [*head, *(["Options:", *options] if options else []), "Log:", *self.lines, ""]
        return without_this_person("\n".join(lines))


class _Running(msgspec.Struct, frozen=True):
    """The mark of an app that runs; one left behind by a dead process is a crash."""

    pid: int
    started_s: float
    """When its process began: a number is used again by another process one day."""
    time: str
    version: str


class CrashReports:
    """Owns the reports' folder. Methods are called on one thread; files are small."""

    def __init__(
        self, folder: Path | None = None, log: Path | None = None, now: Callable[[], datetime.datetime] | None = None
    ) -> None:
        self._folder = folder or paths.log_folder() / "crashes"
        self._log = log or paths.log_folder() / "window.log"
        self._now = now or (lambda: datetime.datetime.now(datetime.UTC))
        self._fault_file: IO[str] | None = None

    def begin(self) -> None:
        """Report an earlier run that never ended, and mark this one as running. Never raises."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for mark in sorted(self._folder.glob("running-*.json")):
                self._look_at(mark)
            me = psutil.Process()
            running = _Running(me.pid, me.create_time(), self._now().isoformat(timespec="seconds"), __version__)
            write_whole(self._mark(me.pid), msgspec.json.encode(running))
            self._fault_file = self._faults(me.pid).open("w", encoding="utf-8")
            faulthandler.enable(self._fault_file)
        except OSError as error:
            _logger.warning("Crash reports are off: %s", error)

    def end(self) -> None:
        """The app ends in order: nothing to report."""
        if self._fault_file is not None:
            faulthandler.disable()
            self._fault_file.close()
            self._fault_file = None
        self._forget(os.getpid())

    def engine_died(self, death: EngineDeath, options: LoadOptions | None) -> None:
        """Keep why the engine's process died."""
        self._keep(self._report("engine", death.sentence, _shown(options), death.engine_lines))

    def pending(self) -> tuple[tuple[Path, CrashReport], ...]:
        """Reports that nobody has looked at or dismissed, oldest first, with their files."""
        found = []
        for path in sorted(self._folder.glob("crash-*.json")):
            try:
                found.append((path, decode_json(path.read_bytes(), CrashReport)))
            except (OSError, msgspec.DecodeError) as error:
                _logger.warning("%s is no report: %s", path, error)
        return tuple(found)

    def save(self, report: CrashReport, target: Path) -> None:
        """Write the report as text where the person wants it. Raises OSError."""
        write_whole(target, report.text().encode())

    def save_all(self, reports: Sequence[CrashReport], target: str) -> None:
        """Write several as one text, the newest first. Raises OSError."""
        write_whole(Path(target), "\n\n".join(report.text() for report in reversed(reports)).encode())

    def dismiss(self) -> None:
        """Delete all reports."""
        for path, _ in self.pending():
            path.unlink(missing_ok=True)

    def delete_everything(self) -> None:
        """Reports and marks, for "delete everything"."""
        self.end()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _look_at(self, mark: Path) -> None:
        """Turn the mark of a dead process into a report."""
        try:
            running = decode_json(mark.read_bytes(), _Running)
        except msgspec.DecodeError:
            mark.unlink(missing_ok=True)
            return
        if _is_alive(running):
            return
        sentence = f"QwenDesk {running.version}, started {running.time}, did not end in order."
        lines = (*_last_lines(self._faults(running.pid)), *_last_lines(self._log))
        self._keep(self._report("app", sentence, {}, lines))
        self._forget(running.pid)

    def _report(self, of: CrashOf, sentence: str, options: dict[str, str], lines: tuple[str, ...]) -> CrashReport:
        return CrashReport(
            of=of,
            time=self._now().isoformat(timespec="seconds"),
            version=__version__,
            system=f"{platform.system()} {platform.release()} {platform.machine()}, Python {platform.python_version()}",
            sentence=without_this_person(sentence),
            options={key: without_this_person(value) for key, value in options.items()},
            lines=tuple(without_this_person(line) for line in lines),
        )

    def _keep(self, report: CrashReport) -> None:
        stamp = self._now().strftime("%Y%m%dT%H%M%S%f")
        try:
            write_whole(self._folder / f"crash-{stamp}-{report.of}.json", msgspec.json.encode(report))
            for old in sorted(self._folder.glob("crash-*.json"))[:-MOST_REPORTS]:
                old.unlink(missing_ok=True)
        except OSError as error:
            _logger.warning("A crash report could not be kept: %s", error)

    def _forget(self, pid: int) -> None:
        for path in (self._mark(pid), self._faults(pid)):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                _logger.warning("%s could not be deleted: %s", path, error)

    def _mark(self, pid: int) -> Path:
        return self._folder / f"running-{pid}.json"

    def _faults(self, pid: int) -> Path:
        return self._folder / f"faults-{pid}.txt"


def _is_alive(running: _Running) -> bool:
    try:
        return abs(psutil.Process(running.pid).create_time() - running.started_s) < 1
    except psutil.Error:
        return False


def _shown(options: LoadOptions | None) -> dict[str, str]:
    """Options that differ from the defaults; of paths only the file's name."""
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
