"""The offers service for widgets: its offers become a signal, intents become coroutines."""

from PySide6.QtCore import QObject, Signal

from qwendesk.core.app_options import AppOptions
from qwendesk.services.models.offers import Offers, OffersService
from qwendesk.services.settings import SettingsService
from qwendesk.ui.kit.tasks import Tasks


class OffersBridge(QObject):
    """The offers service for widgets."""

    changed = Signal()
    """`offers` are others now."""

    def __init__(
        self, service: OffersService, tasks: Tasks, settings: SettingsService, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._service, self._tasks = service, tasks
        self._reserve_gb = settings.options.reserve_gb
        self._unfollow = settings.subscribe(self._on_options)
        self._unsubscribe = service.subscribe(lambda _offers: self.changed.emit())

    @property
    def offers(self) -> Offers:
        return self._service.offers

    def look(self) -> None:
        """Ask what this PC has, and weigh the catalog against it."""
        self._tasks.start(self._service.look())

    def look_again(self) -> None:
        """As `look`, with the devices asked anew."""
        self._tasks.start(self._service.look_again())

    def choose_pictures(self, with_pictures: bool) -> None:
        """With or without picture files."""
        self._tasks.start(self._service.choose_pictures(with_pictures=with_pictures))

    def close(self) -> None:
        self._unsubscribe()
        self._unfollow()

    def _on_options(self, options: AppOptions) -> None:
        """Another reserve for games fits other files. Nothing before the first look."""
        before, self._reserve_gb = self._reserve_gb, options.reserve_gb
        if before != options.reserve_gb and self.offers.state != "looking":
            self.look()
