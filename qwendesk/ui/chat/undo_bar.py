"""One line above the composer after a deletion: what went, and the way back."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel

from qwendesk.ui.kit.buttons import IconButton, TextButton, describe
from qwendesk.ui.kit.text import tr, tr_n
from qwendesk.ui.kit.theme_keeper import ThemeKeeper


class UndoBar(QFrame):
    """Shown until it is used, dismissed, or something else happens in the chat."""

    undo_asked = Signal()

    def __init__(self, keeper: ThemeKeeper) -> None:
        super().__init__()
        self.setProperty("kind", "attachment")
        self.setObjectName("chat.undobar")
        self._words = QLabel()
        self._words.setObjectName("chat.undobar.words")
        self._words.setProperty("kind", "dim")
        undo = TextButton(keeper, tr("Undo"), kind="link")
        describe(undo, "chat.undo", tr("Undo"), tr("Bring back what was deleted"))
        undo.clicked.connect(self.undo_asked)
        close = IconButton(keeper, "close", size=14, side=26)
        describe(close, "chat.undobar.dismiss", tr("Dismiss"))
        close.clicked.connect(self.hide)
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 4, 6, 4)
        row.setSpacing(8)
        row.addWidget(self._words, 1)
        row.addWidget(undo)
        row.addWidget(close)
        self.hide()

    def show_deleted(self, messages: int) -> None:
        self._words.setText(tr_n("{0} message deleted", "{0} messages deleted", messages))
        self.show()
