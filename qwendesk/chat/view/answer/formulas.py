"""Formulas in a text document: converted once in a thread, cached, and painted at any size in the theme's colours.

Formulas are untrusted: one that would take long or become large is shown as source.
"""

import logging
import re
import threading
import warnings
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

import msgspec
from PySide6.QtCore import QByteArray, QObject, QPointF, QRect, QRectF, QSize, QSizeF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QFontMetrics,
    QFontMetricsF,
    QPainter,
    QPixmap,
    QPixmapCache,
    QPyTextObject,
    QTextCharFormat,
    QTextDocument,
    QTextFormat,
)
from PySide6.QtSvg import QSvgRenderer

from qwendesk.core.errors import FailureGuard

# The text size in pixels for which formulas are drawn. They are scaled when painted.
NOMINAL: Final = 24.0
# Placeholder for the text colour in a drawing. It is never shown itself.
INK: Final = f"#{0x010203:06x}"
MAX_FORMULA_LENGTH: Final = 600
# Maximum depth of nesting. ziamath's work doubles with each level.
MAX_FORMULA_DEPTH: Final = 7
MAX_SVG_LENGTH: Final = 400_000
_MAX_WIDTH, _MAX_HEIGHT = 4_000.0, 1_200.0
_OPENING = re.compile(r"\\(?:left|begin)\b|[{\[]")
_CLOSING = re.compile(r"\\(?:right|end)\b|[}\]]")
_BARE_CHAIN = re.compile(r"(?:(?:\\[a-zA-Z]+|[\^_])\s*)+")
_TAKES_ARGUMENT = re.compile(
    r"[\^_]|\\(?:sqrt|[dtc]?frac|[dt]?binom|(?:wide)?hat|(?:wide)?tilde|bar|vec|d{1,4}ot|check|breve|acute|grave|"
    r"over\w*|under\w*|math\w+|text\w*|boxed|cancel|not|left|stackrel|overset|underset|operatorname|pmod|root|color|x\w+)"
)
_FORBIDDEN_TAG = re.compile(rb"<(?!/|svg\b|path\b|rect\b|g\b|use\b|symbol\b|text\b|line\b|polygon\b|defs\b|title\b)")
_FORBIDDEN_COMMAND = re.compile(
    r"\\(?:def|newcommand|renewcommand|let|input|include|href|url|includegraphics|class|style|html\w*)\b"
)


class Drawing(msgspec.Struct, frozen=True):
    """An SVG for text of NOMINAL pixels in INK, and its bounding box in the same pixels."""

    svg: str
    width: float
    height: float
    depth: float
    """Depth of the box below the baseline."""


def is_drawable(source: str) -> bool:
    """Return True if a formula is short enough, and not nested too deeply, to be drawn."""
    text = source.strip()
    if (
        not text
        or len(text) > MAX_FORMULA_LENGTH
        or _FORBIDDEN_COMMAND.search(text)
        or any(ord(each) < 32 for each in text if each not in "\n\t")
    ):
        return False
    return nesting(text) <= MAX_FORMULA_DEPTH


def nesting(source: str) -> int:
    """Return the nesting depth of a formula.

    Brackets, environments, and commands that follow each other without brackets count.
    """
    marks = sorted(
        [(found.start(), 1) for found in _OPENING.finditer(source)]
        + [(found.start(), -1) for found in _CLOSING.finditer(source)]
    )
    depth = deepest = 0
    for _, step in marks:
        depth = max(0, depth + step)
        deepest = max(deepest, depth)
    chains = [len(_TAKES_ARGUMENT.findall(chain[0])) for chain in _BARE_CHAIN.finditer(source)]
    return deepest + max(0, max(chains, default=0) - 1)


def draw(source: str, *, displayed: bool) -> Drawing | None:
    """Return the drawing; None if a part of it can't be drawn, or the result is too large or not only shapes."""
    if not is_drawable(source):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from ziamath's font package when it reads its own files
        return _draw(source, displayed=displayed)


