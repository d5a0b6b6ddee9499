"""What every tab has that offers files: a button for each says the next step with it, and a click takes it."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from qwendesk.ui.models.have import Have


class OffersFiles(QWidget):
    """The words of the buttons are those of `Have.show_on`."""

    use_asked = Signal(str)
    """Path of a model on this PC."""
    resume_asked = Signal(str)
    """Id of a download that stopped."""
    fix_asked = Signal()
    """Something is wrong with a file that is here."""

    def __init__(self) -> None:
        super().__init__()
        self._have = Have()

    def take_next_step(self, repo: str, path: str) -> bool:
        """False for a file that is to be downloaded: how, each tab knows for itself."""
        match self._have.presence(repo, path):
            case "paused" | "failed":
                self.resume_asked.emit(self._have.stopped[(repo, path)].id)
            case "flagged":
                self.fix_asked.emit()
            case "here":
                self.use_asked.emit(self._have.here[(repo, path)])
            case _:
                return False
        return True
