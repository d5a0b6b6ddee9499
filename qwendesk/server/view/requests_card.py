"""RequestsCard: the requests that run, and the latest ones."""

import datetime
from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QWidget

from qwendesk.core.number_format import show_count, show_decimal
from qwendesk.core.translation import join_sentences, tr, tr_n
from qwendesk.core.units import show_rate
from qwendesk.server.requests import Phase, ServedRequest, program_title
from qwendesk.widgets.buttons import restyle
from qwendesk.widgets.kit import PADDING, button, column, label, may_shrink, paragraph, row, rule
from qwendesk.widgets.layouts import SCROLL_BAR, steady_scroll_area
from qwendesk.widgets.theme_keeper import app_theme

_MOST_LINES = 20
# Lines that are shown at once; further ones are scrolled to.
_LINES_AT_ONCE = 4
# Columns of numbers, which are aligned at the right.
_NUMBERS = (2, 3, 4, 5)
_STATE = 6
# Columns that are hidden in a narrow window; the tooltip of the program has them too.
_NOT_IF_NARROW = (1, 3, 4)
# Width in pixels below which columns are hidden, the gaps between columns, and those between lines.
_NARROW, _GAP, _NARROW_GAP, _LINE_GAP = 640, 16, 10, 4


class RequestsCard(QFrame):
    stop_asked = Signal(int)
    """The id of a request."""
    clear_asked = Signal()
    """The user wants to forget the requests that have ended."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "modelcard")
        self.setObjectName("serve.requests")
        self._summary = label(kind="dim", name="serve.requests.summary")
        may_shrink(self._summary)
        self._clear = button(tr("Clear"), "serve.requests.clear", kind="link", tip=tr("Forget those that have ended"))
        self._clear.clicked.connect(self.clear_asked)
        self._nothing = paragraph(kind="dim", name="serve.requests.none")
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._nothing.setMinimumHeight(96)
        self._table = QWidget()
        self._table.setMinimumWidth(1)  # so that the card can become too narrow for all columns, and then hides some
        self._grid = QGridLayout(self._table)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(_GAP)
        self._grid.setVerticalSpacing(_LINE_GAP)
        self._lines: list[_Line] = []
        self._heads: list[QLabel] = []
        self._is_narrow = False
        self._add_head()
        self._area = steady_scroll_area(self._table)
        self._area.setProperty("kind", "shelf")
        self._table.setProperty("kind", "clear")
        head = row(label(tr("Requests"), "heading"), self._summary, margins=(0, 0, SCROLL_BAR, 0))
        head.addStretch(1)
        head.addWidget(self._clear)
        # The scroll bar lies in the card's padding.
        margins = (PADDING, 16, PADDING - SCROLL_BAR, 16)
        self.setLayout(column(head, self._nothing, self._area, margins=margins))
        app_theme().follow(self, self._fit)

    def show_state(self, *, is_on: bool) -> None:
        """Say how the first request comes, with the server on or off."""
        how = tr("Press Test to see one here.") if is_on else tr("Press Turn on and test to see one here.")
        self._nothing.setText(join_sentences(tr("Nothing yet."), how))

    def show_requests(self, requests: Sequence[ServedRequest]) -> None:
        """Show requests, those that run before the others. Only the latest refusal is red."""
        shown = sorted(requests, key=lambda each: not each.is_running)[:_MOST_LINES]
        while len(self._lines) < len(shown):
            line = _Line(self._grid, len(self._lines))
            line.set_narrow(is_narrow=self._is_narrow)
            line.stop.clicked.connect(lambda _checked=False, line=line: self.stop_asked.emit(line.request_id))
            self._lines.append(line)
        red = next((each for each in shown if each.phase == "refused"), None)
        for index, line in enumerate(self._lines):
            request = shown[index] if index < len(shown) else None
            line.show_request(request, is_red=request is not None and request is red)
        self._summary.setText(summary_text(requests))
        self._clear.setVisible(any(not each.is_running for each in shown))
        self._nothing.setVisible(not shown)
        self._area.setVisible(bool(shown))
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        is_narrow = event.size().width() < _NARROW
        if is_narrow != self._is_narrow:
            self._is_narrow = is_narrow
            self._grid.setHorizontalSpacing(_NARROW_GAP if is_narrow else _GAP)
            for place in _NOT_IF_NARROW:
                self._heads[place].setVisible(not is_narrow)
            for line in self._lines:
                line.set_narrow(is_narrow=is_narrow)
        self._fit()

    def _fit(self) -> None:
        """Make the table as high as its lines, but not higher than a few."""
        if not self._lines:
            return
        line = self._lines[0].stop.sizeHint().height() + 1 + 2 * _LINE_GAP
        most = self._heads[0].sizeHint().height() + _LINES_AT_ONCE * line
        wanted = self._grid.totalHeightForWidth(self.width() - 2 * PADDING)  # -1 before a line wraps
        self._area.setFixedHeight(min(most, wanted if wanted >= 0 else self._grid.totalSizeHint().height()))

    def _add_head(self) -> None:
        texts = (tr("Program"), tr("Time"), tr("Prompt"), tr("Read"), tr("Written"), tr("Speed"), tr("State"))
        tips = {
            2: tr("Tokens of the prompt"),
            3: tr("Tokens of the prompt that weren't in memory, so that they had to be processed"),
            4: tr("Tokens of thinking and answer"),
        }
        for place, text in enumerate(texts):
            head = label(text, "small")
            head.setToolTip(tips.get(place, ""))
            _align(head, place)
            self._grid.addWidget(head, 0, place)
            self._heads.append(head)
        self._grid.setColumnStretch(0, 2)
        self._grid.setColumnStretch(_STATE, 3)


class _Line:
    """The widgets of one request, which get new texts, so that nothing flickers."""

    def __init__(self, grid: QGridLayout, number: int) -> None:
        self.request_id = 0
        self._is_narrow = self._is_used = False
        place, name = 1 + 2 * number, f"serve.request.{number + 1}"
        self._rule = rule()
        grid.addWidget(self._rule, place, 0, 1, _STATE + 2)
        self._labels = [label(name=f"{name}.{each}") for each in range(_STATE + 1)]
        for each, shown in enumerate(self._labels):
            _align(shown, each)
            grid.addWidget(shown, place + 1, each)
        self._labels[0].setProperty("kind", "strong")
        self._labels[_STATE].setWordWrap(True)
        self.stop = button(
            tr("Stop"), f"{name}.stop", kind="link", said=tr("Stop this request"), tip=tr("Its program gets no answer")
        )
        grid.addWidget(self.stop, place + 1, _STATE + 1)
        grid.setRowMinimumHeight(place + 1, self.stop.sizeHint().height())

    def show_request(self, request: ServedRequest | None, *, is_red: bool) -> None:
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
        for shown, text in zip(self._labels, texts, strict=True):
            shown.setText(text)
        self._labels[0].setToolTip(details_text(request))
        restyle(self._labels[_STATE], "kind", "error" if is_red else _TONES.get(request.phase, "good"))

    def set_narrow(self, *, is_narrow: bool) -> None:
        self._is_narrow = is_narrow
        self._show_columns()

    def _show_columns(self) -> None:
        for place, shown in enumerate(self._labels):
            shown.setVisible(self._is_used and not (self._is_narrow and place in _NOT_IF_NARROW))


def _align(shown: QLabel, place: int) -> None:
    side = Qt.AlignmentFlag.AlignRight if place in _NUMBERS else Qt.AlignmentFlag.AlignLeft
    shown.setAlignment(side | Qt.AlignmentFlag.AlignVCenter)


_NOTHING = "\N{EN DASH}"
_TONES: dict[Phase, str] = {"waiting": "dim", "refused": "dim", "done": "dim", "stopped": "dim"}


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
    problem = (request.problem,) if request.problem else ()
    return "\n".join((request.path, time_text(request), tokens, *ignored, *problem))


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
            # Its first sentence; the tooltip has all of it.
            return tr("refused: {0}", request.problem.partition(". ")[0]) if request.problem else tr("refused")


def summary_text(requests: Sequence[ServedRequest]) -> str:
    """Return "1 running · 2 waiting · 98.6 % of the prompts reused"; "" without requests."""
    running = sum(each.phase in ("reading", "writing") for each in requests)
    waiting = sum(each.phase == "waiting" for each in requests)
    prompt = sum(each.prompt_tokens for each in requests)
    parts = [tr_n("{0} running", "{0} running", running)] if running else []
    parts += [tr_n("{0} waiting", "{0} waiting", waiting)] if waiting else []
    if prompt:
        share = 100 * sum(each.reused_tokens for each in requests) / prompt
        parts.append(tr("{0}% of the prompts reused", show_decimal(share, 1)))
    return " · ".join(parts)
