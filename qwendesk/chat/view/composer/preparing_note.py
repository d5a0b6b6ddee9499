"""The note in the composer that says that the engine is processing something ahead."""

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QLabel

from qwendesk.core.translation import tr

_SHOWN_AFTER_MS = 400
"""Shorter preparations aren't worth a word that flickers."""


class PreparingNote(QLabel):
    """Hidden unless something has been prepared for a moment."""

    def __init__(self) -> None:
        super().__init__(tr("Preparing…"))
        self.setProperty("kind", "dim")
        self.setObjectName("composer.preparing")
        self.setToolTip(tr("Your files and the chat are processed ahead, so that the next answer starts sooner."))
        self._timer = QTimer(self, singleShot=True, interval=_SHOWN_AFTER_MS)
        self._timer.timeout.connect(self.show)
        self.hide()

    def show_preparing(self, preparing: bool) -> None:
        if preparing:
            self._timer.start()
        else:
            self._timer.stop()
            self.hide()
