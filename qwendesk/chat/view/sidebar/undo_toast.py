"""A message at the bottom of the sidebar about the last action, which may offer to undo it."""

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel

from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import IconButton, TextButton, describe

_SHOWN_MS = 12_000


class UndoToast(QFrame):
    """The message. It disappears after a while."""

    undone = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("chats.toast")
        self.setProperty("kind", "toast")
        self._label = QLabel()
        self._label.setTextFormat(Qt.TextFormat.PlainText)
        self._label.setProperty("kind", "small")
        self._label.setMinimumWidth(1)
        self._label.setWordWrap(True)
        self._undo_button = undo = TextButton(tr("Undo"), kind="link")
        describe(undo, "chats.undo", tr("Undo"), tr("Undo the last action"))
        undo.clicked.connect(self._undo)
        close = IconButton("close", size=14, side=24)
        describe(close, "chats.toast.close", tr("Close"), tr("Dismiss this message"))
        close.clicked.connect(self.hide)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 6, 6, 6)
        row.setSpacing(6)
        row.addWidget(self._label, 1)
        row.addWidget(undo)
        row.addWidget(close)
        self._timer = QTimer(self, singleShot=True, interval=_SHOWN_MS)
        self._timer.timeout.connect(self.hide)
        self.hide()

    @property
    def text(self) -> str:
        return self._label.text()

    def show_message(self, text: str, *, can_undo: bool) -> None:
        """Show `text`, with an Undo button if `can_undo`; "" hides the message."""
        self._undo_button.setVisible(can_undo)
        self._label.setText(text)
        if not text:
            self.hide()
            return
        self._label.setToolTip(text)
        self.show()
        self._timer.start()

    def _undo(self) -> None:
        self.hide()
        self.undone.emit()
