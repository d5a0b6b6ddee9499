"""The field that chats are searched with."""

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit


class SearchField(QLineEdit):
    """Esc empties it before it means anything else; Down goes to what was found."""

    left = Signal()
    """Down or Enter: the person wants to choose."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "search")
        self.setClearButtonEnabled(True)
        self.setFixedHeight(32)

    def event(self, event: QEvent) -> bool:
        # Esc is also a command of the window (Stop), which would come first.
        if event.type() is QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and self._empties(event):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._empties(event):
            self.clear()
        elif event.key() in (Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.left.emit()
        else:
            super().keyPressEvent(event)

    def _empties(self, event: QKeyEvent) -> bool:
        return event.key() == Qt.Key.Key_Escape and bool(self.text())
