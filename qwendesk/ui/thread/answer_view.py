"""An answer as it streams: sections of bounded size, of which only those near the viewport are widgets.

Finished blocks are parsed and laid out once. A full section is frozen: whatever comes later never touches it.
"""

import time
from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QApplication, QSizePolicy, QWidget

from qwendesk.ui.kit.text_pane import paint_growth_only
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.answer_selection import AnswerSelection
from qwendesk.ui.thread.code_section import CodeSection
from qwendesk.ui.thread.column import Column
from qwendesk.ui.thread.find_marks import mark_found
from qwendesk.ui.thread.formulas import FormulaShelf
from qwendesk.ui.thread.inline_writer import FOOTNOTE, FOOTNOTE_REF
from qwendesk.ui.thread.markdown_stream import Block, MarkdownStream, Step, blocks_of, slices
from qwendesk.ui.thread.section_pane import SectionPane, saved
from qwendesk.ui.thread.sections import Section, belongs, code_from

_BREATHING = 3.0
"""After an expensive redraw, the next one waits this many times as long as it took."""


class AnswerView(QWidget):
    """Shows Markdown. `add` while it streams, `finish` at its end; `markdown` is all of it."""

    code_saved = Signal(str, str)
    resized = Signal()
    """Its height is another one, by itself and not because it was given another width."""
    jumped = Signal(int)
    """A footnote was followed: the place, in pixels from the top, to be seen."""

    dragged = Signal(QPoint)
    """A selection is being dragged: where the mouse is, in its own coordinates."""

    def __init__(
        self, keeper: ThemeKeeper, parent: QWidget | None = None, formulas: FormulaShelf | None = None
    ) -> None:
        super().__init__(parent)
        self._keeper = keeper
        self._formulas = formulas or FormulaShelf(self)
        self.markdown = ""
        self._pending = ""
        self._finished = False
        self._sections: list[Section] = []
        self._live: set[Section] = set()
        """Those that are widgets."""
        self._column = Column()
        self._range: tuple[int, int] | None = None
        self._retired_writes = 0
        self._found = ("", -1)
        self._stream = MarkdownStream()
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self.draw_now)
        self.selection = AnswerSelection(self)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        paint_growth_only(self)
        self.setFixedHeight(1)
        keeper.changed.connect(self._on_theme_changed)
        self._formulas.drawn.connect(self._on_formulas)

    @property
    def sections(self) -> Sequence[Section]:
        return self._sections

    @property
    def blocks_written(self) -> int:
        """How often finished blocks were written: once each, not counting those that left the screen and came back."""
        return self._retired_writes + sum(each.pane.blocks_written for each in self._live if each.pane)

    @property
    def open_writes(self) -> int:
        """How often an open block was written."""
        return sum(each.pane.open_writes for each in self._live if each.pane)

    @property
    def is_held(self) -> bool:
        """Whether it must not be thrown away: it grows, or somebody works in it."""
        focus = QApplication.focusWidget()
        return bool(self._pending) or self.selection.is_there or (focus is not None and self.isAncestorOf(focus))

    def add(self, text: str) -> None:
        self.markdown += text
        self._pending += text
        if not self._timer.isActive():
            self.draw_now()

    def draw_now(self) -> None:
        """Draw what was appended and not drawn yet; happens by itself, at a bearable rate."""
        if not self._pending:
            return
        started = time.perf_counter()
        text, self._pending = self._pending, ""
        step = Step((), ())
        for part in slices(text):
            step = self._stream.feed(part)
            for block in step.finished:
                self._place(block)
        if step.open:
            section = self._section_for(step.open[0])
            self._pane(section).show_open(step.open)
        self._settle()
        cost = time.perf_counter() - started
        self._timer.start(round(cost * 1000 * _BREATHING))

    def show_whole(self, markdown: str) -> None:
        """All of a finished answer at once, in place of `add` and `finish`."""
        self.markdown, self._finished = markdown, True
        for block in blocks_of(markdown):
            section = self._section_for(block)
            section.add(saved(block), block)
        self._settle()

    def finish(self) -> None:
        """No more text comes."""
        self._finished = True
        self.draw_now()
        self._timer.stop()
        for block in self._stream.end().finished:
            self._place(block)
        if self._sections and self._sections[-1].pane is not None:
            self._sections[-1].pane.drop_open()
        self._settle()

    def show_range(self, top: int, bottom: int) -> None:
        """Have widgets for the sections between two heights, and for those that are in use; no others."""
        self._range = (top, bottom)
        self._arrange()

    def place_at(self, y: int) -> tuple[int, int]:
        """The section at a height, and how far below its top: a place that stays when heights change."""
        index = self._column.at(y)
        return (index, y - self._column.top(index)) if index >= 0 else (0, y)

    def y_of(self, section: int, offset: int) -> int:
        if not self._sections:
            return offset
        return self._column.top(min(section, len(self._sections) - 1)) + offset

    def pane_at(self, index: int) -> SectionPane:
        """The widget of a section, made when there is none."""
        return self._pane(self._sections[index])

    def index_at(self, y: int) -> int:
        return self._column.at(y)

    def mark_found(self, words: str, number: int) -> None:
        """Mark every place with `words`, and number `number` of them more; "" removes the marks."""
        if (words, number) != self._found:
            self._found = (words, number)
            for index in range(len(self._sections)):
                self._mark(index)

    def y_of_match(self, words: str, number: int) -> int:
        """How far below the top place `number` with `words` is; its section becomes a widget."""
        index, left = self._section_of_match(words, number)
        if index < 0:
            return 0
        place = mark_found(self.pane_at(index), self._keeper.theme, words, left)
        self._arrange()
        return self._column.top(index) + (place.top() if place is not None else 0)

    def _section_of_match(self, words: str, number: int) -> tuple[int, int]:
        """The section that place `number` is in, and which of that section's places it is; (-1, 0) for none."""
        for index, section in enumerate(self._sections):
            count = section.count(words)
            if number < count:
                return index, number
            number -= count
        return -1, 0

    def _mark(self, index: int) -> None:
        pane, (words, number) = self._sections[index].pane, self._found
        if pane is None:
            return
        at, left = self._section_of_match(words, number) if words and number >= 0 else (-1, -1)
        mark_found(pane, self._keeper.theme, words, left if at == index else -1)

    def toPlainText(self) -> str:
        """All its words as they are drawn."""
        return "\n".join(self._text_of(section) for section in self._sections)

    def selectAll(self) -> None:
        self.selection.select_all()

    def copy(self) -> None:
        self.selection.copy()

    def _text_of(self, section: Section) -> str:
        if section.pane is not None:
            return section.pane.toPlainText()
        pane = SectionPane(self._keeper, self._formulas)
        pane.restore(section.take_blocks())
        text = pane.toPlainText()
        pane.deleteLater()
        return text

    def _place(self, block: Block) -> None:
        """Write a finished block where it belongs."""
        section = self._section_for(block)
        if section.pane is not None:
            section.pane.finish_block(block)
            section.add(saved(block))
        else:
            section.add(saved(block), block)

    def _section_for(self, block: Block) -> Section:
        """The last section, or a new one when that is full or of another kind."""
        last = self._sections[-1] if self._sections else None
        if last is not None and belongs(block, last):
            last.is_wide = last.is_wide or block.kind == "table_open"
            return last
        if last is not None:
            if last.pane is not None:
                last.pane.drop_open()
                last.pane.settle()
            self._measure(len(self._sections) - 1)
        section = Section(len(self._sections), is_wide=block.kind == "table_open")
        self._sections.append(section)
        self._column.append(1)
        return section

    def _pane(self, section: Section) -> SectionPane:
        """The section's widget; what it holds is drawn when it is made."""
        if section.pane is None:
            self._live.add(section)
            pane = section.pane = SectionPane(self._keeper, self._formulas, self)
            pane.is_wide = section.is_wide
            pane.setGeometry(0, self._column.top(section.index), max(1, self.width()), 1)
            pane.whole_code = lambda code: self._whole_code(section, code)
            pane.code_saved.connect(self.code_saved)
            pane.footnote_chosen.connect(self._on_footnote)
            self.selection.watch(pane)
            if section.blocks:
                self._retired_writes += section.fresh_count
                pane.restore(section.take_blocks())
                index = section.index
                self.selection.show_in(index)
                if self._found[0]:
                    self._mark(index)
            pane.show()
            pane.settle()
        section.pane.is_wide = section.is_wide
        return section.pane

    def _drop(self, section: Section) -> None:
        pane = section.pane
        if pane is not None:
            self._retired_writes += pane.blocks_written
            section.pane = None
            self._live.discard(section)
            pane.hide()
            pane.deleteLater()

    def _settle(self) -> None:
        if self._sections and self._sections[-1].pane is not None:
            self._sections[-1].pane.settle()
        self._arrange()

    def _arrange(self) -> None:
        """Widgets for what is near, none for what is far, each in its place. Costs nothing for what is frozen."""
        last = len(self._sections) - 1
        if last >= 0 and self._sections[last].pane is None:
            self._measure(last)
        wanted: set[int] = set()
        for _ in range(3):
            wanted = self._wanted()
            new = [index for index in wanted if self._sections[index].pane is None]
            for index in new:
                self._pane(self._sections[index])
                self._measure(index)
            if not new:
                break
        for section in self._live:
            self._measure(section.index)
        for section in list(self._live):
            index = section.index
            if index not in wanted and not self._is_used(index):
                self._drop(section)
            elif section.pane is not None:
                section.pane.move(0, self._column.top(index))
        if self._column.total != self.height() or self.minimumHeight() != self.height():
            self.setFixedHeight(max(1, self._column.total))
            self.resized.emit()

    def _wanted(self) -> set[int]:
        """The sections that are to be widgets: those in the range, and the last one while it grows."""
        count = len(self._sections)
        if self._range is None:
            return set(range(count))
        wanted = set(self._column.between(*self._range)) if count else set()
        if count and not self._finished:
            wanted.add(count - 1)
        return wanted

    def _measure(self, index: int) -> None:
        section = self._sections[index]
        if section.pane is None:
            self._column.set_height(index, section.guess(self.width(), self._keeper.theme.px(14)))
            return
        if section.pane.width() != self.width():
            section.pane.resize(max(1, self.width()), section.pane.height())
        section.measured_width, section.measured_height = self.width(), section.pane.height()
        self._column.set_height(index, section.pane.height())

    def _is_used(self, index: int) -> bool:
        pane = self._sections[index].pane
        is_last = index == len(self._sections) - 1
        if self.selection.starts_in(index):
            return True
        return (is_last and not self._finished) or (pane is not None and (pane.hasFocus() or pane.underMouse()))

    def _on_theme_changed(self) -> None:
        if self._timer.isActive():
            self._timer.stop()
        markdown, finished, shown = self.markdown, self._finished, self._range
        for section in list(self._live):
            self._drop(section)
        self._sections.clear()
        self._column = Column()
        self.selection.clear()
        self._retired_writes = 0
        self._stream = MarkdownStream()
        self.markdown, self._pending, self._finished, self._range = "", "", False, shown
        if finished:
            self.show_whole(markdown)
        else:
            self.add(markdown)

    def _on_formulas(self) -> None:
        """Draw the formulas that still stand as source, where they are drawn by now."""
        waiting = [each for each in self._live if each.pane is not None and each.pane.waits]
        for section in waiting:
            if section.pane is not None:
                section.pane.draw_formulas()
                self._measure(section.index)
        if waiting:
            self._arrange()

    def _whole_code(self, section: Section, code: CodeSection) -> str:
        """The code of a card, with the pieces of it that lie in later sections."""
        last = section.blocks[-1] if section.blocks else None
        if last is None or not last.goes_on:
            return code.text
        index = section.index
        open_code = self._sections[-1].pane.open_code if self._sections[-1].pane is not None else ""
        return code.text + code_from(self._sections[index + 1 :], open_code)

    def _on_footnote(self, address: str) -> None:
        """Go to a footnote's text, or back to where it is named."""
        name = address.removeprefix(FOOTNOTE_REF).removeprefix(FOOTNOTE)
        back = address.startswith(FOOTNOTE_REF)
        for index, section in enumerate(self._sections):
            if section.has_footnote(name, named=back):
                place = self._pane(section).place_of(address[1:])
                self._arrange()
                if place is not None:
                    self.jumped.emit(self._column.top(index) + place)
                    return

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() == event.oldSize().width():
            return
        for index, section in enumerate(self._sections):
            if section.pane is None:
                self._measure(index)
        for section in self._live:
            self._measure(section.index)
        self._arrange()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        selection = getattr(self, "selection", None)  # gone while Python takes this object apart
        return selection is not None and selection.handles(watched, event)

    def section_rect(self, index: int) -> QRect:
        return QRect(0, self._column.top(index), self.width(), self._column.height(index))

    def extend_selection(self, place: QPoint) -> None:
        """While a selection is dragged: up to this place, in this widget's own coordinates."""
        self.selection.extend(place)
