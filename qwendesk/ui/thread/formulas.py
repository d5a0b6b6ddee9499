"""Formulas in a text document: drawn once by a thread, kept, painted at any size in the theme's colour."""

import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QByteArray, QObject, QRect, QRectF, QSizeF, QTimer, Signal
from PySide6.QtGui import (
    QFontMetrics,
    QFontMetricsF,
    QPainter,
    QPyTextObject,
    QTextCharFormat,
    QTextDocument,
    QTextFormat,
)
from PySide6.QtSvg import QSvgRenderer

from qwendesk.ui.thread.formula_svg import INK, NOMINAL, Drawing, draw, is_drawable

FORMULA: Final = QTextFormat.ObjectTypes.UserObject.value + 1
SOURCE: Final = QTextFormat.Property.UserProperty.value + 10
"""Property of a formula's character: its source as it was written, marks included."""
_KEY: Final = SOURCE + 1
_SIZE: Final = SOURCE + 2
_COLOR: Final = SOURCE + 3
_POLL_MS = 20
_LINGER_S = 30.0
_KEPT = 2_000
_Key = tuple[str, bool]


class FormulaShelf(QObject):
    """Draws each formula once, off the window's thread."""

    drawn = Signal()
    """Some formulas that were asked for are there now."""

    def __init__(self, parent: QObject | None = None, run: Callable[[str, bool], Drawing | None] | None = None) -> None:
        super().__init__(parent)
        self._run = run or (lambda source, displayed: draw(source, displayed=displayed))
        self._drawings: OrderedDict[_Key, Drawing | None] = OrderedDict()
        self._wake = threading.Condition()
        self._asked: deque[_Key] = deque()
        self._done: deque[tuple[_Key, Drawing | None]] = deque()
        self._runs = False
        self._waiting: set[_Key] = set()
        self.owed = 0
        """How often a formula was asked for that is still to be drawn; whoever raised it asks again after `drawn`."""
        self._timer = QTimer(self, interval=_POLL_MS)
        self._timer.timeout.connect(self._collect)

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting)

    def get(self, source: str, *, displayed: bool) -> Drawing | None:
        """The drawing; None for a formula that stays source, or is not drawn yet: `drawn` tells when."""
        key = (source.strip(), displayed)
        if key in self._drawings:
            self._drawings.move_to_end(key)
            return self._drawings[key]
        if key in self._waiting:
            self.owed += 1
        elif is_drawable(source):
            self.owed += 1
            self._waiting.add(key)
            self._timer.start()
            with self._wake:
                self._asked.append(key)
                self._wake.notify()
                is_first, self._runs = not self._runs, True
            if is_first:
                threading.Thread(target=self._work, name="formulas", daemon=True).start()
        return None

    def _work(self) -> None:
        """Runs in the thread: until nothing was to be drawn for a while.

        A new thread for each formula would let the window wait for the system each time.
        """
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._asked, _LINGER_S)
                if not self._asked:
                    self._runs = False
                    return
                key = self._asked.popleft()
            self._done.append((key, self._run(*key)))

    def _collect(self) -> None:
        before = len(self._waiting)
        while self._done:
            key, drawing = self._done.popleft()
            self._waiting.discard(key)
            self._drawings[key] = drawing
        while len(self._drawings) > _KEPT:
            self._drawings.popitem(last=False)
        if not self._waiting:
            self._timer.stop()
        if len(self._waiting) < before:
            self.drawn.emit()


class FormulaPainter(QPyTextObject):
    """Paints the formulas of one document."""

    def __init__(self, document: QTextDocument) -> None:
        super().__init__(document)
        self._renderers: dict[str, QSvgRenderer] = {}
        document.documentLayout().registerHandler(FORMULA, self)

    def intrinsicSize(self, _document: QTextDocument, _position: int, form: QTextFormat) -> QSizeF:
        drawing, scale = _drawing(form), _scale(form)
        above, below = (drawing.height - drawing.depth) * scale, max(0.0, drawing.depth * scale)
        if form.toCharFormat().verticalAlignment() is QTextCharFormat.VerticalAlignment.AlignMiddle:
            lift = 2 * _lift(form)
            return QSizeF(drawing.width * scale, max(2 * above - lift, 2 * below + lift))
        return QSizeF(drawing.width * scale, above + QFontMetricsF(form.toCharFormat().font()).descent())

    def drawObject(
        self, painter: QPainter, rect: QRectF | QRect, _document: QTextDocument, _position: int, form: QTextFormat
    ) -> None:
        drawing, scale = _drawing(form), _scale(form)
        above = (drawing.height - drawing.depth) * scale
        top: float = rect.top()
        if form.toCharFormat().verticalAlignment() is QTextCharFormat.VerticalAlignment.AlignMiddle:
            top = QRectF(rect).center().y() + _lift(form) - above
        svg = drawing.svg.replace(INK, str(form.property(_COLOR)))
        renderer = self._renderers.get(svg)
        if renderer is None:
            renderer = self._renderers[svg] = QSvgRenderer(QByteArray(svg.encode()))
        renderer.render(painter, QRectF(rect.left(), top, drawing.width * scale, drawing.height * scale))


def formula_format(drawing: Drawing, written: str, base: QTextCharFormat, size: int, color: str) -> QTextCharFormat:
    """The format of the one character that stands for a formula; `written` is copied in its place."""
    form = QTextCharFormat(base)
    form.setObjectType(FORMULA)
    form.setProperty(SOURCE, written)
    form.setProperty(_KEY, drawing)
    form.setProperty(_SIZE, float(size))
    form.setProperty(_COLOR, color)
    form.setToolTip(written)
    deep = drawing.depth * size / NOMINAL > QFontMetricsF(base.font()).descent()
    kinds = QTextCharFormat.VerticalAlignment
    form.setVerticalAlignment(kinds.AlignMiddle if deep else kinds.AlignBaseline)
    return form


def _drawing(form: QTextFormat) -> Drawing:
    drawing = form.property(_KEY)
    if not isinstance(drawing, Drawing):
        raise TypeError("a formula's format lacks its drawing")
    return drawing


def _lift(form: QTextFormat) -> float:
    """By how much Qt puts the middle of what is aligned in the middle above the line that text stands on."""
    return QFontMetrics(form.toCharFormat().font()).xHeight() / 4


def _scale(form: QTextFormat) -> float:
    return float(form.property(_SIZE)) / NOMINAL
