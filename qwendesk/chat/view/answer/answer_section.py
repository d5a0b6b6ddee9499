"""The sections of an answer as data, stacked vertically: their blocks and heights. Only some of them have widgets."""

from collections.abc import Callable, Sequence

from PySide6.QtGui import QTextCursor, QTextDocument

from qwendesk.chat.view.answer.clipboard_text import plain_text, rich_text
from qwendesk.chat.view.answer.formulas import FormulaCache
from qwendesk.chat.view.answer.markdown_blocks import MarkdownBlock
from qwendesk.chat.view.answer.markdown_writer import MarkdownWriter
from qwendesk.chat.view.answer.section_pane import SavedBlock, SectionPane, save_block
from qwendesk.chat.view.answer.stack_geometry import StackGeometry
from qwendesk.chat.view.answer.text_search import count_in_text
from qwendesk.widgets.theme_keeper import current_theme

# A section with at least this many characters gets no more blocks.
FULL = 1_600
# A section with at least this weight (see `weight_of`) gets no more blocks, because it is laid out in one step.
FULL_WEIGHT = 60
# A source line of up to this many characters is assumed to be one line on screen.
_LONG_LINE = 60
_IN_PIECES = ("fence", "table_open")


class AnswerSection:
    """Some adjacent blocks of an answer. `pane` is their widget, or None."""

    def __init__(self, index: int, *, is_wide: bool) -> None:
        self.index = index
        self.blocks: list[SavedBlock] = []
        self._fresh: list[MarkdownBlock] = []
        """Blocks that are parsed but not drawn yet. They are dropped once they are drawn."""
        self.size = self.weight = 0
        """Number of characters in the finished blocks, and their weight."""
        self._short_lines = 0.0
        self._long_lines = self._long_size = 0
        self.is_wide = is_wide
        """The section consists of one table."""
        self.pane: SectionPane | None = None
        self.drawn = 0
        """Number of its blocks that have been drawn."""
        self.measured_width = 0
        """The width for which `measured_height` is valid; 0 if never measured."""
        self.measured_height = 0
        self._counted = ("", 0, 0)
        """The last query that were counted, the number of blocks searched for it, and the number of matches."""

    def add(self, block: SavedBlock, fresh: MarkdownBlock | None = None) -> None:
        """Add a finished block; `fresh` is its parsed form if it was not drawn yet."""
        self.blocks.append(block)
        if fresh is not None:
            self._fresh.append(fresh)
        self.size += len(block.source)
        self.weight += block.weight
        for line in block.source.split("\n"):
            if len(line) > _LONG_LINE:
                self._long_lines += 1
                self._long_size += len(line)
            else:
                self._short_lines += 1 if line.strip() else 0.6

    def parsed_blocks(self) -> list[MarkdownBlock]:
        """Return the parsed blocks for drawing, parsing them again if necessary."""
        fresh, self._fresh = self._fresh, []
        if len(fresh) == len(self.blocks):
            return fresh
        return [block for each in self.blocks for block in each.blocks()]

    def estimate_height(self, width: int, text_size: int) -> int:
        """Return an estimate of its height, from its last measured height or from its characters and lines."""
        if self.measured_width and self.measured_height:
            return max(1, round(self.measured_height * self.measured_width / max(1, width)))
        in_line = max(8, width / (text_size * 0.52))
        lines = self._short_lines + max(self._long_lines, self._long_size / in_line)
        return max(1, round(lines * text_size * 1.55))

    def count(self, query: str) -> int:
        """Return the number of matches of `query`."""
        last_query, blocks, n_matches = self._counted
        if query != last_query:
            blocks = n_matches = 0
        if blocks < len(self.blocks):
            n_matches += sum(count_in_text(block.text, query) for block in self.blocks[blocks:])
        self._counted = (query, len(self.blocks), n_matches)
        return n_matches

    def has_footnote(self, name: str, *, named: bool) -> bool:
        """Return True if the section contains the footnote's text or, if `named`, a reference to it."""
        mark = f"[^{name}]"
        if named:
            return any(mark in block.source.replace(f"{mark}:", "") for block in self.blocks)
        return any(f"{mark}:" in block.source for block in self.blocks)


def estimated_height(text: str, width: int, text_size: int) -> int:
    """Return an estimate of the height of an answer that is not parsed yet."""
    in_line = max(8, width / (text_size * 0.52))
    return round((text.count("\n") * 0.8 + len(text) / in_line + 1) * text_size * 1.55)


def belongs_to(block: MarkdownBlock, last: AnswerSection) -> bool:
    """Return True if a block belongs to the last section, False if it starts a new one."""
    if not last.blocks:
        return True
    if last.is_wide or block.kind == "table_open" or last.size >= FULL or last.weight >= FULL_WEIGHT:
        return False
    before = last.blocks[-1]
    return not (
        (before.has_continuation and before.kind in _IN_PIECES)
        or ((block.is_continuation or block.has_continuation) and block.kind in _IN_PIECES)
    )


def continued_code(sections: Sequence[AnswerSection], open_code: str) -> str:
    """Return the code of a card in `sections`, which are the sections after the one where the card starts."""
    code = ""
    for section in sections:
        for block in section.blocks:
            if not block.is_continuation:
                return code
            code += "".join(token.content for each in block.blocks() for token in each.tokens if token.type == "fence")
            if not block.has_continuation:
                return code
    return code + open_code


def section_texts(section: AnswerSection, formulas: FormulaCache) -> tuple[str, str]:
    """Return a section as plain text and as HTML, without layout."""
    document = QTextDocument()
    writer = MarkdownWriter(document, current_theme(), formulas)
    for block in section.parsed_blocks():
        writer.write(block)
    cursor = QTextCursor(document)
    cursor.select(QTextCursor.SelectionType.Document)
    return plain_text(cursor), rich_text(cursor)


def section_plain_text(section: AnswerSection, formulas: FormulaCache) -> str:
    """Return a section as plain text. It is written to a document only if it may contain formulas."""
    if any(mark in block.source for block in section.blocks for mark in ("$", "\\(", "\\[")):
        return section_texts(section, formulas)[0]
    return "\n".join(block.text for block in section.blocks)


# This many sections at the beginning keep their parsed blocks until they are drawn; others are parsed again.
#
# A full garbage collection takes 10 ms for the tokens of 35 sections, and it can happen during any step.
_PARSED_SECTIONS = 6


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
