"""Text as tall as its content: selectable, by keyboard too, without scroll bars of its own."""

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
from PySide6.QtWidgets import QFrame, QMenu, QSizePolicy, QTextBrowser, QWidget

from qwendesk.ui.kit.text import tr

_LINE_HEIGHT = 124.0
"""Per cent of the font's own."""

_FOCUS_WIDTH = 2
"""Pixels of the bar at the left of a pane that the keyboard is on."""


class TextPane(QTextBrowser):
    """A QTextBrowser whose height follows its document. The page around it scrolls."""

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
        paint_growth_only(self)
        paint_growth_only(self.viewport())
        self.document().setDocumentMargin(0)
        self.anchorClicked.connect(self._ask_to_open)

    def fit_height(self) -> None:
        """Take the document's height; call after changing the text."""
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
        """Reached by key, it shows where the focus is; a click on text needs no such mark."""
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
        """From link to link, then on. What stands in this pane, as the buttons of code do, has no part in the links."""
        parent = self.parentWidget()
        if self.hasFocus() or parent is None:
            return super().focusNextPrevChild(forward)
        return parent.focusNextPrevChild(forward)

    def _ask_to_open(self, url: QUrl) -> None:
        """Show where a link leads before anything is opened."""
        address = url.toString()
        if not is_web_address(address):
            return
        menu = QMenu(self)
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
        """Under the pointer, or below the link that the keyboard is on."""
        if self._pressed:
            return self.viewport().mapToGlobal(self.cursorRect().bottomLeft())
        return QCursor.pos()


def paint_growth_only(widget: QWidget) -> None:
    """When it becomes taller, paint what came into being and not all of it again. Its content stands at its top."""
    widget.setAttribute(Qt.WidgetAttribute.WA_StaticContents)


def airy_lines() -> QTextBlockFormat:
    """How far lines stand apart in text that is read, as answers have it."""
    form = QTextBlockFormat()
    form.setLineHeight(_LINE_HEIGHT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
    return form


def is_web_address(address: str) -> bool:
    """Only these are links; anything else stays text."""
    return address.lower().startswith(("http://", "https://"))


def _short(address: str) -> str:
    return address if len(address) <= 90 else address[:60] + "…" + address[-28:]


def _open(url: QUrl) -> None:
    QDesktopServices.openUrl(url)


def _copy(text: str) -> None:
    QGuiApplication.clipboard().setText(text)
