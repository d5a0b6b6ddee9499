"""Shows an answer while it streams, in sections of bounded size. Only sections near the viewport are widgets.

Finished blocks are parsed and laid out once. A full section never changes again. A long text is parsed, and sections
near the viewport are drawn, in steps between iterations of the event loop.
"""

import time
from collections.abc import Collection, Iterator, Sequence

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, QTimer, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QSizePolicy, QWidget

from qwendesk.chat.view.answer.answer_section import (
    AnswerSection,
    SectionStack,
    continued_code,
    estimated_height,
    section_texts,
)
from qwendesk.chat.view.answer.answer_selection import AnswerSelection
from qwendesk.chat.view.answer.code_card import CodeCard
from qwendesk.chat.view.answer.formulas import FormulaCache
from qwendesk.chat.view.answer.highlighter import Highlighter
from qwendesk.chat.view.answer.inline_writer import FOOTNOTE, FOOTNOTE_REF
from qwendesk.chat.view.answer.markdown_stream import MarkdownStream, slice_end
from qwendesk.chat.view.answer.section_pane import SectionPane
from qwendesk.chat.view.answer.source_links import SourceLinks
from qwendesk.chat.view.answer.text_search import mark_found
from qwendesk.core.translation import tr
from qwendesk.widgets.step_budget import StepBudget, StepwiseWork
from qwendesk.widgets.text_pane import repaint_only_growth
from qwendesk.widgets.theme_keeper import app_theme, current_theme

# The pause before the next redraw, as a multiple of the duration of the last one.
_REDRAW_PAUSE_FACTOR = 3.0
# An answer with more sections keeps its widget while it is far from the viewport, to avoid parsing it again.
_KEPT_SECTIONS = 40