def _draw(source: str, *, displayed: bool) -> Drawing | None:
    # Imported here because it takes 0.3 s, and only chats with formulas need it.
    from qwendesk.chat.view.answer.formula_nodes import formula_svg  # noqa: PLC0415

    try:
        svg = formula_svg(source, NOMINAL, INK, displayed=displayed)
    except (RecursionError, MemoryError):
        return None
    except Exception:  # noqa: BLE001  -- latex2mathml and ziamath raise anything for text that is no formula
        return None
    box = re.search(r'viewBox="(\S+) (\S+) (\S+) (\S+)"', svg) if svg is not None else None
    if (
        svg is None
        or box is None
        or len(svg) > MAX_SVG_LENGTH
        or _FORBIDDEN_TAG.search(svg.encode())
        or "url(" in svg
        or 'href="http' in svg
    ):
        return None
    top, width, height = float(box[2]), float(box[3]), float(box[4])
    if not (0 < width <= _MAX_WIDTH and 0 < height <= _MAX_HEIGHT):
        return None
    return Drawing(svg, width, height, top + height)


_logger = logging.getLogger(__name__)

FORMULA: Final = QTextFormat.ObjectTypes.UserObject.value + 1
# Property of a formula's character: its source with its delimiters.
SOURCE: Final = QTextFormat.Property.UserProperty.value + 10
_KEY: Final = SOURCE + 1
_SIZE: Final = SOURCE + 2
_COLOR: Final = SOURCE + 3
_EXTENT: Final = SOURCE + 5
_POLL_MS = 20
_IDLE_S = 30.0
_MAX_CACHED = 2_000
# Pixels that are painted of one formula; what a hostile one has beyond them is not.
_LARGEST: Final = QSize(4_000, 2_000)
_Key = tuple[str, bool]


class FormulaCache(QObject):
    """Converts each formula once, in another thread."""

    drawn = Signal()
    """Some of the requested formulas are available now."""

    def __init__(self, parent: QObject, run: Callable[[str, bool], Drawing | None] | None = None) -> None:
        super().__init__(parent)
        self._run = run or (lambda source, displayed: draw(source, displayed=displayed))
        self._drawings: OrderedDict[_Key, Drawing | None] = OrderedDict()
        self._wake = threading.Condition()
        self._requested: deque[_Key] = deque()
        self._finished: deque[tuple[_Key, Drawing | None]] = deque()
        self._is_thread_running = False
        self._guard = FailureGuard(_logger, "A formula couldn't be drawn")
        self._pending: set[_Key] = set()
        self.n_unavailable = 0
        """Number of requests for formulas that were not available yet. Callers should request them again on `drawn`."""
        self._timer = QTimer(self, interval=_POLL_MS)
        self._timer.timeout.connect(self._collect)

    @property
    def is_busy(self) -> bool:
        return bool(self._pending)

    def get(self, source: str, *, displayed: bool) -> Drawing | None:
        """Return the drawing; None if the formula can't be drawn, or isn't drawn yet and `drawn` will be emitted."""
        key = (source.strip(), displayed)
        if key in self._drawings:
            self._drawings.move_to_end(key)
            return self._drawings[key]
        if key in self._pending:
            self.n_unavailable += 1
        elif is_drawable(source):
            self.n_unavailable += 1
            self._pending.add(key)
            self._timer.start()
            with self._wake:
                self._requested.append(key)
                self._wake.notify()
                is_first, self._is_thread_running = not self._is_thread_running, True
            if is_first:
                threading.Thread(target=self._work, name="formulas", daemon=True).start()
        return None

    def _work(self) -> None:
        """Draw formulas in the thread until none has been requested for a while.

        Starting a thread for each formula would make the window wait for the system each time.
        """
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._requested, _IDLE_S)
                if not self._requested:
                    self._is_thread_running = False
                    return
                key = self._requested.popleft()
            drawing = None
            with self._guard:
                drawing = self._run(*key)
            self._finished.append((key, drawing))

    def _collect(self) -> None:
        before = len(self._pending)
        while self._finished:
            key, drawing = self._finished.popleft()
            self._pending.discard(key)
            self._drawings[key] = drawing
        while len(self._drawings) > _MAX_CACHED:
            self._drawings.popitem(last=False)
        if not self._pending:
            self._timer.stop()
        if len(self._pending) < before:
            self.drawn.emit()


