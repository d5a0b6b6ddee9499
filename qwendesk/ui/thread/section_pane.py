"""One section of an answer: a text pane of bounded size. Finished blocks are written once, the open ones again."""

from collections.abc import Callable, Sequence

import msgspec
from PySide6.QtCore import QMimeData, QRect, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QPainter, QPaintEvent, QResizeEvent, QTextCursor, QTextTable
from PySide6.QtWidgets import QTextEdit, QToolButton, QWidget

from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.text_pane import TextPane
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.code_section import CodeSection
from qwendesk.ui.thread.document_text import markdown_of, plain_text, rich_text
from qwendesk.ui.thread.formulas import FormulaShelf
from qwendesk.ui.thread.frame_painter import card_rect, paint_frames
from qwendesk.ui.thread.inline_writer import FOOTNOTE, draw_formulas
from qwendesk.ui.thread.markdown_stream import Block, block_again
from qwendesk.ui.thread.markdown_writer import CARD_HEADER, Mark, MarkdownWriter

_BUTTON_HEIGHT = 24
_NARROWEST_COLUMN = 140
"""Pixels per column below which a table scrolls instead of wrapping its cells further."""
_SAY_COPIED_MS = 1500
_TABLE_STEP = 48
"""Pixels that an arrow key scrolls a wide table."""


class SavedBlock(msgspec.Struct, frozen=True):
    """What is kept of a finished block, to write it again."""

    source: str
    kind: str
    follows: bool = False
    goes_on: bool = False
    number: int = 0

    def blocks(self) -> tuple[Block, ...]:
        return block_again(self.source, follows=self.follows, goes_on=self.goes_on, number=self.number)


def saved(block: Block) -> SavedBlock:
    return SavedBlock(block.source, block.kind, block.follows, block.goes_on, block.number)


