"""The sampling presets for widgets: what is kept, what the open chat uses, and what went wrong as a sentence."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.presets import Style
from qwendesk.services.chat.presets import PresetsService
from qwendesk.ui.kit.text import tr, tr_n


class PresetsBridge(QObject):
    changed = Signal()
    """What is kept, or what `words` says."""

    def __init__(self, service: PresetsService, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._service = service
        self.words, self.is_bad = service.problem, bool(service.problem)
        """What was done last, or what went wrong; "" for nothing."""
        self._unsubscribe = service.subscribe(lambda _news: self.changed.emit())

    @property
    def names(self) -> tuple[str, ...]:
        return self._service.names

    @property
    def can_undo(self) -> bool:
        """Whether what `words` says can be taken back."""
        return self._service.can_undo and bool(self.words) and not self.is_bad

    def use(self, name: str) -> bool:
        return self._do(lambda: self._service.use(name), "")

    def use_built_in(self, style: Style, *, thinking: bool) -> bool:
        return self._do(lambda: self._service.use_built_in(style, thinking=thinking), "")

    def save(self, name: str) -> bool:
        return self._do(lambda: self._service.save(name), tr('Kept as "{0}".', " ".join(name.split())))

    def rename(self, name: str, new_name: str) -> bool:
        return self._do(lambda: self._service.rename(name, new_name), "")

    def delete(self, name: str) -> bool:
        return self._do(lambda: self._service.delete(name), tr('"{0}" deleted. This chat stays as it is.', name))

    def undo(self) -> bool:
        return self._do(self._service.undo, "")

    def export(self, file: str) -> bool:
        return self._do(lambda: self._service.export(Path(file)), tr("All presets are in {0}.", Path(file).name))

    def take_in(self, file: str) -> bool:
        try:
            added = self._service.take_in(Path(file))
        except QwenDeskError as error:
            return self._say(error.sentence, is_bad=True)
        return self._say(tr_n("{0} preset added.", "{0} presets added.", added), is_bad=False)

    def hush(self) -> None:
        """What was done last is of no interest any more; what is wrong with the file is."""
        self._say(self._service.problem, is_bad=bool(self._service.problem))

    def close(self) -> None:
        self._unsubscribe()

    def _do(self, intent: Callable[[], None], words: str) -> bool:
        """Whether it was done; `words` or what went wrong is said."""
        try:
            intent()
        except QwenDeskError as error:
            return self._say(error.sentence, is_bad=True)
        return self._say(words, is_bad=False)

    def _say(self, words: str, *, is_bad: bool) -> bool:
        self.words, self.is_bad = words, is_bad
        self.changed.emit()
        return not is_bad
