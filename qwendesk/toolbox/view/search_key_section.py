"""The key for Brave Search on the settings page. It is never shown."""

from typing import Final

from PySide6.QtGui import QShowEvent

from qwendesk.core.translation import mark, tr
from qwendesk.hub.access_tokens import TokenPlace
from qwendesk.toolbox.search_key import SearchKeyService, SearchKeyState
from qwendesk.widgets.bind import bind
from qwendesk.widgets.rows.titled_card import SecretCard
from qwendesk.widgets.tasks import window_tasks

_WORDS = "search key brave api web search internet keyring token tools"
_NO_KEY = mark("No key. Only Brave Search needs one.")
_PLACES: Final[dict[TokenPlace, str]] = {
    "keyring": mark("A key for Brave Search is saved in your system's keyring."),
    "file": mark(
        "A key for Brave Search is saved in a file that only you can read, because your system has no usable keyring."
    ),
}


class SearchKeySection(SecretCard):
    """Shows where the key is saved, and changes it."""

    def __init__(self, service: SearchKeyService) -> None:
        super().__init__(
            "settings.searchkey",
            tr("Search key"),
            _WORDS,
            placeholder=tr("Paste your key for Brave Search"),
            tip=tr("Create a key at api-dashboard.search.brave.com"),
        )
        self._service, self._tasks = service, window_tasks()
        self.saved.connect(lambda key: self._tasks.start(service.save(key)))
        self.deleted.connect(lambda: self._tasks.start(service.delete()))
        bind(self, service.state, self._show)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._tasks.can_start:
            self._tasks.start(self._service.update())

    def _show(self, state: SearchKeyState) -> None:
        self.show_place(tr(_PLACES.get(state.place, _NO_KEY)), can_delete=state.place in _PLACES)
        self.show_result(state.problem)
