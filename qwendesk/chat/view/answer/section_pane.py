"""One section of an answer: a text pane of bounded size."""

from collections.abc import Callable, Sequence

import msgspec
from PySide6.QtCore import QMimeData, QRect, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QPainter, QPaintEvent, QResizeEvent, QTextCursor
from PySide6.QtWidgets import QTextEdit, QToolButton, QWidget

from qwendesk.chat.browser_pages import is_page
from qwendesk.chat.view.answer.clipboard_text import markdown_of, plain_text, rich_text
from qwendesk.chat.view.answer.code_card import CodeCard
from qwendesk.chat.view.answer.formulas import FormulaCache
from qwendesk.chat.view.answer.frame_painter import card_rect, paint_frames
from qwendesk.chat.view.answer.highlighter import Highlighter
from qwendesk.chat.view.answer.inline_writer import FOOTNOTE, draw_formulas
from qwendesk.chat.view.answer.markdown_blocks import MarkdownBlock, reparse_block
from qwendesk.chat.view.answer.markdown_writer import CARD_HEADER, Mark, MarkdownWriter
from qwendesk.chat.view.answer.source_links import SourceLinks
from qwendesk.chat.view.answer.table_writer import fit_widths, set_widths
from qwendesk.chat.view.answer.text_search import visible_text
from qwendesk.core.translation import tr
from qwendesk.widgets.text_pane import TextPane
from qwendesk.widgets.theme_keeper import current_theme

_BUTTON_HEIGHT = 24
_COPIED_NOTE_MS = 1500
_WEIGHTS = {
    "inline": 1,
    "list_item_open": 1,
    "td_open": 1,
    "th_open": 1,
    "blockquote_open": 3,
    "hr": 3,
    "fence": 12,
    "code_block": 12,
}
# Pixels by which an arrow key scrolls a wide table.
_TABLE_STEP = 48


class SavedBlock(msgspec.Struct, frozen=True, gc=False):
    """A finished block in the form in which it is stored, to write it again later."""

    source: str
    kind: str
    is_continuation: bool = False
    has_continuation: bool = False
    number: int = 0
    columns: tuple[int, ...] = ()
    text: str = ""
    """Its visible text, for searching."""
    weight: int = 0
    """Its cost of layout, see `weight_of`."""

    def blocks(self) -> tuple[MarkdownBlock, ...]:
        return reparse_block(
            self.source,
            is_continuation=self.is_continuation,
            has_continuation=self.has_continuation,
            number=self.number,
            columns=self.columns,
        )


def save_block(block: MarkdownBlock) -> SavedBlock:
    return SavedBlock(
        block.source,
        block.kind,
        block.is_continuation,
        block.has_continuation,
        block.number,
        block.columns,
        visible_text(block),
        weight_of(block),
    )


def weight_of(block: MarkdownBlock) -> int:
    """Return the approximate time that laying out a block takes, in tenths of a millisecond."""
    return len(block.source) // 400 + sum(_WEIGHTS.get(token.type, 0) for token in block.tokens)


