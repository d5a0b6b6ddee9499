"""A line above an old chat while no model is loaded: the recommended model and a button to download it."""

from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel

from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes
from qwendesk.models.first_start import FirstStartService, FirstStartState
from qwendesk.models.view.offer_texts import download_text
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.tasks import window_tasks


class NoModelStrip(QFrame):
    """Shown above a chat that has messages; an empty chat shows the first start instead."""

    def __init__(self, service: FirstStartService, navigation: Navigation) -> None:
        super().__init__()
        self._service, self._tasks = service, window_tasks()
        self._is_on = self._is_replaced = self._has_messages = False
        self.setObjectName("nomodel")
        self.setProperty("kind", "notice")
        self.setAccessibleName(tr("No model is loaded"))
        self._sentence = QLabel()
        self._sentence.setObjectName("nomodel.words")
        self._sentence.setWordWrap(True)
        self._download = TextButton(tr("Download and start"), kind="primary")
        describe(
            self._download,
            "nomodel.download",
            tr("Download and start"),
            tr("Download the model recommended for this PC"),
        )
        self._download.clicked.connect(self._on_download)
        every = TextButton(tr("Show models"))
        describe(every, "nomodel.all", tr("Show models"), tr("Models that fit this PC, and those you have"))
        every.clicked.connect(lambda: navigation.models_tab_asked.emit("pc"))
        row = QHBoxLayout(self)
        row.setContentsMargins(20, 10, 12, 10)
        row.setSpacing(8)
        row.addWidget(self._sentence, 1)
        row.addWidget(self._download)
        row.addWidget(every)
        self.hide()
        bind(self, service.state, self._show)

    def begin(self) -> None:
        """From now on, show the strip whenever no model is loaded."""
        self._is_on = True
        self._refresh()

    def set_has_messages(self, has_messages: bool) -> None:
        """Set whether the chat on the page has messages."""
        self._has_messages = has_messages
        self._refresh()

    def set_replaced(self, is_replaced: bool) -> None:
        """Set whether another notice, which offers the model that answered this chat, is shown instead."""
        self._is_replaced = is_replaced
        self._refresh()

    def _refresh(self) -> None:
        self._show(self._service.state.value)

    def _show(self, offered: FirstStartState) -> None:
        is_needed = not offered.has_model and self._has_messages and not self._is_replaced
        self.setVisible(self._is_on and is_needed)
        if not is_needed:
            return
        coming, hero, found = offered.downloads, offered.offers.hero, offered.found
        quant = hero.recommended if hero is not None else None
        can_download = quant is not None and not coming and not found and not offered.is_offline
        self._download.setVisible(can_download)
        if offered.problem:
            words = offered.problem
        elif coming:
            words = tr("No model is loaded. Downloading: {0}", download_text(coming[0]))
        elif found:
            words = tr("No model is loaded. You have {0}: choose it at the top (Ctrl+L).", found[0].name)
        elif can_download and hero is not None and quant is not None:
            size = show_bytes(quant.total_bytes)
            words = tr("To continue this chat, load a model. Recommended for this PC: {0} ({1}).", hero.id, size)
        else:
            words = tr("To continue this chat, load a model.")
        self._sentence.setText(words)

    def _on_download(self) -> None:
        hero = self._service.state.value.offers.hero
        if hero is not None:
            self._tasks.start(self._service.download(hero))
