"""What the app hears of a metered connection, on a system that knows."""

from collections.abc import Callable
from unittest.mock import Mock

import pytest
from PySide6.QtCore import QObject, Signal

from tests.window_desk import Desk


class Network(QObject):
    """Stands in for what the system knows of the connection."""

    isMeteredChanged = Signal(bool)  # noqa: N815 - Qt's name

    def __init__(self) -> None:
        super().__init__()
        self.is_metered = True

    def isMetered(self) -> bool:  # noqa: N802 - Qt's name
        return self.is_metered

    def change(self, *, is_metered: bool) -> None:
        self.is_metered = is_metered
        self.isMeteredChanged.emit(is_metered)


def make_system(monkeypatch: pytest.MonkeyPatch, network: Network | None) -> None:
    """The system of this test knows `network`, or nothing of the connection."""
    known = Mock(**{"loadBackendByFeatures.return_value": network is not None, "instance.return_value": network})
    monkeypatch.setattr("qwendesk.app.desktop.QNetworkInformation", known)
    monkeypatch.setattr("qwendesk.app.desktop.motion_is_reduced", lambda: False)


async def test_start_and_each_change_are_told(make_desk: Callable[[], Desk], monkeypatch: pytest.MonkeyPatch) -> None:
    network, told = Network(), list[bool]()
    make_system(monkeypatch, network)
    desk = make_desk()
    services = desk.parts.services.models
    monkeypatch.setattr(services.catalog, "set_metered", told.append)
    network.isMeteredChanged.connect(lambda _is_metered: None)  # PySide lets the first connection pass

    desk.parts.desktop.start()
    assert services.first_start.state.value.is_metered
    assert told == [True], "nothing is looked up automatically"

    network.change(is_metered=False)
    assert not services.first_start.state.value.is_metered
    assert told == [True, False]


async def test_system_that_knows_nothing_changes_nothing(
    make_desk: Callable[[], Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_system(monkeypatch, None)
    desk = make_desk()
    desk.parts.desktop.start()
    assert not desk.parts.services.models.first_start.state.value.is_metered