class SectionPane(TextPane):
    """Draws blocks. Knows nothing of the sections around it but what `whole_code` tells."""

    code_saved = Signal(str, str)
    """A code card's text and its language, for a file."""
    footnote_chosen = Signal(str)
    """The address of a footnote, or of the place that names it."""

    def __init__(self, keeper: ThemeKeeper, formulas: FormulaShelf, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._keeper = keeper
        self._formulas = formulas
        self.blocks_written = 0
        """How often a finished block was written."""
        self.open_writes = 0
        """How often an open block was written."""
        self.waits = False
        """It shows the source of a formula that is being drawn."""
        self.is_wide = False
        """It holds a table, which scrolls sideways when it is too wide."""
        self.whole_code: Callable[[CodeSection], str] = lambda section: section.text
        self._buttons: list[tuple[QToolButton, CodeSection]] = []
        self._open_mark: Mark | None = None
        self._open_code: CodeSection | None = None
        self._open_buttons: list[QToolButton] = []
        self._writer = MarkdownWriter(self.document(), keeper.theme, formulas)
        self.setObjectName("thread.text")
        self.setAccessibleName(tr("Answer"))
        self.horizontalScrollBar().valueChanged.connect(self.viewport().update)
        self.anchorClicked.connect(self._on_anchor)

    @property
    def open_code(self) -> str:
        """The code of the open block, "" when it is none."""
        return self._open_code.text if self._open_code is not None else ""

    def place_of(self, anchor: str) -> int | None:
        """How far below its top an anchor lies, in pixels; None when it is not here."""
        block = self.document().begin()
        while block.isValid():
            parts = block.begin()
            while not parts.atEnd():
                if anchor in parts.fragment().charFormat().anchorNames():
                    return round(self.document().documentLayout().blockBoundingRect(block).top())
                parts += 1
            block = block.next()
        return None

    def restore(self, blocks: Sequence[Block]) -> None:
        """Show these finished blocks and nothing else."""
        self.waits = False
        self._clear()
        for block in blocks:
            self._write_finished(block)
        self.blocks_written = 0
        self.setTextCursor(QTextCursor(self.document()))  # at the start, or a wide table shows its end
        self.settle()

    def finish_block(self, block: Block) -> None:
        """Replace what is open by a finished block. An open code card becomes the finished one as it stands."""
        if self._open_code is not None and self._continue_code((block,)):
            self._buttons += [(button, self._open_code) for button in self._open_buttons]
            self._open_mark = self._open_code = None
            self._open_buttons = []
            self.blocks_written += 1
            return
        self.drop_open()
        self._write_finished(block)

    def show_open(self, blocks: Sequence[Block]) -> None:
        """Show the open blocks below the finished ones."""
        if self._continue_code(blocks):
            return
        self.drop_open()
        self._open_mark = self._writer.mark()
        for block in blocks:
            self._writer.write(block)
            self.open_writes += 1
        self._open_code = self._writer.code_section
        self._writer.take_sections()
        if self._open_code is not None and not (blocks and blocks[-1].follows):
            self._open_buttons = self._new_buttons(self._open_code)

    def draw_formulas(self) -> None:
        """Put drawings where sources of formulas stand, as far as they are there by now."""
        owed = self._formulas.owed
        for position, longer in draw_formulas(self.document(), self._keeper.theme, self._formulas):
            mark = self._open_mark
            if mark is not None and position < mark.position:
                self._open_mark = Mark(mark.position + longer, mark.fresh)
                if self._open_code is not None:
                    self._open_code.move(longer)
        self.waits = self._formulas.owed > owed
        self.settle()

    def drop_open(self) -> None:
        for button in self._open_buttons:
            button.hide()
            button.deleteLater()
        self._open_buttons, self._open_code = [], None
        if self._open_mark is not None:
            self._writer.rewind(self._open_mark)
        self._open_mark = None

    def fit_height(self) -> None:
        """Take the document's height, and that of the scroll bar that a wide table has."""
        height = max(1, round(self.document().size().height() + 0.5))
        if self.horizontalScrollBarPolicy() is Qt.ScrollBarPolicy.ScrollBarAsNeeded:
            height += self.horizontalScrollBar().sizeHint().height()
        if height != self.height() or height != self.minimumHeight():
            self.setFixedHeight(height)

    def settle(self) -> None:
        """After writing: take the new height and put the buttons in their places."""
        if self.is_wide:
            self._fit_width()
        self.fit_height()
        self._place_buttons()

    def plain_selection(self) -> str:
        return plain_text(self.textCursor())

    def rich_selection(self) -> str:
        return rich_text(self.textCursor())

    def select(self, start: int, end: int) -> None:
        """Select from one place to another, both cut to the text; the second is where the cursor is."""
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

    def _clear(self) -> None:
        for button in [each for each, _ in self._buttons] + self._open_buttons:
            button.hide()
            button.deleteLater()
        self._buttons, self._open_buttons = [], []
        self._open_mark = self._open_code = None
        self.document().clear()
        self._writer = MarkdownWriter(self.document(), self._keeper.theme, self._formulas)

    def _continue_code(self, blocks: Sequence[Block]) -> bool:
        """Let an open code card grow instead of writing it again. False when that is not what happens."""
        section = self._open_code
        if section is None or len(blocks) != 1:
            return False
        token = blocks[0].tokens[0]
        if token.type != "fence" or token.info != section.info or blocks[0].goes_on:
            return False
        section.update(token.content)
        self.open_writes += 1
        return True

    def _write_finished(self, block: Block) -> None:
        owed = self._formulas.owed
        self._writer.write(block)
        self.waits = self.waits or self._formulas.owed > owed
        self.blocks_written += 1
        for section in self._writer.take_sections():
            if not block.follows:
                self._buttons += [(button, section) for button in self._new_buttons(section)]

    def _new_buttons(self, section: CodeSection) -> list[QToolButton]:
        copy = self._button("thread.code.copy", tr("Copy"), tr("Copy this code"))
        save = self._button("thread.code.save", tr("Save"), tr("Save this code as a file"))

        def copy_code() -> None:
            QGuiApplication.clipboard().setText(self.whole_code(section).removesuffix("\n"))
            copy.setText(tr("Copied"))
            QTimer.singleShot(_SAY_COPIED_MS, copy, lambda: copy.setText(tr("Copy")))

        copy.clicked.connect(copy_code)
        save.clicked.connect(lambda: self.code_saved.emit(self.whole_code(section), section.language))
        return [copy, save]

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
        """Let a table be wider than the pane, and scroll, rather than break its words."""
        tables = [frame for frame in self.document().rootFrame().childFrames() if isinstance(frame, QTextTable)]
        columns = max((frame.columns() for frame in tables), default=1)
        natural = 0.0
        if self.width() < columns * _NARROWEST_COLUMN:
            self.document().setTextWidth(-1)
            natural = self.document().idealWidth()
        if natural > self.width():
            self.setLineWrapMode(QTextEdit.LineWrapMode.FixedPixelWidth)
            self.setLineWrapColumnOrWidth(round(min(natural, columns * _NARROWEST_COLUMN)))
            self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        elif self.lineWrapMode() is not QTextEdit.LineWrapMode.WidgetWidth:
            self.setLineWrapMode(QTextEdit.LineWrapMode.WidgetWidth)
            self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        else:
            self.document().setTextWidth(self.viewport().width())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and Right scroll a table that is too wide; with Shift they select."""
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
        paint_frames(painter, self.document(), self._keeper.theme, event.rect().translated(left, 0))
        painter.end()
        super().paintEvent(event)


def section_markdown(blocks: Sequence[SavedBlock]) -> str:
    return markdown_of([each.source for each in blocks])
