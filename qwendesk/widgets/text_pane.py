"""A selectable text that is as tall as its content, without scroll bars of its own."""

from PySide6.QtCore import QPoint, QSize, Qt, QUrl
from PySide6.QtGui import (
    QAction,
    QCursor,
    QDesktopServices,
    QFocusEvent,
    QGuiApplication,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QResizeEvent,
    QTextBlockFormat,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser, QWidget

from qwendesk.core.translation import tr
from qwendesk.widgets.popups import Menu

# Line height in per cent of the font's.
_LINE_HEIGHT = 124.0

# Width in pixels of the bar next to a pane that got the focus by keyboard.
_FOCUS_WIDTH = 2


class TextPane(QTextBrowser):
    """A QTextBrowser as tall as its document. The page around it scrolls."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._by_key = self._pressed = False
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextBrowserInteraction | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setOpenLinks(False)
        self.setAcceptDrops(False)
        self.setUndoRedoEnabled(False)
        self.setTabChangesFocus(True)
        self.setCursorWidth(0)
        self.viewport().setAutoFillBackground(False)
        repaint_only_growth(self)
        repaint_only_growth(self.viewport())
        self.document().setDocumentMargin(0)
        self.anchorClicked.connect(self._ask_to_open)

    def fit_height(self) -> None:
        """Set the height to the document's height. Call it after changing the text."""
        height = max(1, round(self.document().size().height() + 0.5))
        if height != self.height() or height != self.minimumHeight():
            self.setFixedHeight(height)

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), self.minimumHeight())

    def minimumSizeHint(self) -> QSize:
        return QSize(40, self.minimumHeight())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.viewport().update()
            self.fit_height()

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._by_key and self.hasFocus():
            painter = QPainter(self.viewport())
            bar = self.viewport().rect()
            bar.setWidth(_FOCUS_WIDTH)
            painter.fillRect(bar, self.palette().color(QPalette.ColorRole.Accent))
            painter.end()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Mark the focus if it arrived by keyboard; a click needs no mark."""
        super().focusInEvent(event)
        by_key = event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)
        if by_key or event.reason() is Qt.FocusReason.MouseFocusReason:
            self._by_key = by_key
        self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        self._pressed = True
        super().keyPressEvent(event)
        self._pressed = False

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.viewport().update()

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Move the focus through the links, then to the next widget. The buttons of code cards are skipped."""
        parent = self.parentWidget()
        if parent is None or (self.hasFocus() and self.isVisible() and self.isEnabled()):
            return super().focusNextPrevChild(forward)
        return parent.focusNextPrevChild(forward)

    def _ask_to_open(self, url: QUrl) -> None:
        """Open a menu that shows the address before anything is opened."""
        address = url.toString()
        if not is_web_address(address):
            return
        menu = Menu(self)
        menu.setObjectName("link.menu")
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for text, run in (
            (tr("Open {0} in the browser", _short(address)), lambda: _open(url)),
            (tr("Copy the address"), lambda: _copy(address)),
        ):
            action = QAction(text, menu)
            action.setToolTip(address)
            action.triggered.connect(run)
            menu.addAction(action)
        menu.popup(self._place_of_link())

    def _place_of_link(self) -> QPoint:
        """Return where to open the menu: at the pointer, or below the link that has the keyboard focus."""
        if self._pressed:
            return self.viewport().mapToGlobal(self.cursorRect().bottomLeft())
        return QCursor.pos()


def repaint_only_growth(widget: QWidget) -> None:
    """Make `widget` repaint only the new area when it grows. Its content must be anchored at its top."""
    widget.setAttribute(Qt.WidgetAttribute.WA_StaticContents)


def reading_line_format() -> QTextBlockFormat:
    """Return the line spacing of text that is meant to be read, as in answers."""
    form = QTextBlockFormat()
    form.setLineHeight(_LINE_HEIGHT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
    return form


def is_web_address(address: str) -> bool:
    """Return True for http and https addresses, the only ones that become links."""
    return address.lower().startswith(("http://", "https://"))


def _short(address: str) -> str:
    return address if len(address) <= 90 else address[:60] + "…" + address[-28:]


def _open(url: QUrl) -> None:
    QDesktopServices.openUrl(url)


def _copy(text: str) -> None:
    QGuiApplication.clipboard().setText(text)