class AnswerView(QWidget):
    """Shows Markdown: `add` text while it streams, then call `finish`. `markdown` is the complete source.

    With a `budget` the work is done in steps, otherwise at once.
    """

    code_saved = Signal(str, str)
    page_asked = Signal(str, str)
    resized = Signal()
    """The height changed for another reason than a new width."""
    parsed = Signal()
    """The text is complete, and all of it is in sections."""
    jumped = Signal(int)
    """The user followed a footnote link to this position, in pixels from the top."""

    dragged = Signal(QPoint)
    """A selection is being dragged to this point, in the widget's coordinates."""

    def __init__(
        self,
        parent: QWidget | None,
        formulas: FormulaCache | None = None,
        highlighter: Highlighter | None = None,
        budget: StepBudget | None = None,
        sources: SourceLinks | None = None,
    ) -> None:
        """Without a `highlighter`, code is not highlighted; without `sources`, citations are plain text."""
        super().__init__(parent)
        self._formulas = formulas or FormulaCache(self)
        self._highlighter, self._sources = highlighter, sources
        self.markdown = ""
        self._pending = ""
        self._ended = False
        """Whether no more text will be added after the pending text."""
        self._finished = False
        """Whether the text is complete, and all of it is in sections."""
        self._expected_height = 0
        """Estimated height of a long text that is being parsed."""
        self._stack = SectionStack(self._new_pane, lambda: max(1, self.width()), lambda: current_theme().px(14))
        self._range: tuple[int, int] | None = None
        self._found = ("", -1)
        self._found_at = (-1, -1)
        """The section of the current match, and its number among the section's matches."""
        self._stream = MarkdownStream()
        self._work = StepwiseWork(self, budget)
        self._redraw = QTimer(self, singleShot=True)
        self._redraw.timeout.connect(self.draw_now)
        self.selection = AnswerSelection(
            self._stack,
            self._formulas,
            StepwiseWork(self, budget),
            markdown=lambda: self.markdown,
            on_dragged=self.dragged.emit,
        )
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        repaint_only_growth(self)
        self.setFixedHeight(1)
        app_theme().changed.connect(self._on_theme_changed)
        self._formulas.drawn.connect(self._on_formulas)

    @property
    def sections(self) -> Sequence[AnswerSection]:
        return self._stack.sections

    @property
    def live(self) -> Collection[AnswerSection]:
        """The sections that have widgets."""
        return self._stack.live

    @property
    def blocks_written(self) -> int:
        """Number of finished blocks written, without those that were only restored."""
        return self._stack.blocks_written

    @property
    def open_writes(self) -> int:
        """Number of times an open block was written."""
        return sum(each.pane.open_writes for each in self._stack.live if each.pane)

    @property
    def is_parsed(self) -> bool:
        return self._finished

    @property
    def is_complete(self) -> bool:
        """Whether all received text is parsed, and everything near the viewport is drawn."""
        return not self._work.is_active and not self._pending

    @property
    def is_in_use(self) -> bool:
        """Whether the widget must be kept: it is growing, long, or in use."""
        focus = QApplication.focusWidget()
        is_long = bool(self._pending) or len(self.sections) > _KEPT_SECTIONS
        return is_long or self.selection.has_selection or (focus is not None and self.isAncestorOf(focus))

    def add(self, text: str) -> None:
        self.markdown += text
        self._pending += text
        if not self._redraw.isActive():
            self.draw_now()

    def draw_now(self) -> None:
        """Draw the text that was added. Called automatically at a limited rate."""
        if self._pending:
            self._work.start(self._advance)

    def show_whole(self, markdown: str) -> None:
        """Show a finished answer, instead of `add` and `finish`."""
        self.markdown = self._pending = markdown
        self._expected_height = estimated_height(markdown, max(1, self.width()), current_theme().px(14))
        self.finish()

    def finish(self) -> None:
        """Mark the text as complete."""
        self._ended = True
        self._redraw.stop()
        self._work.start(self._advance)

    def show_range(self, top: int, bottom: int) -> None:
        """Keep widgets only for the sections between two y positions in pixels, and for those in use."""
        self._range = (top, bottom)
        self._drop_far()
        self._update_layout()
        self._work.start(self._advance)

    def place_at(self, y: int) -> tuple[int, int]:
        """Return the section at `y` and the offset in it, which stay valid when heights change."""
        index = self._stack.geometry.index_at(y)
        return (index, y - self._stack.geometry.top(index)) if index >= 0 else (0, y)

    def y_of(self, section: int, offset: int) -> int:
        if not self.sections:
            return offset
        return self._stack.geometry.top(min(section, len(self.sections) - 1)) + offset

    def pane_at(self, index: int) -> SectionPane:
        """Return the widget of a section, creating it if necessary."""
        return self._stack.pane(self.sections[index])

    def mark_found(self, query: str, number: int) -> None:
        """Highlight all matches of `query`, and match `number` as the current one; "" removes the highlights."""
        if (query, number) != self._found:
            self._found = (query, number)
            self._mark_all()

    def y_of_match(self, query: str, number: int) -> int:
        """Return the y of match `number` of `query`, creating the widget of its section."""
        index, left = self._stack.place_of_match(query, number)
        if index < 0:
            return 0
        place = mark_found(self.pane_at(index), current_theme(), query, left)
        self._update_layout()
        return self._stack.geometry.top(index) + (place.top() if place is not None else 0)

    def _mark_all(self) -> None:
        query, number = self._found
        self._found_at = self._stack.place_of_match(query, number) if query and number >= 0 else (-1, -1)
        for section in self._stack.live:
            self._mark(section)

    def _mark(self, section: AnswerSection) -> None:
        at, number = self._found_at
        if section.pane is not None:
            mark_found(section.pane, current_theme(), self._found[0], number if at == section.index else -1)

    def toPlainText(self) -> str:
        """Return the complete text as it is drawn."""
        return "\n".join(
            each.pane.toPlainText() if each.pane else section_texts(each, self._formulas)[0] for each in self.sections
        )

    def selectAll(self) -> None:
        self.selection.select_all()

    def copy(self) -> None:
        self.selection.copy()

    def _advance(self) -> Iterator[None]:
        """Do the remaining work in steps: draw missing sections near the viewport, then parse the next slice."""
        while True:
            started = time.perf_counter()
            if (section := self._missing()) is not None:
                self._stack.pane(section)
                self._update_layout()
                yield
            elif self._pending:
                end = slice_end(self._pending)
                part, self._pending = self._pending[:end], self._pending[end:]
                for block in self._stream.iter_finished(part):
                    self._stack.add_block(block)
                    yield
                if not self._pending and self._ended:
                    yield from self._end_text()
                elif not self._pending:
                    self._show_open()
                self._update_layout()
                if not self._ended:
                    self._redraw.start(round((time.perf_counter() - started) * 1000 * _REDRAW_PAUSE_FACTOR))
                yield
            elif self._ended and not self._finished:
                yield from self._end_text()
                self._update_layout()
                yield
            else:
                return

    def _show_open(self) -> None:
        blocks = self._stream.preview()
        if blocks:
            self._stack.pane(self._stack.section_for(blocks[0])).show_open_blocks(blocks)

    def _end_text(self) -> Iterator[None]:
        for block in self._stream.iter_remaining():
            self._stack.add_block(block)
            yield
        last = self._stack.last
        if last is not None and last.pane is not None:
            last.pane.drop_open_blocks()
        self._finished, self._expected_height = True, 0
        if self._found[0]:
            self._mark_all()
        self.parsed.emit()

    def _new_pane(self, section: AnswerSection) -> SectionPane:
        pane = SectionPane(self._formulas, self._highlighter, self, self._sources)
        pane.whole_code = lambda code: self._whole_code(section, code)
        pane.code_saved.connect(self.code_saved)
        pane.page_asked.connect(self.page_asked)
        pane.footnote_chosen.connect(self._on_footnote)
        pane.written.connect(lambda: self._on_written(section))
        pane.viewport().installEventFilter(self)
        pane.installEventFilter(self)
        return pane

    def _on_written(self, section: AnswerSection) -> None:
        """Show the selection and the matches in a section that was drawn again."""
        self.selection.show_in(section.index)
        if self._found[0]:
            self._mark(section)

    def _missing(self) -> AnswerSection | None:
        """Return the next section that needs a widget."""
        if self._range is None:
            return next((each for each in self.sections if each.pane is None), None)
        return self._stack.nearest(self._wanted(), sum(self._range) // 2)

    def _wanted(self) -> list[int]:
        """Return the sections that need widgets: those in range, and the last one while it grows."""
        count = len(self.sections)
        if self._range is None:
            return list(range(count))
        wanted = list(self._stack.geometry.indexes_between(*self._range))
        if count and not self._ended and count - 1 not in wanted:
            wanted.append(count - 1)
        return wanted

    def _update_layout(self) -> None:
        """Position all widgets and set the total height. Full sections take no time."""
        last = self._stack.last
        if last is not None:
            if last.pane is not None:
                last.pane.update_layout()
            self._stack.measure(last)
        self._stack.arrange()
        height = max(1, self._stack.geometry.total, self._expected_height)
        if height != self.height() or self.minimumHeight() != height:
            self.setFixedHeight(height)
            self.resized.emit()

    def _drop_far(self) -> None:
        wanted = set(self._wanted())
        for section in list(self._stack.live):
            if section.index not in wanted and not self._is_used(section):
                self._stack.drop(section)

    def _is_used(self, section: AnswerSection) -> bool:
        pane = section.pane
        if self.selection.starts_in(section.index):
            return True
        is_last = section is self._stack.last
        return (is_last and not self._finished) or (pane is not None and (pane.hasFocus() or pane.underMouse()))

    def _on_theme_changed(self) -> None:
        self._redraw.stop()
        self._work.stop()
        self._stack.clear()
        self.selection.clear()
        self._stream = MarkdownStream()
        self._pending, self._finished = self.markdown, False
        self._work.start(self._advance)

    def _on_formulas(self) -> None:
        """Draw the formulas that are still shown as source and are available now."""
        waiting = [each.pane for each in self._stack.live if each.pane is not None and each.pane.has_pending_formulas]
        for pane in waiting:
            pane.draw_formulas()
        if waiting:
            self._update_layout()

    def _whole_code(self, section: AnswerSection, code: CodeCard) -> str:
        """Return the code of a card, including its pieces in later sections."""
        last = section.blocks[-1] if section.blocks else None
        if last is None or not last.has_continuation:
            return code.text
        end = self._stack.last
        open_code = end.pane.open_code if end is not None and end.pane is not None else ""
        return code.text + continued_code(self.sections[section.index + 1 :], open_code)

    def _on_footnote(self, address: str) -> None:
        """Go to the text of a footnote, or back to its reference."""
        name = address.removeprefix(FOOTNOTE_REF).removeprefix(FOOTNOTE)
        back = address.startswith(FOOTNOTE_REF)
        for section in self.sections:
            if section.has_footnote(name, named=back):
                place = self._stack.pane(section).place_of(address[1:])
                self._update_layout()
                if place is not None:
                    self.jumped.emit(self._stack.geometry.top(section.index) + place)
                    return

    def paintEvent(self, event: QPaintEvent) -> None:
        """Show a note where a long text is not parsed yet."""
        top = self._stack.geometry.total
        if self._expected_height > top and event.rect().bottom() > top:
            painter = QPainter(self)
            painter.setFont(current_theme().font(13))
            painter.setPen(current_theme().color("text_dim"))
            room = event.rect().intersected(QRect(0, top, self.width(), self._expected_height - top))
            painter.drawText(room, Qt.AlignmentFlag.AlignCenter, tr("Preparing a long answer…"))
            painter.end()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() == event.oldSize().width():
            return
        self._stack.resize()
        self._update_layout()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        selection = getattr(self, "selection", None)  # None while Python is destroying this object
        return selection is not None and selection.handle_event(watched, event)

    def extend_selection(self, place: QPoint) -> None:
        """Extend the selection that is being dragged to a point in the widget's coordinates."""
        self.selection.extend(place)