class FormulaPainter(QPyTextObject):
    """Paints the formulas of one document."""

    def __init__(self, document: QTextDocument) -> None:
        super().__init__(document)
        document.documentLayout().registerHandler(FORMULA, self)

    def intrinsicSize(self, _document: QTextDocument, _position: int, form: QTextFormat) -> QSizeF:
        # Qt asks often: a wrapped line with hundreds of formulas is measured again for each new word.
        size: QSizeF = form.property(_EXTENT)
        return size

    def drawObject(
        self, painter: QPainter, rect: QRectF | QRect, _document: QTextDocument, _position: int, form: QTextFormat
    ) -> None:
        drawing, scale = _drawing(form), _scale(form)
        above = (drawing.height - drawing.depth) * scale
        top: float = rect.top()
        if form.toCharFormat().verticalAlignment() is QTextCharFormat.VerticalAlignment.AlignMiddle:
            top = QRectF(rect).center().y() + _lift(form) - above
        svg = drawing.svg.replace(INK, str(form.property(_COLOR)))
        ratio = painter.device().devicePixelRatioF()
        size = QSizeF(drawing.width * scale, drawing.height * scale)
        key, pixmap = f"formula {scale} {ratio} {svg}", QPixmap()
        # Painting an SVG takes ten times as long as painting a pixmap.
        if not QPixmapCache.find(key, pixmap):
            pixmap = _painted(svg, size, ratio)
            QPixmapCache.insert(key, pixmap)
        # Between two pixels of the screen it would be blurred.
        painter.drawPixmap(QPointF(round(rect.left() * ratio) / ratio, round(top * ratio) / ratio), pixmap)


def _painted(svg: str, size: QSizeF, ratio: float) -> QPixmap:
    """Return the SVG as a pixmap of this size in logical pixels."""
    pixels = (size * ratio).toSize() + QSize(1, 1)
    pixmap = QPixmap(pixels.boundedTo(_LARGEST))
    pixmap.setDevicePixelRatio(ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    QSvgRenderer(QByteArray(svg.encode())).render(painter, QRectF(QPointF(0, 0), size))
    painter.end()
    return pixmap


def formula_format(drawing: Drawing, written: str, base: QTextCharFormat, size: int, color: str) -> QTextCharFormat:
    """Return the format of the character that represents a formula. `written` is the text to copy instead of it."""
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
    form.setProperty(_EXTENT, _extent(form, drawing))
    return form


def _extent(form: QTextCharFormat, drawing: Drawing) -> QSizeF:
    """Return the space that a formula takes in its line, in logical pixels."""
    scale = _scale(form)
    above, below = (drawing.height - drawing.depth) * scale, max(0.0, drawing.depth * scale)
    if form.verticalAlignment() is QTextCharFormat.VerticalAlignment.AlignMiddle:
        lift = 2 * _lift(form)
        return QSizeF(drawing.width * scale, max(2 * above - lift, 2 * below + lift))
    return QSizeF(drawing.width * scale, above + QFontMetricsF(form.font()).descent())


def _drawing(form: QTextFormat) -> Drawing:
    drawing = form.property(_KEY)
    if not isinstance(drawing, Drawing):
        raise TypeError("a formula's format lacks its drawing")
    return drawing


def _lift(form: QTextFormat) -> float:
    """Return how far above the baseline Qt centres vertically aligned objects."""
    return QFontMetrics(form.toCharFormat().font()).xHeight() / 4


def _scale(form: QTextFormat) -> float:
    return float(form.property(_SIZE)) / NOMINAL
