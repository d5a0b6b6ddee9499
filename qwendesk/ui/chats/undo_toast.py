"""A line at the bottom of the list that says what was done, with a way back if there is one. It goes by itself."""

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel

from qwendesk.ui.kit.buttons import IconButton, TextButton, describe
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper

_SHOWN_MS = 12_000


class UndoToast(QFrame):
    """Hidden until `say`."""

    undone = Signal()

    def __init__(self, keeper: ThemeKeeper) -> None:
        super().__init__()
        self.setObjectName("chats.toast")
        self.setProperty("kind", "toast")
        self._label = QLabel()
        self._label.setTextFormat(Qt.TextFormat.PlainText)
        self._label.setProperty("kind", "small")
        self._label.setMinimumWidth(1)
        self._label.setWordWrap(True)
        self._undo_button = undo = TextButton(keeper, tr("Undo"), kind="link")
        describe(undo, "chats.undo", tr("Undo"), tr("Take it back"))
        undo.clicked.connect(self._undo)
        close = IconButton(keeper, "close", size=14, side=24)
        describe(close, "chats.toast.close", tr("Close"), tr("Close this note"))
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

    def say(self, text: str, *, can_undo: bool) -> None:
        """Nothing, and hidden, for an empty text."""
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
