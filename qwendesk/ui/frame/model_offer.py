"""A chat that was answered by another model than the loaded one: that model is offered, never loaded unasked."""

from pathlib import Path

from PySide6.QtCore import QObject, Signal

from qwendesk.core.paths import is_demo
from qwendesk.ui.frame.main_window import MainWindow
from qwendesk.ui.kit.notice import Notice, NoticeAction
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper

NOTICE = "modeloffer"


class ModelOffer(QObject):
    """Lives as long as the window. The offer stands above the chat it speaks of, and goes when another chat is opened
    or another model is asked for."""

    shown = Signal(bool)
    """Whether there is an offer now."""

    def __init__(self, keeper: ThemeKeeper, window: MainWindow) -> None:
        super().__init__(window)
        self._keeper, self._window, self._engine = keeper, window, window.engine
        self._notice: Notice | None = None
        self._offered = ""
        self._loaded_then = ""
        window.engine.changed.connect(self._on_engine)

    def offer(self, model: str) -> None:
        """`model` is the path of a file that is there; nothing happens for the model that is loaded or loading."""
        self.withdraw()
        if not model or model == self._wanted():
            return
        name = tr("the built-in demo") if is_demo(model) else Path(model).stem
        load = NoticeAction("load", tr("Load it"), model, lambda: self._load(model))
        sentence = tr("It can go on with the loaded model just as well.")
        if not self._wanted():
            sentence = tr("No model is loaded.")
        self._notice = Notice(self._keeper, NOTICE, tr("This chat was answered by {0}", name), sentence, (load,))
        self._notice.destroyed.connect(self._forget)
        self._offered, self._loaded_then = model, self._wanted()
        self._window.chat_page.add_above(self._notice)
        self._notice.show()
        self._window.spoken.say(self._notice.accessibleName())
        self.shown.emit(True)

    def withdraw(self) -> None:
        """Take the offer back, if there is one."""
        if self._notice is not None:
            notice, self._notice = self._notice, None
            notice.destroyed.disconnect(self._forget)
            notice.end()
            notice.setParent(None)
            self.shown.emit(False)

    def _wanted(self) -> str:
        wanted = self._engine.state.wanted
        return wanted.model if wanted is not None else ""

    def _load(self, model: str) -> None:
        self._window.chat_page.composer.setFocus()
        if is_demo(model):
            self._engine.load_demo()
        else:
            self._engine.load_model(model)

    def _on_engine(self) -> None:
        if self._notice is not None and self._wanted() != self._loaded_then:
            self.withdraw()

    def _forget(self) -> None:
        self._notice = None
        self.shown.emit(False)
