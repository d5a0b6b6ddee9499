"""Files that come from outside: dropped, named on the command line, handed over, or opened by the system."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication

from qwendesk.ui.composer.intake import Intake
from qwendesk.ui.frame.main_window import MainWindow
from qwendesk.ui.kit.notice import Notice, NoticeAction
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper

NOTICE = "opening"


class Opening(QObject):
    """Pictures and documents go to the composer; a model file is offered to load, never loaded unasked."""

    quit_asked = Signal()

    def __init__(self, keeper: ThemeKeeper, window: MainWindow) -> None:
        super().__init__(window)
        self._keeper, self._window = keeper, window
        self.quit_asked.connect(window.end)
        window.models_dropped.connect(self.open)

    def open(self, files: Sequence[Path]) -> None:
        """Each file to where it belongs."""
        models = sorted(path for path in files if is_model(path))
        others = tuple(path for path in files if not is_model(path))
        if models:
            self._offer(models)
        if others:
            self._window.show_page("chat")
            self._window.chat_page.take(Intake(files=others))

    def bring_to_front(self) -> None:
        """As far as the system lets a window raise itself; where it does not, its icon asks for attention."""
        window = self._window
        if window.isMinimized():
            window.showNormal()
        else:
            window.show()
        window.raise_()
        window.activateWindow()
        QApplication.alert(window)

    def _offer(self, models: list[Path]) -> None:
        """The first part of a split model loads all of them."""
        before = self._window.findChild(Notice, NOTICE)
        if before is not None:
            before.end()
            before.setParent(None)
        engine, path = self._window.engine, models[0]
        if "mmproj" in path.name.lower():
            sentence = tr("It lets the loaded model see pictures; the model is loaded again with it.")
            load = NoticeAction("load", tr("Use it"), str(path), lambda: engine.load_mmproj(str(path)))
            title = tr("Use {0} as the model's picture file?", path.name)
        else:
            sentence = tr("No model is loaded.")
            if engine.state.report is not None:
                sentence = tr("It takes the place of the model that is loaded now; the chat goes on with it.")
            load = NoticeAction("load", tr("Load it"), str(path), lambda: self._load(path))
            title = tr("Load {0}?", path.name)
        self._window.add_notice(Notice(self._keeper, NOTICE, title, sentence, (load,)))

    def _load(self, path: Path) -> None:
        """On the chat's page, where it is said if that fails."""
        self._window.engine.load_model(str(path))
        self._window.go_to("chat")


class OpenedBySystem(QObject):
    """macOS sends the files that are opened with the app as events to the application."""

    def __init__(self, app: QApplication, opening: Opening) -> None:
        super().__init__(opening)
        self._opening = opening
        app.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.FileOpen and isinstance(event, QFileOpenEvent) and event.file():
            self._opening.open([Path(event.file())])
            return True
        if event.type() == QEvent.Type.Quit:
            # From the system's own menu (macOS): Qt would close the window, which may only hide it.
            self._opening.quit_asked.emit()
            return True
        return super().eventFilter(watched, event)


def is_model(path: Path) -> bool:
    return path.suffix.lower() == ".gguf"
