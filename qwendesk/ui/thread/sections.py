"""An answer's sections as data: what each holds, how tall it will be, where the next one begins."""

from collections.abc import Sequence

from qwendesk.ui.thread.find_text import count_markdown, count_plain
from qwendesk.ui.thread.markdown_stream import Block
from qwendesk.ui.thread.section_pane import SavedBlock, SectionPane

FULL = 1_600
"""Characters from which a section takes no more blocks."""
_IN_PIECES = ("fence", "table_open")


class Section:
    """Some neighbouring blocks; `pane` is their widget while there is one."""

    def __init__(self, index: int, *, is_wide: bool = False) -> None:
        self.index = index
        self.blocks: list[SavedBlock] = []
        self._fresh: list[Block] = []
        """Blocks that were parsed and not drawn yet; dropped as soon as they are."""
        self.size = 0
        """Characters in its finished blocks."""
        self.is_wide = is_wide
        """It holds a table and nothing else."""
        self.pane: SectionPane | None = None
        self.measured_width = 0
        """The width its height was measured for; 0 for never."""
        self.measured_height = 0

    @property
    def fresh_count(self) -> int:
        """How many of its blocks were never drawn."""
        return len(self._fresh)

    def add(self, block: SavedBlock, fresh: Block | None = None) -> None:
        """A finished block; `fresh` when nothing drew it yet."""
        self.blocks.append(block)
        if fresh is not None:
            self._fresh.append(fresh)
        self.size += len(block.source)

    def take_blocks(self) -> list[Block]:
        """Its blocks to be drawn, parsed again if they were drawn before."""
        fresh, self._fresh = self._fresh, []
        if len(fresh) == len(self.blocks):
            return fresh
        return [block for each in self.blocks for block in each.blocks()]

    def guess(self, width: int, text_size: int) -> int:
        """Its height before it is drawn: from its last measure, or from the number of its characters and lines."""
        if self.measured_width and self.measured_height:
            return max(1, round(self.measured_height * self.measured_width / max(1, width)))
        in_line = max(8, width / (text_size * 0.52))
        lines = sum(
            max(1, len(line) / in_line) if line.strip() else 0.6
            for block in self.blocks
            for line in block.source.split("\n")
        )
        return max(1, round(lines * text_size * 1.55))

    def count(self, words: str) -> int:
        """How many places with `words` it shows."""
        if self.pane is not None:
            return sum(count_plain(line, words) for line in self.pane.toPlainText().split("\n"))
        return sum(count_markdown(block.source, words) for block in self.blocks)

    def has_footnote(self, name: str, *, named: bool) -> bool:
        """Whether the footnote's text is here, or (`named`) a place that names it."""
        mark = f"[^{name}]"
        if named:
            return any(mark in block.source.replace(f"{mark}:", "") for block in self.blocks)
        return any(f"{mark}:" in block.source for block in self.blocks)


def belongs(block: Block, last: Section) -> bool:
    """Whether a block goes into the last section; otherwise it begins another one."""
    if not last.blocks:
        return True
    if last.is_wide or block.kind == "table_open" or last.size >= FULL:
        return False
    return not (last.blocks[-1].goes_on or (block.follows and block.kind in _IN_PIECES) or block.goes_on)


def code_from(sections: Sequence[Section], open_code: str) -> str:
    """The pieces of one card's code in the sections after its first."""
    code = ""
    for section in sections:
        for block in section.blocks:
            if not block.follows:
                return code
            code += "".join(token.content for each in block.blocks() for token in each.tokens if token.type == "fence")
            if not block.goes_on:
                return code
    return code + open_code
