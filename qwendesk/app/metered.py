"""Tells whether this PC is on a metered connection, as far as the system knows."""

from collections.abc import Callable

from PySide6.QtNetwork import QNetworkInformation


def follow_metered(tell: Callable[[bool], None]) -> None:
    """Call `tell` now and after each change. Never, if the system doesn't know.

    If `tell` is a method, its object must allow weak references. It is called as long as that object exists.
    """
    if not QNetworkInformation.loadBackendByFeatures(QNetworkInformation.Feature.Metered):
        return
    network = QNetworkInformation.instance()
    network.isMeteredChanged.connect(tell)
    tell(network.isMetered())
