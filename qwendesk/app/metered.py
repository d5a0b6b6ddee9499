"""Tells whether this PC is on a metered connection, as far as the system knows."""

from collections.abc import Callable

from PySide6.QtNetwork import QNetworkInformation


def follow_metered(tell: Callable[[bool], None]) -> None:
    """Call `tell` now and after each change, until the program ends. Never, if the system doesn't know."""
    if not QNetworkInformation.loadBackendByFeatures(QNetworkInformation.Feature.Metered):
        return
    network = QNetworkInformation.instance()
    network.isMeteredChanged.connect(tell)
    tell(network.isMetered())
