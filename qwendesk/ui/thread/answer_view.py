"""An answer as it streams: finished blocks are written once, only the open last one is written again."""

import time
from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRect, QRectF, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent, QPen, QResizeEvent, QTextFrame, QTextTable
from PySide6.QtWidgets import QToolButton, QWidget

from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.text_pane import TextPane
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.code_section import CodeSection
from qwendesk.ui.thread.markdown_stream import Block, MarkdownStream
from qwendesk.ui.thread.markdown_writer import CARD_GAP, CARD_HEADER, CARD_PADDING, KIND, LANGUAGE, Mark, MarkdownWriter

_BREATHING = 3.0
"""After an expensive redraw, the next one waits this many times as long as it took."""


class AnswerView(TextPane):
    """Shows Markdown. `add` while it streams, `finish` at its end; `markdown` is all of it."""

    def __init__(self, keeper: ThemeKeeper, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._keeper = keeper
        self.markdown = ""
        self.blocks_written = 0
        """How often a finished block was written: once each, unless the theme changes."""
        self.open_writes = 0
        """How often the open block was written."""
        self._pending = ""
        self._finished = False
        self._buttons: list[tuple[QToolButton, CodeSection]] = []
        self._open_mark: Mark | None = None
        self._open_code: CodeSection | None = None
        self._open_button: QToolButton | None = None
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self.draw_now)
        self._restart()
        self.setAccessibleName(tr("Answer"))
        keeper.changed.connect(self._on_theme_changed)

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
        step = self._stream.feed(text)
        if step.finished or not self._continue_code(step.open):
            self._write_all(step.finished)
            self._open_mark = self._writer.mark()
            self._write_open(step.open)
        self._settle()
        cost = time.perf_counter() - started
        self._timer.start(round(cost * 1000 * _BREATHING))

    def finish(self) -> None:
        """No more text comes."""
        self._finished = True
        self.draw_now()
        self._timer.stop()
        self._write_all(self._stream.end().finished)
        self._settle()

    def _restart(self) -> None:
        for button in self.viewport().findChildren(QToolButton):
            button.hide()
            button.deleteLater()
        self._buttons.clear()
        self.document().clear()
        self._stream = MarkdownStream()
        self._writer = MarkdownWriter(self.document(), self._keeper.theme)
        self._open_mark = self._open_code = self._open_button = None

    def _continue_code(self, blocks: Sequence[Block]) -> bool:
        """Let an open code card grow instead of writing it again. False when that is not what happens."""
        section = self._open_code
        if section is None or len(blocks) != 1:
            return False
        token = blocks[0].tokens[0]
        if token.type != "fence" or token.info != section.info:
            return False
        section.update(token.content)
        self.open_writes += 1
        return True

    def _write_open(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            self._writer.write(block)
            self.open_writes += 1
        self._open_code = self._writer.code_section
        self._writer.take_sections()
        if self._open_code is not None:
            self._open_button = self._copy_button(self._open_code)

    def _write_all(self, blocks: Sequence[Block]) -> None:
        """Replace what is open by finished blocks. An open code card becomes the finished one as it stands."""
        code, button = self._open_code, self._open_button
        if code is not None and button is not None and blocks and self._continue_code(blocks[:1]):
            self._buttons.append((button, code))
            self._open_mark = self._open_code = self._open_button = None
            self.blocks_written += 1
            blocks = blocks[1:]
        self._rewind()
        for block in blocks:
            self._write_finished(block)

    def _write_finished(self, block: Block) -> None:
        self._writer.write(block)
        self.blocks_written += 1
        for section in self._writer.take_sections():
            self._buttons.append((self._copy_button(section), section))

    def _rewind(self) -> None:
        if self._open_button is not None:
            self._open_button.hide()
            self._open_button.deleteLater()
        self._open_button = self._open_code = None
        if self._open_mark is not None:
            self._writer.rewind(self._open_mark)
        self._open_mark = None

    def _settle(self) -> None:
        self.fit_height()
        self._place_buttons()

    def _on_theme_changed(self) -> None:
        markdown, finished = self.markdown, self._finished
        self.blocks_written = 0
        self._restart()
        self.markdown, self._pending = "", ""
        self.add(markdown)
        if finished:
            self.finish()

    def _copy_button(self, section: CodeSection) -> QToolButton:
        button = QToolButton(self.viewport())
        button.setProperty("kind", "code")
        button.setText(tr("Copy"))
        button.setToolTip(tr("Copy this code"))
        button.setAccessibleName(tr("Copy this code"))
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

        def copy() -> None:
            QGuiApplication.clipboard().setText(section.text.removesuffix("\n"))
            button.setText(tr("Copied"))
            QTimer.singleShot(1500, button, lambda: button.setText(tr("Copy")))

        button.clicked.connect(copy)
        button.show()
        return button

    def _place_buttons(self) -> None:
        pairs = list(self._buttons)
        if self._open_button is not None and self._open_code is not None:
            pairs.append((self._open_button, self._open_code))
        for button, section in pairs:
            if section.frame is not None:
                card = self._card_rect(section.frame)
                size = button.sizeHint()
                button.setGeometry(
                    QRect(card.right() - size.width() - 5, card.top() + (CARD_HEADER - 24) // 2, size.width(), 24)
                )

    def _card_rect(self, frame: QTextFrame) -> QRect:
        """Where a code card is painted: the frame's box with its header, without the gap around it."""
        box: QRectF = self.document().documentLayout().frameBoundingRect(frame)
        form = frame.frameFormat()
        left = box.left() + form.leftMargin() - CARD_PADDING
        right = box.right() - form.rightMargin() + CARD_PADDING
        return QRectF(left, box.top() + CARD_GAP, right - left, box.height() - 2 * CARD_GAP).toAlignedRect()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_buttons()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_frames(painter, self.document().rootFrame(), event.rect())
        painter.end()
        super().paintEvent(event)

    def _paint_frames(self, painter: QPainter, parent: QTextFrame, area: QRect) -> None:
        layout = self.document().documentLayout()
        for frame in parent.childFrames():
            box = layout.frameBoundingRect(frame)
            if not box.intersects(QRectF(area)):
                continue
            match frame.frameFormat().property(KIND):
                case "code":
                    self._paint_card(painter, frame)
                case "quote":
                    painter.fillRect(
                        QRectF(box.left(), box.top() + 4, 3, box.height() - 8), self._keeper.theme.color("quote_bar")
                    )
                    self._paint_frames(painter, frame, area)
                case "rule":
                    painter.fillRect(
                        QRectF(box.left(), box.center().y(), self.viewport().width(), 1),
                        self._keeper.theme.color("divider"),
                    )
                case _ if isinstance(frame, QTextTable):
                    self._paint_rows(painter, frame, box)
                case _:
                    self._paint_frames(painter, frame, area)

    def _paint_card(self, painter: QPainter, frame: QTextFrame) -> None:
        theme = self._keeper.theme
        card = QRectF(self._card_rect(frame)).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.setPen(QPen(theme.color("code_border"), 1))
        painter.setBrush(theme.color("code_background"))
        painter.drawRoundedRect(card, 10, 10)
        line = card.top() + CARD_HEADER
        painter.drawLine(QPointF(card.left(), line), QPointF(card.right(), line))
        painter.setPen(theme.color("text_dim"))
        painter.setFont(theme.font(12))
        header = QRectF(card.left() + CARD_PADDING, card.top(), card.width() - 96, CARD_HEADER)
        painter.drawText(header, Qt.AlignmentFlag.AlignVCenter, frame.frameFormat().property(LANGUAGE) or tr("code"))

    def _paint_rows(self, painter: QPainter, table: QTextTable, box: QRectF) -> None:
        """One line under each row."""
        layout = self.document().documentLayout()
        color = self._keeper.theme.color("divider")
        right = box.left()
        bottoms = []
        for row in range(table.rows()):
            bottom = 0.0
            for column in range(table.columns()):
                cell = layout.blockBoundingRect(table.cellAt(row, column).lastCursorPosition().block())
                bottom = max(bottom, cell.bottom())
                right = max(right, cell.right())
            bottoms.append(bottom + 6)
        for bottom in bottoms:
            painter.fillRect(QRectF(box.left(), bottom, min(box.width(), right - box.left() + 20), 1), color)
