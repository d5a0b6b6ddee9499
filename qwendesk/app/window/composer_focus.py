"""Gives the focus to the composer when an action has ended elsewhere, so that the user can type at once."""

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication, QMainWindow

from qwendesk.chat.view.composer.composer import Composer
from qwendesk.engine.state import EngineState, Phase
from qwendesk.engines.engine_service import EngineService
from qwendesk.widgets.bind import bind_field
from qwendesk.widgets.tab_order import is_text_field


class ComposerFocus(QObject):
    """Focuses the composer when it is shown, when a load begins, after eject, and when a focused notice is closed.

    It leaves the focus where the user is typing.
    """

    def __init__(self, window: QMainWindow, composer: Composer, engine: EngineService) -> None:
        super().__init__(window)
        self._window, self._composer = window, composer
        composer.installEventFilter(self)
        bind_field(self, engine.observed, _load_state, self._on_engine)

    def take(self) -> bool:
        """Focus the composer if it can be seen and the user isn't typing elsewhere. Return True if it was focused."""
        if not self._composer.isVisible() or self._is_typing():
            return False
        self._composer.setFocus()
        return True

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._composer and event.type() == QEvent.Type.Show:
            self.take()
        return super().eventFilter(watched, event)

    def _on_engine(self, load_state: tuple[bool, bool]) -> None:
        is_loading, is_loaded = load_state
        if is_loading or not is_loaded:
            self.take()

    def _is_typing(self) -> bool:
        focused = (self._window.focusWidget(), QApplication.focusWidget())
        return any(is_text_field(widget) for widget in focused if widget is not None and widget.isVisible())


def _load_state(state: EngineState) -> tuple[bool, bool]:
    """Return whether a model is being loaded, and whether one is loaded."""
    return state.phase in (Phase.STARTING, Phase.LOADING), state.report is not None
