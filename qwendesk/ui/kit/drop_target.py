"""Lights up over the page while files are dragged over the window."""

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QFrame, QLabel, QVBoxLayout, QWidget

from qwendesk.ui.kit.text import tr


class DropTarget(QFrame):
    """Covers its parent; takes no mouse, so that the drop reaches the window."""

    def __init__(self, page: QWidget) -> None:
        super().__init__(page)
        self.setObjectName("drop.target")
        self.setProperty("kind", "drop")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._text = QLabel(tr("Drop pictures, PDF, text or code to attach them"))
        self._text.setProperty("kind", "heading")
        column = QVBoxLayout(self)
        column.addWidget(self._text, 0, Qt.AlignmentFlag.AlignCenter)
        page.installEventFilter(self)
        self.hide()

    def light_up(self) -> None:
        self._cover()
        self.show()
        self.raise_()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Resize:
            self._cover()
        return super().eventFilter(watched, event)

    def _cover(self) -> None:
        page = self.parentWidget()
        if page is not None:
            self.setGeometry(page.rect().adjusted(12, 12, -12, -12))
