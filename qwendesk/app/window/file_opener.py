"""Opens files that were dropped, given on the command line or by a later start, or opened by the system."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication

from qwendesk.app.window.main_window import MainWindow, is_model, loads_at_once
from qwendesk.chat.view.composer.pasted_content import PastedContent
from qwendesk.core.translation import tr
from qwendesk.widgets.notice import Notice, NoticeAction

NOTICE = "opening"


class FileOpener(QObject):
    """Attaches pictures and documents to the message; loads a model file, or offers that if one is loaded."""

    quit_asked = Signal()

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self.quit_asked.connect(window.end)
        window.models_dropped.connect(self.open)

    def open(self, files: Sequence[Path]) -> None:
        """Attach the files, or offer to load them if they are models."""
        models = sorted(path for path in files if is_model(path))
        others = tuple(path for path in files if not is_model(path))
        if models:
            self._offer(models)
        if others:
            self._window.show_page("chat")
            self._window.chat_page.attachments.attach(PastedContent(files=others))

    def bring_to_front(self) -> None:
        """Raise the window; if the system does not allow that, its icon flashes."""
        window = self._window
        if window.isMinimized():
            window.showNormal()
        else:
            window.show()
        window.raise_()
        window.activateWindow()
        QApplication.alert(window)

    def _offer(self, models: list[Path]) -> None:
        """Load the first file or offer it: the first shard of a split model loads all of them."""
        before = self._window.findChild(Notice, NOTICE)
        if before is not None:
            before.end()
            before.setParent(None)
        window, path = self._window, models[0]
        if loads_at_once(path, window.engine.state):
            self._load(path)
            return
        if "mmproj" in path.name.lower():
            sentence = tr("It lets the loaded model see pictures. The model is reloaded with it.")
            load = NoticeAction("load", tr("Use it"), str(path), lambda: window.load_mmproj(str(path)))
            title = tr("Use {0} as the model's vision file (mmproj)?", path.name)
        else:
            sentence = tr("It replaces the loaded model. You can continue your chat with it.")
            load = NoticeAction("load", tr("Load it"), str(path), lambda: self._load(path))
            title = tr("Load {0}?", path.name)
        self._window.add_notice(Notice(NOTICE, title, sentence, (load,)))

    def _load(self, path: Path) -> None:
        """Load the model and show the chat page, which shows an error if that fails."""
        self._window.load_model(str(path))
        self._window.go_to("chat")