class SectionPane(TextPane):
    """Shows blocks. Finished blocks are written once, open ones are rewritten at each change."""

    code_saved = Signal(str, str)
    """Text and language of a code card that the user wants to save as a file."""
    page_asked = Signal(str, str)
    """Text and language of a code card that the user wants to see as a page."""
    written = Signal()
    """The blocks were replaced, so nothing is selected or highlighted any more."""
    footnote_chosen = Signal(str)
    """The address of a footnote or of its reference."""

    def __init__(
        self,
        formulas: FormulaCache,
        highlighter: Highlighter | None,
        parent: QWidget,
        sources: SourceLinks | None,
    ) -> None:
        super().__init__(parent)
        self._formulas, self._highlighter, self._sources = formulas, highlighter, sources
        self.blocks_written = 0
        """Number of times a finished block was written."""
        self.open_writes = 0
        """Number of times an open block was written."""
        self.has_pending_formulas = False
        """Whether it shows the source of a formula that is still being drawn."""
        self.is_wide = False
        """Whether it contains a table, which scrolls horizontally if it is too wide."""
        self.whole_code: Callable[[CodeCard], str] = lambda card: card.text
        self._buttons: list[tuple[QToolButton, CodeCard]] = []
        self._open_mark: Mark | None = None
        self._open_code: CodeCard | None = None
        self._code: list[CodeCard] = []
        """The code cards in finished blocks."""
        self._open_cards: list[CodeCard] = []
        """The code cards in open blocks."""
        self._open_buttons: list[QToolButton] = []
        self._writer = MarkdownWriter(self.document(), current_theme(), formulas, highlighter, sources)
        self.setObjectName("thread.text")
        self.setAccessibleName(tr("Answer"))
        self.horizontalScrollBar().valueChanged.connect(self.viewport().update)
        self.anchorClicked.connect(self._on_anchor)

    @property
    def open_code(self) -> str:
        """The code of the open block; "" if it isn't code."""
        return self._open_code.text if self._open_code is not None else ""

    def place_of(self, anchor: str) -> int | None:
        """Return the distance of an anchor from the top in pixels; None if it is not here."""
        block = self.document().begin()
        while block.isValid():
            parts = block.begin()
            while not parts.atEnd():
                if anchor in parts.fragment().charFormat().anchorNames():
                    return round(self.document().documentLayout().blockBoundingRect(block).top())
                parts += 1
            block = block.next()
        return None

    def restore(self, blocks: Sequence[MarkdownBlock]) -> None:
        """Replace the content with these finished blocks."""
        self.has_pending_formulas = False
        self._clear()
        for block in blocks:
            self._write_finished(block)
        self.blocks_written = 0
        self.setTextCursor(QTextCursor(self.document()))  # at the start; otherwise a wide table would show its end
        self.update_layout()
        self.written.emit()

    def finish_block(self, block: MarkdownBlock) -> None:
        """Replace the open block with a finished one. An open code card is kept and completed."""
        if self._open_code is not None and self._continue_code((block,), is_open=False):
            self._code.append(self._open_code)
            self._buttons += [(button, self._open_code) for button in self._open_buttons]
            self._open_mark = self._open_code = None
            self._open_buttons, self._open_cards = [], []
            self.blocks_written += 1
            return
        self.drop_open_blocks()
        self._write_finished(block)

    def show_open_blocks(self, blocks: Sequence[MarkdownBlock]) -> None:
        """Show the open blocks after the finished ones."""
        if self._continue_code(blocks, is_open=True):
            return
        self.drop_open_blocks()
        self._writer.width = self.width()
        self._open_mark = self._writer.mark()
        for block in blocks:
            self._writer.write(block, is_open=True)
            self.open_writes += 1
        self._open_code = self._writer.code_card
        self._open_cards = self._writer.take_code_cards()
        if self._open_code is not None and not (blocks and blocks[-1].is_continuation):
            self._open_buttons = self._new_buttons(self._open_code)

    def draw_formulas(self) -> None:
        """Replace formulas shown as source by their drawings, as far as available."""
        n_unavailable = self._formulas.n_unavailable
        for position, longer in draw_formulas(self.document(), current_theme(), self._formulas):
            mark = self._open_mark
            if mark is not None and position < mark.position:
                self._open_mark = Mark(mark.position + longer, mark.fresh)
        self.has_pending_formulas = self._formulas.n_unavailable > n_unavailable
        self.update_layout()

    def drop_open_blocks(self) -> None:
        for button in self._open_buttons:
            button.hide()
            button.deleteLater()
        for card in self._open_cards:
            card.close()
        self._open_buttons, self._open_cards, self._open_code = [], [], None
        if self._open_mark is not None:
            self._writer.rewind(self._open_mark)
        self._open_mark = None

    def fit_height(self) -> None:
        """Set the height to that of the document and the horizontal scroll bar of a wide table."""
        height = max(1, round(self.document().size().height() + 0.5))
        if self.horizontalScrollBarPolicy() is Qt.ScrollBarPolicy.ScrollBarAsNeeded:
            height += self.horizontalScrollBar().sizeHint().height()
        if height != self.height() or height != self.minimumHeight():
            self.setFixedHeight(height)

    def update_layout(self) -> None:
        """Update the height and the places of the buttons after writing."""
        if self.is_wide:
            self._fit_width()
        self.fit_height()
        self._place_buttons()

    def plain_selection(self) -> str:
        return plain_text(self.textCursor())

    def rich_selection(self) -> str:
        return rich_text(self.textCursor())

    def select(self, start: int, end: int) -> None:
        """Select the text between two positions, limited to the document. The cursor is at the second one."""
        last = max(0, self.document().characterCount() - 1)
        cursor = QTextCursor(self.document())
        cursor.setPosition(min(max(0, start), last))
        cursor.setPosition(min(max(0, end), last), QTextCursor.MoveMode.KeepAnchor)
        self.setTextCursor(cursor)

    def createMimeDataFromSelection(self) -> QMimeData:
        mime = QMimeData()
        mime.setText(self.plain_selection())
        mime.setHtml(self.rich_selection())
        return mime

    def _on_anchor(self, url: QUrl) -> None:
        if url.toString().startswith(FOOTNOTE):
            self.footnote_chosen.emit(url.toString())
        elif self._sources is not None:
            self._sources.open(url.toString())

    def _clear(self) -> None:
        for button in [each for each, _ in self._buttons] + self._open_buttons:
            button.hide()
            button.deleteLater()
        for card in self._code + self._open_cards:
            card.close()
        self._buttons, self._open_buttons, self._code, self._open_cards = [], [], [], []
        self._open_mark = self._open_code = None
        self.document().clear()
        self._writer = MarkdownWriter(
            self.document(), current_theme(), self._formulas, self._highlighter, self._sources
        )

    def _continue_code(self, blocks: Sequence[MarkdownBlock], *, is_open: bool) -> bool:
        """Extend an open code card instead of writing it again. Return False if the open block is another one."""
        card = self._open_code
        if card is None or len(blocks) != 1:
            return False
        token = blocks[0].tokens[0]
        if token.type != "fence" or token.info != card.info or blocks[0].has_continuation:
            return False
        card.update(token.content, is_open=is_open)
        self.open_writes += 1
        return True

    def _write_finished(self, block: MarkdownBlock) -> None:
        n_unavailable = self._formulas.n_unavailable
        self._writer.width = self.width()
        self._writer.write(block)
        self.has_pending_formulas = self.has_pending_formulas or self._formulas.n_unavailable > n_unavailable
        self.blocks_written += 1
        cards = self._writer.take_code_cards()
        self._code += cards
        for card in cards:
            if not block.is_continuation:
                self._buttons += [(button, card) for button in self._new_buttons(card)]

    def _new_buttons(self, card: CodeCard) -> list[QToolButton]:
        copy = self._button("thread.code.copy", tr("Copy"), tr("Copy this code"))
        save = self._button("thread.code.save", tr("Save"), tr("Save this code as a file"))

        def copy_code() -> None:
            QGuiApplication.clipboard().setText(self.whole_code(card).removesuffix("\n"))
            copy.setText(tr("Copied"))
            QTimer.singleShot(_COPIED_NOTE_MS, copy, lambda: copy.setText(tr("Copy")))

        copy.clicked.connect(copy_code)
        save.clicked.connect(lambda: self.code_saved.emit(self.whole_code(card), card.language))
        if not is_page(card.language, card.text):
            return [copy, save]
        page = self._button(
            "thread.code.open", tr("Open in browser"), tr("Show this as a page in your browser, without scripts")
        )
        page.clicked.connect(lambda: self.page_asked.emit(self.whole_code(card), card.language))
        return [copy, save, page]

    def _button(self, name: str, text: str, tooltip: str) -> QToolButton:
        button = QToolButton(self.viewport())
        button.setObjectName(name)
        button.setProperty("kind", "code")
        button.setText(text)
        button.setToolTip(tooltip)
        button.setAccessibleName(tooltip)
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.show()
        return button

    def _place_buttons(self) -> None:
        pairs = list(self._buttons)
        if self._open_code is not None:
            pairs += [(button, self._open_code) for button in self._open_buttons]
        right: dict[int, int] = {}
        for button, section in pairs:
            if section.frame is None:
                continue
            card = card_rect(self.document(), section.frame).toAlignedRect()
            size = button.sizeHint()
            edge = right.get(id(section), card.right() - 5)
            top = card.top() + (CARD_HEADER - _BUTTON_HEIGHT) // 2
            button.setGeometry(QRect(edge - size.width(), top, size.width(), _BUTTON_HEIGHT))
            right[id(section)] = edge - size.width() - 2

    def _fit_width(self) -> None:
        """Let a table be wider than the pane and scroll, instead of breaking its words."""
        widths: list[int] = []
        if self._writer.table is not None:
            table, natural = self._writer.table
            widths = fit_widths(natural, self.width())
            set_widths(table, widths)
        if sum(widths) > self.width():
            # Each of these calls lays out the whole table again, even if nothing changes.
            if self.lineWrapMode() is not QTextEdit.LineWrapMode.FixedPixelWidth:
                self.setLineWrapMode(QTextEdit.LineWrapMode.FixedPixelWidth)
                self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
            if self.lineWrapColumnOrWidth() != sum(widths):
                self.setLineWrapColumnOrWidth(sum(widths))
        elif self.lineWrapMode() is not QTextEdit.LineWrapMode.WidgetWidth:
            self.setLineWrapMode(QTextEdit.LineWrapMode.WidgetWidth)
            self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        elif self.document().textWidth() != self.viewport().width():
            self.document().setTextWidth(self.viewport().width())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Scroll a wide table with Left and Right. With Shift, these keys extend the selection."""
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()), 0)
        bar = self.horizontalScrollBar()
        if step and bar.maximum() and not event.modifiers():
            bar.setValue(bar.value() + step * _TABLE_STEP)
            return
        super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        if self.is_wide and event.size().width() != event.oldSize().width():
            self._fit_width()
        super().resizeEvent(event)
        self._place_buttons()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        left = self.horizontalScrollBar().value()
        painter.translate(-left, 0)
        paint_frames(painter, self.document(), current_theme(), event.rect().translated(left, 0))
        painter.end()
        super().paintEvent(event)


def section_markdown(blocks: Sequence[SavedBlock]) -> str:
    return markdown_of([each.source for each in blocks])
