"""Requests the colours of code from another process and caches them."""

import itertools
import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol
from weakref import WeakKeyDictionary

import msgspec
from PySide6.QtCore import QObject, QProcess, QProcessEnvironment

from qwendesk.chat.view.answer.highlight_protocol import Highlighted, HighlightRequest, is_highlightable, plain
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.processes import own_command, with_source_tree

_logger = logging.getLogger(__name__)

# Time limit for one piece of code in seconds. It usually takes 1 to 20 ms, but many times longer on a busy PC.
_LIMIT_S = 3.0
# Number of characters of code whose colours are cached: at most about 30 MB.
_MAX_CACHED_CHARACTERS = 500_000
# Number of recent results that are searched for the beginning of code that is still growing.
_N_SEARCHED = 32
_MAX_NAME_LENGTH = 50
_MAX_FAILED_STARTS = 3
_EXIT_TIMEOUT_MS = 3000
# Language and code.
_Key = tuple[str, str]


class CodeView(Protocol):
    """A view that shows code."""

    def show_colours(self) -> None:
        """Request the colours again, because more of them are known."""


class Highlighter(QObject):
    """Owns the highlighter process, which is started for the first code, and again after it has exited.

    The process exits if a piece of code takes too long. Code in that language stays plain from then on.
    """

    def __init__(
        self, parent: QObject | None = None, *, limit_s: float = _LIMIT_S, command: Sequence[str] | None = None
    ) -> None:
        super().__init__(parent)
        self._limit_s = limit_s
        self._command = tuple(command or own_command("--highlighter"))
        self._results: OrderedDict[_Key, Highlighted] = OrderedDict()
        self.cached_characters = 0
        """Number of characters of code whose colours are cached."""
        self._requests: WeakKeyDictionary[CodeView, _Key] = WeakKeyDictionary()
        """The request of each view. A newer request replaces it."""
        self._plain_languages: set[str] = set()
        self._process: QProcess | None = None
        self._is_ready = False
        self._current: _Key | None = None
        """The code that the process is highlighting."""
        self._failed_starts = 0
        self._is_off = False
        self.requests_sent = 0
        """Number of requests sent to the process."""

    @property
    def is_busy(self) -> bool:
        """Whether a view is waiting for colours."""
        return bool(self._requests)

    @property
    def process_id(self) -> int:
        """The process's id; 0 while there is none."""
        return self._process.processId() if self._process is not None else 0

    def colours(self, view: CodeView, code: str, language: str) -> Highlighted | None:
        """Return the colours of `code` or of its longest known beginning, or None. Never blocks.

        `view.show_colours` is called when more of them are known.
        """
        language = language.lower()
        is_plain = self._is_off or not 0 < len(language) <= _MAX_NAME_LENGTH or language in self._plain_languages
        if is_plain or not code or not is_highlightable(code):
            self.forget(view)
            return plain(code)
        known = self._results.get((language, code))
        if known is not None:
            self._results.move_to_end((language, code))
            self.forget(view)
            return known
        self._requests[view] = (language, code)
        self._send_next()
        if self._is_off:  # Windows says at once that a program can't be started
            return plain(code)
        return self._beginning(language, code)

    def forget(self, view: CodeView) -> None:
        """Cancel the request of `view`."""
        self._requests.pop(view, None)

    def close(self) -> None:
        """Stop the process for good."""
        self._is_off = True
        self._requests.clear()
        process, self._process = self._process, None
        if process is not None:
            process.blockSignals(True)
            process.kill()
            process.waitForFinished(_EXIT_TIMEOUT_MS)
            process.deleteLater()

    def _beginning(self, language: str, code: str) -> Highlighted | None:
        recent = itertools.islice(reversed(self._results), _N_SEARCHED)
        known = [key for key in recent if key[0] == language and code.startswith(key[1])]
        return self._results[max(known, key=lambda key: len(key[1]))] if known else None

    def _send_next(self) -> None:
        """Send the next request if the process is idle."""
        request = next(iter(self._requests.values()), None)  # a view may be freed meanwhile, and its request with it
        if self._current is not None or request is None or self._is_off:
            return
        if self._process is None:
            self._start()
        elif self._is_ready:
            self._current = language, code = request
            self.requests_sent += 1
            self._process.write(msgspec.json.encode(HighlightRequest(code, language, self._limit_s)) + b"\n")

    def _start(self) -> None:
        self._is_ready = False
        self._process = process = QProcess(self)
        environment = QProcessEnvironment.systemEnvironment()
        for name, value in with_source_tree({"PYTHONPATH": environment.value("PYTHONPATH")}).items():
            environment.insert(name, value)
        process.setProcessEnvironment(environment)
        process.readyReadStandardOutput.connect(self._read)
        process.finished.connect(self._on_end)
        process.errorOccurred.connect(self._on_error)
        process.start(self._command[0], list(self._command[1:]))

    def _read(self) -> None:
        while self._process is not None and self._process.canReadLine():
            line = bytes(self._process.readLine().data())
            if not self._is_ready:
                self._is_ready, self._failed_starts = True, 0
            elif self._current is not None:
                self._accept_result(self._current, line)
            self._send_next()

    def _accept_result(self, key: _Key, line: bytes) -> None:
        try:
            result = decode_json(line, Highlighted)
        except msgspec.DecodeError:
            if self._process is not None:
                self._process.kill()
            return
        self._current = None
        self._cache_result(key, result)
        self._notify([view for view, wanted in self._requests.items() if _is_beginning(wanted, key)])

    def _cache_result(self, key: _Key, result: Highlighted) -> None:
        if key not in self._results:
            self.cached_characters += len(key[1])
        self._results[key] = result
        while self.cached_characters > _MAX_CACHED_CHARACTERS:
            (_, code), _ = self._results.popitem(last=False)
            self.cached_characters -= len(code)

    def _on_error(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart:
            self._on_end()

    def _on_end(self) -> None:
        """Handle the exit of the process: it timed out, was killed or could not start."""
        process, self._process = self._process, None
        key, self._current = self._current, None
        if process is None:
            return
        if key is not None:
            _logger.warning("Highlighting one piece of code took too long: its language is shown plain")
            self._plain_languages.add(key[0])
        elif not self._is_ready:
            self._failed_starts += 1
            reason = bytes(process.readAllStandardError().data()).decode("utf-8", "replace") or process.errorString()
            _logger.warning("The highlighter process did not start: %s", reason)
            self._is_off = self._failed_starts >= _MAX_FAILED_STARTS
        process.deleteLater()
        self._notify([view for view, wanted in self._requests.items() if self._is_off or (key and wanted[0] == key[0])])
        self._send_next()

    def _notify(self, views: Sequence[CodeView]) -> None:
        for view in views:
            self.forget(view)
            view.show_colours()


def _is_beginning(wanted: _Key, known: _Key) -> bool:
    """Return True if the code of `known` is the beginning of that of `wanted`, or all of it."""
    return wanted[0] == known[0] and wanted[1].startswith(known[1])
