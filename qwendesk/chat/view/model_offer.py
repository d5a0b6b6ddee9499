"""Offers to load the model that answered the open chat, if another model or none is loaded."""

from PySide6.QtCore import QObject, Signal

from qwendesk.chat.view.chat_page import ChatPage
from qwendesk.core.model_titles import model_title
from qwendesk.core.paths import is_demo
from qwendesk.core.translation import tr
from qwendesk.engine.state import EngineState
from qwendesk.widgets.notice import Notice, NoticeAction

NOTICE = "modeloffer"


class ModelOffer(QObject):
    """Shows the offer above the chat until another chat is opened or another model is requested."""

    shown = Signal(bool)
    """True if an offer is now shown."""
    load_asked = Signal(str)
    """Path of the model."""
    announced = Signal(str)
    """Text for screen readers."""

    def __init__(self, page: ChatPage) -> None:
        super().__init__(page)
        self._page = page
        self._notice: Notice | None = None
        self._requested = self._requested_at_offer = ""

    @property
    def is_shown(self) -> bool:
        return self._notice is not None

    def show_engine(self, state: EngineState) -> None:
        """Withdraw the offer if the model that is loaded or being loaded has changed since it was made."""
        self._requested = state.requested.model if state.requested is not None else ""
        if self._notice is not None and self._requested != self._requested_at_offer:
            self.withdraw()

    def offer(self, model: str) -> None:
        """Offer to load `model`, an existing file or a model of a server, unless it is loaded or being loaded."""
        self.withdraw()
        if not model or model == self._requested:
            return
        name, loaded = model_title(model), self._requested
        title = tr("This chat was answered by {0}", name)
        load = NoticeAction("load", tr("Load {0}", name), model, lambda: self._load(model))
        if is_demo(model):
            title = tr("This chat was answered by the built-in demo")
            load = NoticeAction("load", tr("Load the demo"), model, lambda: self._load(model))
        actions = [load]
        if loaded:
            name = tr("the demo") if is_demo(loaded) else model_title(loaded)
            focus = self._page.composer.setFocus
            actions.append(NoticeAction("keep", tr("Continue with {0}", name), loaded, focus))
        sentence = "" if loaded else tr("No model is loaded.")
        self._notice = Notice(NOTICE, title, sentence, tuple(actions))
        self._notice.destroyed.connect(self._forget)
        self._requested_at_offer = self._requested
        self._page.add_above(self._notice)
        self._notice.show()
        self.announced.emit(self._notice.accessibleName())
        self.shown.emit(True)

    def withdraw(self) -> None:
        """Remove the offer, if there is one."""
        if self._notice is not None:
            notice, self._notice = self._notice, None
            notice.destroyed.disconnect(self._forget)
            notice.end()
            notice.setParent(None)
            self.shown.emit(False)

    def _load(self, model: str) -> None:
        self._page.composer.setFocus()
        self.load_asked.emit(model)

    def _forget(self) -> None:
        self._notice = None
        self.shown.emit(False)
