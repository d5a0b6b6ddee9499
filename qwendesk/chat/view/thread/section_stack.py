"""The sections of an answer, stacked vertically. Only some of them have widgets."""

from collections.abc import Callable, Sequence

from qwendesk.chat.view.thread.answer_section import AnswerSection, belongs_to
from qwendesk.chat.view.thread.markdown_blocks import MarkdownBlock
from qwendesk.chat.view.thread.section_pane import SectionPane, save_block
from qwendesk.chat.view.thread.stack_geometry import StackGeometry

_PARSED_SECTIONS = 6
"""This many sections at the beginning keep their parsed blocks until they are drawn; others are parsed again.

A full garbage collection takes 10 ms for the tokens of 35 sections, and it can happen during any step.
"""


class SectionStack:
    """Creates sections for new blocks. `pane` creates the widget of a section, and `drop` deletes it."""

    def __init__(
        self, new_pane: Callable[[AnswerSection], SectionPane], width: Callable[[], int], text_size: Callable[[], int]
    ) -> None:
        """`width` and `text_size` return the width of the column and the size of body text in pixels."""
        self._new_pane, self._width, self._text_size = new_pane, width, text_size
        self.sections: list[AnswerSection] = []
        self.live: set[AnswerSection] = set()
        """The sections that have widgets."""
        self.geometry = StackGeometry()
        """The positions of the sections. Heights are estimated for those never drawn."""
        self._retired_writes = 0

    @property
    def last(self) -> AnswerSection | None:
        return self.sections[-1] if self.sections else None

    @property
    def blocks_written(self) -> int:
        """Number of finished blocks written, without those that were only restored."""
        return self._retired_writes + sum(each.pane.blocks_written for each in self.live if each.pane)

    def add_block(self, block: MarkdownBlock) -> None:
        """Add a finished block to its section, and write it if the section has a widget."""
        section = self.section_for(block)
        if section.pane is not None:
            section.pane.finish_block(block)
            section.add(save_block(block))
            section.drawn += 1
        else:
            section.add(save_block(block), block if len(self.sections) <= _PARSED_SECTIONS else None)

    def section_for(self, block: MarkdownBlock) -> AnswerSection:
        """Return the section for a block: the last one, or a new one."""
        last = self.last
        if last is not None and belongs_to(block, last):
            last.is_wide = last.is_wide or block.kind == "table_open"
            return last
        if last is not None:
            if last.pane is not None:
                last.pane.drop_open_blocks()
                last.pane.update_layout()
            self.measure(last)
        section = AnswerSection(len(self.sections), is_wide=block.kind == "table_open")
        self.sections.append(section)
        self.geometry.append(1)
        return section

    def pane(self, section: AnswerSection) -> SectionPane:
        """Return the widget of a section, creating and drawing it if necessary."""
        if section.pane is None:
            self.live.add(section)
            pane = section.pane = self._new_pane(section)
            pane.is_wide = section.is_wide
            pane.setGeometry(0, self.geometry.top(section.index), self._width(), 1)
            if section.blocks:
                self._retired_writes += len(section.blocks) - section.drawn
                section.drawn = len(section.blocks)
                pane.restore(section.parsed_blocks())
            pane.show()
            pane.update_layout()
            self.measure(section)
        section.pane.is_wide = section.is_wide
        return section.pane

    def drop(self, section: AnswerSection) -> None:
        pane = section.pane
        if pane is not None:
            self._retired_writes += pane.blocks_written
            section.pane = None
            self.live.discard(section)
            pane.hide()
            pane.deleteLater()

    def measure(self, section: AnswerSection) -> None:
        pane, width = section.pane, self._width()
        if pane is None:
            self.geometry.set_height(section.index, section.estimate_height(width, self._text_size()))
            return
        if pane.width() != width:
            pane.resize(width, pane.height())
        section.measured_width, section.measured_height = width, pane.height()
        self.geometry.set_height(section.index, pane.height())

    def resize(self) -> None:
        """Adapt to a new width: widgets at once, other sections by estimate."""
        for section in self.sections:
            if section.pane is None:
                self.measure(section)
        for section in self.live:
            self.measure(section)

    def arrange(self) -> None:
        """Position all widgets."""
        for section in self.live:
            self.measure(section)
        for section in self.live:
            if section.pane is not None and section.pane.y() != self.geometry.top(section.index):
                section.pane.move(0, self.geometry.top(section.index))

    def place_of_match(self, query: str, number: int) -> tuple[int, int]:
        """Return the section of match `number` and the match's number in it; (-1, 0) if there is none."""
        for section in self.sections:
            count = section.count(query)
            if number < count:
                return section.index, number
            number -= count
        return -1, 0

    def clear(self) -> None:
        for section in list(self.live):
            self.drop(section)
        self.sections.clear()
        self.geometry = StackGeometry()
        self._retired_writes = 0

    def nearest(self, indexes: Sequence[int], y: int) -> AnswerSection | None:
        """Return the section without a widget that is nearest to `y`."""
        missing = [self.sections[index] for index in indexes if self.sections[index].pane is None]
        return min(missing, key=lambda each: abs(self.geometry.top(each.index) - y), default=None)
