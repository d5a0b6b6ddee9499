"""One line above an old chat while there is no model: what would fit this PC, and how to get it."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel

from qwendesk.core.units import show_bytes
from qwendesk.ui.bridges.chat import ChatBridge
from qwendesk.ui.bridges.engine import EngineBridge
from qwendesk.ui.bridges.start import StartBridge
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.wording import download_text


class NoModelStrip(QFrame):
    """The first start's offer beside a chat that has messages. An empty chat shows the first start itself."""

    all_asked = Signal()
    """Everything that fits this PC."""

    def __init__(self, keeper: ThemeKeeper, engine: EngineBridge, chat: ChatBridge, start: StartBridge) -> None:
        super().__init__()
        self._engine, self._chat, self._start = engine, chat, start
        self._is_on = self._gives_way = False
        self.setObjectName("nomodel")
        self.setProperty("kind", "notice")
        self.setAccessibleName(tr("No model is loaded"))
        self._words = QLabel()
        self._words.setObjectName("nomodel.words")
        self._words.setWordWrap(True)
        self._get = TextButton(keeper, tr("Download and start"), kind="primary")
        describe(self._get, "nomodel.download", tr("Download and start"), tr("The model recommended for this PC"))
        self._get.clicked.connect(self._on_get)
        every = TextButton(keeper, tr("Show models"))
        describe(every, "nomodel.all", tr("Show models"), tr("What fits this PC, and what is here already"))
        every.clicked.connect(self.all_asked)
        row = QHBoxLayout(self)
        row.setContentsMargins(20, 10, 12, 10)
        row.setSpacing(8)
        row.addWidget(self._words, 1)
        row.addWidget(self._get)
        row.addWidget(every)
        self.hide()
        for signal in (engine.changed, start.changed, chat.replaced, chat.turns_replaced, chat.turn_started):
            signal.connect(self._refresh)

    def begin(self) -> None:
        """From now on it shows itself when it is needed."""
        self._is_on = True
        self._refresh()

    def give_way(self, gives: bool) -> None:
        """The model that answered this chat is offered in its place."""
        self._gives_way = gives
        self._refresh()

    def _refresh(self, *_news: object) -> None:
        state, offered = self._engine.state, self._start.start
        is_wanted = state.report is None and state.wanted is None and bool(self._chat.conversation.turns)
        is_wanted = is_wanted and not self._gives_way
        self.setVisible(self._is_on and is_wanted)
        if not is_wanted:
            return
        coming, hero, found = offered.downloads, offered.offers.hero, offered.found
        quant = hero.recommended if hero is not None else None
        can_get = quant is not None and not coming and not found and not offered.is_offline
        self._get.setVisible(can_get)
        if offered.problem:
            words = offered.problem
        elif coming:
            words = tr("No model is loaded. A download is under way: {0}", download_text(coming[0]))
        elif found:
            words = tr("No model is loaded. {0} is on this PC already: choose it above (Ctrl+L).", found[0].name)
        elif can_get and hero is not None and quant is not None:
            size = show_bytes(hero.total_bytes(quant))
            words = tr("No model is loaded, so this chat cannot go on. {0}, {1}, suits this PC.", hero.id, size)
        else:
            words = tr("No model is loaded, so this chat cannot go on.")
        self._words.setText(words)

    def _on_get(self) -> None:
        hero = self._start.start.offers.hero
        if hero is not None:
            self._start.download(hero)
