"""RequestsCard: the requests that run, and the latest ones."""

import datetime
from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.core.number_format import show_count, show_decimal
from qwendesk.core.translation import tr, tr_n
from qwendesk.core.units import show_rate
from qwendesk.server.requests import Phase, ServedRequest, program_title
from qwendesk.widgets.buttons import TextButton, describe, restyle
from qwendesk.widgets.kit import rule

_MOST_LINES = 20
# Columns of numbers, which are aligned at the right.
_NUMBERS = (2, 3, 4, 5)
_STATE = 6
# Columns that are hidden in a narrow window; the tooltip of the client has them too.
_NOT_IF_NARROW = (1, 3, 4)
# Width in pixels below which columns are hidden, and the gaps between columns.
_NARROW, _GAP, _NARROW_GAP = 640, 16, 10


class RequestsCard(QFrame):
    stop_asked = Signal(int)
    """The id of a request."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "modelcard")
        self.setObjectName("serve.requests")
        title = QLabel(tr("Now and before"))
        title.setProperty("kind", "heading")
        self._summary = QLabel()
        self._summary.setObjectName("serve.requests.summary")
        self._summary.setProperty("kind", "dim")
        head = QHBoxLayout()
        self._summary.setWordWrap(True)
        self._summary.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        head.addWidget(title)
        head.addWidget(self._summary, 1)
        self._nothing = QLabel(tr("No program has asked yet."))
        self._nothing.setObjectName("serve.requests.none")
        self._nothing.setProperty("kind", "dim")
        self._table = QWidget()
        self._table.setMinimumWidth(1)  # so that the card can become too narrow for all columns, and then hides some
        self._grid = QGridLayout(self._table)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(_GAP)
        self._grid.setVerticalSpacing(6)
        self._lines: list[_Line] = []
        self._heads: list[QLabel] = []
        self._is_narrow = False
        self._add_head()
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 12, 18, 14)
        column.setSpacing(8)
        column.addLayout(head)
        column.addWidget(self._nothing)
        column.addWidget(self._table)

    def show_requests(self, requests: Sequence[ServedRequest]) -> None:
        """Show requests, those that run before the others."""
        shown = sorted(requests, key=lambda each: not each.is_running)[:_MOST_LINES]
        while len(self._lines) < len(shown):
            line = _Line(self._grid, len(self._lines))
            line.set_narrow(is_narrow=self._is_narrow)
            line.stop.clicked.connect(lambda _checked=False, line=line: self.stop_asked.emit(line.request_id))
            self._lines.append(line)
        for index, line in enumerate(self._lines):
            line.show_request(shown[index] if index < len(shown) else None)
        self._summary.setText(summary_text(requests))
        self._nothing.setVisible(not shown)
        self._table.setVisible(bool(shown))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        is_narrow = event.size().width() < _NARROW
        if is_narrow != self._is_narrow:
            self._is_narrow = is_narrow
            self._grid.setHorizontalSpacing(_NARROW_GAP if is_narrow else _GAP)
            for column in _NOT_IF_NARROW:
                self._heads[column].setVisible(not is_narrow)
            for line in self._lines:
                line.set_narrow(is_narrow=is_narrow)

    def _add_head(self) -> None:
        texts = (tr("client"), tr("since"), tr("prompt"), tr("read"), tr("written"), tr("speed"), tr("state"))
        tips = {
            2: tr("Tokens of the prompt"),
            3: tr("Tokens of the prompt that weren't in memory, so that they had to be processed"),
            4: tr("Tokens of thinking and answer"),
        }
        for column, text in enumerate(texts):
            label = QLabel(text)
            label.setProperty("kind", "dim")
            label.setToolTip(tips.get(column, ""))
            _align(label, column)
            self._grid.addWidget(label, 0, column)
            self._heads.append(label)
        self._grid.setColumnStretch(0, 2)
        self._grid.setColumnStretch(_STATE, 3)


class _Line:
    """The widgets of one request, which get new texts, so that nothing flickers."""

    def __init__(self, grid: QGridLayout, number: int) -> None:
        self.request_id = 0
        self._is_narrow = self._is_used = False
        row = 1 + 2 * number
        self._rule = rule()
        grid.addWidget(self._rule, row, 0, 1, _STATE + 2)
        self._labels = [QLabel() for _ in range(_STATE + 1)]
        for column, label in enumerate(self._labels):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setObjectName(f"serve.request.{number + 1}.{column}")
            _align(label, column)
            grid.addWidget(label, row + 1, column)
        self._labels[0].setProperty("kind", "strong")
        self._labels[_STATE].setWordWrap(True)
        self.stop = TextButton(tr("Stop"), kind="link")
        describe(
            self.stop, f"serve.request.{number + 1}.stop", tr("Stop this request"), tr("Its program gets no answer")
        )
        grid.addWidget(self.stop, row + 1, _STATE + 1)
        grid.setRowMinimumHeight(row + 1, self.stop.sizeHint().height())

    def show_request(self, request: ServedRequest | None) -> None:
        self._is_used = request is not None
        self._rule.setVisible(self._is_used)
        self._show_columns()
        self.stop.setVisible(request is not None and request.is_running)
        if request is None:
            return
        self.request_id = request.id
        texts = (
            program_text(request),
            time_text(request),
            prompt_text(request),
            read_text(request),
            written_text(request),
            speed_text(request),
            phase_text(request),
        )
        for label, text in zip(self._labels, texts, strict=True):
            label.setText(text)
        self._labels[0].setToolTip(details_text(request))
        restyle(self._labels[_STATE], "kind", phase_kind(request.phase))

    def set_narrow(self, *, is_narrow: bool) -> None:
        self._is_narrow = is_narrow
        self._show_columns()

    def _show_columns(self) -> None:
        for column, label in enumerate(self._labels):
            label.setVisible(self._is_used and not (self._is_narrow and column in _NOT_IF_NARROW))


def _align(label: QLabel, column: int) -> None:
    side = Qt.AlignmentFlag.AlignRight if column in _NUMBERS else Qt.AlignmentFlag.AlignLeft
    label.setAlignment(side | Qt.AlignmentFlag.AlignVCenter)


_NOTHING = "\N{EN DASH}"
_TONES: dict[Phase, str] = {"waiting": "notice", "refused": "error", "done": "dim", "stopped": "dim"}


def program_text(request: ServedRequest) -> str:
    """Return who asks: the program, and the name of its key if that has one."""
    name = program_title(request.program) or tr("unknown")
    return tr("{0} ({1})", name, request.key_name) if request.key_name else name


def time_text(request: ServedRequest) -> str:
    return datetime.datetime.fromtimestamp(request.began_s).strftime("%H:%M:%S")


def prompt_text(request: ServedRequest) -> str:
    return show_count(request.prompt_tokens) if request.prompt_tokens else _NOTHING


def read_text(request: ServedRequest) -> str:
    """Return how many tokens of the prompt had to be processed."""
    return show_count(request.prompt_tokens - request.reused_tokens) if request.prompt_tokens else _NOTHING


def written_text(request: ServedRequest) -> str:
    return show_count(request.written_tokens) if request.written_tokens else _NOTHING


def speed_text(request: ServedRequest) -> str:
    return tr("{0} tok/s", show_rate(request.tok_s)) if request.tok_s else _NOTHING


def details_text(request: ServedRequest) -> str:
    """Return the tooltip of a request: its path, and what a narrow window has no room for."""
    tokens = tr("{0} of {1} read, {2} written", read_text(request), prompt_text(request), written_text(request))
    ignored = (tr("Fields that had no effect: {0}", request.ignored),) if request.ignored else ()
    return "\n".join((request.path, time_text(request), tokens, *ignored))


def phase_text(request: ServedRequest) -> str:
    match request.phase:
        case "waiting":
            return tr("waiting")
        case "reading":
            return tr("reading")
        case "writing":
            return tr("writing")
        case "done":
            return tr("done")
        case "stopped":
            return tr("stopped")
        case "refused":
            return tr("refused: {0}", request.problem) if request.problem else tr("refused")


def phase_kind(phase: Phase) -> str:
    """Return the stylesheet's kind of a state."""
    return _TONES.get(phase, "good")


def summary_text(requests: Sequence[ServedRequest]) -> str:
    """Return "1 running · 2 waiting · 98.6 % of the prompts reused"; "" without requests."""
    running = sum(each.phase in ("reading", "writing") for each in requests)
    waiting = sum(each.phase == "waiting" for each in requests)
    prompt = sum(each.prompt_tokens for each in requests)
    parts = [tr_n("{0} running", "{0} running", running)] if running else []
    parts += [tr_n("{0} waiting", "{0} waiting", waiting)] if waiting else []
    if prompt:
        share = 100 * sum(each.reused_tokens for each in requests) / prompt
        parts.append(tr("{0} % of the prompts reused", show_decimal(share, 1)))
    return " · ".join(parts)
